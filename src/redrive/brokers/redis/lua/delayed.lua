-- Let messages that were published with a delay and are due now into their stream.
local function move_delayed(index, messages, stream, now, limit)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', index, '-inf', now, 'LIMIT', 0, limit)) do
    local raw = redis.call('HGET', messages, id)
    if raw then redis.call('XADD', stream, '*', unpack(cmsgpack.unpack(raw))) end
    redis.call('HDEL', messages, id)
    redis.call('ZREM', index, id)
  end
end
