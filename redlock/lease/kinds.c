/*
 * kinds.c - the table of kinds, and the choice among them.
 */
#include <string.h>

#include "redlock/base/error.h"
#include "redlock/core/permit.h"
#include "redlock/lease/kind.h"

const struct kind *const kinds[KINDS] = {
    [KIND_PLAIN] = &kind_plain, [KIND_MANY] = &kind_many,     [KIND_PERMIT] = &kind_permit,
    [KIND_FAIR] = &kind_fair,   [KIND_SHARED] = &kind_shared,
};

size_t kind_write(const struct kind *kind, char *buf, enum quorum_command command, bool in_full,
                  const struct wire_args *args)
{
    enum script_id script = kind->scripts[command];

    if (script == KIND_NO_SCRIPT)
        return wire_set(buf, args);
    if (kind->write != NULL)
        return kind->write(buf, script, in_full, args);
    return wire_script(buf, script, in_full, args);
}

/* ---- The choice of a kind ---- */

static int check_permit(const char *token, uint32_t permits)
{
    struct permit permit = {.slots = (uint16_t)permits};

    if (!permit_adopt(&permit, token))
        return error_set(REDLOCK_E_INVAL, "the token belongs to none of %u permits", permits);
    return REDLOCK_OK;
}

static int check_adopted(const struct wanted *wanted, const struct redlock_lock_options *opts)
{
    if (wanted->token == NULL)
        return REDLOCK_OK;
    if (opts->reentrant || opts->fair)
        return error_set(REDLOCK_E_INVAL, "%s must not be set",
                         opts->reentrant ? "reentrant" : "fair");
    return opts->permits > 0 ? check_permit(wanted->token, opts->permits) : REDLOCK_OK;
}

int kind_check(const struct wanted *wanted, const struct redlock_lock_options *opts)
{
    if (wanted->many && (opts->fence || opts->reentrant))
        return error_set(REDLOCK_E_INVAL, "%s is for locks of one resource",
                         opts->fence ? "fence" : "reentrant");
    if (opts->permits > 0 && (wanted->many || opts->fence || opts->reentrant))
        return error_set(REDLOCK_E_INVAL, "permits is for locks of one resource%s",
                         wanted->many ? "" : ", without fence and reentrant");
    if (opts->fair && (wanted->many || opts->fence || opts->permits > 0))
        return error_set(REDLOCK_E_INVAL,
                         "fair is for locks of one resource, without fence and permits");
    if (opts->shared && wanted->many)
        return error_set(REDLOCK_E_INVAL, "shared is for locks of one resource");
    if (opts->shared && (opts->fence || opts->reentrant || opts->permits > 0 || opts->fair))
        return error_set(REDLOCK_E_INVAL, "%s is not for shared locks",
                         opts->fence         ? "fence"
                         : opts->reentrant   ? "reentrant"
                         : opts->permits > 0 ? "permits"
                                             : "fair");
    return check_adopted(wanted, opts);
}

enum kind_id kind_choose(const struct wanted *wanted, const struct redlock_lock_options *opts)
{
    if (opts->permits > 0)
        return KIND_PERMIT;
    if (wanted->len > 1)
        return KIND_MANY;
    return opts->shared ? KIND_SHARED : opts->fair ? KIND_FAIR : KIND_PLAIN;
}

size_t kind_names(enum kind_id kind, const struct wanted *wanted, char *buf)
{
    size_t len = kinds[kind]->hidden;

    memcpy(buf, WIRE_PERMIT, len);
    for (size_t i = 0; i < wanted->len; i++) {
        size_t name_len = strlen(wanted->resources[i]);

        memcpy(buf + len, wanted->resources[i], name_len + 1);
        len += name_len + 1;
    }
    return len - 1;
}
