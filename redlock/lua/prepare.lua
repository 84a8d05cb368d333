-- prepare: promise a ballot for the version after the one that the master stores.
--
-- KEYS[1]  the marker (WIRE_MARKER)
-- ARGV[1]  EPOCH.VER: the epoch and the version that the client knows
-- ARGV[2]  the set of masters, 16 hexadecimal digits
-- ARGV[3]  the ballot, 16 hexadecimal digits
-- Reply    one of these texts:
--            promise             promised; nothing was accepted
--            promise BALLOT CONFIG
--                                promised; CONFIG was accepted in BALLOT
--            ballot BALLOT       this ballot was promised before; it is not smaller
--            ver                 the master has another epoch, version or set
--
-- Fields of the marker
--   epoch     EPOCH.VER, or EPOCH.VER.FLOOR (count_on.lua)
--   set       the set of masters
--   ballot    the greatest ballot that was promised for the next version
--   accepted  BALLOT CONFIG: what was accepted for the next version
--
-- Rules
-- - A ballot is promised once.  A second prepare of it would not know what its first answer was.
-- - Ballots have one length and lower-case digits, so texts are compared.

local marker = redis.call('hmget', KEYS[1], 'epoch', 'set', 'ballot', 'accepted')
-- @part same_version
if marker[3] and marker[3] >= ARGV[3] then
    return 'ballot ' .. marker[3]
end
redis.call('hset', KEYS[1], 'ballot', ARGV[3])
if marker[4] then
    return 'promise ' .. marker[4]
end
return 'promise'
