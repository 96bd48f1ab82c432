-- flags: allow-oom
-- Take from a stream what every group has done with: what comes before the lowest entry that is undelivered or pending.
-- KEYS: 1 the stream.   Returns how many entries were taken.
local function parts(id)
  local ms, seq = id:match('^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(seq)
end

local function earlier(one, other)
  local one_ms, one_seq = parts(one)
  local other_ms, other_seq = parts(other)
  return one_ms < other_ms or (one_ms == other_ms and one_seq < other_seq)
end

local function fact(group, name)
  for index = 1, #group, 2 do
    if group[index] == name then return group[index + 1] end
  end
end

local keep_from
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local from = redis.call('XPENDING', KEYS[1], fact(group, 'name'))[2]
  if not from then
    local ms, seq = parts(fact(group, 'last-delivered-id'))
    from = string.format('%.0f-%.0f', ms, seq + 1)
  end
  if not keep_from or earlier(from, keep_from) then keep_from = from end
end
return keep_from and redis.call('XTRIM', KEYS[1], 'MINID', keep_from) or 0
