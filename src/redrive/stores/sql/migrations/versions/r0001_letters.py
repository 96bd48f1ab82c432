"""Letters, counts, redrives and the audit."""

import sqlalchemy as sa
from alembic import op

from redrive.stores.sql.types import TEXT

revision = "0001"
down_revision = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_OWNED = sa.text("user_id IS NOT NULL")
_OUT = sa.text("status IN ('claimed', 'sent')")


def upgrade() -> None:
    """Create the tables."""
    _numbers()
    _letters()
    _bodies()
    _history()
    _counts()
    _incidents()
    _redrives()
    _items()
    _audit()


def _numbers() -> None:
    op.create_table(
        "counter",
        sa.Column("name", TEXT, primary_key=True),
        sa.Column("last", _NUMBER, nullable=False),
    )


def _letters() -> None:
    op.create_table(
        "letter",
        sa.Column("seq", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("letter_id", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("generation", _NUMBER, nullable=False),
        sa.Column("version", _NUMBER, nullable=False),
        sa.Column("died_in", _NUMBER, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("broker", TEXT, nullable=False),
        sa.Column("queue", TEXT, nullable=False),
        sa.Column("grp", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("error_type", TEXT, nullable=False),
        sa.Column("error_message", TEXT, nullable=False),
        sa.Column("error_code", TEXT),
        sa.Column("fingerprint", TEXT, nullable=False),
        sa.Column("retry_count", _NUMBER, nullable=False),
        sa.Column("failed_at", _NUMBER, nullable=False),
        sa.Column("original_message_id", TEXT, nullable=False),
        sa.Column("user_id", TEXT),
        sa.Column("tenant_id", TEXT),
        sa.Column("app_version", TEXT, nullable=False),
        sa.Column("note", TEXT, nullable=False),
        sa.UniqueConstraint("letter_id"),
    )
    op.create_index("letter_state", "letter", ["state", "seq"])
    op.create_index("letter_queue", "letter", ["queue", "state", "seq"])
    op.create_index("letter_fingerprint", "letter", ["fingerprint", "state", "seq"])
    op.create_index("letter_error_type", "letter", ["error_type", "state", "seq"])
    op.create_index("letter_user", "letter", ["user_id", "seq"], sqlite_where=_OWNED, postgresql_where=_OWNED)
    op.create_index("letter_failed_at", "letter", ["queue", "failed_at"])


def _bodies() -> None:
    op.create_table(
        "letter_body",
        sa.Column("seq", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("payload", sa.LargeBinary),
        sa.Column("payload_sha256", TEXT, nullable=False),
        sa.Column("key", sa.LargeBinary),
        sa.Column("headers", sa.LargeBinary),
        sa.Column("content_type", TEXT, nullable=False),
        sa.Column("context", sa.LargeBinary),
        sa.Column("attempts", sa.LargeBinary),
        sa.Column("handler", TEXT, nullable=False),
        sa.Column("node", TEXT, nullable=False),
        sa.Column("pid", _NUMBER, nullable=False),
        sa.Column("severity", TEXT),
        sa.Column("stack", TEXT),
        sa.Column("trace_id", TEXT),
        sa.Column("task_type", TEXT),
        sa.Column("first_failed_at", _NUMBER),
        sa.Column("received_at", _NUMBER),
        sa.Column("dlq_published_at", _NUMBER),
        sa.Column("collected_at", _NUMBER),
    )


def _history() -> None:
    op.create_table(
        "letter_edit",
        sa.Column("letter_id", TEXT, nullable=False),
        sa.Column("number", _NUMBER, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("headers", sa.LargeBinary),
        sa.Column("by", TEXT, nullable=False),
        sa.Column("edited_at", _NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("letter_id", "number"),
    )
    op.create_table(
        "outcome",
        sa.Column("letter_id", TEXT, nullable=False),
        sa.Column("generation", _NUMBER, nullable=False),
        sa.Column("succeeded", sa.Boolean, nullable=False),
        sa.Column("reported_at", _NUMBER, nullable=False),
        sa.Column("queue", TEXT, nullable=False),
        sa.Column("grp", TEXT, nullable=False),
        sa.Column("message_id", TEXT, nullable=False),
        sa.Column("attempts", _NUMBER, nullable=False),
        sa.Column("app_version", TEXT, nullable=False),
        sa.Column("node", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("letter_id", "generation", "succeeded"),
    )
    op.create_table(
        "tombstone",
        sa.Column("letter_id", TEXT, primary_key=True),
        sa.Column("generation", _NUMBER, nullable=False),
    )


def _counts() -> None:
    op.create_table(
        "tally_state",
        sa.Column("queue", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("error_type", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("n", _NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("queue", "state", "error_type", "reason"),
    )
    op.create_table(
        "arrivals",
        sa.Column("hour", _NUMBER, nullable=False),
        sa.Column("queue", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("n", _NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("hour", "queue", "reason"),
    )


def _incidents() -> None:
    op.create_table(
        "incident",
        sa.Column("fingerprint", TEXT, primary_key=True),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("error_type", TEXT, nullable=False),
        sa.Column("error_message", TEXT, nullable=False),
        sa.Column("open", _NUMBER, nullable=False),
        sa.Column("total", _NUMBER, nullable=False),
        sa.Column("first_at", _NUMBER, nullable=False),
        sa.Column("last_at", _NUMBER, nullable=False),
        sa.Column("note", TEXT, nullable=False),
        sa.Column("assignee", TEXT, nullable=False),
    )
    op.create_index("incident_state", "incident", ["state", "last_at", "fingerprint"])
    op.create_index("incident_last_at", "incident", ["last_at", "fingerprint"])
    op.create_table(
        "incident_hour",
        sa.Column("fingerprint", TEXT, nullable=False),
        sa.Column("hour", _NUMBER, nullable=False),
        sa.Column("n", _NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", "hour"),
    )
    op.create_table(
        "incident_queue",
        sa.Column("fingerprint", TEXT, nullable=False),
        sa.Column("queue", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", "queue"),
    )


def _redrives() -> None:
    op.create_table(
        "redrive",
        sa.Column("seq", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("redrive_id", TEXT, nullable=False, unique=True),
        sa.Column("operation_id", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("why", TEXT, nullable=False),
        sa.Column("accepted", _NUMBER, nullable=False),
        sa.Column("created_at", _NUMBER, nullable=False),
        sa.Column("ended_at", _NUMBER),
        sa.Column("by", TEXT, nullable=False),
        sa.Column("selection", TEXT, nullable=False),
        sa.Column("total", _NUMBER, nullable=False),
        sa.Column("steps", sa.LargeBinary),
        sa.Column("rate", sa.Float),
        sa.Column("to", TEXT, nullable=False),
        sa.Column("target_queue", TEXT),
        sa.Column("confirm", TEXT, nullable=False),
        sa.Column("report_within", sa.Float, nullable=False),
        sa.Column("over_cap", sa.Boolean, nullable=False),
        sa.Column("again", sa.Boolean, nullable=False),
        sa.Column("targets", sa.LargeBinary),
        sa.Column("failed_on", sa.LargeBinary),
        sa.Column("owner", TEXT, nullable=False),
        sa.Column("owned_until", _NUMBER),
    )
    op.create_index("redrive_state", "redrive", ["state", "seq"])


def _items() -> None:
    op.create_table(
        "redrive_item",
        sa.Column("redrive_id", TEXT, nullable=False),
        sa.Column("letter_id", TEXT, nullable=False),
        sa.Column("step", _NUMBER, nullable=False),
        sa.Column("place", _NUMBER, nullable=False),
        sa.Column("version", _NUMBER, nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("generation", _NUMBER),
        sa.Column("fingerprint", TEXT, nullable=False),
        sa.Column("message_id", TEXT, nullable=False),
        sa.Column("sent_at", _NUMBER),
        sa.Column("app_version", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("redrive_id", "letter_id"),
    )
    op.create_index("redrive_item_status", "redrive_item", ["redrive_id", "step", "status", "place", "app_version"])
    op.create_index("redrive_item_letter", "redrive_item", ["letter_id", "generation"])
    op.create_index(
        "redrive_item_out", "redrive_item", ["letter_id"], unique=True, sqlite_where=_OUT, postgresql_where=_OUT
    )


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("seq", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("at", _NUMBER, nullable=False),
        sa.Column("who", TEXT, nullable=False),
        sa.Column("verb", TEXT, nullable=False),
        sa.Column("operation_id", TEXT, nullable=False),
        sa.Column("letter_id", TEXT, nullable=False),
        sa.Column("selection", TEXT, nullable=False),
        sa.Column("count", _NUMBER),
        sa.Column("before_sha256", TEXT, nullable=False),
        sa.Column("after_sha256", TEXT, nullable=False),
        sa.Column("detail", sa.LargeBinary),
        sa.Column("previous_hash", TEXT, nullable=False),
        sa.Column("hash", TEXT, nullable=False),
    )
    op.create_index("audit_letter", "audit", ["letter_id", "seq"])
    op.create_index("audit_operation", "audit", ["operation_id", "letter_id"])
