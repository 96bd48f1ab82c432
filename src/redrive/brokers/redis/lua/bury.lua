-- after: shared
-- flags: allow-oom
-- Write the letter of a message that has vanished: it is pending, but gone from its stream, and no copy is left.
-- KEYS: 5 the DLQ, 6 the once-key.   ARGV: 3 member, 4 life of the once-key (ms), 5.. fields, none to write no letter.
-- Returns 1 if it was written now.
local member = ARGV[3]
if not holder(member) or entry(member) then return 0 end
if ARGV[5] then
  local kind = redis.call('TYPE', KEYS[5]).ok
  if kind ~= 'stream' and kind ~= 'none' then return redis.error_reply('WRONGTYPE ' .. KEYS[5] .. ' is no stream') end
  local new = redis.call('XADD', KEYS[5], '*', unpack(ARGV, 5))
  redis.call('SET', KEYS[6], new, 'PX', ARGV[4])
end
finish(member, false)
return 1
