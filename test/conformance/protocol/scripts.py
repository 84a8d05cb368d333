"""The scripts of docs/protocol.md, written anew from its words.

They differ from those in redlock/lua, as those of any other client would.  What they do to keys and
channels must be the same.
"""

# Section 5.
RELEASE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local flag = 'redlock:wait:' .. KEYS[1]
local deleted = redis.pcall('DEL', KEYS[1], flag)
if type(deleted) == 'table' then return redis.call('DEL', KEYS[1]) end
if deleted == 2 then
    local count = redis.pcall('PUBSUB', 'NUMSUB', flag)
    redis.pcall('PUBLISH', flag, 'free ' .. (count[2] or 1))
end
return 1
"""

EXTEND = """
local stored = redis.call('GET', KEYS[1])
if stored ~= ARGV[1] then
    return stored and stored:find('^revoked by ') and stored or 0
end
local left = redis.call('PTTL', KEYS[1])
if left >= 0 and left < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
"""

# Section 7.
ABOUT = "This hash belongs to Redlock, which keeps locks here; do not delete it while a lock is held."

LOOK = """
local master = KEYS[1]
local run, durable, max, random, nonce, set, floor, ver, config, name, ballot, accepted = unpack(ARGV)
local names = {'id', 'max', 'epoch', 'nonce', 'fresh', 'since', 'floor', 'high', 'set', 'ver', 'config',
    'name', 'of', 'claim', 'ballot', 'accepted'}
local has, was = {}, redis.call('HMGET', master, unpack(names))
for i, field in ipairs(names) do has[field] = was[i] or nil end
if has.of and has.of ~= 'set' and not has.of:find('^%d+$') then
    return redis.error_reply('ERR a later version of Redlock uses this master: upgrade this one')
end
local time = redis.call('TIME')
local us = string.format('%.0f', time[1] * 1000000 + time[2])
local now = math.floor(us / 1000)
local known = has.id
local function join()
    has.set, has.ver, has.config, has.name, has.of = set, ver, config, name, 'set'
    if name == '' then has.name = nil end
end
if has.id ~= run and durable == '0' then
    has.epoch, has.nonce, has.claim, has.ballot, has.accepted = nil
end
if not has.floor or not has.high then has.epoch = nil end
if not has.set and not has.claim and name ~= '' then
    join()
    has.ballot, has.accepted = nil
elseif has.epoch and has.set == set and has.name == name and tonumber(has.ver or 0) < tonumber(ver) then
    has.ver, has.config, has.ballot, has.accepted = ver, config, nil
end
local may = not has.set or has.set == set or (set == '' and has.ver == '1')
if set == 'new' then may = not has.set and (not has.claim or has.claim:match('^%S+ (.*)$') == config) end
local anew = not has.epoch and has.nonce and has.nonce == nonce and may
if anew then
    has.floor = string.format('%.0f', math.max(tonumber(has.high or 0), tonumber(floor)))
    has.high = string.format('%.0f', has.floor + 16384)
    redis.call('HSET', master, 'floor', has.floor, 'high', has.high)
    has.epoch, has.nonce, has.fresh, has.since = random, nil
    if set ~= 'new' and set ~= '' and (has.set or name ~= '') then
        join()
        has.claim = nil
    end
    has.ballot, has.accepted = ballot ~= '' and ballot or nil, accepted ~= '' and accepted or nil
end
if has.epoch and has.epoch:match('^%x+%.?(%d*)') ~= (has.ver or '0') then
    has.epoch = has.epoch:match('^%x+') .. '.' .. (has.ver or '0')
end
if has.epoch then has.nonce, has.fresh, has.since = nil end
if not has.epoch and not has.nonce then
    has.nonce, has.since, has.fresh = random, tostring(now), known and '0' or '1'
