-- raise: count a fencing counter on, to a given number or by one, if the key holds our token.
--
-- KEYS[1]  name of the lock
-- KEYS[2]  the marker (WIRE_MARKER)
-- ARGV[1]  token
-- ARGV[2]  number to count to
-- ARGV[3]  counter: the field of the marker that belongs to the name
-- ARGV[4]  the field epoch, as the client knows it: EPOCH.VER, or EPOCH.VER.FLOOR
-- Reply    the number that the counter has reached: ARGV[2], or its last number plus 1 if that is
--          greater;
--          0: the key does not hold the token; -1: the marker has another epoch or none;
--          an error: the number is days ahead of the clock.
--
-- Rules
-- - Counters are fields of the marker, so that a master loses both or neither: a master that
--   has the epoch has the counters.
-- - A number is the floor plus the counter.  The floor was written together with the epoch.
-- - No number is above the high-water mark "high".  Clients also count by HINCRBY, which does
--   not know the mark: they do not use a number above it, and call this script.  It moves the
--   mark up, in steps of WIRE_FENCE_STEP from the floor.  So a client that knows the floor can
--   compute the new mark.
-- - The mark is not moved beyond the clock by more than WIRE_FENCE_AHEAD_US (12 days).  Such a
--   number comes from no client, and repairs would hand it on to all masters.
-- - Numbers are doubles, exact up to 2^53.  They are written with %.0f: Lua, and some versions
--   of Redis, would write 1.8e+15.

local marker = redis.call('hmget', KEYS[2], 'epoch', 'floor', 'high', ARGV[3])
if marker[1] ~= ARGV[4] or not (marker[2] and marker[3]) then
    return -1
end
if redis.call('get', KEYS[1]) ~= ARGV[1] then
    return 0
end
local least = ARGV[2]
-- @part raise_counter
return number
