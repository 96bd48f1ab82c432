-- Keep messages until they are due; gather.lua lets them into the stream then.
-- KEYS: 1 the stream, 2 what is kept about the queue, 3 the index, 4 the messages, 5 the once-key of this call.
-- ARGV: 1 the delay (ms), 2 a new incarnation, 3 the life of the once-key (ms); then for each message: a unique name,
-- the number of strings, strings.
-- Returns the ids of the messages: the same ones when the call is sent again, with nothing added.
for place, kind in ipairs({'stream', 'hash', 'zset', 'hash'}) do
  local found = redis.call('TYPE', KEYS[place]).ok
  if found ~= kind and found ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[place] .. ' is a ' .. found .. ', expected a ' .. kind)
  end
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local before = redis.call('GET', KEYS[5])  -- when this very call was carried out
local ids, at = {}, 4
while at < #ARGV do
  local id, count = string.format('%.0f-%s', before or now, ARGV[at]), tonumber(ARGV[at + 1])
  if not before then
    local fields = {}
    for place = 1, count do fields[place] = ARGV[at + 1 + place] end
    fields[count + 1], fields[count + 2] = 'rd-id', id
    redis.call('HSET', KEYS[4], id, cmsgpack.pack(fields))
    redis.call('ZADD', KEYS[3], now + tonumber(ARGV[1]), id)
  end
  ids[#ids + 1] = id
  at = at + 2 + count
end
if before then return ids end
redis.call('SET', KEYS[5], string.format('%.0f', now), 'PX', ARGV[3])
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSETNX', KEYS[2], 'incarnation', ARGV[2])
  redis.call('HSET', KEYS[2], 'created', '1')
end
return ids
