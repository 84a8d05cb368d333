-- release_shared: release.lua for a reader.
--
-- KEYS[1]  name of the lock
-- ARGV[1]  token
-- Reply    1: the reader is deleted; 0: there was no such reader, or it had ended.
--
-- Rules
-- - Redis deletes a set with its last member.  So EXISTS alone shows that no reader stays and
--   nobody waits: the usual case.
-- - A reader that stays is one whose end has not come.  If one stays, the key ends with the last of
--   them, and no waiter is notified.  If none stays, the key is deleted.
-- - The end of the key belongs to the greatest score (acquire_shared), so it is moved by as much as
--   the greatest score becomes less.  PEXPIRE of 0 would delete the key a moment too early.
-- - The last reader notifies the waiters, if there is a wait flag.  It deletes the flag, unless
--   the flag holds readers off: the writer that set it comes next.

local key, flag = KEYS[1], WIRE_MARK .. KEYS[1]
local ends = redis.call('zscore', key, ARGV[1])
if not ends then
    return 0
end
redis.call('zrem', key, ARGV[1])
if redis.pcall('exists', key, flag) == 0 then
    return 1
end
local left = redis.call('pttl', key)
if left ~= -2 then
    local over = ends - redis.call('zrange', key, -1, -1, 'withscores')[2]
    if over <= 0 or left == -1 then
        return left >= math.max(-over, 0) and 1 or 0
    end
    if over <= left then
        redis.pcall('pexpire', key, math.max(left - over, 1))
        return 1
    end
    redis.call('del', key)
end
-- @part holds_off
if holds_off or redis.pcall('del', flag) == 1 then
    -- @part notify_free
end
return 1
