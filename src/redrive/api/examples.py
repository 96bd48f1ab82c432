"""Examples for the OpenAPI document. A test compares each with what the API says."""

from typing import Any

_LIFE = {"state": "open", "generation": 0, "version": 1}

LINE: dict[str, Any] = {
    "letter_id": "5f2b8c0d9e1a4736b8c0d9e1a4736f2b",
    **_LIFE,
    "kind": "message",
    "broker": "redis",
    "queue": "orders",
    "group": "shop",
    "reason": "attempts_exhausted",
    "error_type": "KeyError",
    "error_message": "'customer'",
    "error_code": None,
    "fingerprint": "0123456789abcdef",
    "retry_count": 4,
    "failed_at": "2026-01-31T08:00:00Z",
    "original_message_id": "1769846400000-0",
    "user_id": "user-1",
    "tenant_id": None,
    "app_version": "4f2c",
    "dlq_entry_id": "1769846407000-0",
    "note": "",
}

MESSAGE: dict[str, Any] = {
    "message_id": LINE["letter_id"],
    "payload": '{"order": 4711}',
    "payload_encoding": None,
    "payload_masked": False,
    "payload_sha256": "d0d4ff1c92b43fa1a7d2a8a2a33cbb9d3b5fdeee9b3a6cdb4d3c1f4f5ce5cf2e",
    "content_type": "application/json",
    **{name: value for name, value in LINE.items() if name != "letter_id"},
}

WHOLE_MESSAGE: dict[str, Any] = {
    **MESSAGE,
    "headers": [["traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"]],
    "context": {"region": "eu"},
    "handler": "shop.charge",
    "node": "worker-1",
    "pid": 4711,
    "severity": None,
    "stack": None,
    "trace_id": None,
    "task_type": None,
    "first_failed_at": "2026-01-31T07:59:53Z",
    "received_at": "2026-01-31T07:59:53Z",
    "dlq_published_at": "2026-01-31T08:00:00Z",
    "collected_at": "2026-01-31T08:00:00Z",
    "attempts": [
        {
            "number": 4,
            "generation": 0,
            "started_at": "2026-01-31T08:00:00Z",
            "ended_at": "2026-01-31T08:00:00Z",
            "error_type": "KeyError",
            "error_message": "'customer'",
            "error_code": None,
            "crash": False,
            "node": "worker-1",
        }
    ],
    "history": [],
}

STATS: dict[str, Any] = {
    "queue_name": "orders",
    "total_messages": 1500,
    "by_error_type": {"KeyError": 1000, "TimeoutError": 500},
    "oldest_message_at": "2026-01-30T22:14:07Z",
    "newest_message_at": "2026-01-31T08:00:00Z",
    "by_state": {"open": 1499, "parked": 1},
    "by_reason": {"attempts_exhausted": 1500},
    "by_queue": {"orders": 1500},
}

WHOLE: dict[str, Any] = {
    "letter": {
        "letter_id": LINE["letter_id"],
        "queue": "orders",
        "payload": '{"order": 4711}',
        "payload_sha256": MESSAGE["payload_sha256"],
        "reason": "attempts_exhausted",
        "error_type": "KeyError",
        "failed_at": "2026-01-31T08:00:00+00:00",
    },
    "validation_error": None,
    **_LIFE,
    "note": "",
    "edits": [],
    "outcomes": [],
    "redrive_ids": [],
    "masked": False,
}

LIFE: dict[str, Any] = {"letter_id": LINE["letter_id"], "state": "resolved", "generation": 1, "version": 3}


def shown(example: Any, *, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """An example of the answer, for a route's `responses`."""
    return {status: {"content": {"application/json": {"example": example}}}}
