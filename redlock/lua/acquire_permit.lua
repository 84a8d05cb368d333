-- acquire_permit: set the key of one permit of a semaphore, if it does not exist.
--
-- KEYS[1]  WIRE_PERMIT, name of the semaphore, ":", number of the permit
-- ARGV[1]  token
-- ARGV[2]  ttl in ms
-- ARGV[3]  number of the permit, from 0
-- ARGV[4]  how many permits there are
-- Reply    OK; or the number, from 1, of a permit that is free; or 0: none is.
--
-- Rules
-- - A client asks all masters for the same permit.  If each master gave away one that is free
--   there, no majority would agree on any.
-- - If the permit is taken, the reply names a free one: the next, counted from ARGV[3] on.

if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
    return redis.status_reply('OK')
end
local prefix = string.sub(KEYS[1], 1, -#ARGV[3] - 1)
for i = 1, ARGV[4] - 1 do
    local permit = (ARGV[3] + i) % ARGV[4]
    if redis.call('pttl', prefix .. string.format('%d', permit)) == -2 then
        return permit + 1
    end
end
return 0
