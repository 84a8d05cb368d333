-- claim: claim a master for a set that is to be founded, or read what it carries.
--
-- KEYS[1]  the marker (WIRE_MARKER), a hash
-- ARGV[1]  a new random number, 16 hexadecimal digits; or "": only read
-- ARGV[2]  list of the masters of the set, as canonical text
-- Reply    one of these texts:
--            new                     it carried nothing, and carries the claim now
--            took                    the claim has replaced another claim of the same list
--            claim NUMBER LIST       another list has claimed it; if only read: its claim
--            member SET VER CONFIG   it belongs to a set
--            nothing                 only if read: it carries neither
--
-- Fields of the marker
--   claim    "NUMBER LIST", see above; only without "set"
--   set      number of the set, 16 hexadecimal digits; missing: the master belongs to none
--   ver      version of the configuration
--   config   text of the configuration; the list, at version 1
--
-- Rules
-- - A member is never claimed, and neither is a master with a claim of another list.
-- - A claim of the same list is replaced, because its founder may be dead.  The reply says so,
--   because the new founder must not withdraw what the other may be about to write.
-- - A founder reads with an empty number: a claim that is sent twice could be written late.
-- - look.lua has run on this connection before.  It makes a claim void that was forgotten, and came
--   back with an old copy of the data.

local key = KEYS[1]
local marker = redis.call('hmget', key, 'set', 'ver', 'config', 'claim')
local claim = marker[4]
if marker[1] then
    return 'member ' .. marker[1] .. ' ' .. (marker[2] or '') .. ' ' .. (marker[3] or '')
end
if ARGV[1] == '' or claim and string.sub(claim, 18) ~= ARGV[2] then
    return claim and 'claim ' .. claim or 'nothing'
end
redis.call('hset', key, 'claim', ARGV[1] .. ' ' .. ARGV[2])
return claim and 'took' or 'new'
