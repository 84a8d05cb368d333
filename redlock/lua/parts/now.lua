-- now: the master's clock, in whole milliseconds.
--
-- Declares: time (the reply of TIME: seconds, microseconds), now.
-- A number of 13 digits: every version of Redis writes it in full.

local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
