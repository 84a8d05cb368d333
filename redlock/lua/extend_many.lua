-- extend_many: extend.lua for several locks, if all of their keys hold our token.
--
-- KEYS     names of the locks
-- ARGV[1]  token
-- ARGV[2]  ttl in ms, from now
-- Reply    1: all keys hold the token, and last for ttl or longer; 0: nothing has changed;
--          a text that begins with WIRE_REVOKED: nor has it, because a name was revoked.
--
-- Rules
-- - All or none.
-- - As in extend.lua, the end of a key only ever moves to a later instant.

local values = redis.call('mget', unpack(KEYS))
for i = 1, #KEYS do
    local value = values[i]
    if value ~= ARGV[1] then
        -- @part revoked
        return 0
    end
end
for i = 1, #KEYS do
    if redis.call('pttl', KEYS[i]) < tonumber(ARGV[2]) then
        redis.call('pexpire', KEYS[i], ARGV[2])
    end
end
return 1
