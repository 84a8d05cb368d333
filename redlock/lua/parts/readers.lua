-- readers: the readers of a key.
--
-- Declares: readers.  It takes a key, its PTTL, and how many readers to return at most; it returns
-- the ones that end last, each followed by its score; the now of the scale; and how many there are,
-- without those whose time is over, or the error if that is forbidden.
-- The key ends with the reader of the greatest score (acquire_shared.lua).

local function readers(key, left, most)
    if type(left) ~= 'number' then
        return {}, 0, left
    end
    local last = redis.pcall('zrange', key, -most, -1, 'withscores')
    local now = (last[#last] or 0) - left
    return last, now, last.err and last
        or redis.pcall('zcount', key, string.format('(%.0f', now), 'inf')
end
