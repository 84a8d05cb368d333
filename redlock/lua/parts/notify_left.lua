-- notify_left: publish how long the key lasts, and answer with that time.
--
-- Needs: left, in ms; is_new, whether this query has set the wait flag.
-- KEYS[2] is the channel, ARGV[3] the word: "held" or "taken".
-- A waiter publishes "held" only if it has set the flag: else the others have heard it already.
-- A holder publishes "taken" in any case.

if left > 0 and (is_new or ARGV[3] == 'taken') then
    redis.pcall('publish', KEYS[2], ARGV[3] .. ' ' .. string.format('%d', left))
end
return left
