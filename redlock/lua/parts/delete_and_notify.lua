-- delete_and_notify: delete KEYS[1] with its wait flag, notify the waiters, and answer 1.
--
-- Needs: flag, the key of the wait flag.
-- One DEL deletes both keys: a call of its own for the flag would cost every release half a
-- microsecond.  If both keys existed, there are waiters.
-- If this DEL fails (a right to the flag may be missing), the script deletes KEYS[1] alone.

local deleted = redis.pcall('del', KEYS[1], flag)
if deleted == 2 then
    -- @part notify_free
elseif deleted ~= 1 then
    redis.call('del', KEYS[1])
end
return 1
