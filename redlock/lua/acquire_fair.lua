-- acquire_fair: a heartbeat of a waiter in the queue, which may grant it the lock.
--
-- KEYS[1]  name of the lock
-- ARGV[1]  token
-- ARGV[2]  ttl in ms
-- ARGV[3]  waiter: its name in the queue
-- ARGV[4]  its ticket; 0: it has none yet, and joins
-- ARGV[5]  patience in ms: for so long after this heartbeat it counts as alive
-- ARGV[6]  sent: the client's own time, which a grant of the waiting token tells; left out:
--          no token waits
-- Reply    OK: the lock is granted; else the number of its place; 0: the queue is full.
--
-- place.h says what a client makes of the numbers.  parts/queue.lua says what a queue is.
--
-- Rules
-- - A waiter that joins is put behind all others: its number is one more than the greatest.  A
--   waiter that is in the queue already keeps its number.
-- - A waiter with a ticket is put where its ticket says.  Masters that missed or dropped it
--   thus agree with the others in time.
-- - At most WIRE_QUEUE_MAX waiters may be in a queue (WIRE_QUEUE_MAX_ENTRIES entries).
-- - The lock is granted to the first in the queue alone, by SET NX.  A join is granted with
--   number 1 only, because the reply OK has no room for another number.
-- - A user who may not read who is first, or may not delete it when it is dead, gets the error.
--   Else it would seem that another client has the lock.
-- - If the key has the token already, a release has passed it on.  The script extends it, and the
--   client counts its lease from this heartbeat.
-- - With a ticket the token waits in the queue, too, so that a release can pass the lock on to it.
--   A waiter without a ticket might get it before those that came first.
-- - A waiter that has to wait sets the wait flag for releases that do not read the queue.  If
--   readers hold the lock, the flag holds new readers off until two more heartbeats are due.
-- - If the key is free and the script has moved a waiter or deleted a dead one, it tells the
--   client of the first in the queue: "next WAITER".  No other event would wake that waiter.
-- - A join, or a heartbeat that moves nothing, announces nothing unless a dead waiter was deleted.
--   Else each of a thousand waiters would notify the first.

-- @part queue
local waiter, ticket, patience = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local joins, number = ticket == 0, redis.call('zscore', queue, waiter)
if not number and redis.call('zcard', queue) >= WIRE_QUEUE_MAX_ENTRIES then
    return 0
end
if joins then
    local last = redis.call('zrevrange', queue, 0, 0, 'withscores')[2]
    ticket = tonumber(number or (last or 0) + 1)
end
redis.call('zadd', queue, string.format('%.0f', ticket), waiter,
    string.format('%.0f', -now - patience), '-' .. waiter)
-- @part extend_queue

if ARGV[6] then
    -- @part put_token
end

-- @part first
if ahead.err then
    return ahead
end
if first and first ~= waiter and dead[first] then
    return dead[first]
end
if (ticket == 1 or not joins) and waiter == first
    and redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
    return redis.status_reply('OK')
end

local value = redis.pcall('get', KEYS[1])
if value == ARGV[1] then
    -- @part extend_key
    return redis.status_reply('OK')
end
if value and value.err and redis.pcall('type', KEYS[1])['ok'] == 'zset' then
    -- @part held_off
    local till = now + math.ceil(patience / 2)
    if till > held_off then
        redis.pcall('set', flag, till, 'PX', WIRE_MARK_MS)
    end
else
    redis.pcall('set', flag, '1', 'NX', 'PX', WIRE_MARK_MS)
end

local moved = not joins and ticket ~= tonumber(number) or #dead > 0
if first and moved and not value then
    -- @part notify_next
end
return ticket
