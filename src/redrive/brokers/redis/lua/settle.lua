-- after: shared
-- flags: allow-oom
-- Carry out outcomes, each only if its message is still in this worker's hands. One answer per item:
-- 'D' done, 'R' repeated, 'L' lost, 'G' gone from the stream (send it again with its fields), or 'X' and why it is
-- refused; a retry's answer is followed by its due time.
-- KEYS from 5 on: the streams written to and the once-keys.   ARGV: 3 '1' if an ack removes the entry; then the items:
-- verb (A ack, R retry, D dead, H hold), member, count, delay (ms), first attempt, trail, fields (a list),
-- once-key (index or 0), its life (ms), number of entries to add; each: key (index), what is kept about that queue if it
-- is not the DLQ or the outcomes (index or 0), number of strings, strings.
local REMOVE = take() == '1'

local function next_item()
  local item = {verb = take(), member = take(), count = tonumber(take()), delay = tonumber(take()), first = take(),
    trail = take(), fields = take_list(), once = tonumber(take()), life = tonumber(take()), adds = {}}
  for number = 1, tonumber(take()) do
    local add = {key = KEYS[tonumber(take())], meta = KEYS[tonumber(take())]}
    local strings = tonumber(take())
    add.from, add.till = at + 1, at + strings
    at = at + strings
    item.adds[number] = add
  end
  return item
end

local function mistake(item)
  for _, add in ipairs(item.adds) do
    add.kind = redis.call('TYPE', add.key).ok
    if add.kind ~= 'stream' and add.kind ~= 'none' then return add.key .. ' holds a ' .. add.kind .. ', not a stream' end
    if add.till - add.from > 6000 then return add.key .. ': more than 3,000 headers' end
  end
end

local function write(item)
  for number, add in ipairs(item.adds) do
    local new = redis.call('XADD', add.key, '*', unpack(ARGV, add.from, add.till))
    if add.meta and add.kind == 'none' then redis.call('HSET', add.meta, 'created', '1') end
    if number == 1 and item.once > 0 then redis.call('SET', KEYS[item.once], new, 'PX', item.life) end
  end
end

local function due_of(member)
  return redis.call('ZSCORE', DUE, member) or ''
end

local function too_late(item, owner, count)
  if item.verb == 'R' then
    local story = load_story(item.member)
    if story and story.s == item.count then return {'R', due_of(item.member)} end
    return {'L'}
  end
  if item.verb == 'H' and owner == HELD and count == item.count then return {'R'} end
  if owner then return {'L'} end
  if item.verb == 'D' and item.once > 0 and redis.call('EXISTS', KEYS[item.once]) == 0 then return {'L'} end
  return {'R'}
end

local function retry(item)
  local there = entry(item.member)
  local story = load_story(item.member) or {}
  if not there and not story.k then
    if not item.fields then return {'G'} end
    story.k = item.fields
  end
  if there then story.k = item.member:sub(1, 1) == 'm' and there or nil end
  story.f = (story.f or 0) + 1
  story.a = story.a or item.first
  if item.trail ~= '' then story.t = item.trail end
  local due = now_ms() + item.delay
  story.s, story.d, story.u, story.n, story.x, story.g = item.count, due, nil, nil, nil, not there or nil
  save_story(item.member, story)
  redis.call('ZADD', DUE, due, item.member)
  if there then
    hand_to(item.member, RETRY, item.count)
  else
    local key, id = place(item.member)
    redis.call('XACK', key, GROUP, id)
  end
  return {'D', string.format('%.0f', due)}
end

local function hold(item)
  local there = entry(item.member)
  local story = load_story(item.member) or {}
  if item.trail ~= '' then story.t = item.trail end
  story.u, story.n = nil, nil
  if not there then  -- what is not in a stream cannot be held: it goes on in the lane, and is held there when it fails
    story.k = story.k or item.fields
    if not story.k then return {'G'} end
    relocate(item.member, story)
    return {'D'}
  end
  story.k = item.member:sub(1, 1) == 'm' and there or nil
  save_story(item.member, story)
  hand_to(item.member, HELD, item.count)
  return {'D'}
end

local function settle(item)
  local owner, count = holder(item.member)
  if owner ~= ME or count ~= item.count then return too_late(item, owner, count) end
  local why = mistake(item)
  if why then return {'X', why} end
  if item.verb == 'R' then return retry(item) end
  if item.verb == 'H' then return hold(item) end
  if REMOVE and not entry(item.member) then
    finish(item.member, REMOVE)  -- somebody else has moved it: what we have is not its only copy
    return {'L'}
  end
  write(item)
  finish(item.member, REMOVE)
  return {'D'}
end

local answers = {}
while at < #ARGV do
  answers[#answers + 1] = settle(next_item())
end
return answers
