-- after: newest
-- Straight after the XADD that sends a letter back, in the same transaction: take its entry out of the DLQ. If it is no
-- longer there, take the new entry away again before anybody has seen it. Whoever is collecting it has lost it.
-- KEYS: 1 the stream, 2 the once-key, 3 the DLQ.
-- ARGV: 1 the life of the once-key (ms), 2 what comes before the new id, 3 the entry's id, 4 what tells the new entry
-- from others.
-- Returns the id of the message, the same one when this is sent again; or nothing.
local new = newest(KEYS[1], ARGV[4])
if redis.call('XDEL', KEYS[3], ARGV[3]) == 0 then
  redis.call('XDEL', KEYS[1], new)
  return redis.call('GET', KEYS[2])
end
return kept_once(KEYS[1], new, KEYS[2], ARGV[1], ARGV[2])
