-- extend_fair: make the key of a fair lock last longer if it holds our token.
--
-- KEYS[1]  name of the lock
-- ARGV[1]  token
-- ARGV[2]  ttl in ms, from now
-- ARGV[3]  waiter: the name that the holder has or had in the queue
-- Reply    1: the key holds the token, and lasts for ttl or longer; 0: it does not hold it;
--          a text that begins with WIRE_REVOKED: nor does it, because an operator revoked the lock.
--
-- Rules
-- - The end of the key only ever moves to a later instant: see extend.lua.
-- - If the key does not hold the token, it may wait here.  It is dropped, so that it is not granted
--   after this answer.

local value = redis.call('get', KEYS[1])
if value ~= ARGV[1] then
    redis.pcall('zrem', WIRE_QUEUE .. KEYS[1], ARGV[3], '-' .. ARGV[3])
    redis.pcall('hdel', WIRE_NEXT .. KEYS[1], ARGV[3])
    -- @part revoked
    return 0
end
-- @part extend_key
return 1
