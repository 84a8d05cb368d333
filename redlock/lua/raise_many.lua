-- raise_many: raise.lua for several names, if all of their keys hold our token.
--
-- KEYS     names of the locks, and behind them the marker (WIRE_MARKER)
-- ARGV[1]  token
-- ARGV[2]  number to count to
-- ARGV[3]  the field epoch, as the client knows it: EPOCH.VER, or EPOCH.VER.FLOOR
-- ARGV     from 4 on: counters, the fields of the marker that belong to the names
-- Reply    the number that all counters have reached: ARGV[2], or their greatest number plus 1 if
--          that is greater;
--          0: not all keys hold the token; -1: the marker has another epoch or none;
--          an error: the number is days ahead of the clock.
--
-- Rules
-- - All counters get the same number, as by count_many.lua.
-- - The other rules are those of raise.lua.

local master = KEYS[#KEYS]
local marker = redis.call('hmget', master, 'epoch', 'floor', 'high', unpack(ARGV, 4))
if marker[1] ~= ARGV[3] or not (marker[2] and marker[3]) then
    return -1
end
for i = 1, #KEYS - 1 do
    if redis.call('get', KEYS[i]) ~= ARGV[1] then
        return 0
    end
end
local count, fields = ARGV[2] - marker[2], {}
for i = 4, #ARGV do
    count = math.max(count, (marker[i] or 0) + 1)
end
for i = 4, #ARGV do
    fields[#fields + 1] = ARGV[i]
    fields[#fields + 1] = string.format('%.0f', count)
end
if marker[2] + count > tonumber(marker[3]) then
    local time = redis.call('time')
    if marker[2] + count > time[1] * 1000000 + time[2] + WIRE_FENCE_AHEAD_US then
        return redis.error_reply('ERR the fencing counter is days ahead of the clock')
    end
    fields[#fields + 1] = 'high'
    fields[#fields + 1] = string.format('%.0f',
        marker[2] + math.ceil(count / WIRE_FENCE_STEP) * WIRE_FENCE_STEP)
end
redis.call('hset', master, unpack(fields))
return marker[2] + count
