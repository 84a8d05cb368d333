-- count_many: raise the fencing counters of several names to one number.
--
-- KEYS[1]  the marker (WIRE_MARKER)
-- ARGV     counters: the fields of the marker that belong to the names
-- Reply    the count that all of them have reached: one more than the greatest of them
--
-- Rules
-- - Like HINCRBY of one counter, this moves each counter up, and never to the same count twice.  So
--   the order of tokens holds for each name.
-- - No counter gets ahead of the greatest by more than one, so that counters stay behind the clock.

local counts, most, fields = redis.call('hmget', KEYS[1], unpack(ARGV)), 0, {}
for i = 1, #ARGV do
    most = math.max(most, counts[i] or 0)
end
for i = 1, #ARGV do
    fields[2 * i - 1], fields[2 * i] = ARGV[i], string.format('%.0f', most + 1)
end
redis.call('hset', KEYS[1], unpack(fields))
return most + 1
