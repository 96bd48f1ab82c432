-- after: shared
-- flags: no-writes
-- How much of a group's work is where. An empty group asks for a queue to which nobody has subscribed.
-- KEYS: 5 paused, 6 delayed, 7 the DLQ, 8 what is kept about the queue.
-- Returns nothing if there is no such group, else: waiting, in flight, scheduled, held, dead, the oldest that waits (ms
-- or ''), when something falls due next ('' if nothing does), why the group is paused ('' if not; 'p' in front), and
-- the id after which new entries of the stream must be counted one by one ('' if they are in `waiting`).
local PAUSED, DELAYED, DLQ, META = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local FEW, MANY = 100, 1000
local now = now_ms()
local oldest, uncounted = nil, ''

local function facts(flat)
  local found = {}
  for index = 1, #flat, 2 do found[flat[index]] = flat[index + 1] end
  return found
end

local function group_of(key)
  local others = 0
  if redis.call('EXISTS', key) == 1 then
    for _, flat in ipairs(redis.call('XINFO', 'GROUPS', key)) do
      local group = facts(flat)
      if group.name == GROUP then return group, 1 end
      others = others + 1
    end
  end
  return nil, others
end

local function waits_since(id)
  local ms = id and tonumber(id:match('^(%d+)'))
  if ms and (not oldest or ms < oldest) then oldest = ms end
end

-- The lag that Redis tells is exact unless entries were deleted (then it tells none), or trimmed before they were
-- read: then what is left is counted, as far as that is quick.
local function undelivered(key, last, lag)
  local new = redis.call('XRANGE', key, '(' .. last, '+', 'COUNT', 1)[1]
  if not new then return 0 end
  waits_since(new[1])
  local stream = facts(redis.call('XINFO', 'STREAM', key))
  if stream['first-entry'][1] == new[1] then return stream.length end
  local foreign = key == STREAM and redis.call('HGET', META, 'created') ~= '1'
  if not lag or (foreign and stream['entries-added'] ~= stream.length) then
    local done = #redis.call('XRANGE', key, '-', last, 'COUNT', FEW + 1)
    if done <= FEW then return stream.length - done end
  end
  if lag then return math.min(lag, stream.length - 1) end
  uncounted = last
  return 0
end

local in_hand = {[RETRY] = 0, [SUSPECT] = 0, [HELD] = 0}
local in_flight, waiting = 0, 0

local function count(key)
  local group = group_of(key)
  if not group then return end
  waiting = waiting + undelivered(key, group['last-delivered-id'], group.lag)
  for _, flat in ipairs(redis.call('XINFO', 'CONSUMERS', key, GROUP)) do
    local consumer = facts(flat)
    if in_hand[consumer.name] then
      in_hand[consumer.name] = in_hand[consumer.name] + consumer.pending
    else
      in_flight = in_flight + consumer.pending
    end
  end
  local suspect = redis.call('XPENDING', key, GROUP, '-', '+', 1, SUSPECT)[1]
  waits_since(suspect and suspect[1])
end

-- The pending list is the truth, the due index only tells when. What is in the index and no longer pending was done by
-- somebody, unless its story says that it is the last copy. What is pending and not in the index waits.
local function scheduled()
  local all, due, copies = redis.call('ZCARD', DUE), redis.call('ZCOUNT', DUE, '-inf', now), 0
  if all ~= in_hand[RETRY] then
    local members = redis.call('ZRANGE', DUE, 0, MANY - 1, 'WITHSCORES')
    for index = 1, #members, 2 do
      if holder(members[index]) ~= RETRY then
        local story = load_story(members[index])
        if story and story.g then
          copies = copies + 1
        else
          all = all - 1
          if tonumber(members[index + 1]) <= now then due = due - 1 end
        end
      end
    end
  end
  local lost = math.max(in_hand[RETRY] - (all - copies), 0)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', DUE, '-inf', now, 'LIMIT', 0, MANY)) do
    waits_since(member:sub(2))
  end
  waiting = waiting + due + lost + in_hand[SUSPECT]
  return all - due
end

local ours, groups = group_of(STREAM)
if GROUP == '' then
  local length = redis.call('EXISTS', STREAM) == 1 and redis.call('XLEN', STREAM) or 0
  if groups > 0 or (length == 0 and redis.call('EXISTS', STREAM, DELAYED) == 0) then return {} end
  waiting = length
  local first = length > 0 and redis.call('XRANGE', STREAM, '-', '+', 'COUNT', 1)[1]
  waits_since(first and first[1])
elseif not ours then
  return {}
else
  count(STREAM)
  count(LANE)
end

local later = GROUP == '' and 0 or scheduled()
local delayed = redis.call('ZCARD', DELAYED)
local delayed_due = redis.call('ZRANGEBYSCORE', DELAYED, '-inf', now, 'LIMIT', 0, 1)[1]
if delayed_due then
  local fallen = redis.call('ZCOUNT', DELAYED, '-inf', now)
  waits_since(delayed_due)
  waiting, delayed = waiting + fallen, delayed - fallen
end

local next_due
for _, index in ipairs({DUE, DELAYED}) do
  local score = tonumber(redis.call('ZRANGEBYSCORE', index, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2])
  if score and (not next_due or score < next_due) then next_due = score end
end
local why = redis.call('GET', PAUSED)
return {
  waiting, in_flight, later + delayed, in_hand[HELD], redis.call('XLEN', DLQ),
  oldest and string.format('%.0f', oldest) or '', next_due and string.format('%.0f', next_due) or '',
  why and 'p' .. why or '', uncounted,
}
