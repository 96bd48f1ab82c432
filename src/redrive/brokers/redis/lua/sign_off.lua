-- after: shared
-- flags: allow-oom
-- Take this worker off the list, and its name out of the groups if it holds nothing.   KEYS: 5 the workers.
redis.call('HDEL', KEYS[5], ME)
for _, key in ipairs({STREAM, LANE}) do
  for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', key, GROUP)) do
    local name, pending
    for index = 1, #consumer, 2 do
      if consumer[index] == 'name' then name = consumer[index + 1] end
      if consumer[index] == 'pending' then pending = consumer[index + 1] end
    end
    if name == ME and pending == 0 then redis.call('XGROUP', 'DELCONSUMER', key, GROUP, ME) end
  end
end
return 1
