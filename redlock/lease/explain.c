/*
 * explain.c - builds the message of a failed operation: what failed, the name, the masters at
 * fault, and why.
 */
#include "redlock/lease/explain.h"

#include <stdio.h>

#include "redlock/base/error.h"
#include "redlock/base/text.h"
#include "redlock/lease/troubles.h"

#define QUOTED_MAX 80 /* The longest name in a message, in bytes. */

static const char *op_name(enum lease_op op)
{
    switch (op) {
    case LEASE_OP_LOCK:
        return "acquire";
    case LEASE_OP_EXTEND:
        return "extend";
    case LEASE_OP_UNLOCK:
        return "release";
    case LEASE_OP_NONE:
        break;
    }
    return "lease";
}

/* Which masters answered so in the latest operation. */
struct answers {
    quorum_mask silent; /* They had not answered in time. */
    quorum_mask gone;   /* They do not store the lock that is lost. */
};

/* What is wrong with a master.  Empty: nothing. */
static const char *trouble_of(const struct masters *masters, unsigned m,
                              const struct answers *answers, const char *silence)
{
    const char *error = masters_error(masters, m);

    if (!masters_concern(masters, m))
        return "";
    if (answers->gone & mask_of(m))
        return "does not store it any more";
    if (masters->peers.up & answers->silent & mask_of(m))
        return silence;
    if (!masters_is_linked(masters, m) && error[0] == 0)
        return "its queue of commands is full"; /* See LINK_ASKS_MAX. */
    return error;
}

static void list_troubles(const struct leases *leases, struct answers answers, char *buf,
                          size_t size)
{
    const struct masters *masters = leases->masters;
    struct trouble troubles[QUORUM_MASTERS_MAX];
    char silence[48];

    (void)snprintf(silence, sizeof silence, "no answer within %u ms",
                   drift_to_ms(leases->reply_timeout));
    for (unsigned m = 0; m < masters->peers.len; m++)
        troubles[m] =
            (struct trouble){masters_name(masters, m), trouble_of(masters, m, &answers, silence)};
    troubles_list(troubles, masters->peers.len, buf, size);
}

void explain_ready(const struct leases *leases, int status)
{
    char troubles[ERROR_MESSAGE_MAX];

    list_troubles(leases, (struct answers){0, 0}, troubles, sizeof troubles);
    (void)error_set(status, "ready: %s%s%s", redlock_strerror(status), troubles[0] != 0 ? ": " : "",
                    troubles);
}

/* Quote the name.  Several names become a list with commas. */
static void quote_names(const struct redlock_lease *lease, char *buf, size_t size)
{
    char names[QUOTED_MAX];
    const char *name = lease_name(lease);
    size_t len = lease->name_len - (size_t)(name - lease->name);

    if (len > sizeof names)
        len = sizeof names;
    for (size_t i = 0; i < len; i++)
        names[i] = (char)(name[i] != '\0' ? name[i] : ',');
    (void)error_quote(names, len, buf, size);
}

static const char *all_permits_taken(const struct redlock_lease *lease, char buf[48])
{
    unsigned slots = lease_kind(lease)->slots(lease);

    if (slots == 1)
        return "the only permit is taken";
    (void)snprintf(buf, 48, "all %u permits are taken", slots);
    return buf;
}

/* Only reentrant leases can be found by their names. */
static const char *who_holds(const struct redlock_lease *lease)
{
    struct leases *leases = lease->leases;
    const struct owned *other = owner_other(&leases->owners, lease->name, lease);

    if (other != NULL && lease_remaining_ms(other->lease) > 0)
        return "another lease of this client holds it";
    if (leases->slots_len - leases->slots_free_len == 1)
        return "another client holds it";
    return redlock_strerror(REDLOCK_CONTENDED);
}

static bool is_revoked(const struct redlock_lease *lease)
{
    return lease->leases->revoked.serial == lease->serial;
}

