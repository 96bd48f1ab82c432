-- flags: no-writes
-- Count entries that come after an id, a stretch at a time.   KEYS: 1 the stream.   ARGV: 1 the id, 2 how many at most.
-- Returns how many, and the id of the last.
local found = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[2])
return {#found, #found > 0 and found[#found][1] or ARGV[1]}
