"""The tables of the file, and the number that names a row.

    queue ─┬─ lane ─┬─ fresh     a log: what was published; up to the lane's cursor it is in hand, after it it waits
           │        ├─ tracked   messages with a story of their own: scheduled, suspect, held, redriven
           │        ├─ alive     workers heard of
           │        └─ hold      one handing-over of many messages to one worker
           │             ├─ lapsing     rows whose own lease is shorter than their hold's
           │             └─ given_back  rows that left it without being settled
    once   what must not happen twice: letters sent back, letters written

A message's row id is `lane << 43 | seq`, in `fresh` and `tracked` alike. So a lane is one stretch of each table, what
a fetch takes is one range, and acking all of it is one range delete, without any further index to keep.

A row of `fresh` at or before its lane's cursor belongs to exactly one hold, the one that spans it. Taking it away
from that hold means moving it to `tracked`: that the row is still in `fresh` *is* the fence.
"""

from typing import Final

APPLICATION_ID: Final = 0x52647276  # "Rdrv"
VERSION: Final = 3
UPGRADES: Final = {2: ("ALTER TABLE alive ADD COLUMN state TEXT NOT NULL DEFAULT ''",)}
"""What brings a file of an earlier version to the next one, by the version it has."""

SEQ_BITS: Final = 43
SEQ_MASK: Final = (1 << SEQ_BITS) - 1
MOST_LANES: Final = 1 << (63 - SEQ_BITS)

NOBODY: Final = ""  # the group of a lane that waits for the first group to subscribe

# Instants are microseconds since 1970. `body` stands last, so that reading the rest never walks a long body.
TABLES: Final = (
    """CREATE TABLE queue (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        incarnation TEXT NOT NULL,
        tail INTEGER NOT NULL DEFAULT 0  -- the last seq given out; never goes back
    )""",
    """CREATE TABLE lane (
        id INTEGER PRIMARY KEY,
        queue INTEGER NOT NULL REFERENCES queue,
        grp TEXT NOT NULL,
        cursor INTEGER NOT NULL DEFAULT 0,  -- the last seq of fresh that was handed out
        backlog INTEGER NOT NULL DEFAULT 0,  -- rows of fresh after the cursor
        paused TEXT,
        UNIQUE (queue, grp)
    )""",
    """CREATE TABLE fresh (
        id INTEGER PRIMARY KEY,
        published_at INTEGER NOT NULL,
        expires_at INTEGER,
        key BLOB,
        headers BLOB,
        body BLOB NOT NULL
    )""",
    """CREATE TABLE tracked (
        id INTEGER PRIMARY KEY,
        lane INTEGER NOT NULL REFERENCES lane,
        state TEXT NOT NULL CHECK (state IN ('due', 'taken', 'suspect', 'held')),
        due_at INTEGER NOT NULL,
        hold INTEGER,  -- who has it; of a suspect: the hold under which it ran alone when its worker died
        failures INTEGER NOT NULL DEFAULT 0,
        crashes INTEGER NOT NULL DEFAULT 0,
        generation INTEGER NOT NULL DEFAULT 0,
        letter_id TEXT,
        attempts_allowed INTEGER,
        first_attempt_at INTEGER,
        trail BLOB,
        origin TEXT,
        published_at INTEGER NOT NULL,
        expires_at INTEGER,
        key BLOB,
        headers BLOB,
        body BLOB NOT NULL
    )""",
    "CREATE INDEX tracked_due ON tracked (lane, state, due_at, published_at)",
    "CREATE INDEX tracked_hold ON tracked (hold) WHERE hold IS NOT NULL",
    """CREATE TABLE hold (
        id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again: a late settle must not meet a newer hold
        lane INTEGER NOT NULL REFERENCES lane,
        owner TEXT NOT NULL,
        process TEXT NOT NULL,  -- what is needed to prove it dead; empty if nothing can
        alone INTEGER NOT NULL,
        taken_at INTEGER NOT NULL,
        lease_until INTEGER NOT NULL,
        lo INTEGER,  -- the rows of fresh that it spans
        hi INTEGER,
        ended_at INTEGER,  -- set when it was taken from its owner
        ended TEXT
    )""",
    """CREATE TABLE lapsing (
        hold INTEGER NOT NULL,
        id INTEGER NOT NULL,
        lease_until INTEGER NOT NULL,
        PRIMARY KEY (hold, id)
    ) WITHOUT ROWID""",
    """CREATE TABLE given_back (
        hold INTEGER NOT NULL,
        id INTEGER NOT NULL,
        at INTEGER NOT NULL,
        PRIMARY KEY (hold, id)
    ) WITHOUT ROWID""",
    "CREATE INDEX given_back_at ON given_back (at)",
    """CREATE TABLE once (
        key TEXT PRIMARY KEY,
        message_id TEXT NOT NULL,
        at INTEGER NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX once_at ON once (at)",
    """CREATE TABLE alive (
        lane INTEGER NOT NULL REFERENCES lane,
        owner TEXT NOT NULL,
        host TEXT NOT NULL,
        pid INTEGER NOT NULL,
        process TEXT NOT NULL,  -- as in hold
        version TEXT NOT NULL,
        paused TEXT,
        state TEXT NOT NULL DEFAULT '',
        seen_at INTEGER NOT NULL,
        PRIMARY KEY (lane, owner)
    ) WITHOUT ROWID""",
)

# From fresh to tracked: state, due_at, failures, first_attempt_at, trail; the first and the last row.
COPY_TO_TRACKED: Final = """
    INSERT INTO tracked (id, lane, state, due_at, failures, first_attempt_at, trail,
                         published_at, expires_at, key, headers, body)
    SELECT id, id >> 43, ?, ?, ?, ?, ?, published_at, expires_at, key, headers, body
    FROM fresh WHERE id BETWEEN ? AND ?
"""


def row_id(lane: int, seq: int) -> int:
    """The number of a message's row in its lane."""
    return lane << SEQ_BITS | seq


def lane_of(row: int) -> int:
    """The lane of a row."""
    return row >> SEQ_BITS
