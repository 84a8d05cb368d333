-- acquire_shared: become a reader of a lock, unless a writer has it or holds readers off.
--
-- KEYS[1]  name of the lock
-- ARGV[1]  token
-- ARGV[2]  ttl in ms
-- Reply    OK; or nil: the key is a lock of another kind, or readers are held off.
--
-- Rules
-- - Readers are the members of a sorted set in the place of the token.  The score is the end of
--   the reader, in ms.  The SET NX of a writer is thus refused while there are readers.
-- - The key ends with the reader that lasts longest.
-- - A reader whose end has come does not count.  It is deleted when another reader comes or goes.
-- - A set without an end was not made by Redlock, and is left alone.
-- - A reader lasts one millisecond more, for the fraction that is cut off of now.
-- - PEXPIREAT is also called before ZADD.  If it is refused, no key without an end is left behind.

local key, flag = KEYS[1], WIRE_MARK .. KEYS[1]
local left = redis.call('pttl', key)
if left == -1 or left >= 0 and redis.call('type', key)['ok'] ~= 'zset' then
    return false
end
-- @part now
-- @part held_off
if held_off > now then
    return false
end
redis.call('zremrangebyscore', key, '-inf', now)
local last = tonumber(redis.call('zrange', key, -1, -1, 'withscores')[2]) or 0
local own = now + ARGV[2] + 1
redis.call('pexpireat', key, math.max(own, last))
redis.call('zadd', key, own, ARGV[1])
redis.call('pexpireat', key, math.max(own, last))
return redis.status_reply('OK')
