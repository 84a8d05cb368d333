-- acquire_shared: become a reader of a lock, unless a writer has it or holds readers off.
--
-- KEYS[1]  name of the lock
-- ARGV[1]  token
-- ARGV[2]  ttl in ms
-- Reply    OK; or nil: the key is a lock of another kind, or readers are held off.
--
-- Rules
-- - Readers are the members of a sorted set in the place of the token.  The SET NX of a writer is
--   thus refused while there are readers.
-- - The score is the end of the reader, in ms.  The key ends with the reader of the greatest score.
--   So the scale needs no clock: its now is the greatest score, less what PTTL answers.  The first
--   reader begins a scale at 0.
-- - A reader whose end has come does not count.  It is deleted when another reader comes.
-- - No score ever becomes less, not even that of a token that is given again: the end of the key
--   belongs to the greatest.
-- - A set without an end was not made by Redlock, and is left alone.
-- - If the key may not be given an end, the reader is deleted again.  So no key without an end is
--   left behind.
-- - EXISTS alone shows that there is neither a key nor a flag, or a key but no flag.  A missing
--   right to the flag must not keep readers out.

local key, flag = KEYS[1], WIRE_MARK .. KEYS[1]
local ends, left, found = ARGV[2], -2, redis.pcall('exists', key, flag)
if found ~= 0 then
    left = redis.call('pttl', key)
    if left == -1 or left >= 0 and redis.call('type', key)['ok'] ~= 'zset' then
        return false
    end
end
if found ~= 0 and (left == -2 or found ~= 1) then
    -- @part holds_off
    if holds_off then
        return false
    end
end
if left >= 0 then
    local now = redis.call('zrange', key, -1, -1, 'withscores')[2] - left
    redis.call('zremrangebyscore', key, '-inf', string.format('(%.0f', now))
    ends = now + ARGV[2]
end
if redis.call('zadd', key, 'NX', ends, ARGV[1]) == 0
    and tonumber(redis.call('zscore', key, ARGV[1])) < ends then
    redis.call('zadd', key, ends, ARGV[1])
end
if left < tonumber(ARGV[2]) then
    local ended = redis.pcall('pexpire', key, ARGV[2])
    if ended ~= 1 then
        redis.call('zrem', key, ARGV[1])
        return ended
    end
end
return {ok = 'OK'}
