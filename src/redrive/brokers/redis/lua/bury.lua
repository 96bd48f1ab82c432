-- after: shared
-- flags: allow-oom
-- Write the letter of a message that has vanished: it is pending, but gone from its stream, and no copy is left.
-- Nothing is noted of it: whoever still has the message in hand and gives it up has not written this letter.
-- KEYS: 5 the DLQ.   ARGV: 3 member, from 4 on fields, none to write no letter.
-- Returns 1 if it was written now.
local member = ARGV[3]
if not holder(member) or entry(member) then return 0 end
if ARGV[4] then
  local kind = redis.call('TYPE', KEYS[5]).ok
  if kind ~= 'stream' and kind ~= 'none' then return redis.error_reply('WRONGTYPE ' .. KEYS[5] .. ' is no stream') end
  redis.call('XADD', KEYS[5], '*', unpack(ARGV, 4))
end
finish(member, false)
return 1
