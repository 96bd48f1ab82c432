-- after: shared
-- flags: no-writes
-- What is known of entries that were just read.   ARGV from 3 on: members.
local rows = {}
for index = 3, #ARGV do
  rows[#rows + 1] = row(ARGV[index], 1, load_story(ARGV[index]), {})
end
return rows
