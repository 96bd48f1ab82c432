-- after: shared
-- flags: allow-oom
-- Hand back what is still in this worker's hands: to the due index, or a suspect to the suspects.
-- ARGV from 3 on, for each: member, count, '1' if it ran alone, fields (JSON or ''). Returns the members whose entry is
-- gone and whose fields are not known.
local gone = {}
local now = now_ms()
for index = 3, #ARGV, 4 do
  local member, count, alone, fields = ARGV[index], tonumber(ARGV[index + 1]), ARGV[index + 2], ARGV[index + 3]
  local owner, found = holder(member)
  if owner == ME and found == count then
    local story = load_story(member)
    if entry(member) then
      if alone == '1' then
        if story then
          story.u = nil
          save_story(member, story)
        end
        hand_to(member, SUSPECT, count + 1)
      else
        redis.call('ZADD', DUE, now, member)
        hand_to(member, RETRY, count + 1)
      end
    elseif fields ~= '' or (story and story.k) then
      story = story or {}
      story.k = story.k or cjson.decode(fields)
      relocate(member, story)
    else
      gone[#gone + 1] = member
    end
  end
end
return gone
