-- notify_groups: publish a text to a few groups of a crowd, and to its readers.
--
-- Needs: flag; text; group, the digit of the first group.
-- Gives: is_heard, whether any client heard it.
-- The channel of a group is that of the lock, a NUL, and the group's digit; r: the readers.  No
-- name of a lock has a NUL.
-- The groups from the first on are notified until enough clients heard it.  The readers always are,
-- because they do not compete.

local told, start = 0, tonumber(group, 16) or 0
for n = start, start + 15 do
    if told < WIRE_CROWD_TOLD then
        local at = flag .. '\0' .. string.format('%x', n % 16)
        told = told + (tonumber(redis.pcall('publish', at, text)) or 0)
    end
end
local is_heard = told + (tonumber(redis.pcall('publish', flag .. '\0r', text)) or 0) > 0
