/*
 * fair.c - names, farewells, and what masters tell.
 */
#include "redlock/fair.h"

#include <string.h>

#include "redlock/client.h"
#include "redlock/place.h"
#include "redlock/script.h"
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
static void say(struct redlock *rl, quorum_mask masters, size_t len)
{
    const struct master_ask ask = {.command = MASTER_LEAVE};

    for (unsigned m = 0; m < rl->options.masters_len; m++) {
        if (!(rl->up & masters & 1u << m))
            continue;
        master_send(rl->masters[m], &ask, rl->scratch, len);
        rl->stats.commands++;
    }
}

/* Where it may have the key, its release tells the next; where it has not, this does, for it may
 * have been the first while nobody had it: no key is known by the name of who waits.  In full, for
 * nobody would ask again. */
static void leave(const struct redlock_lease *lease, quorum_mask masters)
{
    struct redlock *rl = lease->rl;
    struct wire_args args = {.name = lease->name, .name_len = lease->name_len};
    quorum_mask others = masters & (quorum_mask)~lease->q.may_hold;

    fair_fill(lease, &args);
    say(rl, masters, wire_leave(rl->scratch, &args));
    args.token = args.waiter;
    args.token_len = TOKEN_LEN;
    say(rl, others, wire_fair(rl->scratch, SCRIPT_RELEASE_FAIR, true, &args));
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

    fair_on_ask(lease, (quorum_mask)(1u << master));
    if (place != NULL && place->left)
        leave(lease, (quorum_mask)(1u << master));
}

void fair_on_answer(struct redlock_lease *lease, unsigned master, enum quorum_command command,
                    const struct vote *vote)
{
    struct place *place = lease_place(lease);

    if (place == NULL)
        return;
    if (command == QUORUM_CMD_SET && vote->is_queued)
        place_on_number(place, master, vote->number);
    else if (command == QUORUM_CMD_SET && vote->vote == QUORUM_VOTE_YES)
        place_on_grant(place, master);
    place_on_answer(place, master);
}

void fair_on_hears(struct redlock_lease *list, unsigned master)
{
    for (struct redlock_lease *lease = list; lease != NULL; lease = lease->next)
        place_on_named(lease_place(lease), master);
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
