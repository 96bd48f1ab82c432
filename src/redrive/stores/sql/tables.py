"""The tables. Lists read only `letter`; what is large lies apart in `letter_body` and `letter_text`.

Counts are kept, never counted: a tally for each question that people ask often. A change here needs a migration.
"""

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
    text,
)

from redrive.stores.sql.types import Bytes, Instant, Json, Number, Text

metadata = MetaData()

_OWNED = text("user_id IS NOT NULL")
_OUT = text("status IN ('claimed', 'sent')")

counter = Table(  # numbers are given in the order of commits, and never twice
    "counter",
    metadata,
    Column("name", Text, primary_key=True),
    Column("last", Number, nullable=False),
)

letter = Table(
    "letter",
    metadata,
    Column("seq", Number, primary_key=True, autoincrement=False),
    Column("letter_id", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("died_in", Integer, nullable=False),  # the generation of the death that is shown
    Column("kind", Text, nullable=False),
    Column("broker", Text, nullable=False),
    Column("queue", Text, nullable=False),
    Column("grp", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("error_type", Text, nullable=False),
    Column("error_message", Text, nullable=False),
    Column("error_code", Text),
    Column("fingerprint", Text, nullable=False),
    Column("retry_count", Integer, nullable=False),
    Column("failed_at", Instant, nullable=False),
    Column("original_message_id", Text, nullable=False),
    Column("user_id", Text),
    Column("tenant_id", Text),
    Column("app_version", Text, nullable=False),
    Column("note", Text, nullable=False),
    UniqueConstraint("letter_id"),
    Index("letter_state", "state", "seq"),
    Index("letter_queue", "queue", "state", "seq"),
    Index("letter_fingerprint", "fingerprint", "state", "seq"),
    Index("letter_error_type", "error_type", "state", "seq"),
    Index("letter_user", "user_id", "seq", sqlite_where=_OWNED, postgresql_where=_OWNED),
    Index("letter_failed_at", "queue", "failed_at"),
)

letter_body = Table(
    "letter_body",
    metadata,
    Column("seq", Number, primary_key=True, autoincrement=False),
    Column("payload", Bytes),
    Column("payload_sha256", Text, nullable=False),
    Column("key", Bytes),
    Column("headers", Json),
    Column("content_type", Text, nullable=False),
    Column("context", Json),
    Column("attempts", Json),
    Column("handler", Text, nullable=False),
    Column("node", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("severity", Text),
    Column("stack", Text),
    Column("trace_id", Text),
    Column("task_type", Text),
    Column("first_failed_at", Instant),
    Column("received_at", Instant),
    Column("dlq_published_at", Instant),
    Column("collected_at", Instant),
)

letter_text = Table(  # what a search for text looks at; the index on it belongs to the database at hand
    "letter_text",
    metadata,
    Column("seq", Number, primary_key=True, autoincrement=False),
    Column("text", String, nullable=False),  # holds nothing that would have to be escaped
)

letter_edit = Table(
    "letter_edit",
    metadata,
    Column("letter_id", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("body", Bytes, nullable=False),
    Column("headers", Json),
    Column("by", Text, nullable=False),
    Column("edited_at", Instant, nullable=False),
    PrimaryKeyConstraint("letter_id", "number"),
)

outcome = Table(
    "outcome",
    metadata,
    Column("letter_id", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("succeeded", Boolean, nullable=False),
    Column("reported_at", Instant, nullable=False),
    Column("queue", Text, nullable=False),
    Column("grp", Text, nullable=False),
    Column("message_id", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("app_version", Text, nullable=False),
    Column("node", Text, nullable=False),
    PrimaryKeyConstraint("letter_id", "generation", "succeeded"),
)

past_death = Table(  # all deaths of a letter but the one in its `died_in`: few letters have any
    "past_death",
    metadata,
    Column("letter_id", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    PrimaryKeyConstraint("letter_id", "generation"),
)

tombstone = Table(
    "tombstone",
    metadata,
    Column("letter_id", Text, primary_key=True),
    Column("generation", Integer, nullable=False),
)

tally_state = Table(
    "tally_state",
    metadata,
    Column("queue", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("error_type", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("n", Number, nullable=False),
    PrimaryKeyConstraint("queue", "state", "error_type", "reason"),
)

arrivals = Table(
    "arrivals",
    metadata,
    Column("hour", Instant, nullable=False),
    Column("queue", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("n", Number, nullable=False),
    PrimaryKeyConstraint("hour", "queue", "reason"),
)

incident = Table(
    "incident",
    metadata,
    Column("fingerprint", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("error_type", Text, nullable=False),
    Column("error_message", Text, nullable=False),
    Column("open", Number, nullable=False),
    Column("total", Number, nullable=False),
    Column("first_at", Instant, nullable=False),
    Column("last_at", Instant, nullable=False),
    Column("note", Text, nullable=False),
    Column("assignee", Text, nullable=False),
    Index("incident_state", "state", "last_at", "fingerprint"),
    Index("incident_last_at", "last_at", "fingerprint"),
)

incident_hour = Table(
    "incident_hour",
    metadata,
    Column("fingerprint", Text, nullable=False),
    Column("hour", Instant, nullable=False),
    Column("n", Number, nullable=False),
    PrimaryKeyConstraint("fingerprint", "hour"),
)

incident_queue = Table(
    "incident_queue",
    metadata,
    Column("fingerprint", Text, nullable=False),
    Column("queue", Text, nullable=False),
    PrimaryKeyConstraint("fingerprint", "queue"),
)

redrive = Table(
    "redrive",
    metadata,
    Column("seq", Number, primary_key=True, autoincrement=False),
    Column("redrive_id", Text, nullable=False, unique=True),
    Column("operation_id", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("accepted", Integer, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("ended_at", Instant),
    Column("by", Text, nullable=False),
    Column("selection", Text, nullable=False),
    Column("total", Number, nullable=False),
    Column("steps", Json),
    Column("rate", Float),
    Column("to", Text, nullable=False),
    Column("target_queue", Text),
    Column("confirm", Text, nullable=False),
    Column("report_within", Float, nullable=False),
    Column("over_cap", Boolean, nullable=False),
    Column("again", Boolean, nullable=False),
    Column("targets", Json),
    Column("failed_on", Json),
    Column("owner", Text, nullable=False),
    Column("owned_until", Instant),
    Index("redrive_state", "state", "seq"),
)

redrive_item = Table(
    "redrive_item",
    metadata,
    Column("redrive_id", Text, nullable=False),
    Column("letter_id", Text, nullable=False),
    Column("step", Integer, nullable=False),
    Column("place", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("generation", Integer),
    Column("fingerprint", Text, nullable=False),  # as it was when the letter was claimed
    Column("message_id", Text, nullable=False),
    Column("sent_at", Instant),
    Column("app_version", Text, nullable=False),
    PrimaryKeyConstraint("redrive_id", "letter_id"),
    Index("redrive_item_status", "redrive_id", "step", "status", "place", "app_version"),
    Index("redrive_item_letter", "letter_id", "generation"),
    Index(
        "redrive_item_out",
        "letter_id",
        unique=True,
        sqlite_where=_OUT,
        postgresql_where=_OUT,
    ),
)

audit = Table(
    "audit",
    metadata,
    Column("seq", Number, primary_key=True, autoincrement=False),
    Column("at", Instant, nullable=False),
    Column("who", Text, nullable=False),
    Column("verb", Text, nullable=False),
    Column("operation_id", Text, nullable=False),
    Column("letter_id", Text, nullable=False),
    Column("selection", Text, nullable=False),
    Column("count", Number),
    Column("before_sha256", Text, nullable=False),
    Column("after_sha256", Text, nullable=False),
    Column("detail", Json),
    Column("previous_hash", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Index("audit_letter", "letter_id", "seq"),
    Index("audit_operation", "operation_id", "letter_id"),
)
