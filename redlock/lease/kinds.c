/*
 * kinds.c - the table of kinds, and the choice among them.
 */
#include <string.h>

#include "redlock/base/error.h"
#include "redlock/core/combine.h"
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

static combine_set set_of(const struct wanted *wanted, const struct redlock_lock_options *opts)
{
    return (combine_set)(wanted->token != NULL) << COMBINE_ADOPT |
           (combine_set)opts->fair << COMBINE_FAIR | (combine_set)opts->fence << COMBINE_FENCE |
           (combine_set)(opts->permits > 0) << COMBINE_PERMITS |
           (combine_set)opts->reentrant << COMBINE_REENTRANT |
           (combine_set)wanted->many << COMBINE_SEVERAL |
           (combine_set)opts->shared << COMBINE_SHARED;
}

int kind_check(const struct wanted *wanted, const struct redlock_lock_options *opts)
{
    const struct combine_clash *clash = combine_clash_in(set_of(wanted, opts));

    if (clash != NULL)
        return error_set(REDLOCK_E_INVAL, "%s and %s do not go together: %s",
                         combine_word(clash->one), combine_word(clash->other), clash->why);
    if (wanted->token != NULL && opts->permits > 0)
        return check_permit(wanted->token, opts->permits);
    return REDLOCK_OK;
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
