-- after: newest
-- Straight after an XADD, in the same transaction: keep the entry and note its id, or, if what it stands for was added
-- before, take it away again before anybody has seen it.
-- KEYS: 1 the stream, 2 the once-key.   ARGV: 1 the life of the once-key (ms), 2 what comes before the id, 3 what
-- tells the entry from others.
-- Returns the id: the same one when repeated.
return kept_once(KEYS[1], newest(KEYS[1], ARGV[3]), KEYS[2], ARGV[1], ARGV[2])
