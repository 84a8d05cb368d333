-- notify_free: publish "free N" to the waiters.
--
-- Needs: flag, the key of the wait flag, which is the name of the channel, too.
-- N is the number of clients that listen at this master.  A waiter needs it to draw lots: if all
-- tried at once, they would split the votes.
-- In a crowd only some groups are notified, and N is about how many listen there.  The first group
-- is that of the token's third digit: all masters choose the same one, and the holder has told it
-- that the lock is taken (notify_left).  The first two digits may be given (permit.h).
-- Where no group listens, all are notified: clients in no group may wait.
-- The flag stays in a crowd, because most of those that wait have heard nothing: a holder that
-- releases the lock before it could announce itself finds the flag, and notifies the next.
-- The calls are pcalls: a missing right to publish must not make a release fail.

local listeners = redis.pcall('pubsub', 'numsub', flag)
local clients, is_told = listeners[2] or 0, false
if clients > WIRE_CROWD then
    local group = string.sub(ARGV[1], 3, 3)
    local some = math.max(math.ceil(clients / 16), WIRE_CROWD_TOLD)
    local text = 'free ' .. string.format('%d', some)
    -- @part notify_groups
    is_told = is_heard
end
if is_told then
    redis.pcall('set', flag, '1', 'NX', 'PX', WIRE_MARK_MS)
else
    redis.pcall('publish', flag, 'free ' .. string.format('%d', clients))
end
