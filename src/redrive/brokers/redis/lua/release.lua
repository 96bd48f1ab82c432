-- after: shared
-- flags: allow-oom
-- Hand back what is still in this worker's hands: to the due index, or a suspect to the suspects.
-- ARGV from 3 on, for each: member, count, '1' if it ran alone, fields (a list). Returns the members whose entry is gone
-- and whose fields are not known.
local gone = {}
local now = now_ms()
while at < #ARGV do
  local member, count, alone, fields = take(), tonumber(take()), take() == '1', take_list()
  local owner, found = holder(member)
  if owner == ME and found == count then
    local story = load_story(member)
    if entry(member) then
      if alone or (story and story.u == ME) then  -- one that was handed out to run alone, and not heard of, is a suspect
        if story then
          story.u = nil
          save_story(member, story)
        end
        hand_to(member, SUSPECT, count + 1)
      else
        redis.call('ZADD', DUE, now, member)
        hand_to(member, RETRY, count + 1)
      end
    elseif fields or (story and story.k) then
      story = story or {}
      story.k = story.k or fields
      relocate(member, story)
    else
      gone[#gone + 1] = member
    end
  end
end
return gone
