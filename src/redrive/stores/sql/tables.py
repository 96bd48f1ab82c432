"""The tables. Lists read only `letter`; what is large lies apart in `letter_body` and `letter_text`.

Counts are kept, never counted: a tally for each question that people ask often. On SQLite a table of short rows that is
found by its key alone is that key's index, and nothing beside it (no rowid). A change here needs a migration.
"""

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    Index,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
    text,
)

from redrive.stores.sql.types import Bytes, Instant, Json, Number, Text

metadata = MetaData()

_REOPENED = text("news <> seq")
_OWNED = text("user_id IS NOT NULL")
DUE = text("status IN ('planned', 'claimed')")
SENT = text("status = 'sent'")
_OPERATION = text("letter_id = ''")

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
    Column("news", Number, nullable=False),  # the number of when it came or reopened last: `seq` at first
    Column("letter_id", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("settled", Boolean, nullable=False),  # all that most indexes know of the state
    Column("generation", Number, nullable=False),
    Column("version", Number, nullable=False),
    Column("died_in", Number, nullable=False),  # the generation of the death that is shown
    Column("kind", Text, nullable=False),
    Column("broker", Text, nullable=False),
    Column("queue", Text, nullable=False),
    Column("grp", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("error_type", Text, nullable=False),
    Column("error_message", Text, nullable=False),
    Column("error_code", Text),
    Column("fingerprint", Text, nullable=False),
    Column("retry_count", Number, nullable=False),
    Column("failed_at", Instant, nullable=False),
    Column("original_message_id", Text, nullable=False),
    Column("user_id", Text),
    Column("tenant_id", Text),
    Column("app_version", Text, nullable=False),
    Column("dlq_entry_id", Text, nullable=False),
    Column("note", Text, nullable=False),
    UniqueConstraint("letter_id"),
    Index("letter_state", "state", "seq"),
    Index("letter_queue", "queue", "settled", "seq"),
    Index("letter_fingerprint", "fingerprint", "settled", "seq"),
    Index("letter_error_type", "error_type", "settled", "seq"),
    Index("letter_user", "user_id", "seq", sqlite_where=_OWNED, postgresql_where=_OWNED),
    Index("letter_failed_at", "queue", "state", "failed_at"),
    Index("letter_dlq_entry", "dlq_entry_id", "seq"),
    Index("letter_news", "news", sqlite_where=_REOPENED, postgresql_where=_REOPENED),
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
    Column("pid", Number, nullable=False),
    Column("severity", Text),
    Column("stack", Text),
    Column("trace_id", Text),
    Column("task_type", Text),
    Column("first_failed_at", Instant),
    Column("received_at", Instant),
    Column("dlq_published_at", Instant),
    Column("collected_at", Instant),
)

letter_text = Table(  # what a search for text looks at; what is indexed belongs to the database at hand
    "letter_text",
    metadata,
    Column("seq", Number, primary_key=True, autoincrement=False),
    Column("text", String, nullable=False),  # holds nothing that would have to be escaped
)

letter_edit = Table(
    "letter_edit",
    metadata,
    Column("letter_id", Text, nullable=False),
    Column("number", Number, nullable=False),
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
    Column("generation", Number, nullable=False),
    Column("succeeded", Boolean, nullable=False),
    Column("reported_at", Instant, nullable=False),
    Column("queue", Text, nullable=False),
    Column("grp", Text, nullable=False),
    Column("message_id", Text, nullable=False),
    Column("attempts", Number, nullable=False),
    Column("app_version", Text, nullable=False),
    Column("node", Text, nullable=False),
    PrimaryKeyConstraint("letter_id", "generation", "succeeded"),
    sqlite_with_rowid=False,
)

past_death = Table(  # all deaths of a letter but the one in its `died_in`: few letters have any
    "past_death",
    metadata,
    Column("letter_id", Text, nullable=False),
    Column("generation", Number, nullable=False),
    PrimaryKeyConstraint("letter_id", "generation"),
    sqlite_with_rowid=False,
)

tombstone = Table(
    "tombstone",
    metadata,
    Column("letter_id", Text, primary_key=True),
    Column("generation", Number, nullable=False),
    sqlite_with_rowid=False,
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
    sqlite_with_rowid=False,
)

tally_death = Table(  # every death once in each dimension, by its name there
    "tally_death",
    metadata,
    Column("dimension", Text, nullable=False),  # reason, error_type, error_code
    Column("hour", Instant, nullable=False),
    Column("name", Text, nullable=False),
    Column("queue", Text, nullable=False),
    Column("n", Number, nullable=False),
    PrimaryKeyConstraint("dimension", "hour", "name", "queue"),
    sqlite_with_rowid=False,
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
    Column("relapses", Number, nullable=False),
    Column("muted_until", Instant),
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
    sqlite_with_rowid=False,
)

incident_queue = Table(
    "incident_queue",
    metadata,
    Column("fingerprint", Text, nullable=False),
    Column("queue", Text, nullable=False),
    PrimaryKeyConstraint("fingerprint", "queue"),
    sqlite_with_rowid=False,
)

redrive = Table(
    "redrive",
    metadata,
    Column("seq", Number, primary_key=True, autoincrement=False),
    Column("redrive_id", Text, nullable=False, unique=True),
    Column("operation_id", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("accepted", Number, nullable=False),
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

redrive_item = Table(  # in the order of their turns, which is that in which they are read and changed
    "redrive_item",
    metadata,
    Column("seq", Number, primary_key=True, autoincrement=False),
    Column("redrive_id", Text, nullable=False),
    Column("letter_id", Text, nullable=False),
    Column("step", Number, nullable=False),
    Column("version", Number, nullable=False),
    Column("status", Text, nullable=False),
    Column("generation", Number),
    Column("fingerprint", Text, nullable=False),  # as it was when the letter was claimed
    Column("message_id", Text, nullable=False),
    Column("sent_at", Instant),
    Column("app_version", Text, nullable=False),
    Index("redrive_item_letter", "letter_id", "redrive_id", unique=True),
    Index("redrive_item_due", "redrive_id", "step", "seq", sqlite_where=DUE, postgresql_where=DUE),
    Index("redrive_item_sent", "redrive_id", "sent_at", sqlite_where=SENT, postgresql_where=SENT),
)

redrive_tally = Table(
    "redrive_tally",
    metadata,
    Column("redrive_id", Text, nullable=False),
    Column("step", Number, nullable=False),
    Column("status", Text, nullable=False),
    Column("app_version", Text, nullable=False),
    Column("n", Number, nullable=False),
    PrimaryKeyConstraint("redrive_id", "step", "status", "app_version"),
    sqlite_with_rowid=False,
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
    Index("audit_operation", "operation_id", sqlite_where=_OPERATION, postgresql_where=_OPERATION),
)

token = Table(
    "token",
    metadata,
    Column("token_id", Text, primary_key=True),
    Column("sha256", Text, nullable=False, unique=True),  # of the secret, which is kept nowhere
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("expires_at", Instant),
    Column("revoked_at", Instant),
)

memo = Table(
    "memo",
    metadata,
    Column("name", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("owned_until", Instant, nullable=False),
    Column("body", Bytes, nullable=False),
)
