-- after: shared
-- Forget stories that have nobody left to tell them of: a worker may have succeeded with a message after it had passed
-- to another one, and its success goes out unchecked. A few at a time.   ARGV: 3 where to go on.
-- Returns where to go on next.
local found = redis.call('HSCAN', STORIES, ARGV[3], 'COUNT', 100)
for index = 1, #found[2], 2 do
  local member = found[2][index]
  -- What only moved to the lane is there before it is handed out, and what is gone from the stream lives in its story.
  if not holder(member) and (member:sub(1, 1) == 'm' or not entry(member)) then
    if not cmsgpack.unpack(found[2][index + 1]).g then forget(member) end
  end
end
return found[1]
