-- wait: query a lock for a waiter or for its holder, set the wait flag, and notify the others.
--
-- KEYS[1]  name of the lock
-- KEYS[2]  the wait flag: WIRE_MARK and the name; also the name of the channel
-- ARGV[1]  ttl of the flag in ms
-- ARGV[2]  for how many ms a writer holds new readers off; or "": a reader asks
-- ARGV[3]  "held": a waiter asks; "taken": the holder asks, which has waited before
-- ARGV[4]  missing if the client knows of no crowd; else the digits of its group, and of the one
--          that its release notifies
-- Reply    PTTL of the key: ms that are left, -1: no end, -2: no key.  For a reader: -2 if it
--          may join now, else the ms until it may try.
--
-- Rules
-- - The wait flag tells a release that there are waiters.  It is set only while the key exists.
-- - The client that sets a new flag notifies the others of how long the key is held.  The
--   holder always notifies them, flag or no flag.
-- - Where readers hold the lock, a writer stores in the flag until when new readers are held
--   off.  A later instant replaces an earlier one.  Nothing else replaces a flag.
-- - A reader may join readers: it then sets no flag.  While a writer holds readers off, it
--   may not.
-- - A query of "taken" that finds readers comes too late, and changes nothing.
-- - The script needs only rights that a client of a shared lock needs anyway.

local key, flag = KEYS[1], KEYS[2]
local left = redis.call('pttl', key)
local has_readers = left >= 0 and redis.pcall('type', key)['ok'] == 'zset'
local value, is_later = '1', false
if has_readers or ARGV[2] == '' then
    -- @part now
    -- @part held_off
    if ARGV[2] == '' and (has_readers or left == -2) then
        return held_off > now and held_off - now or -2
    end
    if has_readers then
        value = now + ARGV[2]
        is_later = value > held_off
    end
end
if left == -2 or has_readers and ARGV[3] == 'taken' then
    return left
end
local is_new = redis.call('set', flag, value, 'NX', 'PX', ARGV[1])
if not is_new and is_later then
    redis.call('set', flag, value, 'PX', ARGV[1])
end
-- @part notify_left
