/*
 * fair.c - names, farewells, and what masters tell.
 */
#include "redlock/fair.h"

#include <string.h>

#include "redlock/client.h"
#include "redlock/place.h"
#include "redlock/vote.h"

/* Its name is as its tokens are, of a round that never is. */
void fair_init(struct redlock_lease *lease)
{
    struct place *place = lease_place(lease);
    const struct quorum_config *config = &lease->q.config;

    if (place == NULL)
        return;
    place_init(place, config->masters, config->pause_max + config->reply_timeout);
    token_write(&lease->rl->tokens, lease->serial, 0, place->waiter);
}

void fair_fill(const struct redlock_lease *lease, struct wire_args *args)
{
    const struct place *place = lease_place(lease);

    if (place == NULL)
        return;
    args->waiter = place->waiter;
    args->ticket = place->ticket;
    args->patience_ms = place->patience_ms;
}

/* Nobody waits for the answer: masters that cannot be told find out in time. */
static void leave(const struct redlock_lease *lease, quorum_mask masters)
{
    struct redlock *rl = lease->rl;
    const struct master_ask ask = {.command = MASTER_LEAVE};
    struct wire_args args = {.name = lease->name, .name_len = lease->name_len};
    size_t len;

    fair_fill(lease, &args);
    len = wire_leave(rl->scratch, &args);
    for (unsigned m = 0; m < lease->q.config.masters; m++) {
        if (!(rl->up & masters & 1u << m))
            continue;
        master_send(rl->masters[m], &ask, rl->scratch, len);
        rl->stats.commands++;
    }
}

void fair_on_step(struct redlock_lease *lease)
{
    struct place *place = lease_place(lease);

    if (place == NULL || place->left)
        return;
    if (lease_is_waiting(lease)) {
        place->joined = true;
    } else if (place->joined) {
        place->left = true;
        leave(lease, lease->rl->up);
    }
}

void fair_on_ask(struct redlock_lease *lease, quorum_mask masters)
{
    struct place *place = lease_place(lease);

    if (place != NULL)
        place_on_ask(place, masters);
}

/* The farewell, if there was one, came before this. */
void fair_on_ask_again(struct redlock_lease *lease, unsigned master)
{
    const struct place *place = lease_place(lease);

    if (place != NULL && place->left)
        leave(lease, (quorum_mask)(1u << master));
}

void fair_on_vote(struct redlock_lease *lease, unsigned master, const struct vote *vote)
{
    struct place *place = lease_place(lease);

    if (place != NULL && vote->is_queued)
        place_on_number(place, master, vote->number);
    else if (place != NULL && vote->vote == QUORUM_VOTE_YES)
        place_on_grant(place, master);
}

void fair_on_hears(struct redlock_lease *list, unsigned master)
{
    for (struct redlock_lease *lease = list; lease != NULL; lease = lease->next)
        place_on_hears(lease_place(lease), master);
}

void fair_on_next(struct redlock_lease *list, unsigned master, const char *waiter)
{
    for (struct redlock_lease *lease = list; lease != NULL; lease = lease->next)
        if (strcmp(lease_place(lease)->waiter, waiter) == 0)
            place_on_named(lease_place(lease), master);
}

/* Of those here only the first can be the first of all. */
void fair_on_free(struct redlock_lease *list, unsigned master)
{
    struct place *first = NULL;

    for (struct redlock_lease *lease = list; lease != NULL; lease = lease->next)
        if (first == NULL || place_is_before(lease_place(lease), first))
            first = lease_place(lease);
    if (first != NULL)
        place_on_named(first, master);
}
