-- after: shared known
-- flags: allow-oom
-- Let messages that are held run again, their failures forgotten and their trail kept.
-- ARGV: 3 'm' for those of the stream, 'l' for those of the lane, 4 the id to go on from, 5 how many at most.
-- Returns -1 if there is no such group, else how many were freed, and the id to go on from ('' at the end). What is gone
-- from its stream and has no copy stays held: claiming it would take the last trace of it away.
local prefix, from, most = ARGV[3], ARGV[4], tonumber(ARGV[5])
local key = prefix == 'm' and STREAM or LANE
if not is_known(key, GROUP) then return {-1, ''} end
local now = now_ms()
local pending = redis.call('XPENDING', key, GROUP, from, '+', most, HELD)
local freed = 0
for _, found in ipairs(pending) do
  local member = prefix .. found[1]
  local story = load_story(member) or {}
  story.f, story.c, story.a, story.s, story.d, story.u = nil, nil, nil, nil, nil, nil
  if entry(member) then
    save_story(member, story)
    redis.call('ZADD', DUE, now, member)
    hand_to(member, RETRY, found[4] + 1)
    freed = freed + 1
  elseif story.k then
    relocate(member, story)
    freed = freed + 1
  end
end
return {freed, #pending == most and '(' .. pending[#pending][1] or ''}
