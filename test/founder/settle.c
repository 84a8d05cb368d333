/*
 * settle.c - what can be said of a world without a step.
 */
#include "founder/world.h"

#include <assert.h>
#include <string.h>

struct bounds bounds;
const char *world_sought;

bool world_is_majority(unsigned list, unsigned mask)
{
    return __builtin_popcount(list & mask) > __builtin_popcount(list) / 2;
}

unsigned world_members(const struct world *w, unsigned list, unsigned number)
{
    unsigned mask = 0;

    for (unsigned k = 0; k < bounds.masters; k++) {
        const struct master *m = &w->masters[k];

        mask |= m->has == HAS_SET && m->list == list && m->number == number ? 1u << k : 0;
    }
    return mask;
}

bool world_is_decided(const struct world *w, unsigned number)
{
    return w->decided[number / 8] >> number % 8 & 1;
}

static void note_decision(struct world *w, unsigned number)
{
    w->decided[number / 8] |= (uint8_t)(1u << number % 8);
}

/* The claims of a decision stand side by side (rule 3). */
static void note_decisions(struct world *w)
{
    for (unsigned k = 0; k < bounds.masters; k++) {
        const struct master *m = &w->masters[k];
        unsigned carry = 0;

        for (unsigned j = 0; j < bounds.masters; j++)
            carry |=
                w->masters[j].list == m->list && w->masters[j].number == m->number ? 1u << j : 0;
        if (m->has == HAS_NOTHING || carry != m->list)
            continue;
        note_decision(w, m->number);
        note_decision(w, world_set_of(m->list));
    }
}

/* ---- Numbers ---- */

typedef void visit(void *arg, uint8_t *number);

static void visit_numbers(struct world *w, visit *visitor, void *arg)
{
    for (unsigned k = 0; k < bounds.masters; k++)
        visitor(arg, &w->masters[k].number);
    for (unsigned i = 0; i < bounds.founders; i++) {
        visitor(arg, &w->actors[i].machine.number);
        visitor(arg, &w->actors[i].machine.set);
    }
    visitor(arg, &w->mail.number);
    visitor(arg, &w->mail.set);
}

struct renaming {
    uint8_t to[NUMBERS + 1];
    uint8_t used;
};

static void rename_number(void *arg, uint8_t *number)
{
    struct renaming *r = arg;

    if (*number != 0 && r->to[*number] == 0)
        r->to[*number] = ++r->used;
    *number = r->to[*number];
}

static void keep_greatest(void *arg, uint8_t *number)
{
    uint8_t *greatest = arg;

    *greatest = *number > *greatest ? *number : *greatest;
}

uint8_t world_set_of(unsigned list)
{
    unsigned i = 0;

    while (i + 1 < bounds.founders && bounds.lists[i] != list)
        i++;
    assert(bounds.lists[i] == list);
    return (uint8_t)(i + 1);
}

uint8_t world_free_number(const struct world *w)
{
    struct world copy = *w;
    uint8_t greatest = FOUNDERS;

    visit_numbers(&copy, keep_greatest, &greatest);
    assert(greatest < NUMBERS);
    return (uint8_t)(greatest + 1);
}

void world_settle(struct world *w)
{
    struct renaming r = {.used = FOUNDERS};
    struct world old;

    for (unsigned n = 1; n <= FOUNDERS; n++)
        r.to[n] = (uint8_t)n; /* Those of sets stay. */
    note_decisions(w);
    old = *w;
    visit_numbers(w, rename_number, &r);
    memset(w->decided, 0, sizeof w->decided);
    for (unsigned n = 1; n <= NUMBERS; n++)
        if (r.to[n] != 0 && world_is_decided(&old, n))
            w->decided[r.to[n] / 8] |= (uint8_t)(1u << r.to[n] % 8);
}

/* ---- What must be true ---- */

static bool sets_clash(const struct world *w)
{
    for (unsigned k = 0; k < bounds.masters; k++)
        for (unsigned j = 0; j < k; j++) {
            const struct master *a = &w->masters[k], *b = &w->masters[j];
            unsigned shared = a->list & b->list;

            if (a->has != HAS_SET || b->has != HAS_SET ||
                (a->list == b->list && a->number == b->number))
                continue;
            for (unsigned i = 0; i < bounds.masters; i++)
                if (shared & 1u << i && !w->masters[i].excused)
                    return true;
        }
    return false;
}

static bool is_undecided_member(const struct world *w)
{
    for (unsigned k = 0; k < bounds.masters; k++)
        if (w->masters[k].has == HAS_SET && !world_is_decided(w, w->masters[k].number))
            return true;
    return false;
}

static bool report_was_wrong(const struct world *w)
{
    for (unsigned i = 0; i < bounds.founders; i++) {
        const struct packed *p = &w->actors[i].machine;
        unsigned members = world_members(w, bounds.lists[i], p->set);

        for (unsigned k = 0; k < bounds.masters; k++)
            members |= w->masters[k].forgot ? 1u << k : 0;
        if (p->phase == FOUNDER_FOUNDED && !world_is_majority(bounds.lists[i], members))
            return true;
    }
    return false;
}

const char *world_judge(const struct world *w)
{
    const struct {
        bool is_wrong;
        const char *words;
    } rules[] = {
        {sets_clash(w), "two sets share a master"},
        {is_undecided_member(w), "a set was written that not all its masters carried"},
        {report_was_wrong(w), "a set was reported, and no majority has it"},
    };

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].is_wrong &&
            (world_sought == NULL || strcmp(world_sought, rules[i].words) == 0))
            return rules[i].words;
    return NULL;
}

bool world_is_founded(const struct world *w, bool wholly)
{
    for (unsigned k = 0; k < bounds.masters; k++) {
        const struct master *m = &w->masters[k];
        unsigned members = world_members(w, m->list, m->number);

        if (m->has == HAS_SET &&
            (wholly ? members == m->list : world_is_majority(m->list, members)))
            return true;
    }
    return false;
}
