-- scan: tell which locks are stored, step by step.  It only reads.
--
-- ARGV[1]  cursor of SCAN
-- ARGV[2]  how many keys to look at
-- ARGV[3]  "1": tell also of texts that Redlock did not write; else count them
-- Reply    "CURSOR OTHERS\n": the next cursor, and how many such texts were left out; and then rows
--          (parts/row.lua), in which OF is the name of a lock, and NUMBER is 0 but for permits
--            L  TEXT: a token, or the text of a revoked lock
--            R  COUNT: its readers
--            P  NUMBER: of the permit, from 1.  TEXT: its token
--            G  TEXT: a text that ends, and that Redlock did not write
--            F  a key that Redlock cannot have written, of a name that clients wait for
--            Q  COUNT: clients that wait in its queue
--            W  clients wait for the name, or have waited in the last minute
--
-- Rules
-- - Keys without an end are no locks.  Other programs may have any number of them, so they are told
--   only if clients wait for the name.
-- - A key that the user may not read is left out.  A command that it may not run is an error:
--   "can't run this command" (Redis 7.0), "no permissions to run the 'strlen' command" (Redis 8).
-- - What Redlock cannot have written must not make a row that C refuses.

local found, others = redis.call('scan', ARGV[1], 'count', ARGV[2]), 0
-- @part row
-- @part readers
local function tell(what, number, left, count, name, text)
    if #name > 0 and #name <= 512 then
        add(what, number, left, count, name, text)
    end
end
local function tell_other(name, left)
    local kind = redis.pcall('type', name)['ok']
    local is_other = kind and kind ~= 'string' and kind ~= 'zset' or redis.pcall('pttl', name) == -1
    if kind and kind ~= 'none' and is_other then
        tell('F', 0, left, 1, name, '')
    end
end
local function is_ours(text)
    return #text <= 128 and string.sub(text, 1, #WIRE_REVOKED) == WIRE_REVOKED or #text >= 40
        and string.match(string.sub(text, 1, 40), '^[0-9a-f]+$')
        and (#text == 40 or string.sub(text, 41, 41) == ':')
end

for _, key in ipairs(found[2]) do
    local left = redis.pcall('pttl', key)
    local is_lock = type(left) == 'number' and left > 0
    local queue = string.match(key, '^' .. WIRE_QUEUE .. '(.+)$')
    local waited = string.match(key, '^' .. WIRE_MARK .. '(.+)$')
    local pool, slot = string.match(key, '^' .. WIRE_PERMIT .. '(.+):(%d+)$')
    local kind = is_lock and not (queue or waited) and redis.pcall('type', key)['ok']
    if is_lock and queue then
        local waiting = redis.pcall('zcount', key, '0', 'inf')
        if type(waiting) == 'number' and waiting > 0 then
            tell('Q', 0, left, waiting, queue, '')
            tell_other(queue, left)
        end
    elseif is_lock and waited then
        tell('W', 0, left, 1, waited, '')
        tell_other(waited, left)
    elseif kind == 'string' then
        local len = redis.pcall('strlen', key)
        if type(len) == 'table' and string.find(len.err, 'run th', 1, true) then
            return len
        end
        local text = type(len) == 'number' and len <= 128 and redis.pcall('get', key)
        local is_permit = string.sub(key, 1, #WIRE_PERMIT) == WIRE_PERMIT
        if type(text) == 'string' then
            if pool and #slot < 4 and slot + 0 < 256 and is_ours(text) then
                tell('P', slot + 1, left, 1, pool, text)
            elseif not is_permit and is_ours(text) then
                tell('L', 0, left, 1, key, text)
            elseif ARGV[3] == '1' then
                tell('G', 0, left, 1, key, text)
            else
                others = others + 1
            end
        end
    elseif kind == 'zset' then
        local last, _, count = readers(key, left, 1)
        if type(count) == 'number' and count > 0 and last[1] and is_ours(last[1]) then
            tell('R', 0, left, count, key, '')
        end
    end
end
return found[1] .. ' ' .. others .. '\n' .. table.concat(rows)
