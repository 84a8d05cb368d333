/*
 * owner.c - a hash table of leases, keyed by the names that they lock.
 */
#include "redlock/lease/owner.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "redlock/base/random.h"
#include "redlock/redlock.h"

#define ROOM_FIRST 16

_Static_assert(sizeof((struct owners *)0)->key == crypto_shorthash_KEYBYTES, "the key of the hash");

/* ---- Owners ---- */

static uint64_t thread_number(void)
{
    static atomic_uint_fast64_t numbers;
    static _Thread_local uint64_t number;

    if (number == 0)
        number = atomic_fetch_add(&numbers, 1) + 1;
    return number;
}

struct owner owner_make(const void *pointer)
{
    return (struct owner){pointer, pointer == NULL ? thread_number() : 0};
}

bool owner_is_same(const struct owner *a, const struct owner *b)
{
    return a->pointer == b->pointer && a->thread == b->thread;
}

/* ---- The table ---- */

/* The hash has a secret key, because names may come from an attacker, by way of the caller's
 * clients. */
static struct owned **chain_of(const struct owners *owners, const char *name)
{
    unsigned char hash[crypto_shorthash_BYTES];
    uint32_t number;

    (void)crypto_shorthash(hash, (const unsigned char *)name, strlen(name), owners->key);
    memcpy(&number, hash, sizeof number);
    return &owners->chains[number & (owners->room - 1)];
}

/* The pointer that points to the entry; a change of it removes the entry.  It points to NULL if
 * there is no entry. */
static struct owned **place_of(const struct owners *owners, const char *name,
                               const struct redlock_lease *lease)
{
    struct owned **place = chain_of(owners, name);

    while (*place != NULL && (*place)->lease != lease)
        place = &(*place)->next;
    return place;
}

static void put(struct owners *owners, struct owned *owned)
{
    struct owned **chain = chain_of(owners, owned->name);

    owned->next = *chain;
    *chain = owned;
}

static int grow(struct owners *owners)
{
    struct owners before = *owners;
    uint32_t room = before.room > 0 ? 2 * before.room : ROOM_FIRST;
    struct owned **chains = calloc(room, sizeof(struct owned *));
    int status = chains != NULL ? REDLOCK_OK : REDLOCK_E_NOMEM;

    if (status == REDLOCK_OK && before.room == 0)
        status = random_draw(owners->key, sizeof owners->key);
    if (status != REDLOCK_OK) {
        free(chains);
        return status;
    }
    owners->chains = chains;
    owners->room = room;
    for (uint32_t i = 0; i < before.room; i++) {
        struct owned *owned, *next = before.chains[i];

        while ((owned = next) != NULL) {
            next = owned->next;
            put(owners, owned);
        }
    }
    free(before.chains);
    return REDLOCK_OK;
}

struct owned *owner_find(struct owners *owners, const struct owner *owner, const char *name)
{
    struct owned *owned = owners->room > 0 ? *chain_of(owners, name) : NULL;

    while (owned != NULL &&
           !(owner_is_same(&owned->owner, owner) && strcmp(owned->name, name) == 0))
        owned = owned->next;
    return owned;
}

struct owned *owner_of(struct owners *owners, const char *name, const struct redlock_lease *lease)
{
    return *place_of(owners, name, lease);
}

struct owned *owner_other(struct owners *owners, const char *name,
                          const struct redlock_lease *lease)
{
    struct owned *owned = owners->room > 0 ? *chain_of(owners, name) : NULL;

    while (owned != NULL && (owned->lease == lease || strcmp(owned->name, name) != 0))
        owned = owned->next;
    return owned;
}

int owner_add(struct owners *owners, const struct owner *owner, const char *name,
              struct redlock_lease *lease)
{
    struct owned *owned;
    int status;

    assert(owner_find(owners, owner, name) == NULL);
    if (owners->len == owners->room && (status = grow(owners)) != REDLOCK_OK)
        return status;
    owned = malloc(sizeof *owned);
    if (owned == NULL)
        return REDLOCK_E_NOMEM;
    *owned = (struct owned){.lease = lease, .name = name, .owner = *owner};
    put(owners, owned);
    owners->len++;
    return REDLOCK_OK;
}

void owner_drop(struct owners *owners, const char *name, const struct redlock_lease *lease)
{
    struct owned **place, *owned;

    place = place_of(owners, name, lease);
    owned = *place;
    if (owned == NULL)
        return;
    *place = owned->next;
    free(owned);
    owners->len--;
}

void owner_done(struct owners *owners)
{
    assert(owners->len == 0);
    free(owners->chains);
    *owners = (struct owners){.chains = NULL};
}
