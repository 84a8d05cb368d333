-- look: query the marker of a master, and bring it up to date.
--
-- KEYS[1]  the marker (WIRE_MARKER), a hash
-- ARGV[1]  id of the server's run
-- ARGV[2]  "2": the server loses no write when it restarts; "1": it loses none, and is known not
--          to be new; "0": it may lose writes
-- ARGV[3]  longest lease of the client, in ms
-- ARGV[4]  a new random number, 16 hexadecimal digits
-- ARGV[5]  the nonce that the random number is to replace as an epoch, or ""
-- ARGV[6]  the set of masters that the client knows, 16 hexadecimal digits, or ""; or "new": the
--          master is said to be new
-- ARGV[7]  the floor of the fencing counters, if an epoch begins now
-- ARGV[8]  version of the configuration that the client knows; 0: none
-- ARGV[9]  text of this configuration, if the master says that it is in no set or has a smaller
--          version, or with a nonce; with "new", the list of the set that is to be founded
-- ARGV[10] the name of this member; "": it is no member
-- ARGV[11] with a nonce: the greatest ballot that other members promised, or ""
-- ARGV[12] with a nonce: what other members accepted, "BALLOT CONFIG", or ""
-- Reply    one of these texts:
--            ready STATE MAX FLOOR HIGH TIME OF
--            warming NONCE MAX FRESH AGE HIGH TIME OF
--          STATE: the field epoch.  MAX: longest lease, in ms.  AGE: of the nonce, in ms.
--          TIME: of the master, in us.  HIGH: no fencing token is above it.  FRESH: its field.
--          OF: "-", if the master is in no set; else "SET VER NAME", and " CONFIG" behind it if the
--          client knows another set or a smaller version.  NAME is "-" if it has none.  A master
--          that is ready and has promised a ballot adds it behind a newline, "BALLOT", and
--          " ACCEPTED" behind it if it has accepted something: the fields ballot and accepted.
--
-- Fields of the marker
--   id      run of the server that has vouched for the other fields
--   epoch   EPOCH.VER, or EPOCH.VER.FLOOR (count_on.lua): the master may vote, and has forgotten
--           nothing since the number EPOCH was drawn.  VER is the field ver, or 0
--   nonce   the master is warming since this number was drawn; never beside an epoch
--   max     longest lease that any client has announced, in ms
--   fresh   with a nonce: "1" if the master never had a marker, and loses no write when it restarts
--   since   with a nonce: when it was drawn, in ms of the master's clock
--   floor   fencing counters count from here
--   high    no fencing token is above this number
--   about   for people who find the key.  It is longer than 64 bytes, so that Redis makes the
--           hash a table at once.  A hash of up to 512 short fields (hash-max-listpack-entries
--           and -value in redis.conf) is a list, and a count reads all of it: with 256
--           counters 6.5 us in place of 0.7.
--   set, ver, config, claim: see claim.lua.  ballot, accepted: see prepare.lua
--   name    name of this master in the set; missing: it is no member
--   of      the word "set" on a master of a set.  Builds without sets stored how many masters
--           there are.  A later version whose fields this one does not know stores another word
--   0 to 65535: the fencing counters
--
-- Rules, in this order
-- - It is one script, so that no client sees the marker half done.
-- - If a later version has stored another word in the field of, the script writes nothing, and ends
--   with an error.  So this client takes no lock of this master.
-- - An epoch or a nonce is void if the server was restarted and may have forgotten something.
--   So are a claim, a ballot and what was accepted.  The set and its configuration stay, as a hint.
--   An epoch without floor and high-water mark is void as well.
-- - A member that lost its data gets its set back at once, so that no other list can claim it while
--   it warms up.  A claim that was made since is left: its founder may be about to write.  A guest
--   that joined unheard is told likewise.  The ballots that it got with its epoch were for an older
--   version, and are deleted.
-- - A member that was away while its set changed gets the newest configuration: it has an epoch,
--   its name, and a smaller version of this set.  Ballots and what was accepted were for the
--   version after the old one, and are deleted, as write.lua does.  The name is neither given nor
--   taken here, so nobody joins or leaves.
-- - The nonce that the client has seen for long enough (ARGV[5]) becomes an epoch.
-- - With it, the master gets back what others know of its set: the configuration, the ballot that
--   it may have promised, and what it may have accepted (redlock/core/recall.c).  This replaces
--   what it still knows, which is a hint at most, and the claim of a member.  A master of another
--   set gets no epoch.  A client that knows no set gives none to a member of a set that was
--   changed.  A master that is said to be new gets none if it is in a set, also in the client's
--   own, or is claimed by another list: locks may be held there.
-- - With a new epoch all counters begin anew.  No token is above the new floor.  The floor is
--   written before the old fields are deleted: where a write is refused, nothing is deleted,
--   since a master without a marker counts as new.  Set and claim stay.
-- - If there is neither epoch nor nonce, a nonce begins.
-- - The longest lease only grows.  Leases above WIRE_TTL_MAX_MS do not exist.
-- - The id is written last, together with what it vouches for.  An error in between must not
--   leave a new id beside an old epoch.
-- - Nothing is written if nothing has changed.

