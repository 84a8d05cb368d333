/*
 * masters.c - what a master does: the rules of lua/prepare.lua, accept.lua, write.lua,
 * count_on.lua, and of M7.
 */
#include "change/world.h"

#include <string.h>

static unsigned count(unsigned masters)
{
    return (unsigned)__builtin_popcount(masters);
}

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
}

static void count_on(struct master *m, const struct request *request)
{
    if (m->number < request->number)
        m->number = request->number;
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

/* M7: N - Q + 1 of the list. */
static bool is_enough(unsigned list, unsigned told)
{
    return count(told & list) >= count(list) - count(list) / 2;
}

static void take(struct master *m, const struct master *other)
{
    if (other->version > m->version) {
        m->version = other->version;
        m->from = other->from;
        m->to = other->to;
        m->ballot = m->accepted_ballot = m->accepted_from = m->accepted_to = 0;
    }
    if (other->number > m->number)
        m->number = other->number;
    if (other->version < m->version)
        return;
    if (other->ballot > m->ballot)
        m->ballot = other->ballot;
    if (other->accepted_ballot > m->accepted_ballot) {
        m->accepted_ballot = other->accepted_ballot;
        m->accepted_from = other->accepted_from;
        m->accepted_to = other->accepted_to;
    }
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
        bool may_tell = !(told >> master & 1);

        for (unsigned i = 0; i < MASTERS; i++) {
            if (!(told >> i & 1))
                continue;
            may_tell = may_tell && w->masters[i].epoch != 0;
            take(m, &w->masters[i]);
        }
        if (!may_tell || m->version == 0 || !is_enough(m->from, told) || !is_enough(m->to, told))
            continue;
        if (!((m->from | m->to) >> master & 1)) {
            uint8_t number = m->number;
            *m = (struct master){.losses = m->losses, .number = number};
        }
        m->epoch = (uint8_t)(m->losses + 1);
        step(&next, told);
    }
}
