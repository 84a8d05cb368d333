-- notify_next: tell the client of the first waiter that it is that waiter's turn.
--
-- Needs: first.
-- The channel is that client's own, so that a thousand others sleep on.  Its name ends in the
-- digits that begin the name of each of its waiters (place.h).
-- The call is a pcall: a missing right to publish must not make a release fail.

redis.pcall('publish', WIRE_CLIENT .. string.sub(first, 1, WIRE_CLIENT_DIGITS), 'next ' .. first)
