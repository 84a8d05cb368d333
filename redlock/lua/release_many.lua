-- release_many: release.lua for several locks, each by itself.
--
-- KEYS     names of the locks
-- ARGV[1]  token
-- Reply    1: all keys held the token; 0: some did not.
--
-- Rules
-- - Every key that holds the token is deleted, whatever the others hold.  MGET answers nil for a
--   key of another type.
-- - Usually nobody waits.  One EXISTS of all flags shows that.
-- - One table is used for the values, then for the keys, then for the flags.  To grow another table
--   would cost as much as a small call.
-- - The keys are deleted first, and errors of the calls after that are ignored.

local list, count = redis.call('mget', unpack(KEYS)), 0
for i = 1, #KEYS do
    if list[i] == ARGV[1] then
        count = count + 1
        list[count] = KEYS[i]
    end
end
if count == 0 then
    return 0
end
redis.call('del', unpack(list, 1, count))
for i = 1, count do
    list[i] = WIRE_MARK .. list[i]
end
if redis.pcall('exists', unpack(list, 1, count)) ~= 0 then
    for i = 1, count do
        local flag = list[i]
        if redis.pcall('del', flag) == 1 then
            -- @part notify_free
        end
    end
end
return count == #KEYS and 1 or 0
