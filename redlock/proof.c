/*
 * proof.c - one read or two behind the SETs and extensions of a write, and what they
 * prove.
 */
#include "redlock/proof.h"

#include <stdlib.h>
#include <string.h>

#include "redlock/client.h"
#include "redlock/vote.h"

static quorum_mask bit(unsigned master)
{
    return (quorum_mask)(1u << master);
}

void proof_done(struct redlock *rl)
{
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        free(rl->proof.held[m].yes);
}

/* Of the master's clock. */
static bool needs_time(const struct redlock *rl)
{
    return rl->options.clock_guard == REDLOCK_CLOCK_GUARD_PER_VOTE;
}

/* Whether a yes to it has to be proved.  RAISE names the epoch itself, so that only the
 * clock is left; and a release that finds the token was no loss. */
static bool is_to_be_proved(const struct redlock *rl, enum quorum_command command)
{
    switch (command) {
    case QUORUM_CMD_SET:
    case QUORUM_CMD_EXTEND:
        return rl->options.restart_guard || needs_time(rl);
    case QUORUM_CMD_FENCE:
        return true;
    case QUORUM_CMD_RAISE:
        return needs_time(rl);
    case QUORUM_CMD_RELEASE:
        break;
    }
    return false;
}

void proof_want(struct redlock *rl, enum quorum_command command, quorum_mask masters)
{
    if (is_to_be_proved(rl, command))
        rl->proof.wanted |= masters;
}

void proof_ask(struct redlock *rl, unsigned master)
{
    static const struct master_ask ask = {.command = MASTER_PROOF};

    if (!(rl->proof.wanted & bit(master)))
        return;
    rl->proof.wanted &= (quorum_mask)~bit(master);
    if (rl->options.restart_guard) {
        if (needs_time(rl))
            master_send(rl->masters[master], &ask, WIRE_PROOF_MAX, sizeof WIRE_PROOF_MAX - 1);
        else
            master_send(rl->masters[master], &ask, WIRE_PROOF, sizeof WIRE_PROOF - 1);
        rl->stats.commands++;
    }
    if (needs_time(rl)) { /* Last: see proof_on_answer(). */
        clocks_ask(rl, master);
        rl->stats.commands++;
    }
}

/* What is held back is void with the connection that it came by: the leases
 * are told of that, and do not wait for it. */
void proof_forget(struct redlock *rl, unsigned master)
{
    rl->proof.wanted &= (quorum_mask)~bit(master);
    rl->proof.held[master].len = 0;
}

static bool grow(struct held *held)
{
    uint32_t room = held->room > 0 ? held->room * 2 : 64;
    struct yes *yes = realloc(held->yes, room * sizeof *yes);

    if (yes == NULL)
        return false;
    held->yes = yes;
    held->room = room;
    return true;
}

bool proof_hold(struct redlock *rl, unsigned master, const struct master_ask *ask,
                const struct vote *vote)
{
    struct held *held = &rl->proof.held[master];

    if (vote->vote != QUORUM_VOTE_YES || !is_to_be_proved(rl, (enum quorum_command)ask->command))
        return false;
    if (held->len == held->room && !grow(held))
        master_relink(rl->masters[master], "out of memory");
    else
        held->yes[held->len++] = (struct yes){.ask = *ask, .counter = vote->counter};
    return true;
}

static bool is_epoch(const struct redlock *rl, unsigned master, const char *text, size_t len)
{
    return len == WIRE_NUMBER && memcmp(text, rl->standing.epochs[master], WIRE_NUMBER) == 0;
}

/* Where the clock matters the longest lease comes behind the epoch, and is learned. */
static bool take_proof(struct redlock *rl, unsigned master, const struct reply *reply)
{
    uint32_t max_ttl_ms;

    if (!needs_time(rl))
        return reply->type == REPLY_TEXT && is_epoch(rl, master, reply->text, reply->text_len);
    if (reply->type != REPLY_ARRAY || !is_epoch(rl, master, reply->before, reply->before_len) ||
        !standing_parse_max(reply->text, &max_ttl_ms))
        return false;
    guard_on_max(&rl->standing.guard, max_ttl_ms);
    return true;
}

/* A lease that hears of its vote may have its callback ask for the next lock,
 * but nothing is answered, and so nothing added here, before this returns. */
static void let_go(struct redlock *rl, unsigned master)
{
    struct held *held = &rl->proof.held[master];

    for (uint32_t i = 0; i < held->len; i++) {
        const struct yes *yes = &held->yes[i];
        bool counted = yes->ask.command != QUORUM_CMD_FENCE || yes->counter != 0;
        const struct vote vote = {
            .vote = counted ? QUORUM_VOTE_YES : QUORUM_VOTE_VOID,
            .counter = yes->counter,
            .unkept = yes->unkept,
        };

        client_count_vote(rl, master, &yes->ask, &vote);
    }
    held->len = 0;
}

/* Whether it belongs to the latest yes: nothing is answered between the two. */
static bool is_of(const struct held *held, const struct master_ask *ask)
{
    const struct master_ask *last;

    if (held->len == 0)
        return false;
    last = &held->yes[held->len - 1].ask;
    return last->command == QUORUM_CMD_FENCE && last->slot == ask->slot &&
           last->serial == ask->serial && last->ask == ask->ask;
}

void proof_on_count(struct redlock *rl, unsigned master, const struct master_ask *ask,
                    const struct reply *reply)
{
    const struct vote vote = vote_number(reply);
    struct held *held = &rl->proof.held[master];
    struct master *link = rl->masters[master];
    struct yes *yes;

    if (vote.relink)
        master_relink(link, reply->type == REPLY_ERROR ? reply->text : "answered with garbage");
    else if (reply->type == REPLY_ERROR)
        master_note(link, reply->text);
    if (reply->type == REPLY_ERROR || vote.relink || !is_of(held, ask))
        return;
    yes = &held->yes[held->len - 1];
    if (vote.counter != 0)
        yes->counter = guard_number(&rl->standing.guard, master, vote.counter, &yes->unkept);
    if (yes->counter == 0)
        master_note(link, "the fencing counter is days ahead of the clock, or below zero");
}

void proof_on_answer(struct redlock *rl, unsigned master, const struct reply *reply)
{
    if (!take_proof(rl, master, reply)) {
        master_relink(rl->masters[master],
                      reply->type == REPLY_ERROR ? reply->text : "has lost its memory");
        return;
    }
    if (!needs_time(rl)) /* Or that was asked for behind it. */
        let_go(rl, master);
}

void proof_on_time(struct redlock *rl, unsigned master)
{
    let_go(rl, master);
}
