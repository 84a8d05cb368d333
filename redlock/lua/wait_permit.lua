-- wait_permit: wait.lua for a semaphore: query when its first permit will be free.
--
-- KEYS[1]  WIRE_PERMIT and name of the semaphore
-- KEYS[2]  the wait flag: WIRE_MARK and KEYS[1]; also the name of the channel
-- ARGV[1]  ttl of the flag in ms
-- ARGV[2]  how many permits there are
-- ARGV[3]  "held": a waiter asks; "taken": a holder asks, which has waited before
-- ARGV[4]  as in wait.lua
-- Reply    PTTL of the permit that ends first; -1: none has an end; -2: one is free.
--
-- Rules
-- - The flag is set even if a permit is free.  Other masters may have none, and the waiter
--   needs a majority.  An error does not matter then.
-- - The others are notified as in wait.lua.

local flag, left = KEYS[2], -1
for i = 0, ARGV[2] - 1 do
    local permit_left = redis.call('pttl', KEYS[1] .. ':' .. string.format('%d', i))
    if permit_left == -2 then
        redis.pcall('set', flag, '1', 'NX', 'PX', ARGV[1])
        return -2
    end
    if permit_left >= 0 and (left < 0 or permit_left < left) then
        left = permit_left
    end
end
local is_new = redis.call('set', flag, '1', 'NX', 'PX', ARGV[1])
-- @part notify_left
