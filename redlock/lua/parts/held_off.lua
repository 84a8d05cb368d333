-- held_off: the instant until which new readers are held off, in ms.
--
-- Needs: flag, the key of the wait flag.  Declares: flag_value, held_off.
-- A waiting writer stores this instant as the value of the flag.  Other waiters store "1", an
-- instant long ago.  Without a flag, held_off is 0.
-- The call is a pcall: a missing right to read the flag must not keep readers out.

local flag_value = redis.pcall('get', flag)
local held_off = type(flag_value) == 'string' and tonumber(flag_value) or 0
