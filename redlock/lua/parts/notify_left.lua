-- notify_left: publish how long the key lasts, and answer with that time.
--
-- Needs: left, in ms; is_new, whether this query has set the wait flag; flag.
-- ARGV[3] is the word: "held" or "taken".  ARGV[4] is missing if the client knows of no crowd,
-- which saves a call.
-- A waiter publishes "held" only if it has set the flag: else the others have heard it already.
-- A holder publishes "taken" in any case.
-- In a crowd nobody is told "held".  "taken" is for the holder's own group, which was notified of
-- the release together with it, and for the groups that its own release will notify.

if left > 0 and (is_new or ARGV[3] == 'taken') then
    local text = ARGV[3] .. ' ' .. string.format('%d', left)
    local listeners = ARGV[4] and redis.pcall('pubsub', 'numsub', flag) or {}
    if (listeners[2] or 0) <= WIRE_CROWD then
        redis.pcall('publish', flag, text)
    elseif ARGV[3] == 'taken' then
        local group = string.sub(ARGV[4], 2, 2)
        redis.pcall('publish', flag .. '\0' .. string.sub(ARGV[4], 1, 1), text)
        -- @part notify_groups
        if not is_heard then
            redis.pcall('publish', flag, text)
        end
    end
end
return left
