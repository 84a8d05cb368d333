-- first: the waiter with the lowest ticket, or nil.
--
-- Needs: queue.  Declares: first.

local first = redis.pcall('zrangebyscore', queue, '(0', 'inf', 'limit', 0, 1)[1]
