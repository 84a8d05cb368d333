-- witness: mark that a warming master has a nonce, and tell how long ago the mark was made.
--
-- KEYS[1]  the marks (WIRE_WITNESS), a hash
-- ARGV[1]  what is marked: the nonce of the warming master, and the id of its run
-- ARGV[2]  "mark": keep a mark that is there; "anew": replace it; "read": write nothing
-- Reply    the age of the mark in ms; 0 if it was just made; -1 if it was only read, and there is
--          valid mark
--
-- Fields of the hash
--   ARGV[1]  when the mark was made, in ms of this master's clock, rounded up
--
-- Rules
-- - A mark proves that the nonce existed by then.  So its time is rounded up, and its age down.
-- - A mark with a time in the future is not valid, and is replaced: the clock was set back since.
-- - The marks are not in the marker, because look.lua deletes the marker.
-- - To forget a mark is safe: the master only warms for longer.  So the key ends WIRE_WITNESS_MS
--   after the latest mark was made, and is deleted when it has WIRE_WITNESS_MAX marks.

local key, mode = KEYS[1], ARGV[2]
-- @part now
local up = time[1] * 1000 + math.ceil(time[2] / 1000)
local made = tonumber(redis.call('hget', key, ARGV[1]) or '')
if made and made <= up and mode ~= 'anew' then
    return math.max(0, now - made)
end
if mode == 'read' then
    return -1
end
if redis.call('hlen', key) >= WIRE_WITNESS_MAX then
    redis.call('del', key)
end
redis.call('hset', key, ARGV[1], string.format('%.0f', up))
redis.call('pexpire', key, WIRE_WITNESS_MS)
return 0
