-- after: known
-- flags: allow-oom
-- Pause a group or let it go on.   KEYS: 1 the stream, 2 why it is paused.   ARGV: 1 the group, 2 '1' to pause, 3 why.
-- Returns 0 if there is no such group.
if not is_known(KEYS[1], ARGV[1]) then return 0 end
if ARGV[2] == '1' then redis.call('SET', KEYS[2], ARGV[3]) else redis.call('DEL', KEYS[2]) end
return 1
