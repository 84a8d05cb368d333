-- release_fair: release a lock that has a queue, and announce the next waiter.
--
-- KEYS[1]  name of the lock
-- ARGV[1]  token
-- ARGV[2]  waiter: the name that the client has or had in the queue
-- Reply    1: the key held the token and is deleted; 0: it did not.
--
-- Rules
-- - A key with another token is left alone, and no waiter is notified.
-- - If there is a queue, the client of the first in it is told "next WAITER".  The others sleep on.
--   The releasing client does not announce itself.  It may release a minority's votes and wait on.
-- - If the queue is empty, but there is a wait flag, the waiters without a place are notified.
-- - If the key does not exist, the script notifies as well.  A waiter that has left the queue
--   sends this, and it may have been first while the lock was free.

local value = redis.call('get', KEYS[1])
if value and value ~= ARGV[1] then
    return 0
end
if value then
    redis.call('del', KEYS[1])
end
-- @part queue
-- @part first
if first and first ~= ARGV[2] then
    -- @part notify_next
elseif not first and redis.pcall('del', flag) == 1 then
    -- @part notify_free
end
return value and 1 or 0
