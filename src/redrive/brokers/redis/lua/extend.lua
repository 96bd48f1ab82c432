-- after: shared
-- flags: allow-oom
-- Renew the lease on what is still in this worker's hands.   ARGV: 3 the lease (ms); then for each: member, count, fields
-- (a list). Returns the members that are not, and those whose entry is gone and whose fields are not known.
-- Claiming an entry that is gone would take it out of the pending list: its story keeps a copy and the lease instead.
local till = now_ms() + tonumber(take())
local lost, gone = {}, {}
while at < #ARGV do
  local member, count, fields = take(), tonumber(take()), take_list()
  local owner, found = holder(member)
  if owner ~= ME or found ~= count then
    lost[#lost + 1] = member
  elseif entry(member) then
    hand_to(member, ME, count)
  else
    local story = load_story(member) or {}
    story.k, story.x = story.k or fields, till
    if story.k then save_story(member, story) else gone[#gone + 1] = member end
  end
end
return {lost, gone}
