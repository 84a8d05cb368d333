-- extend_key: let KEYS[1], which holds our token, last for ARGV[2] ms or longer.

if redis.call('pttl', KEYS[1]) < tonumber(ARGV[2]) then
    redis.call('pexpire', KEYS[1], ARGV[2])
end
