-- accept: accept a configuration for the version after the one that the master stores.
--
-- KEYS[1]  the marker (WIRE_MARKER)
-- ARGV[1]  EPOCH.VER: the epoch and the version that the client knows
-- ARGV[2]  the set of masters, 16 hexadecimal digits
-- ARGV[3]  the ballot, 16 hexadecimal digits
-- ARGV[4]  text of the configuration
-- Reply    one of these texts:
--            accepted
--            ballot BALLOT       this greater ballot was promised
--            ver                 the master has another epoch, version or set
--
-- Rules
-- - prepare.lua describes the fields.
-- - A ballot that the master did not promise may be accepted, if it promised no greater one.  It
--   counts as promised from then on.

local marker = redis.call('hmget', KEYS[1], 'epoch', 'set', 'ballot')
-- @part same_version
if marker[3] and marker[3] > ARGV[3] then
    return 'ballot ' .. marker[3]
end
redis.call('hset', KEYS[1], 'ballot', ARGV[3], 'accepted', ARGV[3] .. ' ' .. ARGV[4])
return 'accepted'
