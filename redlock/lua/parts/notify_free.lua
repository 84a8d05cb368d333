-- notify_free: publish "free N" to the waiters.
--
-- Needs: flag, the key of the wait flag, which is the name of the channel, too.
-- N is the number of clients that listen at this master.  A waiter needs it to draw lots: if all
-- tried at once, they would split the votes.
-- The calls are pcalls: a missing right to publish must not make a release fail.

local listeners = redis.pcall('pubsub', 'numsub', flag)
redis.pcall('publish', flag, 'free ' .. string.format('%d', listeners[2] or 0))
