-- release_fair: release a lock that has a queue, and announce the next waiter.
--
-- KEYS[1]  name of the lock
-- ARGV[1]  token
-- ARGV[2]  waiter: the name that the client has or had in the queue
-- ARGV[3]  pass: a holder releases; back: a waiter gives the token back, and waits on;
--          leave: a waiter leaves the queue; empty: no token of this waiter waits here
-- Reply    1: the key held the token and is deleted or passed on; 0: it did not.
--
-- Rules
-- - A key with another token is left alone, and no waiter is notified.
-- - A holder, or a waiter that leaves, is taken out of the queue, with its token: also if the key
--   has another type, so that its GET fails.
-- - A holder passes the key on to the first in the queue, if that one's token waits here: it gets
--   the key for the lease that it wants, and its client is told.  If its token does not wait, no
--   other waiter gets the key.
-- - The token of a waiter that gives it back waits no more.  Else it could be granted though it is
--   dead.
-- - No right about the queue or the channel that is missing makes a release fail.
-- - If there is a queue, the client of the first in it is told "next WAITER".  The others sleep on.
--   The releasing client does not announce itself.  It may release a minority's votes and wait on.
-- - If the queue is empty, but there is a wait flag, the waiters without a place are notified.
-- - If the key does not exist, the script notifies as well.  A waiter that has left the queue
--   sends this, and it may have been first while the lock was free.

local value, mode = redis.pcall('get', KEYS[1]), ARGV[3]
local tokens = WIRE_NEXT .. KEYS[1]
if mode == 'back' then
    local waits = redis.pcall('hget', tokens, ARGV[2])
    if type(waits) == 'string' and string.match(waits, '^%d+ %d+ (.*)$') == ARGV[1] then
        redis.pcall('hdel', tokens, ARGV[2])
    end
elseif mode ~= '' then
    redis.pcall('zrem', WIRE_QUEUE .. KEYS[1], ARGV[2], '-' .. ARGV[2])
    redis.pcall('hdel', tokens, ARGV[2])
end
if type(value) == 'table' then
    return value
elseif value and value ~= ARGV[1] then
    return 0
end
-- @part queue
-- @part first
if mode == 'pass' and value and first then
    -- @part pass_on
end
if value then
    redis.call('del', KEYS[1])
end
if first and first ~= ARGV[2] then
    -- @part notify_next
elseif not first and redis.pcall('del', flag) == 1 then
    -- @part notify_free
end
return value and 1 or 0
