-- withdraw: take a claim back.
--
-- KEYS[1]  the marker (WIRE_MARKER), a hash
-- ARGV[1]  number of the claim
-- ARGV[2]  list of the claim
-- Reply    1: the claim is deleted; 0: the master carries another claim, or none.
--
-- Rules
-- - Number and list are compared: another founder may have taken the master over.
-- - A set is left alone.

if redis.call('hget', KEYS[1], 'claim') ~= ARGV[1] .. ' ' .. ARGV[2] then
    return 0
end
return redis.call('hdel', KEYS[1], 'claim')
