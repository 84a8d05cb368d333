-- write: store a configuration that was chosen.
--
-- KEYS[1]  the marker (WIRE_MARKER)
-- ARGV[1]  EPOCH.VER: the epoch and the version that the client knows.  VER is 0 if the master
--          belongs to no set yet.
-- ARGV[2]  the set of masters, 16 hexadecimal digits
-- ARGV[3]  version of the configuration
-- ARGV[4]  text of the configuration
-- ARGV[5]  name of this master in it, or "": it is no member
-- Reply    one of these texts:
--            written
--            ver                 the master has another epoch, version or set, or is claimed
--
-- Rules
-- - A version is only ever replaced by a greater one.
-- - A master without a set joins the set.  The epoch is compared, so that a late request cannot
--   make a member of a master that was emptied meanwhile.  A master that is claimed does not join:
--   its founder may have taken a second look, and is about to write on the other masters.
-- - Ballots and what was accepted belong to the version that they were for, and are deleted.
-- - The first write is one that does no harm.  Where a write is refused, nothing is deleted.
-- - The field of gets the word "set", so that builds without sets refuse the master.

local key = KEYS[1]
local marker = redis.call('hmget', key, 'epoch', 'set', 'claim')
if marker[3] and not marker[2] then
    return 'ver'
end
marker[2] = marker[2] or ARGV[2]
-- @part same_version
if tonumber(ARGV[3]) <= tonumber(string.match(ARGV[1], '%d+$')) then
    return 'ver'
end
redis.call('hset', key, 'of', 'set')
redis.call('hdel', key, 'ballot', 'accepted', 'claim', 'name')
redis.call('hset', key, 'epoch', string.sub(ARGV[1], 1, 17) .. ARGV[3],
    'set', ARGV[2], 'ver', ARGV[3], 'config', ARGV[4])
if ARGV[5] ~= '' then
    redis.call('hset', key, 'name', ARGV[5])
end
return 'written'
