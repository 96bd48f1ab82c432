-- after: shared
-- flags: allow-oom
-- Say that this worker lives; forget those not heard of for a day.   KEYS: 5 the workers.   ARGV: 3 its record (JSON).
local DAY = 86400000
local now = now_ms()
local record = cjson.decode(ARGV[3])
record.seen_at = now
redis.call('HSET', KEYS[5], ME, cjson.encode(record))
redis.call('PEXPIRE', KEYS[5], DAY)
local records = redis.call('HGETALL', KEYS[5])
for index = 1, #records, 2 do
  local ok, other = pcall(cjson.decode, records[index + 1])
  if not ok or type(other) ~= 'table' or not tonumber(other.seen_at) or other.seen_at < now - DAY then
    redis.call('HDEL', KEYS[5], records[index])
  end
end
return 1
