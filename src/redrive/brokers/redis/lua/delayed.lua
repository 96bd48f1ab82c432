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
  local due = redis.call('ZRANGEBYSCORE', index, '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
  for place = 1, #due, 2 do
    local id = due[place]
    local raw = redis.call('HGET', messages, id)
    if raw then
      if not ms then ms, seq = next_id(stream, now) end
      local fields, new = cmsgpack.unpack(raw), string.format('%.0f-%.0f', ms, seq)
      for _, word in ipairs({'rd-due', due[place + 1], 'rd-entry', new}) do fields[#fields + 1] = word end
      seq = seq + 1
      local added = add_entry(redis.pcall, stream, new, fields, 1, #fields)
      if type(added) == 'table' then  -- an id beyond our counting
        add_entry(redis.call, stream, '*', fields, 1, #fields)
      end
    end
    redis.call('HDEL', messages, id)
    redis.call('ZREM', index, id)
  end
end
