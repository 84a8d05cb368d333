-- found: make a claimed master a member of a set, at version 1.
--
-- KEYS[1]  the marker (WIRE_MARKER), a hash
-- ARGV[1]  number of the claim
-- ARGV[2]  list of the claim
-- ARGV[3]  number of the set, 16 hexadecimal digits
-- ARGV[4]  name of this master in the set
-- Reply    1: the master is a member of the set now, or was already; 0: it is not, because it
--          carries another claim or none, or belongs to another set.
--
-- Rules
-- - Number and list of the claim are compared, so that only the founder that claimed all masters
--   last can write.
-- - A member is left alone, whatever its version: versions only grow.
-- - Where there is an epoch, the version stands behind it ("EPOCH.1").  So the votes of a client
--   that knows nothing of the set do not count from now on: it compares the whole text.
-- - The field of gets the word "set", so that builds without sets refuse this master.
-- - All is written by one command, before the claim is deleted.  Where a write is refused, the
--   claim stays.

local key = KEYS[1]
local marker = redis.call('hmget', key, 'set', 'claim', 'epoch')
local epoch = marker[3]
if marker[1] or marker[2] ~= ARGV[1] .. ' ' .. ARGV[2] then
    return marker[1] == ARGV[3] and 1 or 0
end
redis.call('hset', key, 'set', ARGV[3], 'ver', '1', 'config', ARGV[2], 'name', ARGV[4], 'of', 'set',
    epoch and 'epoch' or 'of', epoch and string.sub(epoch, 1, 16) .. '.1' or 'set')
redis.call('hdel', key, 'claim')
return 1
