-- What may be done with an entry that was added a moment ago, in the same transaction: a transaction goes on after a
-- command that failed, so the newest entry may be somebody else's. Its short fields tell.
local SHORT = 1024

local function newest(stream, print)
  local found = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
  local short = {}
  for _, part in ipairs(found and found[2] or {}) do
    if #part <= SHORT then short[#short + 1] = part end
  end
  if redis.sha1hex(table.concat(short)) ~= print then error('nothing was added to ' .. stream) end
  return found[1]
end

local function kept_once(stream, new, once, life, before)
  local known = redis.call('GET', once)
  if known then
    redis.call('XDEL', stream, new)
    return known
  end
  redis.call('SET', once, before .. new, 'PX', life)
  return before .. new
end
