-- revoke: take a lock from its holder, but keep it until the holder's time is over.
--
-- KEYS[1]  name of the lock; or the key of a permit
-- KEYS[2]  the marker (WIRE_MARKER); missing if there is no restart guard
-- ARGV[1]  what the holder stores: its token; "": readers
-- ARGV[2]  the field epoch, as it was read: EPOCH.VER, or EPOCH.VER.FLOOR; "": no restart guard
-- ARGV[3]  counter: the field of the marker that belongs to the key
-- ARGV[4]  the text that replaces the token, WIRE_REVOKED and more; "": only read
-- Reply    only read: "STATE LEFT KIND VALUE"
--            STATE    the field epoch; "-": there is none
--            LEFT     the time until the key ends, ms; -1: never; -2: there is no key
--            KIND     the type of the key
--            VALUE    what a string holds, up to one byte more than the longest token
--          revoke: "DONE LEFT NUMBER"
--            DONE     "revoked": the text has replaced what the holder stored;
--                     "gone": the key does not hold that
--            NUMBER   the number to which the counter has counted with the text; 0: it has not
--          nil: the marker has another epoch; nothing has changed
--
-- Rules
-- - No token is equal to the text.  So extensions, releases and raises of the holder find that the
--   key is not theirs: their scripts need no rule for this.
-- - The end of the key stays.  Nobody else gets the lock before, as if the holder had died.
-- - A key without an end was not made by Redlock, and is left alone.
-- - The lock is revoked first.  So an error of the counter does not keep the holder.
-- - The counter goes beyond the high-water mark.  The holder may have sent SET and HINCRBY, and the
--   text may come between the two.  No client uses a number above the mark that it knew when the
--   SET ran: it calls raise.lua, which finds the text.  So all that this master counted for the
--   holder is below NUMBER.

local key, text, marker = KEYS[1], ARGV[4], {}
if ARGV[2] ~= '' then
    marker = redis.call('hmget', KEYS[2], 'epoch', 'floor', 'high', ARGV[3])
end
local left, kind = redis.call('pttl', key), redis.call('type', key)['ok']
local value = kind == 'string' and redis.call('get', key) or ''
if text == '' then
    return string.format('%s %d %s ', marker[1] or '-', left, kind) .. string.sub(value, 1, 129)
end
if ARGV[2] ~= '' and marker[1] ~= ARGV[2] then
    return false
end
local is_held = left >= 0 and value == ARGV[1] and (kind == 'string' or kind == 'zset')
if not is_held then
    return string.format('gone %d 0', left)
end
redis.call('set', key, text, 'XX', 'KEEPTTL')
local reached = 0
if marker[2] and marker[3] then
    local least = marker[3] + 1
    -- @part raise_counter
    reached = tonumber(number) or 0
end
return string.format('revoked %d %.0f', left, reached)
