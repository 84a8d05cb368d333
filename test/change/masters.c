/*
 * masters.c - what a master does: the rules of lua/prepare.lua, accept.lua, write.lua,
 * count_on.lua, and of M7.
 */
#include "change/world.h"

#include <string.h>

#include "redlock/core/recall.h"

/* The field "epoch" has this text. */
static bool is_same(const struct master *m, const struct request *request)
{
    return m->epoch != 0 && m->epoch == request->epoch && m->version == request->at_version;
}

static void look(const struct master *m, struct answer *ret_answer)
{
    ret_answer->epoch = m->epoch;
    ret_answer->version = m->version;
    ret_answer->from = m->from;
    ret_answer->to = m->to;
    ret_answer->number = m->number;
    ret_answer->ballot = m->accepted_ballot;
}

static void prepare(struct master *m, const struct request *request, struct answer *ret_answer)
{
    if (m->ballot >= request->ballot) {
        ret_answer->answer = CHANGE_BALLOT;
        ret_answer->ballot = m->ballot;
        return;
    }
    m->ballot = request->ballot;
    ret_answer->ballot = m->accepted_ballot;
    ret_answer->version = (uint8_t)(request->at_version + 1);
    ret_answer->from = m->accepted_from;
    ret_answer->to = m->accepted_to;
}

static void accept(struct master *m, const struct request *request, struct answer *ret_answer)
{
    if (m->ballot > request->ballot) {
        ret_answer->answer = CHANGE_BALLOT;
        ret_answer->ballot = m->ballot;
        return;
    }
    m->ballot = m->accepted_ballot = request->ballot;
    m->accepted_from = request->from;
    m->accepted_to = request->to;
}

static void write_version(struct master *m, const struct request *request)
{
    m->version = request->version;
    m->from = request->from;
    m->to = request->to;
    m->ballot = m->accepted_ballot = m->accepted_from = m->accepted_to = 0;
    m->age = 0;
    m->shows = false;
}

/* A floor that is high enough stays. */
static void count_on(struct master *m, const struct request *request)
{
    if (m->floor >= request->number)
        return;
    if (m->number < request->number)
        m->number = request->number;
    m->shows = scenario->budget.locks > 0;
    m->floor = m->shows ? m->number & 0x7f : 0;
}

void master_do(struct world *w, unsigned master, const struct request *request,
               struct answer *ret_answer)
{
    struct master *m = &w->masters[master];

    *ret_answer = (struct answer){.kind = request->kind, .answer = CHANGE_YES};
    if (request->kind == CHANGE_ASK_LOOK)
        look(m, ret_answer);
    else if (!is_same(m, request))
        ret_answer->answer = CHANGE_CHANGED;
    else if (request->kind == CHANGE_ASK_PREPARE)
        prepare(m, request, ret_answer);
    else if (request->kind == CHANGE_ASK_ACCEPT)
        accept(m, request, ret_answer);
    else if (request->kind == CHANGE_ASK_WRITE)
        write_version(m, request);
    else
        count_on(m, request);
}

bool master_forget(struct world *w, unsigned master)
{
    struct master *m = &w->masters[master];

    if (m->epoch == 0)
        return false;
    *m = (struct master){.losses = (uint8_t)(m->losses + 1), .watch = TTL};
    return true;
}

/* By rule 4 of core/recall.c all others answer, warming or not, and clients know version 1. */
static unsigned find_tellers(const struct world *w, unsigned answer, unsigned master, bool *ret_all)
{
    unsigned tellers = 0, others = scenario->first & ~(1u << master);

    for (unsigned i = 0; i < MASTERS; i++)
        tellers |= w->masters[i].epoch != 0 ? answer & 1u << i : 0;
    *ret_all = scenario->together && (answer & others) == others;
    return *ret_all || tellers == answer ? tellers : 0;
}

/* M7, as core/recall.c has it: the greatest version and numbers that these masters tell.  Returns
 * false if they are too few, or one of them is warming. */
static bool recall(const struct world *w, unsigned answer, struct master *m, unsigned master)
{
    struct recall_told told[QUORUM_MASTERS_MAX] = {{.version = 0}};
    bool are_all;
    unsigned tellers = find_tellers(w, answer, master, &are_all);
    struct members lists;
    struct recall found;

    if (are_all)
        *m = (struct master){
            .losses = m->losses, .version = 1, .from = scenario->first, .to = scenario->first};
    for (unsigned i = 0; i < MASTERS; i++) {
        const struct master *other = &w->masters[i];

        if (!(tellers >> i & 1))
            continue;
        told[i].version = other->version;
        told[i].ballot = other->ballot;
        told[i].accepted = other->accepted_ballot;
        if (other->version > m->version) {
            m->version = other->version;
            m->from = other->from;
            m->to = other->to;
        }
        if (other->number > m->number)
            m->number = other->number;
    }
    lists = (struct members){m->from, m->to};
    if (m->version == 0 ||
        !recall_collect(told, (quorum_mask)tellers, are_all, m->version, &lists, &found))
        return false;
    m->ballot = (uint8_t)found.ballot;
    m->accepted_ballot = (uint8_t)found.accepted;
    m->accepted_from = found.accepted != 0 ? w->masters[found.accepted_by].accepted_from : 0;
    m->accepted_to = found.accepted != 0 ? w->masters[found.accepted_by].accepted_to : 0;
    return true;
}

/* M7.  One that is no member of the greatest version told belongs to no set. */
void master_restore_steps(const struct world *w, unsigned master,
                          void (*step)(const struct world *next, unsigned told))
{
    const struct master *now = &w->masters[master];

    if (now->epoch != 0 || now->watch != 0)
        return;
    for (unsigned told = 1; told < 1u << MASTERS; told++) {
        struct world next = *w;
        struct master *m = &next.masters[master];

        if ((told >> master & 1) != 0 || !recall(w, told, m, master))
            continue;
        if (!((m->from | m->to) >> master & 1)) {
            uint8_t number = m->number;
            *m = (struct master){.losses = m->losses, .number = number};
        }
        m->epoch = (uint8_t)(m->losses + 1);
        m->floor = scenario->budget.locks > 0 ? m->number & 0x7f : 0;
        step(&next, told);
    }
}
