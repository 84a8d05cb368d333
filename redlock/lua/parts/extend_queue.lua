-- extend_queue: let the queue last as long as the waiter that sent this heartbeat is patient.
--
-- Needs: queue, now, patience.  Declares: lasts, longest.
-- If the queue would last for much longer, the clock was set back.  Then waiters that have died
-- since seem to live until the clock is where it was, perhaps for hours.  They get a minute from
-- now on.  A waiter that lives sends a heartbeat before that: it sends four in its patience.

local lasts, longest = redis.call('pttl', queue), math.max(WIRE_PATIENCE_MS, 4 * patience)
if lasts < patience then
    redis.call('pexpire', queue, ARGV[5])
elseif lasts > longest then
    local till = string.format('%.0f', -now - longest)
    local late = redis.pcall('zrangebyscore', queue, '-inf', '(' .. till)
    for i = 1, #late do
        redis.call('zadd', queue, till, late[i])
    end
    redis.call('pexpire', queue, string.format('%.0f', longest))
end
