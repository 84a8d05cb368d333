-- count_on: make all fencing counters of a master count on from a number.
--
-- KEYS[1]  the marker (WIRE_MARKER)
-- ARGV[1]  EPOCH.VER: the epoch and the version that the client knows
-- ARGV[2]  the set of masters, 16 hexadecimal digits
-- ARGV[3]  number: all tokens are to be greater
-- Reply    one of these texts, or an error: the number is days ahead of the clock
--            counted             the counters are above the number
--            ver                 the master has another epoch, version or set
--
-- Rules
-- - A number is the floor plus the counter (raise.lua).  So the floor is raised, and no counter.
-- - The high-water mark is raised by as much, so that no counter is above it.
-- - Clients know the floor from a look.  The new floor is appended to the field "epoch", which they
--   read behind each count, so that they compute with it from then on.
-- - A floor that is high enough stays.

local marker = redis.call('hmget', KEYS[1], 'epoch', 'set', 'floor', 'high')
-- @part same_version
if not (marker[3] and marker[4]) then
    return 'ver'
end
local by, time = ARGV[3] - marker[3], redis.call('time')
if by <= 0 then
    return 'counted'
end
if tonumber(ARGV[3]) > time[1] * 1000000 + time[2] + WIRE_FENCE_AHEAD_US then
    return redis.error_reply('ERR the fencing counter is days ahead of the clock')
end
redis.call('hset', KEYS[1], 'floor', ARGV[3], 'high', string.format('%.0f', marker[4] + by),
    'epoch', ARGV[1] .. '.' .. ARGV[3])
return 'counted'
