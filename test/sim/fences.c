/*
 * fences.c - what must be true of fencing tokens and of the numbers that operators are told:
 *
 *  fencing     No two holds of a resource have the same fencing token.  A token is greater than
 *              those of all holds before it, and of all locks granted before its round began.
 *  number      The number of a revocation is above the tokens of its holder and of holds before it,
 *              and below those of later locks.
 */
#include "oracle.h"
#include "process.h"
#include "server.h"
#include "world.h"

#include <string.h>

/* A fencing token of this run. */
struct drawn {
    uint64_t fence;
    sim_time at, round_sent;
    unsigned set, process; /* set: its resources, as a mask. */
    int token;
};
#define FENCES_MAX 4096
static struct drawn fences[FENCES_MAX];
static unsigned fences_len;

/* A number that an operator was told in this run. */
struct number {
    uint64_t number;
    unsigned resource;
    int token;
    sim_time began, told;
};
#define NUMBERS_MAX 1024
static struct number numbers[NUMBERS_MAX];
static unsigned numbers_len;

void fences_begin(void)
{
    fences_len = numbers_len = 0;
}

/* A master that lost its data begins from the high-water marks of the others.  So no majority of
 * marks may be below a token.  After a restart a mark may be old until the marker is queried. */
static void check_marks(const struct lease_rec *rec, uint64_t fence)
{
    const struct lists lists = process_lists(rec->process);
    unsigned low = 0;

    for (unsigned i = 0; i < world.plan.servers; i++) {
        const struct server *server = &world.servers[i];

        if (server->marker.epoch != 0 && server->marker.run == server->runs &&
            server->marker.high < fence)
            low |= 1u << i;
    }
    if (!moves_are_quorum(&lists, ~low))
        world_fail("fencing", "client %u has the fencing token %llu, above most high-water marks",
                   rec->process->number, (unsigned long long)fence);
}

/* If too few masters keep their counters, the counters begin anew from the masters' clocks.  If a
 * clock was set back, the median of the clocks may be less than the last token. */
static bool may_count_anew(void)
{
    const struct plan *plan = &world.plan;
    unsigned forgetful = 0;
    bool was_set_back = false;

    for (unsigned i = 0; i < plan->servers; i++) { /* No clock is stepped if there are two lists. */
        forgetful += (plan->may_forget >> i & 1) != 0 || (plan->keep >> i & 1) == 0;
        was_set_back = was_set_back || world.servers[i].was_set_back;
    }
    return was_set_back && forgetful > plan->servers / 2;
}

/* A token of another holder that was drawn while the operator worked may be on either side. */
static void check_number(const struct number *number, const struct drawn *drawn)
{
    bool is_holder = drawn->token == number->token;
    bool is_before = is_holder || drawn->at < number->began;
    bool is_after = !is_holder && drawn->round_sent > number->told;

    if ((drawn->set & 1u << number->resource) == 0 || may_count_anew())
        return;
    tally.checks++;
    if (drawn->fence == number->number || (is_before && drawn->fence > number->number) ||
        (is_after && drawn->fence < number->number))
        world_fail("number",
                   "an operator was told %llu, and client %u, %s, has the fencing token %llu",
                   (unsigned long long)number->number, drawn->process,
                   is_holder   ? "which was revoked"
                   : is_before ? "which held before"
                               : "which asked later",
                   (unsigned long long)drawn->fence);
}

void fences_on_number(unsigned resource, uint64_t number, int token, sim_time began)
{
    const struct number told = {number, resource, token, began, world.now};

    for (unsigned i = 0; i < fences_len; i++)
        check_number(&told, &fences[i]);
    if (numbers_len < NUMBERS_MAX)
        numbers[numbers_len++] = told;
}

void fences_check(const struct lease_rec *rec)
{
    uint64_t fence = info_fence(rec->lease);
    sim_time now = process_now(rec->process);
    const char *token = info_token(rec->lease);
    const struct drawn drawn = {fence,
                                now,
                                rec->round_sent,
                                rec->set,
                                rec->process->number,
                                oracle_token(token, strlen(token))};

    if (!rec->is_fenced || rec->state == REC_ADOPTED) {
        if (fence != 0)
            world_fail("fencing", "a fencing token that was not asked for");
        return;
    }
    tally.checks++;
    if (fence == 0)
        world_fail("fencing", "client %u holds resource %u without a fencing token",
                   rec->process->number, rec->resource);
    check_marks(rec, fence);
    if (rec->is_fair || world.plan.permits || options_are_many(rec))
        world_outcome(rec->is_fair         ? OUTCOME_FAIR_FENCED
                      : world.plan.permits ? OUTCOME_PERMIT_FENCED
                                           : OUTCOME_MANY_FENCED);
    for (unsigned i = 0; i < fences_len; i++) {
        if ((fences[i].set & rec->set) == 0)
            continue;
        if (fences[i].fence == fence)
            world_fail("fencing", "client %u has the fencing token %llu, which client %u had",
                       rec->process->number, (unsigned long long)fence, fences[i].process);
        if (fences[i].fence > fence && !may_count_anew() &&
            (fences[i].at < rec->round_sent || (world.plan.exclusive && fences[i].at < now)))
            world_fail("fencing",
                       "client %u has the fencing token %llu, and before it client %u had %llu",
                       rec->process->number, (unsigned long long)fence, fences[i].process,
                       (unsigned long long)fences[i].fence);
    }
    for (unsigned i = 0; i < numbers_len; i++)
        check_number(&numbers[i], &drawn);
    if (fences_len < FENCES_MAX)
        fences[fences_len++] = drawn;
}
