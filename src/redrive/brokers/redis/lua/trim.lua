-- flags: allow-oom
-- Take from a stream what every group has done with: what comes before the lowest entry that is undelivered or pending,
-- at once; and what lies between entries that are pending, a bounded number at a time: one that is held or waits for its
-- retry must not keep all that came after it.
-- KEYS: 1 the stream.   ARGV: 1 the id to go on from ('' for the beginning).
-- Returns how many entries were taken, and the id to go on from ('' at the end).
local MOST, FEW, BYTES = 1000, 20, 4 * 1024 * 1024  -- entries and bytes looked at; entries asked for at once
local LARGEST_EXACT = 2 ^ 53

-- Ids as text: producers may choose some that are beyond what Lua counts exactly.
local function smaller(one, other)
  if #one ~= #other then return #one < #other end
  return one < other
end

local function earlier(one, other)
  local one_ms, one_seq = one:match('^(%d+)-(%d+)$')
  local other_ms, other_seq = other:match('^(%d+)-(%d+)$')
  if one_ms ~= other_ms then return smaller(one_ms, other_ms) end
  return smaller(one_seq, other_seq)
end

local function after(id)
  local ms, seq = id:match('^(%d+)-(%d+)$')
  return tonumber(seq) < LARGEST_EXACT and ms .. '-' .. string.format('%.0f', seq + 1) or id
end

local function fact(group, name)
  for index = 1, #group, 2 do
    if group[index] == name then return group[index + 1] end
  end
end

local keep_from, read_by_all, working = nil, nil, {}
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local name, last = fact(group, 'name'), fact(group, 'last-delivered-id')
  local lowest = redis.call('XPENDING', KEYS[1], name)[2]
  if lowest then working[#working + 1] = name end
  local from = lowest or after(last)
  if not keep_from or earlier(from, keep_from) then keep_from = from end
  if not read_by_all or earlier(last, read_by_all) then read_by_all = last end
end
if not keep_from then return {0, ''} end
local taken = redis.call('XTRIM', KEYS[1], 'MINID', keep_from)

local function is_pending(id)
  for _, name in ipairs(working) do
    if redis.call('XPENDING', KEYS[1], name, id, id, 1)[1] then return true end
  end
  return false
end

local looked, bytes = 0, 0
local function take_done(entries)
  local done = {}
  for _, found in ipairs(entries) do
    looked = looked + 1
    for _, part in ipairs(found[2]) do bytes = bytes + #part end
    if not is_pending(found[1]) then done[#done + 1] = found[1] end
  end
  if done[1] then taken = taken + redis.call('XDEL', KEYS[1], unpack(done)) end
end

local from = ARGV[1] ~= '' and '(' .. ARGV[1] or keep_from
while looked < MOST and bytes < BYTES do
  local entries = redis.call('XRANGE', KEYS[1], from, read_by_all, 'COUNT', FEW)
  take_done(entries)
  if #entries < FEW then return {taken, ''} end
  from = '(' .. entries[FEW][1]
end
return {taken, from:sub(2)}