void explain_revoked(const struct redlock_lease *lease, unsigned master, const char *text)
{
    struct leases *leases = lease->leases;
    char name[QUOTED_MAX];

    if (is_revoked(lease))
        return;
    leases->revoked.serial = lease->serial;
    (void)snprintf(leases->revoked.text, sizeof leases->revoked.text, "%s", text);
    (void)text_clean(leases->revoked.text);
    quote_names(lease, name, sizeof name);
    env_log(leases->env, REDLOCK_LOG_WARNING, MSG_REVOKED, "lock %s: %s, says master %u (%s)", name,
            leases->revoked.text, master + 1, masters_name(leases->masters, master));
}

void explain_end(const struct redlock_lease *lease, enum lease_op op, int status)
{
    char name[QUOTED_MAX], troubles[ERROR_MESSAGE_MAX - QUOTED_MAX - 64];
    const char *why = redlock_strerror(status);
    char taken[48];

    if (status == REDLOCK_OK) {
        error_clear();
        return;
    }
    quote_names(lease, name, sizeof name);
    troubles[0] = 0;
    if (outlook_is_status(status) || status == REDLOCK_TOO_LATE)
        list_troubles(lease->leases, (struct answers){lease->silent, 0}, troubles, sizeof troubles);
    if (lease_kind(lease)->explain != NULL)
        lease_kind(lease)->explain(lease, status, troubles, sizeof troubles);
    if (op == LEASE_OP_EXTEND && is_revoked(lease))
        why = lease->leases->revoked.text;
    else if (status == REDLOCK_LOST && op == LEASE_OP_EXTEND && lease_remaining_ms(lease) > 0)
        why = "the lock is still held, but the lost notice was given, or was due";
    else if (status == REDLOCK_LOST && lease->adopted)
        why = "the lock is not held with this token"; /* Perhaps it never was. */
    else if (status == REDLOCK_UNREACHABLE && op == LEASE_OP_UNLOCK)
        why = "too few masters confirmed it";
    else if (status == REDLOCK_CONTENDED && lease_kind(lease)->slots != NULL)
        why = all_permits_taken(lease, taken);
    else if (status == REDLOCK_CONTENDED)
        why = who_holds(lease);
    if (status == REDLOCK_E_STATE) /* Only a close gives this status to an operation under way. */
        why = "the client was closed meanwhile";
    (void)error_set(status, "%s %s: %s%s%s", op_name(op), name, why, troubles[0] != 0 ? ": " : "",
                    troubles);
}

bool explain_wait(const struct redlock_lease *lease)
{
    const struct leases *leases = lease->leases;
    char troubles[ERROR_MESSAGE_MAX];
    drift_span left;
    enum outlook outlook;

    if (!lease_is_waiting(lease) || lease->q.contended)
        return false;
    list_troubles(leases, (struct answers){lease->silent, 0}, troubles, sizeof troubles);
    if (troubles[0] == 0)
        return false;
    outlook = masters_outlook(leases->masters, env_now(leases->env), &left);
    explain_end(lease, LEASE_OP_LOCK, outlook_status(outlook));
    return true;
}

/* True: masters without trouble would have been enough, so it is not the masters that lost it. */
static bool are_well(const struct redlock_lease *lease)
{
    const struct masters *masters = lease->leases->masters;
    const struct answers answers = {lease->silent, lease->gone};
    quorum_mask well = 0;

    for (unsigned m = 0; m < masters->peers.len; m++)
        if (trouble_of(masters, m, &answers, "silent")[0] == '\0')
            well |= mask_of(m);
    return members_decide(&masters->peers.members, well & members_all(&masters->peers.members));
}

bool explain_loss(const struct redlock_lease *lease, char *buf, size_t size)
{
    bool revoked = is_revoked(lease);

    if (revoked)
        (void)snprintf(buf, size, "%s", lease->leases->revoked.text);
    else if (lease_remaining_ms(lease) == 0 && are_well(lease))
        buf[0] = '\0';
    else
        list_troubles(lease->leases, (struct answers){lease->silent, lease->gone}, buf, size);
    return revoked;
}
