-- first: the waiter with the lowest ticket, or nil.  Only scores above 0 are tickets (queue.lua).
--
-- Needs: queue.  Declares: first.

local first = redis.pcall('zrangebyscore', queue, '(0', 'inf', 'limit', 0, 1)[1]
