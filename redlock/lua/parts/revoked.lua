-- revoked: answer an extension with the text that has revoked the lock, if there is one.
--
-- Needs: value, what the key stores.
-- Only an extension that fails comes here, so this costs no other a call.

if type(value) == 'string' and string.find(value, WIRE_REVOKED, 1, true) == 1 then
    return value
end
