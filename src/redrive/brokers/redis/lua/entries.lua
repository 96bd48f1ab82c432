-- Entries of any number of fields. `unpack` gives a call about 8,000 strings and no more; what a Lua function passes on
-- as `...` has no such limit. So the end of a long list is unpacked, and the rest put in front of it, some at a time.
local AT_ONCE, STEP = 7000, 32

-- XADD with list[first] to list[last] as names and values; `call` is redis.call or redis.pcall.
local function add_entry(call, stream, id, list, first, last)
  local function add(till, ...)
    if till < first then return call('XADD', stream, id, ...) end
    local a = till - STEP
    return add(a, list[a + 1], list[a + 2], list[a + 3], list[a + 4], list[a + 5], list[a + 6], list[a + 7], list[a + 8],
      list[a + 9], list[a + 10], list[a + 11], list[a + 12], list[a + 13], list[a + 14], list[a + 15], list[a + 16],
      list[a + 17], list[a + 18], list[a + 19], list[a + 20], list[a + 21], list[a + 22], list[a + 23], list[a + 24],
      list[a + 25], list[a + 26], list[a + 27], list[a + 28], list[a + 29], list[a + 30], list[a + 31], list[a + 32], ...)
  end
  local steps = math.max(math.ceil((last - first + 1 - AT_ONCE) / STEP), 0)
  local unpacked = first + steps * STEP
  return add(unpacked - 1, unpack(list, unpacked, last))
end
