-- put_token: let the token wait with its waiter, for the lease that it wants.
--
-- Needs: waiter, patience.  Declares: tokens (key).
-- All tokens of the lock go WIRE_NEXT_MS after the first of them came, and each comes back with the
-- next heartbeat.  Else a token that could not be deleted, because a right was missing for a while,
-- would stay for as long as anybody waits.
-- The calls are pcalls: a waiter whose user has no right to the key is told of its turn instead.

local tokens = WIRE_NEXT .. KEYS[1]
redis.pcall('hset', tokens, waiter, ARGV[2] .. ' ' .. ARGV[6] .. ' ' .. ARGV[1])
if redis.pcall('pttl', tokens) == -1 then
    redis.pcall('pexpire', tokens, string.format('%.0f', math.max(WIRE_NEXT_MS, patience)))
end
