-- queue: the queue of KEYS[1], without the waiters that are dead, and their tokens.
--
-- Declares: queue and flag (keys), time, now, dead (entries that were deleted; and, by waiter, the
-- error if one could not be).
--
-- The queue is a sorted set with two entries for each waiter:
--   WAITER     score: its ticket, the number of its place
--   -WAITER    score: the instant, in ms and negative, until which it counts as alive
-- The tokens that wait with waiters are in a hash beside it: "TTL SENT TOKEN" by WAITER.
-- Thus the dead are one range of scores.  The queue is one key: a master keeps or loses it whole.
-- A waiter is dead when it has sent no heartbeat for as long as it said (its patience).

local queue, flag = WIRE_QUEUE .. KEYS[1], WIRE_MARK .. KEYS[1]
-- @part now
local dead = redis.pcall('zrangebyscore', queue, string.format('%.0f', -now), '(0')
for i = 1, #dead do
    local name = string.sub(dead[i], 2)
    local removed = redis.pcall('zrem', queue, dead[i], name)
    dead[name] = type(removed) == 'table' and removed or nil
    redis.pcall('hdel', WIRE_NEXT .. KEYS[1], name)
end
