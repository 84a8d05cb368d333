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
-- - The key ends with the reader that lasts longest: its end only ever moves to a later instant.
-- - A reader whose end has come does not count.  It is deleted when another reader comes.
--   The key may go with it, so its end is read again.
-- - A set without an end was not made by Redlock, and is left alone.
-- - A reader lasts one millisecond more, for the fraction that is cut off of now.
-- - If the key may not be given an end, the reader is deleted again.  So no key without an end is
--   left behind.

local key, flag = KEYS[1], WIRE_MARK .. KEYS[1]
local left, ttl = redis.call('pttl', key), ARGV[2] + 1
if left == -1 or left >= 0 and redis.call('type', key)['ok'] ~= 'zset' then
    return false
end
-- @part now
-- @part held_off
if held_off > now then
    return false
end
if left >= 0 and redis.call('zremrangebyscore', key, '-inf', now) > 0 then
    left = redis.call('pttl', key)
end
redis.call('zadd', key, now + ttl, ARGV[1])
if left < ttl then
    local ended = redis.pcall('pexpire', key, ttl)
    if ended ~= 1 then
        redis.call('zrem', key, ARGV[1])
        return ended
    end
end
return redis.status_reply('OK')
