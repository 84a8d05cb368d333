-- first: the waiter with the lowest ticket, or nil.  Only scores above 0 are tickets (queue.lua).
--
-- Needs: queue.  Declares: first, ahead (what the queue answered, which may be an error).

local ahead = redis.pcall('zrangebyscore', queue, '(0', 'inf', 'limit', 0, 1)
local first = ahead[1]
