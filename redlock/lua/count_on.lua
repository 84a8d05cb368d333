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
-- - A number is the floor plus the counter (raise.lua).  So the floor is raised, to the number or
--   to the high-water mark, and the counters begin again at 0.  If they went on, what they had
--   counted since the old floor would be added once more at each change, and soon be days.
-- - To forget the counters is to delete the marker, as look.lua does.
-- - Clients know the floor from look.lua.  The new floor is appended to the field "epoch", which
--   they read after each count: docs/protocol.md, section 14, says which counts are good.
-- - A floor that is high enough stays.

local fields = {'epoch', 'set', 'floor', 'high', 'id', 'max', 'ver', 'config', 'of', 'about',
    'name', 'claim', 'ballot', 'accepted'}
local marker = redis.call('hmget', KEYS[1], unpack(fields))
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
local floor = math.max(tonumber(ARGV[3]), tonumber(marker[4]))
marker[3], marker[4] = string.format('%.0f', floor), string.format('%.0f', floor + WIRE_FENCE_STEP)
marker[1] = ARGV[1] .. '.' .. marker[3]
local kept = {}
for i, field in ipairs(fields) do
    if marker[i] then
        kept[#kept + 1] = field
        kept[#kept + 1] = marker[i]
    end
end
redis.call('hset', KEYS[1], unpack(kept)) -- An error of this one deletes nothing.
redis.call('del', KEYS[1])
redis.call('hset', KEYS[1], unpack(kept))
return 'counted'
