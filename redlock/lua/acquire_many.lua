-- acquire_many: set the keys of several locks, if none of them exists.
--
-- KEYS     names of the locks
-- ARGV[1]  token
-- ARGV[2]  ttl in ms
-- Reply    OK; or the number, from 1, of the first key that exists.
--
-- Rules
-- - All or none.  The master runs nothing else meanwhile, so that two clients that ask for the
--   same names cannot wait for each other.
-- - EXISTS alone shows that none exists.  No other command sets several keys with an end.

if redis.call('exists', unpack(KEYS)) > 0 then
    for i = 1, #KEYS do
        if redis.call('pttl', KEYS[i]) ~= -2 then
            return i
        end
    end
end
local token, ttl, done = ARGV[1], ARGV[2]
for i = 1, #KEYS do
    done = redis.call('set', KEYS[i], token, 'PX', ttl)
end
return done
