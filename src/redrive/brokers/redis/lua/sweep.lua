-- after: shared
-- flags: allow-oom
-- Forget stories that have nobody left to tell them of: a worker may have succeeded with a message after it had passed
-- to another one, and its success goes out unchecked. And make the due index again where it is short of what waits for
-- its retry: the pending list is the truth, the index only tells when. A few at a time.
-- ARGV: 3 the member to go on from in the pending list ('' if none).   Returns the next one ('' if all is well).
local FEW, MANY = 100, 1000
local now = now_ms()

for _, member in ipairs(redis.call('HRANDFIELD', STORIES, FEW)) do
  -- What only moved to the lane is there before it is handed out, and what is gone from the stream lives in its story.
  if not holder(member) and (member:sub(1, 1) == 'm' or not entry(member)) then
    local story = load_story(member)
    if story.g then redis.call('ZADD', DUE, 'NX', story.d or now, member) else forget(member) end
  end
end

local function waiting(key)
  for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', key, GROUP)) do
    if consumer[2] == RETRY then return consumer[4] end
  end
  return 0
end

local function index(key, prefix, from)
  local pending = redis.call('XPENDING', key, GROUP, from, '+', MANY, RETRY)
  for _, found in ipairs(pending) do
    local member = prefix .. found[1]
    if not redis.call('ZSCORE', DUE, member) then
      local story = load_story(member)
      redis.call('ZADD', DUE, story and story.d or now, member)
    end
  end
  return #pending == MANY and prefix .. '(' .. pending[MANY][1] or ''
end

local from = take()
if from == '' then
  if redis.call('ZCARD', DUE) >= waiting(STREAM) + waiting(LANE) then return '' end
  from = 'm-'
end
if from:sub(1, 1) == 'l' then return index(LANE, 'l', from:sub(2)) end
local next_one = index(STREAM, 'm', from:sub(2))
return next_one ~= '' and next_one or 'l-'
