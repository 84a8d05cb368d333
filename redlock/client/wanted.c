/*
 * wanted.c - checks what a call wants, and makes the lease for it.
 */
#include "redlock/client/wanted.h"

#include <string.h>

#include "redlock/base/error.h"
#include "redlock/client/state.h"
#include "redlock/lease/lease.h"
#include "redlock/wire/name.h"

struct wanted wanted_one(const char *const *resource)
{
    return (struct wanted){.resources = resource, .len = 1, .thread = owner_make(NULL)};
}

struct wanted wanted_several(const char *const *resources, size_t len)
{
    return (struct wanted){
        .resources = resources, .len = len, .many = true, .thread = owner_make(NULL)};
}

static int check_names(const struct wanted *wanted)
{
    if (!wanted->many)
        return name_check(wanted->resources[0]);
    if (wanted->resources == NULL || wanted->len < 1 || wanted->len > REDLOCK_NAMES_MAX)
        return error_set(REDLOCK_E_INVAL, "%zu resources, must be 1 to %d",
                         wanted->resources == NULL ? 0 : wanted->len, REDLOCK_NAMES_MAX);
    for (size_t i = 0; i < wanted->len; i++) {
        int status = name_check(wanted->resources[i]);

        if (status != REDLOCK_OK)
            return error_wrap(status, "resource %zu", i + 1);
        for (size_t before = 0; before < i; before++)
            if (strcmp(wanted->resources[before], wanted->resources[i]) == 0)
                return error_set(REDLOCK_E_INVAL, "resource %zu and resource %zu are the same",
                                 before + 1, i + 1);
    }
    return REDLOCK_OK;
}

static struct redlock_lease *new_lease(struct redlock *rl, const struct wanted *wanted,
                                       const struct redlock_lock_options *opts,
                                       const struct quorum_config *config)
{
    char names[WIRE_NAMES_MAX + 1];
    enum kind_id kind = kind_choose(wanted, opts);
    const struct lease_wanted lease = {
        .kind = kind,
        .name = names,
        .name_len = kind_names(kind, wanted, names),
        .token = wanted->token,
        .opts = opts,
        .config = config,
    };

    return lease_new(&rl->leases, &lease);
}

/* Note the owner, so that it may lock the lease again. */
static int give_owner(struct redlock_lease *lease, const struct owner *owner)
{
    int status = owner_add(&lease->leases->owners, owner, lease->name, lease);

    lease->has_owner = status == REDLOCK_OK;
    if (!lease->has_owner)
        lease_let_go(lease);
    return status == REDLOCK_E_NOMEM ? error_set(status, "%s", redlock_strerror(status)) : status;
}

/* The owner locks once more a lease that it has.  Only its last unlock ends the lease. */
static int take_again(struct owned *owned)
{
    const struct redlock_lease *lease = owned->lease;

    if (owned->count == 0 || (client_of(lease)->blocking == NULL && lease->op != LEASE_OP_NONE))
        return error_set(REDLOCK_E_STATE, "another call of its owner is under way");
    if (owned->count == UINT32_MAX)
        return error_set(REDLOCK_E_STATE, "its owner has locked it too many times");
    if (lease_remaining_ms(lease) == 0)
        return error_set(REDLOCK_LOST, "its owner has lost it, and must unlock it first");
    owned->count++;
    return REDLOCK_OK;
}

int wanted_lease(struct redlock *rl, const struct wanted *wanted,
                 const struct redlock_lock_options *opts, struct redlock_lease **ret_lease)
{
    struct redlock_lock_options all;
    struct quorum_config config;
    struct redlock_lease *lease;
    struct owned *owned = NULL;
    struct owner owner;
    int status = check_names(wanted);

    if (status == REDLOCK_OK)
        status = options_lock(&rl->options, opts, &all, &config);
    if (status == REDLOCK_OK)
        status = kind_check(wanted, &all);
    if (status != REDLOCK_OK)
        return status;
    config.many = wanted->len > 1;
    if (all.reentrant) {
        owner = all.owner != NULL ? owner_make(all.owner) : wanted->thread;
        owned = owner_find(&rl->leases.owners, &owner, wanted->resources[0]);
    }
    if (owned != NULL) {
        *ret_lease = owned->lease;
        if (all.fence && !owned->lease->q.config.fence)
            return error_set(REDLOCK_E_STATE, "its owner has it without a fencing token");
        if (!all.shared && lease_kind(owned->lease)->shared)
            return error_set(REDLOCK_E_STATE, "its owner has it as a reader");
        return take_again(owned);
    }
    lease = new_lease(rl, wanted, &all, &config);
    if (lease == NULL)
        return error_set(REDLOCK_E_NOMEM, "%s", redlock_strerror(REDLOCK_E_NOMEM));
    *ret_lease = lease;
    return all.reentrant ? give_owner(lease, &owner) : REDLOCK_OK;
}
