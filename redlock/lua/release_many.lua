-- release_many: release.lua for several locks, each by itself.
--
-- KEYS     names of the locks
-- ARGV[1]  token
-- Reply    1: all keys held the token; 0: some did not; an error: one could not be read or
--          deleted.
--
-- Rules
-- - Every key that holds the token is deleted, whatever the others hold.
-- - An error with one key does not keep the others from being deleted.  The call that failed is
--   made once more at the end, so that its error is the reply.

local released, failed = 0
for i = 1, #KEYS do
    local key = KEYS[i]
    local value = redis.pcall('get', key)
    if value == ARGV[1] then
        local flag = WIRE_MARK .. key
        local deleted = redis.pcall('del', key, flag)
        if deleted == 2 then
            -- @part notify_free
        elseif deleted ~= 1 then
            deleted = redis.pcall('del', key)
        end
        if type(deleted) == 'number' then
            released = released + 1
        else
            failed = {'del', key}
        end
    elseif type(value) == 'table' then
        failed = {'get', key}
    end
end
if failed then
    redis.call(failed[1], failed[2])
end
return released == #KEYS and 1 or 0
