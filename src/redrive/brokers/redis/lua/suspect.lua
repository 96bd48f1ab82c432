-- after: shared
-- flags: allow-oom
-- Hand out one suspect, to be run alone: the mark is in its story before this returns. If it ran alone when its last
-- worker died, that was a crash.
-- KEYS: 5 paused.   ARGV: 3 an owner known to have died, 4 how; then the members in this worker's hands.
-- Returns a row or nothing, and the members that have vanished.
if redis.call('EXISTS', KEYS[5]) == 1 then return {{}, {}} end
local now = now_ms()
local vanished = {}
local held = {}
for index = 5, #ARGV do held[ARGV[index]] = true end

-- One that was handed out before by an answer that never came: the same again, and no crash.
local function unheard(key, prefix)
  for _, pending in ipairs(redis.call('XPENDING', key, GROUP, '-', '+', 100, ME)) do
    local member = prefix .. pending[1]
    local story = not held[member] and load_story(member)
    local fields = story and story.u == ME and entry(member)
    if fields then return row(member, pending[4], story, fields) end
  end
end

local function oldest(key, prefix)
  local found = redis.call('XPENDING', key, GROUP, '-', '+', 1, SUSPECT)[1]
  return found and prefix .. found[1], found and found[4]
end

local function hand_out(member, count)
  local story = load_story(member) or {}
  local fields = entry(member)
  if not fields then
    if story.k then relocate(member, story) else vanished[1] = member end
    return {}
  end
  if story.u then
    local notes = story.n or {}
    local how = story.u == ARGV[3] and ARGV[4] or story.h or 'the worker did not come back'
    notes[#notes + 1] = {owner = story.u, from = story.b, till = story.e or now, how = how}
    story.n, story.c, story.a = notes, (story.c or 0) + 1, story.a or string.format('%.0f', story.b)
  end
  story.u, story.b, story.e, story.h = ME, now, nil, nil
  save_story(member, story)
  hand_to(member, ME, count + 1)
  return row(member, count + 1, story, fields)
end

local again = unheard(STREAM, 'm') or unheard(LANE, 'l')
if again then return {again, vanished} end
local member, count = oldest(STREAM, 'm')
local other, other_count = oldest(LANE, 'l')
if not member then member, count = other, other_count end
return {member and hand_out(member, count) or {}, vanished}
