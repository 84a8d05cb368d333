-- show: tell what is stored under a name.  It only reads.
--
-- KEYS[1]  name of the lock
-- ARGV[1]  look for permits of the numbers 1 to this one; 0: for none
-- ARGV[2]  "1": look for the queue as well
-- Reply    rows (parts/row.lua), in which OF is the type of a key:
--            N  the key of the name, always.  NUMBER 0.  COUNT: 1 for a string, else readers.
--            R  a reader, of up to 64 that end last.  NUMBER 0, OF "".  TEXT: its token
--            Q  the queue, if it was asked for.  NUMBER 0, LEFT 0.  COUNT: its waiters.  TEXT of a
--               sorted set: "", or "odd" if it has entries that are no waiters
--            P  a permit that is stored.  NUMBER: from 1.  TEXT: its token
--          LEFT     PTTL, ms: -1: never, -2: there is no such key, 0: also if it is forbidden
--          OF       also "none", or "error": the key may not be read
--          TEXT     of a string, up to 128 bytes, and "..." if there are more; of an error, or of
--                   another type, what Redis says.  COUNT is -1 if this is about readers.
--
-- Rules
-- - The name alone is declared: Redis refuses the whole script if one of the KEYS is forbidden.
--   The other keys are made here, and each call is redis.pcall(): what is forbidden is told, and
--   the rest is still found.
-- - It needs no right but those that the scripts of this kind of lock need: GET, PTTL and TYPE;
--   ZRANGE and ZCOUNT for readers, ZCOUNT for a queue.  TYPE is asked only if a key is no string.
-- - If a permit is forbidden, all are: P with NUMBER 0 and the error comes instead, and no more is
--   asked.

local name = KEYS[1]
-- @part row
-- @part readers
local function kind_of(key, fitting, said)
    local kind = redis.pcall('type', key)['ok']
    local is_other = kind and kind ~= fitting and kind ~= 'none'
    return is_other and kind or 'error', string.sub(said.err, 1, 900)
end
local function cut(text)
    return #text > 128 and string.sub(text, 1, 128) .. '...' or text
end
local function read(key)
    local text = redis.pcall('get', key)
    if type(text) == 'string' then
        return 1, 'string', cut(text)
    elseif not text then
        return 0, 'none', ''
    end
    return 0, kind_of(key, 'string', text)
end

local left, count, kind, text = redis.pcall('pttl', name), read(name)
if kind == 'zset' then
    local last, now, alive = readers(name, left, 64)
    count, text = alive, ''
    if type(alive) ~= 'number' then
        count, text = -1, string.sub(alive.err, 1, 900)
    end
    for i = 1, #last, 2 do
        local more = last[i + 1] - now
        if more > 0 and more < 1e15 then -- Another program may store any score.
            add('R', 0, more, 1, '', cut(last[i]))
        end
    end
end
add('N', 0, type(left) == 'number' and left or 0, count, kind, text)

if ARGV[2] == '1' then
    local queue = WIRE_QUEUE .. name
    local waiting = redis.pcall('zcount', queue, '0', 'inf')
    if type(waiting) == 'number' then -- A waiter has two entries (parts/queue.lua).
        local others = redis.pcall('zcount', queue, '-inf', '(0')
        local is_odd, is_there = waiting ~= others, waiting ~= 0 or others ~= 0
        add('Q', 0, 0, waiting, is_there and 'zset' or 'none', is_odd and 'odd' or '')
    else
        add('Q', 0, 0, 0, kind_of(queue, 'zset', waiting))
    end
end

for i = 1, ARGV[1] do
    local key = WIRE_PERMIT .. name .. ':' .. (i - 1)
    left = redis.pcall('pttl', key)
    if type(left) ~= 'number' then
        add('P', 0, 0, 0, 'error', string.sub(left.err, 1, 900))
        break
    elseif left ~= -2 then
        add('P', i, left, read(key))
    end
end
return table.concat(rows)