end
if not has.epoch and durable ~= '2' then has.fresh = '0' end
has.max = string.format('%.0f', math.min(86400000, math.max(tonumber(has.max or 0), tonumber(max))))
has.id = run
if anew then redis.call('DEL', master) end
local write, gone = anew and {'about', '""" + ABOUT + """'} or {}, {}
for i, field in ipairs(names) do
    if has[field] and (anew or has[field] ~= was[i]) then
        write[#write + 1] = field
        write[#write + 1] = has[field]
    elseif not has[field] and was[i] and not anew then
        gone[#gone + 1] = field
    end
end
if #write > 0 then redis.call('HSET', master, unpack(write)) end
if #gone > 0 then redis.call('HDEL', master, unpack(gone)) end
local of = '-'
if has.set then
    of = has.set .. ' ' .. has.ver .. ' ' .. (has.name or '-')
    if has.set ~= set or tonumber(has.ver) > tonumber(ver) then of = of .. ' ' .. has.config end
end
if has.epoch then
    local promised = has.ballot and '\\n' .. has.ballot .. (has.accepted and ' ' .. has.accepted or '') or ''
    return table.concat({'ready', has.epoch, has.max, has.floor, has.high, us, of}, ' ') .. promised
end
local age = string.format('%.0f', math.max(0, now - tonumber(has.since or now)))
return table.concat({'warming', has.nonce, has.max, has.fresh or '0', age, has.high or '0', us, of}, ' ')
"""

WITNESS = """
local name, mark, mode = ARGV[1], ARGV[2], ARGV[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local made, of = (redis.call('HGET', KEYS[1], name) or ''):match('^(%d+) (.*)$')
local age = made and now - made
if of == mark and age >= 0 and age <= 30 * 86400000 and mode ~= 'anew' then return math.floor(age) end
if mode == 'read' then return -1 end
if not made and redis.call('HLEN', KEYS[1]) >= 64 then redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], name, string.format('%.0f %s', math.ceil(now), mark))
local ends = redis.pcall('PEXPIRE', KEYS[1], 30 * 86400000)
if type(ends) == 'table' then
    redis.call('HDEL', KEYS[1], name)
    return ends
end
return 0
"""

CLAIM = """
local set, ver, config, claim = unpack(redis.call('HMGET', KEYS[1], 'set', 'ver', 'config', 'claim'))
if set then return table.concat({'member', set, ver or '', config or ''}, ' ') end
if ARGV[1] == '' then return claim and 'claim ' .. claim or 'nothing' end
if claim and claim:match('^%S+ (.*)$') ~= ARGV[2] then return 'claim ' .. claim end
redis.call('HSET', KEYS[1], 'claim', ARGV[1] .. ' ' .. ARGV[2])
return claim and 'took' or 'new'
"""

FOUND = """
local set, claim, epoch = unpack(redis.call('HMGET', KEYS[1], 'set', 'claim', 'epoch'))
if set then return set == ARGV[3] and 1 or 0 end
if claim ~= ARGV[1] .. ' ' .. ARGV[2] then return 0 end
if epoch then redis.call('HSET', KEYS[1], 'epoch', epoch:match('^%x+') .. '.1') end
redis.call('HSET', KEYS[1], 'set', ARGV[3], 'ver', '1', 'config', ARGV[2], 'name', ARGV[4], 'of', 'set')
redis.call('HDEL', KEYS[1], 'claim')
return 1
"""

WITHDRAW = """
if redis.call('HGET', KEYS[1], 'claim') ~= ARGV[1] .. ' ' .. ARGV[2] then return 0 end
return redis.call('HDEL', KEYS[1], 'claim')
"""

# Section 9.
WAIT = """
local key, flag, last, off, word = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
local left = redis.call('PTTL', key)
local readers = redis.call('TYPE', key).ok == 'zset'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local refused = tonumber(redis.call('GET', flag) or 0)
if off == '' and (readers or left == -2) then return refused > now and refused - now or -2 end
if left == -2 or (readers and word == 'taken') then return left end
local is_new = refused == 0
if readers and now + off > refused then
    redis.call('SET', flag, string.format('%.0f', now + off), 'PX', last)
elseif is_new then
    redis.call('SET', flag, 1, 'PX', last)
end
local says = word == 'taken' and 'taken ' or is_new and 'held '
if says and left >= 0 then redis.call('PUBLISH', flag, says .. left) end
return left
"""

# Section 10.
ACQUIRE_MANY = """
for i, key in ipairs(KEYS) do if redis.call('EXISTS', key) == 1 then return i end end
for _, key in ipairs(KEYS) do redis.call('SET', key, ARGV[1], 'PX', ARGV[2]) end
return redis.status_reply('OK')
"""

OWN = """
local function own(key) return redis.call('TYPE', key).ok == 'string' and redis.call('GET', key) == ARGV[1] end
"""

EXTEND_MANY = OWN + """
for _, key in ipairs(KEYS) do
    if not own(key) then
        local stored = redis.call('TYPE', key).ok == 'string' and redis.call('GET', key)
        return stored and stored:find('^revoked by ') and stored or 0
    end
end
for _, key in ipairs(KEYS) do
    local left = redis.call('PTTL', key)
    if left >= 0 and left < tonumber(ARGV[2]) then redis.call('PEXPIRE', key, ARGV[2]) end
end
return 1
"""

RELEASE_MANY = OWN + """
local all = 1
for _, key in ipairs(KEYS) do
    if own(key) then
        local flag = 'redlock:wait:' .. key
        if redis.call('DEL', key, flag) == 2 then
            redis.call('PUBLISH', flag, 'free ' .. redis.call('PUBSUB', 'NUMSUB', flag)[2])
        end
    else
        all = 0
    end
end
return all
"""

# Section 11.
ACQUIRE_PERMIT = """
local slot, count = tonumber(ARGV[3]), tonumber(ARGV[4])
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.status_reply('OK') end
local all = KEYS[1]:match('^(.*:)')
for i = 1, count - 1 do
    local other = (slot + i) % count
    if redis.call('EXISTS', all .. string.format('%.0f', other)) == 0 then return other + 1 end
end
return 0
"""

RELEASE_PERMIT = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local flag = 'redlock:wait:' .. KEYS[1]:match('^(.*):')
if redis.call('DEL', KEYS[1], flag) == 2 then
    redis.call('PUBLISH', flag, 'free ' .. redis.call('PUBSUB', 'NUMSUB', flag)[2])
end
return 1
"""

WAIT_PERMIT = """
local least = -1
for slot = 0, ARGV[2] - 1 do
    local left = redis.call('PTTL', KEYS[1] .. ':' .. string.format('%.0f', slot))
    if left == -2 then least = -2 end
    if least ~= -2 and left >= 0 and (least == -1 or left < least) then least = left end
end
local is_new = redis.call('SET', KEYS[2], 1, 'NX', 'PX', ARGV[1])
local says = ARGV[3] == 'taken' and 'taken ' or is_new and 'held '
if says and least >= 0 then redis.call('PUBLISH', KEYS[2], says .. least) end
return least
"""

# Section 12.
SCALE = """
local key, flag = KEYS[1], 'redlock:wait:' .. KEYS[1]
local function greatest() return tonumber(redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]) end
local kind = redis.call('TYPE', key).ok
local left = redis.call('PTTL', key)
local now = kind == 'zset' and greatest() - left or 0
"""

ACQUIRE_SHARED = SCALE + """
local ttl = tonumber(ARGV[2])
if left == -1 or (kind ~= 'zset' and kind ~= 'none') then return false end
local time = redis.call('TIME')
if tonumber(redis.call('GET', flag) or 0) > time[1] * 1000 + time[2] / 1000 then return false end
redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. string.format('%.0f', now))
local score = tonumber(redis.call('ZSCORE', key, ARGV[1]) or now + ttl)
redis.call('ZADD', key, string.format('%.0f', math.max(score, now + ttl)), ARGV[1])
if left < ttl then
    local set = redis.pcall('PEXPIRE', key, ttl)
    if type(set) == 'table' then
        redis.call('ZREM', key, ARGV[1])
        return set
    end
end
return redis.status_reply('OK')
"""

EXTEND_SHARED = SCALE + """
if kind == 'string' then
    local stored = redis.call('GET', key)
    if stored:find('^revoked by ') then return stored end
end
local score = tonumber(redis.call('ZSCORE', key, ARGV[1]))
if not score or score < now then return 0 end
if now + ARGV[2] > score then
    redis.call('ZADD', key, string.format('%.0f', now + ARGV[2]), ARGV[1])
    if left < tonumber(ARGV[2]) then redis.call('PEXPIRE', key, ARGV[2]) end
end
return 1
"""

RELEASE_SHARED = SCALE + """
local score = redis.call('ZSCORE', key, ARGV[1])
if not score or left == -1 then return 0 end
local before = greatest()
redis.call('ZREM', key, ARGV[1])
local last = redis.call('EXISTS', key) == 1 and greatest()
if last and last >= now then
    if last < before then redis.call('PEXPIRE', key, string.format('%.0f', left - (before - last))) end
    return tonumber(score) >= now and 1 or 0
end
redis.call('DEL', key)
local refused = redis.call('GET', flag)
if refused then
    local time = redis.call('TIME')
    if tonumber(refused) <= time[1] * 1000 + time[2] / 1000 then redis.call('DEL', flag) end
    redis.call('PUBLISH', flag, 'free ' .. redis.call('PUBSUB', 'NUMSUB', flag)[2])
end
return tonumber(score) >= now and 1 or 0
"""

# Section 13.
QUEUE = """
local key = KEYS[1]
local queue, tokens, flag = 'redlock:queue:' .. key, 'redlock:next:' .. key, 'redlock:wait:' .. key
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function leave(waiter)
    redis.call('HDEL', tokens, waiter)
    return redis.call('ZREM', queue, waiter, '-' .. waiter)
end
local function bury()
    local dead = redis.call('ZRANGEBYSCORE', queue, string.format('%.0f', -now), '(0')
    for _, member in ipairs(dead) do leave(member:sub(2)) end
    return #dead
end
local function first() return redis.call('ZRANGEBYSCORE', queue, '(0', '+inf', 'LIMIT', 0, 1)[1] end
local function tell(waiter, text) redis.call('PUBLISH', 'redlock:client:' .. waiter:sub(1, 24), text) end
"""

ACQUIRE_FAIR = QUEUE + """
local token, ttl, waiter, ticket, patience, sent = unpack(ARGV)
ticket = tonumber(ticket)
local dead = bury()
local was = tonumber(redis.call('ZSCORE', queue, waiter) or 0)
if was == 0 and redis.call('ZCARD', queue) >= 2048 then return 0 end
local joins = ticket == 0
if joins then
    ticket = was > 0 and was or math.max(0, tonumber(redis.call('ZREVRANGE', queue, 0, 0, 'WITHSCORES')[2] or 0)) + 1
end
redis.call('ZADD', queue, string.format('%.0f', ticket), waiter,
    string.format('%.0f', -(now + patience)), '-' .. waiter)
local left, most = redis.call('PTTL', queue), math.max(60000, 4 * patience)
if left < tonumber(patience) then redis.call('PEXPIRE', queue, patience) end
if left > most then
    local last = string.format('%.0f', -(now + most))
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', queue, '-inf', '(' .. last)) do
        redis.call('ZADD', queue, last, member)
    end
    redis.call('PEXPIRE', queue, most)
end
if sent then
    redis.call('HSET', tokens, waiter, ttl .. ' ' .. sent .. ' ' .. token)
    if redis.call('PTTL', tokens) == -1 then
        redis.call('PEXPIRE', tokens, math.max(60000, tonumber(patience)))
    end
end
local kind = redis.call('TYPE', key).ok
if kind == 'none' and first() == waiter and (not joins or ticket == 1) then
    redis.call('SET', key, token, 'PX', ttl)
    return redis.status_reply('OK')
end
if kind == 'string' and redis.call('GET', key) == token then
    local left = redis.call('PTTL', key)
    if left >= 0 and left < tonumber(ttl) then redis.call('PEXPIRE', key, ttl) end
    return redis.status_reply('OK')
end
local refused = kind == 'zset' and math.floor(now + patience / 2) or 1
if tonumber(redis.call('GET', flag) or 0) < refused then
    redis.call('SET', flag, string.format('%.0f', refused), 'PX', 60000)
end
if ((not joins and was ~= ticket) or dead > 0) and kind == 'none' then tell(first(), 'next ' .. first()) end
return ticket
"""

EXTEND_FAIR = """
local stored = redis.call('GET', KEYS[1])
if stored ~= ARGV[1] then
    redis.call('ZREM', 'redlock:queue:' .. KEYS[1], ARGV[3], '-' .. ARGV[3])
    redis.call('HDEL', 'redlock:next:' .. KEYS[1], ARGV[3])
    return stored and stored:find('^revoked by ') and stored or 0
end
local left = redis.call('PTTL', KEYS[1])
if left >= 0 and left < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
"""

RELEASE_FAIR = QUEUE + """
local token, waiter, how = unpack(ARGV)
bury()
if how == 'pass' or how == 'leave' then leave(waiter) end
if how == 'back' and (redis.call('HGET', tokens, waiter) or ''):match('^%d+ %d+ (.*)$') == token then
    redis.call('HDEL', tokens, waiter)
end
local stored = redis.call('GET', key)
local held = stored == token and 1 or 0
local one = first()
if held == 1 then
    local ttl, sent, next_token = (one and redis.call('HGET', tokens, one) or ''):match('^(%d+) (%d+) (.*)$')
    if how == 'pass' and ttl then
        redis.call('SET', key, next_token, 'PX', ttl)
        local state = redis.call('HGET', 'redlock:master', 'epoch') or '-'
        tell(one, table.concat({'granted', one, sent, state, next_token}, ' '))
        return 1
    end
    redis.call('DEL', key)
elseif stored then
    return 0
end
if one and one ~= waiter then
    tell(one, 'next ' .. one)
elseif not one and redis.call('DEL', flag) == 1 then
    redis.call('PUBLISH', flag, 'free ' .. redis.call('PUBSUB', 'NUMSUB', flag)[2])
end
return held
"""

# Section 14.
RAISE = """
local master, number = KEYS[#KEYS], tonumber(ARGV[2])
local epoch, floor, high = unpack(redis.call('HMGET', master, 'epoch', 'floor', 'high'))
if epoch ~= STATE or not floor or not high then return -1 end
for i = 1, #KEYS - 1 do if redis.call('GET', KEYS[i]) ~= ARGV[1] then return 0 end end
local count = number - floor
for i = COUNTERS, LAST do
    local old = tonumber(redis.call('HGET', master, ARGV[i]) or 0)
    if old >= count then count = old + 1 end
end
local time = redis.call('TIME')
if floor + count > tonumber(high) then
    if floor + count > time[1] * 1000000 + time[2] + 2 ^ 40 then
        return redis.error_reply('ERR the fencing counter is days ahead of the clock')
    end
    redis.call('HSET', master, 'high', string.format('%.0f', floor + math.ceil(count / 16384) * 16384))
end
for i = COUNTERS, LAST do redis.call('HSET', master, ARGV[i], string.format('%.0f', count)) end
return floor + count
"""

RAISE_ONE = RAISE.replace("STATE", "ARGV[4]").replace("COUNTERS", "3").replace("LAST", "3")
RAISE_MANY = RAISE.replace("STATE", "ARGV[3]").replace("COUNTERS", "4").replace("LAST", "#ARGV")

COUNT_MANY = """
local count = 0
for _, counter in ipairs(ARGV) do
    count = math.max(count, tonumber(redis.call('HGET', KEYS[1], counter) or 0))
end
for _, counter in ipairs(ARGV) do redis.call('HSET', KEYS[1], counter, string.format('%.0f', count + 1)) end
return count + 1
"""
