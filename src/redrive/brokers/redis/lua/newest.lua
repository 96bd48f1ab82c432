-- What may be done with an entry that was added a moment ago, in the same transaction.
local function newest(stream)
  return redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1][1]
end

local function kept_once(stream, once, life, before)
  local new, known = newest(stream), redis.call('GET', once)
  if known then
    redis.call('XDEL', stream, new)
    return known
  end
  redis.call('SET', once, before .. new, 'PX', life)
  return before .. new
end
