-- after: shared entries delayed
-- flags: allow-oom
-- What is there beside new entries of the stream: what has fallen due, and what came by the lane.
-- KEYS: 5 paused, 6 delayed, 7 delayed messages.   ARGV: 3 how many.
-- Returns: why the group is paused ('' if not), now, when something falls due next ('' if nothing), the rows, and the
-- members that have vanished: gone from the stream with no copy left.
local limit = tonumber(ARGV[3])
local now = now_ms()
local rows, vanished, done = {}, {}, {}

local function take_due(member, due, story)
  if story and story.g then return relocate(member, story) end
  local owner, count = holder(member)
  if owner ~= RETRY then
    done[#done + 1] = member
    if not owner then redis.call('HDEL', STORIES, member) end
    return
  end
  local fields = story and story.k or entry(member)
  if not fields then
    vanished[#vanished + 1] = member
  elseif hand_to(member, ME, count + 1) then
    done[#done + 1] = member
    rows[#rows + 1] = row(member, count + 1, story, fields, due)
  else  -- gone from the stream, but there is a copy
    relocate(member, story)
  end
end

local function take_all_due()
  local due = redis.call('ZRANGEBYSCORE', DUE, '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
  local members = {}
  for index = 1, #due, 2 do members[#members + 1] = due[index] end
  if not members[1] then return end
  for index, raw in ipairs(redis.call('HMGET', STORIES, unpack(members))) do
    take_due(members[index], due[2 * index], raw and cmsgpack.unpack(raw))
  end
  if done[1] then redis.call('ZREM', DUE, unpack(done)) end
end

local paused = redis.call('GET', KEYS[5])
if paused then return {'p' .. paused, string.format('%.0f', now), '', rows, vanished} end

move_delayed(KEYS[6], KEYS[7], STREAM, now, 100)
take_all_due()
if #rows < limit then
  local read = redis.call('XREADGROUP', 'GROUP', GROUP, ME, 'COUNT', limit - #rows, 'STREAMS', LANE, '>')
  for _, found in ipairs(read and read[1][2] or {}) do
    local member = 'l' .. found[1]
    rows[#rows + 1] = row(member, 1, load_story(member), found[2])
  end
end

local next_due = ''
for _, index in ipairs({DUE, KEYS[6]}) do
  local score = redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')[2]
  if score and (next_due == '' or tonumber(score) < tonumber(next_due)) then next_due = score end
end
return {'', string.format('%.0f', now), next_due, rows, vanished}
