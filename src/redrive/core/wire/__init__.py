"""The forms a dead letter takes outside: written by us, or by others and read as well as can be."""

from redrive.core.wire.digest import entry_body, from_digest, to_digest
from redrive.core.wire.document import from_json, to_json
from redrive.core.wire.embedded import from_embedded, to_embedded
from redrive.core.wire.event import from_event
from redrive.core.wire.fields import Split, from_fields, split_fields, to_fields
from redrive.core.wire.overflow import bounded
from redrive.core.wire.reader import read_letter
from redrive.core.wire.record import Entry
from redrive.core.wire.report import dump_outcome, load_outcome

__all__ = [
    "Entry",
    "Split",
    "bounded",
    "dump_outcome",
    "entry_body",
    "from_digest",
    "from_embedded",
    "from_event",
    "from_fields",
    "from_json",
    "load_outcome",
    "read_letter",
    "split_fields",
    "to_digest",
    "to_embedded",
    "to_fields",
    "to_json",
]
