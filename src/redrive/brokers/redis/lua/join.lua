-- flags: allow-oom
-- Join a group, making what is missing. Asked again, it gives the same answer.
-- KEYS: stream, meta, lane. ARGV: group, a new incarnation, "0" to begin a new group at the start in any case.
-- Answer: the incarnation, and 1 if the stream is ours.
local stream, meta, lane = KEYS[1], KEYS[2], KEYS[3]
local group = ARGV[1]

local function groups_of(key)
  local names, count = {}, 0
  if redis.call('EXISTS', key) == 1 then
    for _, found in ipairs(redis.call('XINFO', 'GROUPS', key)) do
      names[found[2]] = true
      count = count + 1
    end
  end
  return names, count
end

for key, kind in pairs({[stream] = 'stream', [lane] = 'stream', [meta] = 'hash'}) do
  local found = redis.call('TYPE', key).ok
  if found ~= kind and found ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. key .. ' is a ' .. found .. ', expected a ' .. kind)
  end
end

local began = redis.call('EXISTS', stream) == 0
local ours, others = groups_of(stream)
if not ours[group] then
  local from = (others == 0 or ARGV[3] == '0') and '0' or '$'
  redis.call('XGROUP', 'CREATE', stream, group, from, 'MKSTREAM')
end
if not groups_of(lane)[group] then
  redis.call('XGROUP', 'CREATE', lane, group, '0', 'MKSTREAM')
end
if began then
  redis.call('HSET', meta, 'incarnation', ARGV[2], 'created', '1')
else
  redis.call('HSETNX', meta, 'incarnation', ARGV[2])
end
redis.call('HSET', meta, 'group:' .. group, '1')
return {redis.call('HGET', meta, 'incarnation'), redis.call('HGET', meta, 'created') == '1' and 1 or 0}
