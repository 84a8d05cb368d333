-- revoke: take a lock from its holder, but keep it until the holder's time is over.
--
-- KEYS[1]  name of the lock; or the key of a permit
-- KEYS[2]  the marker (WIRE_MARKER); missing if there is no restart guard
-- ARGV[1]  what the holder stores: its token; "": readers
-- ARGV[2]  number: the fencing tokens of later holders are to be greater
-- ARGV[3]  counter: the field of the marker that belongs to the key
-- ARGV[4]  the field epoch, as it was read: EPOCH.VER, or EPOCH.VER.FLOOR; "": no restart guard
-- ARGV[5]  the text that replaces the token, WIRE_REVOKED and more; "": only read
-- Reply    only read: "STATE NUMBER LEFT KIND VALUE"
--            STATE    the field epoch; "-": there is none
--            NUMBER   the number to which the counter has counted; 0: not known
--            LEFT     the time until the key ends, ms; -1: never; -2: there is no key
--            KIND     the type of the key
--            VALUE    what a string holds, up to one byte more than the longest token
--          revoke: "DONE LEFT RAISED"
--            DONE     "revoked": the text has replaced what the holder stored;
--                     "gone": the key does not hold that
--            RAISED   1: the counter has reached NUMBER; 0: not
--          nil: the marker has another epoch; nothing has changed
--
-- Rules
-- - No token is equal to the text.  So extensions, releases and raises of the holder find that the
--   key is not theirs: their scripts need no rule for this.
-- - The end of the key stays.  Nobody else gets the lock before, as if the holder had died.
-- - A key without an end was not made by Redlock, and is left alone.
-- - The lock is revoked first.  So an error of the counter does not keep the holder.
-- - The counter is raised whether the holder is gone or not, so that a majority has the number.

local key, text, marker = KEYS[1], ARGV[5], {}
if ARGV[4] ~= '' then
    marker = redis.call('hmget', KEYS[2], 'epoch', 'floor', 'high', ARGV[3])
end
local left, kind = redis.call('pttl', key), redis.call('type', key)['ok']
local value = kind == 'string' and redis.call('get', key) or ''
if text == '' then
    local number = marker[1] and marker[2] and marker[2] + (marker[4] or 0) or 0
    return string.format('%s %.0f %d %s ', marker[1] or '-', number, left, kind)
        .. string.sub(value, 1, 129)
end
if ARGV[4] ~= '' and marker[1] ~= ARGV[4] then
    return false
end
local is_held = left >= 0 and value == ARGV[1] and (kind == 'string' or kind == 'zset')
if is_held then
    redis.call('set', key, text, 'XX', 'KEEPTTL')
end
local raised = 0
if marker[2] and marker[3] then
    -- @part raise_counter
    raised = 1
end
return string.format('%s %d %d', is_held and 'revoked' or 'gone', left, raised)
