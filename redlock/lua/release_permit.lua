-- release_permit: release.lua for a permit of a semaphore.
--
-- KEYS[1]  WIRE_PERMIT, name of the semaphore, ":", number of the permit
-- ARGV[1]  token
-- Reply    1: the key held the token and is deleted; 0: it did not.
--
-- Rules
-- - As in release.lua.  But the flag and the channel belong to the semaphore, since a waiter
--   waits for any of its permits.

if redis.call('get', KEYS[1]) ~= ARGV[1] then
    return 0
end
local flag = WIRE_MARK .. string.match(KEYS[1], '(.*):')
-- @part delete_and_notify
