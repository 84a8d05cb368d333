-- release: delete the key of a lock if it holds our token, and notify the waiters.
--
-- KEYS[1]  name of the lock
-- ARGV[1]  token
-- Reply    1: the key held the token and is deleted; 0: it did not.
--
-- Rules
-- - The token is compared, so that a late release cannot end the lock of another client.
-- - The wait flag is deleted with the key.  If there was one, the waiters are notified.
-- - No error about the flag or the channel keeps the key from being deleted.

if redis.call('get', KEYS[1]) ~= ARGV[1] then
    return 0
end
local flag = WIRE_MARK .. KEYS[1]
-- @part delete_and_notify
