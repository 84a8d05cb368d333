-- same_version: end the script unless the master has the epoch, the version and the set that the
-- client knows.
--
-- Needs: marker, with the fields "epoch" and "set" first.
-- A warming master has no epoch, so it ends the script, too.  The floor that count_on.lua appends
-- to the field is not compared.

if string.match(marker[1] or '', '^%x+%.%d+') ~= ARGV[1] or marker[2] ~= ARGV[2] then
    return 'ver'
end
