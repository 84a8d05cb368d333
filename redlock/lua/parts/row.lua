-- row: append a row of what was found, "WHAT NUMBER LEFT COUNT OF_LEN TEXT_LEN\n", OF, TEXT, "\n".
--
-- Declares: rows, add.
-- OF and TEXT may have any bytes, so their lengths are told.  cli/common/shown.c reads rows.
-- No key lasts for 1e15 ms unless another program wrote it.  C reads all such numbers.

local rows = {}
local function add(what, number, left, count, of, text)
    rows[#rows + 1] = string.format('%s %d %.0f %.0f %d %d\n', what, number, math.min(left, 1e15),
        count, #of, #text)
    rows[#rows + 1] = of .. text .. '\n'
end
