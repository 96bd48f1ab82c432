-- after: shared entries
-- flags: allow-oom
-- Carry out outcomes, each only if its message is still in this worker's hands. One answer per item:
-- 'D' done, 'R' repeated, 'L' lost, 'G' gone from the stream (send it again with its fields), or 'X' and why it is
-- refused; a retry's answer is followed by its due time.
-- KEYS from 5 on: the streams written to and the once-keys.
-- ARGV: 3 '1' if an ack removes the entry, 4 the life of once-keys (ms); then the items: verb, member, count, and for
-- R (retry): delay (ms), first attempt, trail, fields (a list);
-- H (hold): trail, fields;
-- A (ack), D (dead): once-key (index or 0), number of entries to add; each: key (index), what is kept about that queue
-- if it is not the DLQ or the outcomes (index or 0), then 0 and the fields; or a list of names, a value for each, and a
-- list of more fields. These two, which several entries have in common, go by number: where one stands for the first
-- time, the list follows.
local REMOVE, ONCE_LIFE = take() == '1', take()
local NOW = now_ms()
local common, kinds = {}, {}

local function take_common()
  local number = tonumber(take())
  if number > 0 and not common[number] then common[number] = take_list() end
  return common[number]
end

local function take_add()
  local add = {key = KEYS[tonumber(take())], meta = KEYS[tonumber(take())], names = take_common()}
  local strings = add.names and #add.names or tonumber(take())
  add.from, add.till = at + 1, at + strings
  at = at + strings
  if add.names then add.common = take_common() end
  return add
end

local function next_item()
  local item = {verb = take(), member = take(), count = tonumber(take()), adds = {}}
  if item.verb == 'R' then
    item.delay, item.first, item.trail, item.fields = tonumber(take()), take(), take(), take_list()
  elseif item.verb == 'H' then
    item.trail, item.fields = take(), take_list()
  else
    item.once = KEYS[tonumber(take())]
    for number = 1, tonumber(take()) do item.adds[number] = take_add() end
  end
  return item
end

local function other_kind(key, wanted)
  kinds[key] = kinds[key] or redis.call('TYPE', key).ok
  if kinds[key] ~= wanted and kinds[key] ~= 'none' then return key .. ' holds a ' .. kinds[key] .. ', not a ' .. wanted end
end

local function mistake(item)
  for _, add in ipairs(item.adds) do
    local why = other_kind(add.key, 'stream')
    if not why and add.meta and kinds[add.key] == 'none' then why = other_kind(add.meta, 'hash') end
    if why then return why end
  end
end

local function fields_of(add)
  if not add.names then return ARGV, add.from, add.till end
  local list = {}
  for place, name in ipairs(add.names) do
    list[2 * place - 1], list[2 * place] = name, ARGV[add.from + place - 1]
  end
  local size = #list
  for place, part in ipairs(add.common) do list[size + place] = part end
  return list, 1, #list
end

local function write(item)
  local first = ''  -- what is dropped leaves no entry, but a second call must hear that it was done all the same
  for number, add in ipairs(item.adds) do
    local new = add_entry(redis.call, add.key, '*', fields_of(add))
    if add.meta and kinds[add.key] == 'none' then redis.call('HSET', add.meta, 'created', '1') end
    kinds[add.key] = 'stream'
    if number == 1 then first = new end
  end
  if item.once then redis.call('SET', item.once, first, 'PX', ONCE_LIFE) end
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
  if item.verb == 'D' and item.once and redis.call('EXISTS', item.once) == 0 then return {'L'} end
  return {'R'}
end

local function retry(item)
  local story = load_story(item.member) or {}
  local fields = story.k or entry(item.member)
  if not fields and not item.fields then return {'G'} end
  local there = fields and hand_to(item.member, RETRY, item.count)
  if not there then
    local key, id = place(item.member)
    redis.call('XACK', key, GROUP, id)
  end
  if not there or item.member:sub(1, 1) == 'm' then story.k = fields or item.fields end  -- in the lane nobody trims
  story.f = (story.f or 0) + 1
  story.a = story.a or item.first
  if item.trail ~= '' then story.t = item.trail end
  local due = NOW + item.delay
  story.s, story.d, story.u, story.n, story.x, story.g = item.count, due, nil, nil, nil, not there or nil
  save_story(item.member, story)
  redis.call('ZADD', DUE, due, item.member)
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
