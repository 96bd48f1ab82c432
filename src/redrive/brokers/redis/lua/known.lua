-- Whether a stream has a group of this name.
local function is_known(stream, group)
  if redis.call('EXISTS', stream) == 0 then return false end
  for _, facts in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
    if facts[2] == group then return true end
  end
  return false
end
