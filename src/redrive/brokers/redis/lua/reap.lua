-- after: shared
-- flags: allow-oom
-- Make suspects of what is in the hands of workers that are dead or have let their lease end, asked for worker by
-- worker, so that none stands in the way of another; and take departed workers off the list if they hold nothing.
-- KEYS: 5 the workers.   ARGV: 3 this worker's lease (ms), 4 how many of each at most; then the owners known to be dead.
-- Returns: how many suspects wait, '1' if there is more to reap, and the members that have vanished.
local LEASE, MOST = tonumber(ARGV[3]), tonumber(ARGV[4])
local now = now_ms()
local dead = {}
for index = 5, #ARGV do dead[ARGV[index]] = true end

local leases, seen = {}, {}
local records = redis.call('HGETALL', KEYS[5])
for index = 1, #records, 2 do
  local ok, record = pcall(cjson.decode, records[index + 1])
  if ok and type(record) == 'table' then
    leases[records[index]], seen[records[index]] = tonumber(record.lease), tonumber(record.seen_at)
  end
end

local vanished, suspects, more, busy = {}, 0, '0', {}

local function suspect(member, count, owner)
  local story = load_story(member)
  if entry(member) then
    hand_to(member, SUSPECT, count + 1)
    if story and story.u then
      story.e = now
      story.h = (dead[owner] and 'the worker process died' or 'the lease ended') .. ' (owner ' .. owner .. ')'
      save_story(member, story)
    end
    suspects = suspects + 1
  elseif story and story.k then
    if dead[owner] or (story.x or 0) <= now then relocate(member, story) end
  else
    vanished[#vanished + 1] = member
  end
end

local function reap(key, prefix, name)
  local lease = dead[name] and 0 or leases[name] or LEASE
  local found = redis.call('XPENDING', key, GROUP, 'IDLE', lease, '-', '+', MOST, name)
  for _, pending in ipairs(found) do suspect(prefix .. pending[1], pending[4], name) end
  if #found == MOST then more = '1' end
end

local function fact(consumer, name)
  for index = 1, #consumer, 2 do
    if consumer[index] == name then return consumer[index + 1] end
  end
end

for _, where in ipairs({{STREAM, 'm'}, {LANE, 'l'}}) do
  for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', where[1], GROUP)) do
    local name, pending = fact(consumer, 'name'), fact(consumer, 'pending')
    if name == SUSPECT then
      suspects = suspects + pending
    elseif name:sub(1, 1) ~= '~' and pending > 0 then
      busy[name] = true
      reap(where[1], where[2], name)
    elseif name:sub(1, 1) ~= '~' and name ~= ME and (dead[name] or not seen[name])
      and fact(consumer, 'idle') >= (dead[name] and 0 or LEASE) then
      redis.call('XGROUP', 'DELCONSUMER', where[1], GROUP, name)
    end
  end
end
for name in pairs(dead) do
  if not busy[name] then redis.call('HDEL', KEYS[5], name) end
end
return {suspects, more, vanished}
