-- look: query the marker of a master, and bring it up to date.
--
-- KEYS[1]  the marker (WIRE_MARKER), a hash
-- ARGV[1]  id of the server's run
-- ARGV[2]  "2": the server loses no write when it restarts; "1": it loses none, and is known not
--          to be new; "0": it may lose writes
-- ARGV[3]  longest lease of the client, in ms
-- ARGV[4]  a new random number, 16 hexadecimal digits
-- ARGV[5]  the nonce that the random number is to replace as an epoch, or ""
-- ARGV[6]  how many masters there are, or "": do not store it
-- ARGV[7]  the floor of the fencing counters, if an epoch begins now
-- Reply    one of these texts:
--            ready EPOCH MAX FLOOR HIGH TIME
--            warming NONCE MAX FRESH AGE HIGH TIME
--            other N
--          MAX: longest lease, in ms.  AGE: of the nonce, in ms.  TIME: of the master, in us.
--          HIGH: no fencing token is above it.  FRESH: the field fresh.
--          other N: the master is one of N masters, not of ARGV[6].
--
-- Fields of the marker
--   id      run of the server that has vouched for the other fields
--   epoch   the master may vote, and has forgotten nothing since this number was drawn
--   nonce   the master is warming since this number was drawn; never beside an epoch
--   max     longest lease that any client has announced, in ms
--   fresh   with a nonce: "1" if the master never had a marker, and loses no write when it restarts
--   since   with a nonce: when it was drawn, in ms of the master's clock
--   of      how many masters there are
--   floor   fencing counters count from here
--   high    no fencing token is above this number
--   about   for people who find the key.  It is longer than 64 bytes, so that Redis makes the
--           hash a table at once.  A hash of up to 512 short fields (hash-max-listpack-entries
--           and -value in redis.conf) is a list, and a count reads all of it: with 256
--           counters 6.5 us in place of 0.7.
--   0 to 65535: the fencing counters
--
-- Rules, in this order
-- - It is one script, so that no client sees the marker half done.
-- - An epoch or a nonce is void if the server was restarted and may have forgotten something.
--   An epoch without floor and high-water mark is void as well.
-- - The nonce that the client has seen for long enough (ARGV[5]) becomes an epoch.
-- - With a new epoch all counters begin anew.  No token is above the new floor.  The floor is
--   written before the old fields are deleted: where a write is refused, nothing is deleted,
--   since a master without a marker counts as new.
-- - If there is neither epoch nor nonce, a nonce begins.
-- - The longest lease only grows.  Leases above WIRE_TTL_MAX_MS do not exist.
-- - The id is written last, together with what it vouches for.  An error in between must not
--   leave a new id beside an old epoch.
-- - Nothing is written if nothing has changed.

local key, keeps, masters = KEYS[1], ARGV[2] ~= '0', ARGV[6]
local marker = redis.call('hmget', key,
    'id', 'epoch', 'nonce', 'max', 'fresh', 'since', 'of', 'floor', 'high')
if masters ~= '' and marker[7] and marker[7] ~= masters then
    return 'other ' .. marker[7]
end
-- @part now
local high, floor = tonumber(marker[9]) or 0, marker[8]
local epoch, nonce = marker[2], marker[3]
local fresh, since = marker[5], marker[6] or string.format('%.0f', now)

-- What may have been forgotten is void.
if marker[1] and marker[1] ~= ARGV[1] and not keeps then
    epoch, nonce = false, false
end
if not (floor and marker[9]) then
    epoch = false
end

-- The nonce becomes an epoch.
if not epoch and nonce and nonce == ARGV[5] then
    epoch, floor = ARGV[4], string.format('%.0f', math.max(high, tonumber(ARGV[7])))
    high = string.format('%.0f', floor + WIRE_FENCE_STEP)
    if masters == '' then
        masters = marker[7] or masters
    end
    marker[7] = false -- The field goes with the others, and is written again below.
    redis.call('hset', key, 'floor', floor, 'high', high)
    redis.call('del', key)
    redis.call('hset', key, 'floor', floor, 'high', high, 'about',
        'What Redlock knows of this master: who deletes it makes it warm up before it votes')
end

-- A nonce begins.
if epoch then
    nonce = false
elseif not nonce then
    nonce, since = ARGV[4], string.format('%.0f', now)
    fresh = marker[1] and '0' or '1'
end
if not epoch and ARGV[2] ~= '2' then
    fresh = '0'
end

local max = math.max(tonumber(marker[4]) or 0, tonumber(ARGV[3]))
max = string.format('%.0f', math.min(max, WIRE_TTL_MAX_MS))

-- Write what has changed.
if marker[1] ~= ARGV[1] or epoch ~= marker[2] or nonce ~= marker[3] or max ~= marker[4]
    or (nonce and fresh ~= marker[5]) or (masters ~= '' and not marker[7]) then
    if epoch then
        redis.call('hdel', key, 'nonce', 'fresh', 'since')
        redis.call('hset', key, 'id', ARGV[1], 'max', max, 'epoch', epoch)
    else
        redis.call('hdel', key, 'epoch')
        redis.call('hset', key, 'id', ARGV[1], 'max', max,
            'nonce', nonce, 'fresh', fresh, 'since', since)
    end
    if masters ~= '' then
        redis.call('hset', key, 'of', masters)
    end
end

local numbers = string.format(' %.0f %.0f', high, time[1] * 1000000 + time[2])
if epoch then
    return 'ready ' .. epoch .. ' ' .. max .. ' ' .. floor .. numbers
end
return 'warming ' .. nonce .. ' ' .. max .. ' ' .. fresh .. ' '
    .. string.format('%.0f', math.max(0, now - since)) .. numbers
