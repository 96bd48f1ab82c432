-- after: shared
-- Renew the lease on what is still in this worker's hands.   ARGV from 3 on, for each: member, count.
-- Returns the members that are not. An entry that is gone from its stream is left as it is: claiming it would take it
-- out of the pending list, and what its handler says afterwards could not be carried out.
local lost = {}
for index = 3, #ARGV, 2 do
  local member, count = ARGV[index], tonumber(ARGV[index + 1])
  local owner, found = holder(member)
  if owner ~= ME or found ~= count then
    lost[#lost + 1] = member
  elseif entry(member) then
    hand_to(member, ME, count)
  end
end
return lost
