/*
 * explain.c - builds the message of a failed operation: what failed, the name, the masters at
 * fault, and why.
 */
#include "redlock/lease/explain.h"

#include <assert.h>
#include <stdio.h>

#include "redlock/base/error.h"
#include "redlock/base/text.h"
#include "redlock/lease/troubles.h"

#define LOSS_SIZE_MIN 128 /* More than the counts of masters, and what troubles_list() needs. */
#define QUOTED_MAX 80     /* The longest name in a message, in bytes. */
#define LIST_MAX (ERROR_MESSAGE_MAX - QUOTED_MAX - 64) /* What is left for a list, behind it. */

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
    const uint8_t *why; /* enum why: what they answered the lease.  NULL: there is no lease. */
    quorum_mask silent; /* They had not answered in time. */
    quorum_mask gone;   /* They do not store the lock that is lost. */
    quorum_mask absent; /* They never stored it, so they were not asked to renew it. */
};

/* What the lease saw of a master.  NONE: nothing, so that what the link says counts. */
static enum why seen_of(const struct masters *masters, unsigned m, const struct answers *answers)
{
    bool is_up = (masters->peers.up & mask_of(m)) != 0;

    if (answers->gone & mask_of(m))
        return WHY_NOT_STORED_NOW;
    if (is_up && (answers->absent & mask_of(m)) != 0)
        return WHY_NOT_STORED;
    if (is_up && (answers->silent & mask_of(m)) != 0)
        return WHY_NO_ANSWER;
    if (is_up && answers->why != NULL && answers->why[m] != WHY_NONE)
        return (enum why)answers->why[m];
    return !masters_is_linked(masters, m) && masters_reason(masters, m)->why == WHY_NONE
               ? WHY_QUEUE_FULL
               : WHY_NONE;
}

/* What the link has seen last.  Of a master that is up it may be an answer to another lease:
 * then it does not count. */
static void link_trouble(const struct masters *masters, unsigned m, const struct answers *answers,
                         struct reason *ret_why)
{
    *ret_why = *masters_reason(masters, m);
    if (answers->why != NULL && (masters->peers.up & mask_of(m)) != 0 &&
        redis_error_is(ret_why->why))
        reason_set(ret_why, WHY_NONE);
}

/* What is wrong with a master.  NONE: nothing. */
static void trouble_of(const struct leases *leases, unsigned m, const struct answers *answers,
                       struct reason *ret_why)
{
    const struct masters *masters = leases->masters;
    enum why seen;

    reason_set(ret_why, WHY_NONE);
    if (!masters_concern(masters, m))
        return;
    seen = seen_of(masters, m, answers);
    if (seen == WHY_NONE)
        link_trouble(masters, m, answers, ret_why);
    else
        masters_recall(masters, m, seen, ret_why);
    if (seen == WHY_NO_ANSWER)
        ret_why->number = (int)drift_to_ms(leases->reply_timeout);
}

static void list_nothing(struct error *ret_list)
{
    ret_list->text[0] = '\0';
    ret_list->parts.len = 0;
    ret_list->blame.masters = 0;
}

/* Write the list behind the first bytes of a text, up to that size.  The troubles of the masters
 * that decided come first. */
static void list_troubles(const struct leases *leases, struct answers answers, quorum_mask deciding,
                          size_t from, size_t size, struct error *ret_list)
{
    const struct masters *masters = leases->masters;
    const struct members members =
        prospect_founds(&masters->prospect) ? (struct members){0, 0} : masters->peers.members;
    const drift_time now = env_now(leases->env);
    struct trouble troubles[QUORUM_MASTERS_MAX];

    for (unsigned m = 0; m < masters->peers.len; m++) {
        troubles[m].name = masters_name(masters, m);
        trouble_of(leases, m, &answers, &troubles[m].why);
    }
    troubles_weigh(troubles, masters->peers.len, &members, deciding);
    troubles_list(troubles, masters->peers.len, now, ret_list->text + from, size - from,
                  &ret_list->parts);
    error_shift(&ret_list->parts, from);
    blame_init(&ret_list->blame, leases, now);
    for (unsigned m = 0; m < masters->peers.len; m++)
        if (troubles[m].why.why != WHY_NONE)
            blame_add(&ret_list->blame, m, troubles[m].name, &troubles[m].why,
                      (deciding & mask_of(m)) != 0);
}

