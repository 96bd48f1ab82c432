"""What a reply means: an answer, or which error; and which errors are worth another attempt."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import msgspec

from redrive.core.classify import Classifier, Rule
from redrive.core.errors import (
    BadAnswer,
    GatewayError,
    QuotaExhausted,
    RateLimited,
    RequestIdConflict,
    RequestRejected,
    ServerFault,
    StreamInterrupted,
    TransportFault,
)
from redrive.core.excerpt import excerpt
from redrive.core.policy import RetryPolicy
from redrive.core.privacy import PrivacyFilter
from redrive.gateway.told import told_by
from redrive.gateway.transport import Reply
from redrive.gateway.wire import Answer, Wire

PERMANENT: Final[tuple[Rule, ...]] = (RequestRejected, QuotaExhausted, StreamInterrupted, RequestIdConflict)
RETRYABLE: Final[tuple[Rule, ...]] = (RateLimited, ServerFault, TransportFault, BadAnswer)

_WORDS: Final = 300  # of the provider's own, in an error
_KEPT: Final = 2048  # of what is no answer
_RULES: Final = Classifier()
_PRIVACY: Final = PrivacyFilter()
_UNPAID: Final = 402
_TOO_MANY: Final = 429
_SUCCESS: Final = range(200, 300)
_FAULTS: Final = (408, 409, 425)
_SERVER: Final = 500
_IDS: Final = ("x-request-id", "request-id", "apim-request-id", "x-amzn-requestid")


def with_rules(policy: RetryPolicy) -> RetryPolicy:
    """The policy that knows the gateway's errors; what its owner says of one of them goes first."""
    named = (*policy.classify.permanent, *policy.classify.retryable)
    rules = Classifier(
        permanent=(*policy.classify.permanent, *(rule for rule in PERMANENT if rule not in named)),
        retryable=(*policy.classify.retryable, *(rule for rule in RETRYABLE if rule not in named)),
    )
    return replace(policy, classify=rules)


def read_reply(reply: Reply, *, wire: Wire, now: datetime) -> Answer:
    """The answer in a reply. Raises the `GatewayError` that it stands for; `now` is for delays told as dates."""
    body = success_of(reply, now=now)
    try:
        return wire.read(body)
    except BadAnswer as error:
        raise _kept(error, reply) from None


def success_of(reply: Reply, *, now: datetime) -> dict[str, Any]:
    """The JSON object in a reply that is a success. Raises the `GatewayError` that any other one stands for."""
    if reply.status not in _SUCCESS:
        raise fault_of(reply.status, reply.headers, _decoded(reply.body), now=now)
    kind = reply.headers.get("content-type", "")
    if not reply.body:
        raise _kept(BadAnswer("the answer is empty"), reply)
    if kind and "json" not in kind.lower():
        raise _kept(BadAnswer(f"the answer is {excerpt(kind, limit=60)}, not JSON"), reply)
    body = _decoded(reply.body)
    if not isinstance(body, dict):
        raise _kept(BadAnswer("the answer is no JSON object"), reply)
    if body.get("error"):
        raise _kept(error_inside(body, reply.headers, now=now), reply)
    return body


def _kept(error: GatewayError, reply: Reply) -> GatewayError:
    """The error with what was taken for an answer, for those who look into it."""
    error.status_code = reply.status
    error.provider_request_id = provider_id(reply.headers)
    if isinstance(error, BadAnswer):
        error.answer = _PRIVACY.text(excerpt(reply.body[: 2 * _KEPT].decode("utf-8", "backslashreplace"), limit=_KEPT))
    return error


def error_inside(body: Mapping[str, Any], headers: Mapping[str, str], *, now: datetime) -> GatewayError:
    """What an error in a success stands for: transient, unless it is about money."""
    codes, words = _said(body)
    if _is_unpaid(codes):
        return _made(QuotaExhausted, "an error in a success", headers, codes, words)
    error = _made(BadAnswer, "an error in a success", headers, codes, words)
    error.retry_after = told_by(headers, now=now)
    return error


def fault_of(status: int, headers: Mapping[str, str], body: Any, *, now: datetime) -> GatewayError:
    """The error that an HTTP status stands for. `x-should-retry` has the last word, except about money."""
    codes, words = _said(body)
    should = headers.get("x-should-retry", "").strip().lower()
    kind: type[GatewayError]
    if status == _UNPAID or (status < _SERVER and _is_unpaid(codes)):
        kind = QuotaExhausted
    elif should == "false":
        kind = RequestRejected
    elif status == _TOO_MANY:
        kind = RateLimited
    elif status >= _SERVER or status in _FAULTS or should == "true":
        kind = ServerFault
    else:
        kind = RequestRejected
    error = _made(kind, f"HTTP {status}", headers, codes, words)
    error.status_code = status
    error.retry_after = told_by(headers, now=now) if kind in (RateLimited, ServerFault) else None
    return error


def provider_id(headers: Mapping[str, str]) -> str:
    """The provider's own name for this call, for those who ask its support."""
    return next((excerpt(headers[name], limit=200) for name in _IDS if name in headers), "")


def _made(
    kind: type[GatewayError], what: str, headers: Mapping[str, str], codes: tuple[str, ...], words: str
) -> GatewayError:
    code = codes[0] if codes else None
    why = what + (f" ({code})" if code else "") + (f": {words}" if words else "")
    return kind(why, code=code, provider_request_id=provider_id(headers))


def _said(body: Any) -> tuple[tuple[str, ...], str]:
    """The error codes in a body, the most telling first, and the provider's words."""
    inside = body.get("error") if isinstance(body, dict) else None
    if not isinstance(inside, dict):
        words = inside if isinstance(inside, str) else ""
        inside = body if isinstance(body, dict) and not words else {"message": words}
    found = [inside.get(name) for name in ("code", "type", "status")]
    codes = tuple(excerpt(one, limit=100) for one in found if isinstance(one, str) and one and one != "error")
    words = inside.get("message") or inside.get("detail") or ""
    return codes, _PRIVACY.text(excerpt(words, limit=_WORDS)) if isinstance(words, str) else ""


def _is_unpaid(codes: tuple[str, ...]) -> bool:
    """Whether a code is about money: the rule is the core's, the same for every handler."""
    return any(not _RULES(RateLimited(status_code=_TOO_MANY, code=code)).retry for code in codes)


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
