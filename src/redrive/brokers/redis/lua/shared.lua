-- What the scripts of a subscription share.
-- KEYS: 1 the stream, 2 the group's lane, 3 the due index, 4 the stories.   ARGV: 1 the group, 2 the worker.
-- A member names an entry: 'm' and its id in the stream, or 'l' and its id in the lane.
-- A story: f failures, c crashes, a first attempt (ms), t trail, k copy of the fields, s delivery count of the last
-- retry, d its due time, u the worker under which it runs alone, b since when, e and h when and how that ended, n notes of crashes,
-- g true if the entry is gone from the stream and only this copy is left, x until when the worker that has a message
-- whose entry is gone keeps it.
local STREAM, LANE, DUE, STORIES = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local GROUP, ME = ARGV[1], ARGV[2]
local RETRY, SUSPECT, HELD = '~retry', '~suspect', '~held'

for place, kind in ipairs({'stream', 'stream', 'zset', 'hash'}) do
  local found = redis.call('TYPE', KEYS[place]).ok
  if found ~= kind and found ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[place] .. ' is a ' .. found .. ', expected a ' .. kind)
  end
end

-- The arguments that follow those two, one after another; a list is its length and its strings, nothing if it is empty.
local at = 2

local function take()
  at = at + 1
  return ARGV[at]
end

local function take_list()
  local list = {}
  for place = 1, tonumber(take()) do list[place] = take() end
  return list[1] and list
end

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function place(member)
  return member:sub(1, 1) == 'm' and STREAM or LANE, member:sub(2)
end

local function holder(member)
  local key, id = place(member)
  local found = redis.call('XPENDING', key, GROUP, id, id, 1)[1]
  if not found then return nil end
  return found[2], found[4]
end

local function entry(member)
  local key, id = place(member)
  local found = redis.call('XRANGE', key, id, id)[1]
  return found and found[2]
end

local function load_story(member)
  local raw = redis.call('HGET', STORIES, member)
  return raw and cmsgpack.unpack(raw)
end

local function save_story(member, story)
  redis.call('HSET', STORIES, member, cmsgpack.pack(story))
end

-- Whether the entry was still in its stream: XCLAIM takes one that is not out of the pending list.
local function hand_to(member, owner, count)
  local key, id = place(member)
  return redis.call('XCLAIM', key, GROUP, owner, 0, id, 'RETRYCOUNT', count, 'JUSTID')[1]
end

local function forget(member)
  redis.call('HDEL', STORIES, member)
  redis.call('ZREM', DUE, member)
end

local function finish(member, remove)
  local key, id = place(member)
  local acked = redis.call('XACK', key, GROUP, id)
  if remove or key == LANE then redis.call('XDEL', key, id) end
  forget(member)
  return acked
end

-- A message whose entry is gone goes on in the lane, where nobody trims, with its id and its story.
local function relocate(member, story)
  local key, id = place(member)
  local marks = cjson.encode({'', '0', '', '', id})
  local new = redis.call('XADD', LANE, '*', 'fields', cjson.encode(story.k), 'marks', marks)
  story.k, story.g, story.s, story.u, story.d, story.x = nil, nil, nil, nil, nil, nil
  save_story('l' .. new, story)
  redis.call('XACK', key, GROUP, id)
  forget(member)
end

-- What a worker is told of a message: member, count, failures, crashes, first attempt, trail, fields, crash notes, and
-- when it was due, if it waited for that.
local function row(member, count, story, fields, due)
  story = story or {}
  local notes = {}
  for _, note in ipairs(story.n or {}) do
    notes[#notes + 1] = note.owner
    notes[#notes + 1] = string.format('%.0f', note.from)
    notes[#notes + 1] = string.format('%.0f', note.till)
    notes[#notes + 1] = note.how
  end
  return {member, count, story.f or 0, story.c or 0, story.a or '', story.t or '', fields, notes, due or ''}
end
