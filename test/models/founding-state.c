/*
 * founding-state.c - what can be said of a state of founding.c without a step.
 */
#include "models/founding.h"

#include <assert.h>
#include <string.h>

struct bounds bounds;

/* ---- Words ---- */

unsigned founding_count(unsigned mask)
{
    return (unsigned)__builtin_popcount(mask);
}

bool founding_is_majority(unsigned list, unsigned mask)
{
    return founding_count(list & mask) > founding_count(list) / 2;
}

bool founding_is_claim(const struct master *m, unsigned list)
{
    return m->has == CLAIM && m->list == list;
}

bool founding_is_member(const struct master *m, unsigned list, unsigned number)
{
    return m->has == MEMBER && m->list == list && m->number == number;
}

unsigned founding_members(const struct state *s, unsigned list, unsigned number)
{
    unsigned mask = 0;

    for (unsigned i = 0; i < bounds.masters; i++)
        mask |= founding_is_member(&s->masters[i], list, number) ? 1u << i : 0;
    return mask;
}

bool founding_holds(const struct process *p)
{
    return p->phase == USES && founding_is_majority(p->list, p->own);
}

bool founding_is_decided(const struct state *s, unsigned number)
{
    return s->decided[number / 8] >> number % 8 & 1;
}

static void set_decided(struct state *s, unsigned number)
{
    s->decided[number / 8] |= (uint8_t)(1u << number % 8);
}

/* ---- Numbers ---- */

struct renaming {
    uint8_t to[NUMBERS + 1];
    uint8_t used;
};

static void rename_number(struct renaming *r, uint8_t *number)
{
    if (*number == 0)
        return;
    if (r->to[*number] == 0)
        r->to[*number] = ++r->used;
    *number = r->to[*number];
}

static void renumber(struct state *s)
{
    struct renaming r = {.used = 0};
    struct state old = *s;

    for (unsigned i = 0; i < bounds.masters; i++)
        rename_number(&r, &s->masters[i].number);
    for (unsigned i = 0; i < bounds.processes; i++)
        rename_number(&r, &s->processes[i].number), rename_number(&r, &s->processes[i].set);
    rename_number(&r, &s->mail.number);
    rename_number(&r, &s->mail.set);
    memset(s->decided, 0, sizeof s->decided);
    for (unsigned n = 1; n <= NUMBERS; n++)
        if (r.to[n] != 0 && founding_is_decided(&old, n))
            set_decided(s, r.to[n]);
}

uint8_t founding_free_number(const struct state *s)
{
    uint8_t greatest = s->mail.number > s->mail.set ? s->mail.number : s->mail.set;

    for (unsigned i = 0; i < bounds.masters; i++)
        if (s->masters[i].number > greatest)
            greatest = s->masters[i].number;
    for (unsigned i = 0; i < bounds.processes; i++) {
        const struct process *p = &s->processes[i];

        greatest = p->number > greatest ? p->number : greatest;
        greatest = p->set > greatest ? p->set : greatest;
    }
    assert(greatest < NUMBERS);
    return (uint8_t)(greatest + 1);
}

/* The claims of a decision stand side by side (rule 3). */
static void note_decisions(struct state *s)
{
    for (unsigned i = 0; i < bounds.masters; i++) {
        const struct master *m = &s->masters[i];
        unsigned carry = 0;

        for (unsigned k = 0; m->has != NOTHING && k < bounds.masters; k++)
            if (s->masters[k].number == m->number && s->masters[k].list == m->list)
                carry |= 1u << k;
        if (m->has != NOTHING && carry == m->list)
            set_decided(s, m->number);
    }
}

/* ---- What is alike ---- */

static uint8_t swap_bits(uint8_t mask, unsigned a, unsigned b)
{
    bool differ = (mask >> a & 1) != (mask >> b & 1);

    return differ ? mask ^ (uint8_t)(1u << a | 1u << b) : mask;
}

static void swap_masters(struct state *s, unsigned a, unsigned b)
{
    struct master m = s->masters[a];

    s->masters[a] = s->masters[b];
    s->masters[b] = m;
    for (unsigned i = 0; i < bounds.processes; i++) {
        struct process *p = &s->processes[i];

        p->seen = swap_bits(p->seen, a, b);
        p->own = swap_bits(p->own, a, b);
        p->took = swap_bits(p->took, a, b);
    }
    if (s->mail.what != NO_MAIL && (s->mail.master == a || s->mail.master == b))
        s->mail.master = (uint8_t)(a + b - s->mail.master);
}

static void swap_processes(struct state *s, unsigned i, unsigned j)
{
    struct process p = s->processes[i];

    s->processes[i] = s->processes[j];
    s->processes[j] = p;
    for (unsigned k = 0; k < bounds.masters; k++)
        if (s->masters[k].holder == i + 1 || s->masters[k].holder == j + 1)
            s->masters[k].holder = (uint8_t)(i + j + 2 - s->masters[k].holder);
}

/* They are on the same lists. */
static bool masters_are_alike(unsigned a, unsigned b)
{
    for (unsigned i = 0; i < bounds.processes; i++)
        if ((bounds.lists[i] >> a & 1) != (bounds.lists[i] >> b & 1))
            return false;
    return true;
}

static bool keep_lesser(struct state *s, struct state *other)
{
    renumber(other);
    if (memcmp(other, s, sizeof *s) >= 0)
        return false;
    *s = *other;
    return true;
}

static bool swap_some_processes(struct state *s)
{
    for (unsigned i = 0; i < bounds.processes; i++)
        for (unsigned j = 0; j < i; j++) {
            struct state other = *s;

            if (bounds.lists[i] != bounds.lists[j])
                continue;
            swap_processes(&other, i, j);
            if (keep_lesser(s, &other))
                return true;
        }
    return false;
}

static bool swap_some_masters(struct state *s)
{
    for (unsigned a = 0; a < bounds.masters; a++)
        for (unsigned b = 0; b < a; b++) {
            struct state other = *s;

            if (!masters_are_alike(a, b))
                continue;
            swap_masters(&other, a, b);
            if (keep_lesser(s, &other))
                return true;
        }
    return false;
}

void founding_settle(struct state *s)
{
    note_decisions(s);
    renumber(s);
    while (bounds.alike && (swap_some_processes(s) || swap_some_masters(s)))
        ;
}
