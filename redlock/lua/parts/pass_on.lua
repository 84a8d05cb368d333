-- pass_on: give KEYS[1] to the first waiter, if its token waits here, and answer 1.
--
-- Needs: first, tokens (key).  Declares: waits.
-- The client of that waiter is told on its own channel:
--   granted WAITER SENT EPOCH TOKEN
-- SENT is what the client's heartbeat brought: its own time, from which its lease counts.  EPOCH is
-- the field of the marker, or "-": the client counts no vote of a master that lost its data.  TOKEN
-- comes last, because its note may have spaces.
-- If a right to SET is missing, the key is released as if no token waited.  A full memory does not
-- matter: the script has written before.

local waits = redis.pcall('hget', tokens, first)
local ttl, sent, token = string.match(type(waits) == 'string' and waits or '',
    '^(%d+) (%d+) (.*)$')
if token and not redis.pcall('set', KEYS[1], token, 'PX', ttl).err then
    local epoch = redis.pcall('hget', WIRE_MARKER, 'epoch')
    redis.pcall('publish', WIRE_CLIENT .. string.sub(first, 1, WIRE_CLIENT_DIGITS), 'granted '
        .. first .. ' ' .. sent .. ' ' .. (type(epoch) == 'string' and epoch or '-')
        .. ' ' .. token)
    return 1
end
