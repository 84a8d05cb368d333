-- raise_counter: count a fencing counter on, to a given number or by one (raise.lua has the rules).
--
-- Needs: KEYS[2], the marker; marker, with its fields "epoch", "floor", "high" and the counter;
-- least, the number; ARGV[3], the field of the counter.
-- Declares: number, which it has reached; or an error: it would be days ahead of the clock.

local count = math.max((marker[4] or 0) + 1, least - marker[2])
local digits, number = string.format('%.0f', count), marker[2] + count
if number <= tonumber(marker[3]) then
    redis.call('hset', KEYS[2], ARGV[3], digits)
else
    local time = redis.call('time')
    if number > time[1] * 1000000 + time[2] + WIRE_FENCE_AHEAD_US then
        number = redis.error_reply('ERR the fencing counter is days ahead of the clock')
    else
        redis.call('hset', KEYS[2], ARGV[3], digits, 'high', string.format('%.0f',
            marker[2] + math.ceil(count / WIRE_FENCE_STEP) * WIRE_FENCE_STEP))
    end
end
