-- extend_shared: extend.lua for a reader.
--
-- KEYS[1]  name of the lock
-- ARGV[1]  token
-- ARGV[2]  ttl in ms, from now
-- Reply    1: the reader lasts for ttl or longer; 0: there is no such reader, or it has ended.
--
-- Rules
-- - As in extend.lua, the end of a reader only ever moves to a later instant.
-- - The key ends with the reader that lasts longest.
-- - PEXPIREAT comes first.  A master whose memory is full allows it, but refuses a script that
--   begins with ZADD.

local key = KEYS[1]
-- @part now
local ends = tonumber(redis.call('zscore', key, ARGV[1]) or 0)
if ends <= now then
    return 0
end
local own = now + ARGV[2] + 1
if ends < own then
    local last = tonumber(redis.call('zrange', key, -1, -1, 'withscores')[2])
    redis.call('pexpireat', key, math.max(own, last))
    redis.call('zadd', key, own, ARGV[1])
end
return 1
