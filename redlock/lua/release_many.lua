-- release_many: release.lua for several locks, each by itself.
--
-- KEYS     names of the locks
-- ARGV[1]  token
-- Reply    1: all keys held the token; 0: some did not.
--
-- Rules
-- - Every key that holds the token is deleted, whatever the others hold.  MGET answers nil for a
--   key of another type.
-- - EXISTS alone shows that nobody waits: the usual case.
-- - No error about the flags or the channels keeps the keys from being deleted.

local values = redis.call('mget', unpack(KEYS))
local ours, flags, count = {}, {}, 0
for i = 1, #KEYS do
    if values[i] == ARGV[1] then
        count = count + 1
        ours[count], flags[count] = KEYS[i], WIRE_MARK .. KEYS[i]
    end
end
if count == 0 then
    return 0
end
redis.call('del', unpack(ours))
if redis.pcall('exists', unpack(flags)) ~= 0 then
    for i = 1, count do
        local flag = flags[i]
        if redis.pcall('del', flag) == 1 then
            -- @part notify_free
        end
    end
end
return count == #KEYS and 1 or 0
