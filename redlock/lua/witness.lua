-- witness: mark that a warming master has a nonce, and report how long ago the mark was made.
--
-- KEYS[1]  the marks (WIRE_WITNESS), a hash
-- ARGV[1]  the name of the warming master in its set
-- ARGV[2]  what is marked: the nonce of the warming master, and the id of its run
-- ARGV[3]  "mark": keep a mark that is there; "anew": replace it; "read": write nothing
-- Reply    the age of the mark in ms; 0 if it was just made; -1 if it was only read, and there is
--          no valid mark
--
-- Fields of the hash
--   ARGV[1]  "MADE ARGV[2]".  MADE: when the mark was made, in ms of this master's clock, rounded
--            up
--
-- Rules
-- - A mark proves that the nonce existed by then.  So its time is rounded up, and its age down.
-- - A mark with a time in the future is not valid, and is replaced: the clock was set back since.
--   So is a mark older than WIRE_WITNESS_MS: the clock was set forward since, or the text is wrong.
-- - Each master has one mark.  So a master that often loses its data replaces no marks of others.
-- - The marks are not in the marker, because look.lua deletes the marker.
-- - To forget a mark is safe: the master only warms for longer.  So the key ends WIRE_WITNESS_MS
--   after the latest mark was made, and is deleted when it has marks of WIRE_WITNESS_MAX masters.
-- - Without the right to let the key end, no mark stays.  The end cannot be set first: a key that
--   is not there yet has none.

local key, name, mode = KEYS[1], ARGV[1], ARGV[3]
-- @part now
local up = time[1] * 1000 + math.ceil(time[2] / 1000)
local old = redis.call('hget', key, name)
local made, mark = string.match(old or '', '^(%d+) (.*)$')
made = mark == ARGV[2] and tonumber(made)
if made and (made > up or made < up - WIRE_WITNESS_MS) then
    made = nil
end
if made and mode ~= 'anew' then
    return math.max(0, now - made)
end
if mode == 'read' then
    return -1
end
if not old and redis.call('hlen', key) >= WIRE_WITNESS_MAX then
    redis.call('del', key)
end
redis.call('hset', key, name, string.format('%.0f ', up) .. ARGV[2])
local ends = redis.pcall('pexpire', key, WIRE_WITNESS_MS)
if type(ends) == 'table' then
    redis.call('hdel', key, name)
    return ends
end
return 0
