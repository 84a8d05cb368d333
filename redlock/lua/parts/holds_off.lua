-- holds_off: whether new readers are held off now.
--
-- Needs: flag, the key of the wait flag.  Declares: flag_value, held_off, holds_off.
-- Only a flag of a waiting writer is compared with the clock: TIME costs more than any other call.

-- @part held_off
local holds_off = false
if held_off > 1 then
    -- @part now
    holds_off = held_off > now
end
