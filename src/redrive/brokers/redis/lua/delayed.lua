-- Let messages that were published with a delay and are due now into their stream.
-- Each carries the id that it was given, and beside it that of its entry: in a copy that somebody makes they do not agree.
local function next_id(stream, now)
  if redis.call('EXISTS', stream) == 0 then return now, 0 end
  local facts = redis.call('XINFO', 'STREAM', stream)
  for index = 1, #facts, 2 do
    if facts[index] == 'last-generated-id' then
      local ms, seq = facts[index + 1]:match('^(%d+)-(%d+)$')
      if tonumber(ms) < now then return now, 0 end
      return tonumber(ms), tonumber(seq) + 1
    end
  end
end

local function move_delayed(index, messages, stream, now, limit)
  local ms, seq
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', index, '-inf', now, 'LIMIT', 0, limit)) do
    local raw = redis.call('HGET', messages, id)
    if raw then
      if not ms then ms, seq = next_id(stream, now) end
      local fields, new = cmsgpack.unpack(raw), string.format('%.0f-%.0f', ms, seq)
      fields[#fields + 1], fields[#fields + 2] = 'rd-entry', new
      seq = seq + 1
      local added = redis.pcall('XADD', stream, new, unpack(fields))
      if type(added) == 'table' then redis.call('XADD', stream, '*', unpack(fields)) end  -- an id beyond our counting
    end
    redis.call('HDEL', messages, id)
    redis.call('ZREM', index, id)
  end
end
