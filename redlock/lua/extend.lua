-- extend: make the key of a lock last longer if it holds our token.
--
-- KEYS[1]  name of the lock
-- ARGV[1]  token
-- ARGV[2]  ttl in ms, from now
-- Reply    1: the key holds the token, and lasts for ttl or longer; 0: it does not hold it;
--          a text that begins with WIRE_REVOKED: nor does it, because an operator revoked the lock.
--
-- Rules
-- - The end of the key only ever moves to a later instant.  Two cases need this:
--   - An extension by less than what is left may reach masters whose answers are lost.  It
--     fails, and the holder still relies on the old deadline.
--   - An old extension may lie in the socket of a connection that was given up.  It may arrive
--     after a newer and longer one.

local value = redis.call('get', KEYS[1])
if value ~= ARGV[1] then
    -- @part revoked
    return 0
end
if redis.call('pttl', KEYS[1]) < tonumber(ARGV[2]) then
    redis.call('pexpire', KEYS[1], ARGV[2])
end
return 1
