-- put_token: let the token wait with its waiter, for the lease that it wants.
--
-- Needs: waiter, patience.  Declares: tokens (key).
-- The calls are pcalls: a waiter whose user has no right to the key is told of its turn instead.

local tokens = WIRE_NEXT .. KEYS[1]
redis.pcall('hset', tokens, waiter, ARGV[2] .. ' ' .. ARGV[6] .. ' ' .. ARGV[1])
local lasts = redis.pcall('pttl', tokens)
if type(lasts) == 'number' and lasts < patience then
    redis.pcall('pexpire', tokens, ARGV[5])
end