local key, keeps = KEYS[1], ARGV[2] ~= '0'
local marker = redis.call('hmget', key, 'id', 'epoch', 'nonce', 'max', 'fresh', 'since',
    'floor', 'high', 'set', 'ver', 'config', 'name', 'claim', 'ballot', 'accepted', 'of')
if marker[16] and marker[16] ~= 'set' and not string.match(marker[16], '^%d+$') then
    return redis.error_reply('ERR a later version of Redlock uses this master: upgrade this one')
end
-- @part now
local high, floor = tonumber(marker[8]) or 0, marker[7]
local epoch, nonce = marker[2], marker[3]
local fresh, since = marker[5], marker[6] or string.format('%.0f', now)
local set, ver, config, name = marker[9], marker[10] or '0', marker[11] or '', marker[12]
local ballot, accepted = marker[14], marker[15]

-- What may have been forgotten is void.
local claim, forgot = marker[13], marker[1] ~= ARGV[1] and not keeps
if forgot then
    epoch, nonce, claim = false, false, false
end
if not (floor and marker[8]) then
    epoch = false
end

-- A member is told its set.
local told = set
if not set and not claim and ARGV[10] ~= '' then
    set, ver, config, name, ballot = ARGV[6], ARGV[8], ARGV[9], ARGV[10], nil
end

-- A member that was away gets the newest configuration.
if epoch and set == ARGV[6] and name == ARGV[10] and ver + 0 < ARGV[8] + 0 then
    ver, config, ballot, told = ARGV[8], ARGV[9], nil, nil
end

-- The nonce becomes an epoch.
local is_ours = not set or set == ARGV[6] or ARGV[6] == '' and ver == '1'
if ARGV[6] == 'new' then
    is_ours = not set and (not claim or string.sub(claim, 18) == ARGV[9])
end
if not epoch and nonce and nonce == ARGV[5] and is_ours then
    if ARGV[6] ~= '' and (set or ARGV[10] ~= '') then
        set, ver, config, name = ARGV[6], ARGV[8], ARGV[9], ARGV[10] ~= '' and ARGV[10]
        claim = false
    end
    ballot, accepted = ARGV[11] ~= '' and ARGV[11], ARGV[12] ~= '' and ARGV[12]
    epoch, floor = ARGV[4], string.format('%.0f', math.max(high, tonumber(ARGV[7])))
    high = string.format('%.0f', floor + WIRE_FENCE_STEP)
    redis.call('hset', key, 'floor', floor, 'high', high)
    redis.call('del', key)
    redis.call('hset', key, 'high', high, claim and 'claim' or 'high', claim or high,
        ballot and 'ballot' or 'high', ballot or high, accepted and 'accepted' or 'high',
        accepted or high, 'floor', floor, 'about',
        'What Redlock knows of this master: who deletes it makes it warm up before it votes')
    told = false -- It was deleted, and is written again below.
end

-- A nonce begins.
if epoch then
    nonce = false
    if string.match(epoch, '^%x+%.%d+') ~= string.sub(epoch, 1, 16) .. '.' .. ver then
        epoch = string.sub(epoch, 1, 16) .. '.' .. ver
    end
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
if set and marker[14] and not ballot then
    redis.call('hset', key, 'of', 'set') -- Where a write is refused, nothing is deleted.
    redis.call('hdel', key, 'ballot', 'accepted')
end
if set ~= told then
    redis.call('hset', key, 'set', set, 'ver', ver, 'config', config, 'of', 'set')
    if name then
        redis.call('hset', key, 'name', name)
    end
end
if marker[1] ~= ARGV[1] or epoch ~= marker[2] or nonce ~= marker[3] or max ~= marker[4]
    or (nonce and fresh ~= marker[5]) then
    if forgot then
        redis.call('hdel', key, 'claim', 'ballot', 'accepted')
    end
    if epoch then
        redis.call('hdel', key, 'nonce', 'fresh', 'since')
        redis.call('hset', key, 'id', ARGV[1], 'max', max, 'epoch', epoch)
    else
        redis.call('hdel', key, 'epoch')
        redis.call('hset', key, 'id', ARGV[1], 'max', max,
            'nonce', nonce, 'fresh', fresh, 'since', since)
    end
end

local of = '-'
if set then
    of = set .. ' ' .. ver .. ' ' .. (name or '-')
    if set ~= ARGV[6] or tonumber(ver) > tonumber(ARGV[8]) then
        of = of .. ' ' .. config
    end
end
local numbers = string.format(' %.0f %.0f ', high, time[1] * 1000000 + time[2]) .. of
if epoch then
    if ballot then
        numbers = numbers .. '\n' .. ballot .. (accepted and ' ' .. accepted or '')
    end
    return 'ready ' .. epoch .. ' ' .. max .. ' ' .. floor .. numbers
end
return 'warming ' .. nonce .. ' ' .. max .. ' ' .. fresh .. ' '
    .. string.format('%.0f', math.max(0, now - since)) .. numbers
