-- release_shared: release.lua for a reader.
--
-- KEYS[1]  name of the lock
-- ARGV[1]  token
-- Reply    1: the reader is deleted; 0: there is no such reader, or it has ended.
--
-- Rules
-- - Readers whose end has come are deleted as well.
-- - If readers are left, the key ends with the last of them, and no waiter is notified.
-- - The last reader notifies the waiters, if there is a wait flag.  It deletes the flag, unless
--   the flag holds readers off: the writer that set it comes next.

local key, flag = KEYS[1], WIRE_MARK .. KEYS[1]
-- @part now
if tonumber(redis.call('zscore', key, ARGV[1]) or 0) <= now then
    return 0
end
redis.call('zrem', key, ARGV[1])
redis.pcall('zremrangebyscore', key, '-inf', now)
local last = redis.pcall('zrange', key, -1, -1, 'withscores')[2]
if last then
    redis.pcall('pexpireat', key, last)
    return 1
end
-- @part held_off
if not flag_value then
    return 1
end
if held_off <= now then
    redis.pcall('del', flag)
end
-- @part notify_free
return 1
