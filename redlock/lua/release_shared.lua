-- release_shared: release.lua for a reader.
--
-- KEYS[1]  name of the lock
-- ARGV[1]  token
-- Reply    1: the reader is deleted; 0: there is no such reader, or it has ended.
--
-- Rules
-- - A reader that stays is one whose end has not come.  If one stays, the key ends with the last of
--   them, and no waiter is notified.  If none stays, the key is deleted.
-- - The last two of the set show whether one stays, and what the end of the key is.
-- - The last reader notifies the waiters, if there is a wait flag.  It deletes the flag, unless
--   the flag holds readers off: the writer that set it comes next.

local key, flag = KEYS[1], WIRE_MARK .. KEYS[1]
-- @part now
local two = redis.call('zrange', key, -2, -1, 'withscores')
local is_last = two[#two - 1] == ARGV[1]
local ends = is_last and two[#two] or redis.call('zscore', key, ARGV[1])
if tonumber(ends or 0) <= now then
    return 0
end
if not is_last then
    redis.call('zrem', key, ARGV[1])
    return 1
end
if #two == 4 and tonumber(two[2]) > now then
    redis.call('zrem', key, ARGV[1])
    redis.pcall('pexpireat', key, two[2])
    return 1
end
-- @part held_off
if held_off > now then
    redis.call('del', key)
    -- @part notify_free
    return 1
end
-- @part delete_and_notify
