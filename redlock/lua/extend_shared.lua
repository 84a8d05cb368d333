-- extend_shared: extend.lua for a reader.
--
-- KEYS[1]  name of the lock
-- ARGV[1]  token
-- ARGV[2]  ttl in ms, from now
-- Reply    1: the reader lasts for ttl or longer; 0: there is no such reader, or it has ended;
--          a text that begins with WIRE_REVOKED: nor is there one, because the lock was revoked.
--
-- Rules
-- - As in extend.lua, the end of a reader only ever moves to a later instant.
-- - The key ends with the reader of the greatest score, which also shows the time (acquire_shared).
--   In a set without an end, all readers count as ended.
-- - PEXPIRE comes first.  A master whose memory is full allows it, but refuses a script that
--   begins with ZADD.

local key = KEYS[1]
local last = redis.pcall('zrange', key, -1, -1, 'withscores')
if last.err then
    local value = redis.pcall('get', key)
    -- @part revoked
    return last
end
local ends = last[1] == ARGV[1] and last[2] or redis.call('zscore', key, ARGV[1])
if not ends then
    return 0
end
local left = redis.call('pttl', key)
local now = last[2] - left
if tonumber(ends) < now then
    return 0
end
local own = now + ARGV[2]
if tonumber(ends) < own then
    redis.call('pexpire', key, math.max(left, ARGV[2]))
    redis.call('zadd', key, own, ARGV[1])
end
return 1