void explain_ready(const struct leases *leases, int status, quorum_mask deciding)
{
    struct error list;

    list_troubles(leases, (struct answers){0}, deciding, 0, LIST_MAX, &list);
    (void)error_set(status, "ready: %s", redlock_strerror(status));
    error_list(&list);
}

/* Why a release failed.  A user that may take locks need not be one that may release them. */
static const char *why_unconfirmed(const struct error *list)
{
    if (list->parts.len > 0 && list->parts.list[0].message == MSG_NO_RIGHT)
        return "too few masters allow it to this user, so the lock lasts until its ttl is over";
    return "too few masters confirmed it";
}

/* Several names become a list with commas. */
static void quote_names(const struct redlock_lease *lease, char *buf, size_t size)
{
    const char *name = lease_name(lease);

    (void)text_quote_as(TEXT_NAMES, name, lease->name_len - (size_t)(name - lease->name), buf,
                        size);
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

static struct answers answers_of_op(const struct redlock_lease *lease)
{
    return (struct answers){.why = lease->why, .silent = lease->silent};
}

/* Set the message of an operation, with its list. */
static void set_end(const struct redlock_lease *lease, enum lease_op op, int status,
                    const struct error *list)
{
    const char *why = redlock_strerror(status);
    char name[QUOTED_MAX], taken[48];

    quote_names(lease, name, sizeof name);
    if (op == LEASE_OP_EXTEND && is_revoked(lease))
        why = lease->leases->revoked.text;
    else if (status == REDLOCK_LOST && op == LEASE_OP_EXTEND && lease_remaining_ms(lease) > 0)
        why = "the lock is still held, but the lost notice was given, or was due";
    else if (status == REDLOCK_LOST && lease->adopted)
        why = "the lock is not held with this token"; /* Perhaps it never was. */
    else if (status == REDLOCK_UNREACHABLE && op == LEASE_OP_UNLOCK)
        why = why_unconfirmed(list);
    else if (status == REDLOCK_CONTENDED && lease_kind(lease)->slots != NULL)
        why = all_permits_taken(lease, taken);
    else if (status == REDLOCK_CONTENDED)
        why = who_holds(lease);
    if (status == REDLOCK_E_STATE) /* Only a close gives this status to an operation under way. */
        why = "the client was closed meanwhile";
    (void)error_set(status, "%s %s: %s", op_name(op), name, why);
    error_list(list);
}

void explain_end(const struct redlock_lease *lease, enum lease_op op, int status)
{
    struct error list;

    if (status == REDLOCK_OK) {
        error_clear();
        return;
    }
    list_nothing(&list);
    if (outlook_is_status(status) || status == REDLOCK_TOO_LATE)
        list_troubles(lease->leases, answers_of_op(lease), lease->deciding, 0, LIST_MAX, &list);
    if (status == REDLOCK_CONTENDED && lease_kind(lease)->explain != NULL) {
        enum msg kind = lease_kind(lease)->explain(lease, list.text, LIST_MAX);

        list.parts.list[0] = (struct error_part){.message = (uint8_t)kind};
        list.parts.len = 1;
    }
    set_end(lease, op, status, &list);
}

void explain_unconfirmed(const struct redlock_lease *lease)
{
    char name[QUOTED_MAX];
    struct error list;

    quote_names(lease, name, sizeof name);
    list_troubles(lease->leases, answers_of_op(lease), lease->deciding, 0, sizeof list.text, &list);
    env_log(lease->leases->env, REDLOCK_LOG_WARNING, MSG_NO_MAJORITY, "release %s: %s%s%s", name,
            why_unconfirmed(&list), list.text[0] != '\0' ? ": " : "", list.text);
}

int explain_wait(const struct redlock_lease *lease)
{
    const struct leases *leases = lease->leases;
    struct outlook_view view;
    struct error list;
    int status;

    if (!lease_is_waiting(lease) || lease->q.contended)
        return REDLOCK_OK;
    status = outlook_status(
        masters_outlook(leases->masters, lease_refused(lease), env_now(leases->env), &view));
    list_troubles(leases, answers_of_op(lease), outlook_deciding(&view, status), 0, LIST_MAX,
                  &list);
    if (list.text[0] == '\0')
        return REDLOCK_OK;
    set_end(lease, LEASE_OP_LOCK, status, &list);
    return status;
}

/* Masters that store the lock while it is held, as far as is known. */
static quorum_mask storing(const struct redlock_lease *lease)
{
    return quorum_is_held(&lease->q) ? lease->q.may_hold & lease->q.live : 0;
}

static struct answers answers_of(const struct redlock_lease *lease)
{
    const quorum_mask known = storing(lease);

    return (struct answers){
        .why = lease->why,
        .silent = lease->silent,
        .gone = lease->gone,
        .absent = known != 0 ? (quorum_mask)~known : 0,
    };
}

/* Members that could renew it: they have no trouble, and store it as far as is known. */
static quorum_mask renewing(const struct redlock_lease *lease)
{
    const struct masters *masters = lease->leases->masters;
    const struct answers answers = answers_of(lease);
    struct reason why;
    quorum_mask well = 0;

    for (unsigned m = 0; m < masters->peers.len; m++) {
        trouble_of(lease->leases, m, &answers, &why);
        if (why.why == WHY_NONE)
            well |= mask_of(m);
    }
    return well & members_all(&masters->peers.members);
}

/* While the set changes, two majorities are needed, and no number says that. */
static size_t count_renewals(const struct members *members, quorum_mask renewed, char *buf,
                             size_t size)
{
    unsigned all = mask_count(members_all(members));

    buf[0] = '\0';
    if (members->from != members->to || members_decide(members, renewed))
        return 0;
    return (size_t)snprintf(buf, size,
                            "%u of %u masters renewed it, and %u are needed: ", mask_count(renewed),
                            all, all / 2 + 1);
}

enum msg explain_loss(const struct redlock_lease *lease, size_t size, struct error *ret_list)
{
    const struct members *members = &lease->leases->masters->peers.members;
    quorum_mask renewed = renewing(lease);
    size_t len = 0;

    assert(size >= LOSS_SIZE_MIN && size <= sizeof ret_list->text);
    list_nothing(ret_list);
    if (is_revoked(lease)) {
        (void)snprintf(ret_list->text, size, "%s", lease->leases->revoked.text);
        return MSG_REVOKED;
    }
    if (lease_remaining_ms(lease) == 0 && members_decide(members, renewed))
        return MSG_NONE;
    if (quorum_is_held(&lease->q))
        len = count_renewals(members, renewed, ret_list->text, size);
    /* Whatever kept it from being renewed decided. */
    list_troubles(lease->leases, answers_of(lease), (quorum_mask)~0u, len, size, ret_list);
    return members_decide(members, members_all(members) & (quorum_mask)~lease->gone)
               ? MSG_NO_MAJORITY
               : MSG_NOT_STORED;
}

void explain_lost(const struct redlock_lease *lease)
{
    char name[QUOTED_MAX];
    struct error list;

    if (explain_loss(lease, LIST_MAX, &list) == MSG_NONE) {
        error_clear();
        return;
    }
    quote_names(lease, name, sizeof name);
    (void)error_set(REDLOCK_LOST, "lease %s", name);
    error_list(&list);
}
