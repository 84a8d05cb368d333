/*
 * world.c - the steps of world.h.
 */
#include "change/world.h"

#include <string.h>

#include "change/machines.h"

#define RUN_STEPS 1000 /* Chosen: a change of five masters takes some fifty. */

const struct scenario *scenario;
const char *world_only;
const char *const wrongs[WRONGS_LEN] = {
    NULL,
    "two values are chosen for one version",
    "a joint configuration ended too early",
    "a fencing token is not greater",
    "a dead change cannot be finished",
    "a dead change cannot be given up",
    "a machine does not believe a sound master",
    "a machine changes what another one has chosen",
    "a list is joined that cannot vote",
    "a yes carries a number that its master did not count to",
};

/* ---- Whether a dead change can be finished ---- */

/* The next thing that happens without faults.  Returns false if the machine ended. */
static bool run_step(struct world *w)
{
    struct change c;
    struct stored stored = machine_load(w, 0, &c);
    struct answer answer;

    if (c.status != CHANGE_GOES_ON)
        return false;
    for (unsigned m = 0; m < MASTERS; m++)
        if (w->out[0][m].kind != CHANGE_ASK_NOTHING) {
            master_do(w, m, &w->out[0][m], &answer);
            return machine_give(w, 0, m, &answer);
        }
    if (stored.wake_at <= NOW)
        return machine_go_on(w, 0, &c);
    machine_age(w, 0);
    for (unsigned m = 0; m < MASTERS; m++)
        w->masters[m].watch -= w->masters[m].watch > 0;
    return true;
}

static struct world *run_into;

static void restore_in_run(const struct world *next, unsigned told)
{
    (void)told;
    memcpy(run_into->masters, next->masters, sizeof next->masters);
}

/* One machine alone, from the masters as they are. */
static enum change_status run_one(struct world *w, unsigned wish, bool gives_up)
{
    struct world before;
    struct change c;

    memset(w->machines, 0, sizeof w->machines);
    (void)machine_begin(w, 0, wish, gives_up);
    for (unsigned i = 0; i < RUN_STEPS && run_step(w); i++) {
        run_into = w;
        before = *w;
        for (unsigned m = 0; m < MASTERS; m++)
            master_restore_steps(&before, m, restore_in_run);
    }
    machine_load(w, 0, &c);
    return c.status;
}

/* Whether the wish comes true.  A machine that gives up may find that somebody had finished. */
static bool comes_true(const struct world *from, unsigned wish, bool gives_up)
{
    struct world w = *from;
    enum change_status status;

    machines_unbounded = true;
    status = run_one(&w, wish, gives_up);
    if (status == CHANGE_OVERTAKEN)
        status = run_one(&w, wish, gives_up);
    machines_unbounded = false;
    return status == CHANGE_DONE;
}

/* Masters that were sound.  What is wrong is found anew when the explorer walks the way again. */
static struct master sound[1 << 16][MASTERS];

static struct master *sound_slot(const struct world *w)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < sizeof w->masters; i++)
        hash = (hash ^ ((const uint8_t *)w->masters)[i]) * 16777619u;
    return sound[(hash ^ hash >> 16) & 0xffff];
}

static void check_dead(struct world *w)
{
    struct master *slot = sound_slot(w);

    if (memcmp(slot, w->masters, sizeof w->masters) == 0)
        return;
    if (!comes_true(w, scenario->wishes[0][0], false))
        machine_note(w, NOT_FINISHED);
    else if (!comes_true(w, scenario->first, true))
        machine_note(w, NOT_GIVEN_UP);
    else
        memcpy(slot, w->masters, sizeof w->masters);
}

/* ---- Steps ---- */

/* Steps are told by these letters. */
static struct move step_of(char kind, unsigned a, unsigned b)
{
    return (struct move){kind, (unsigned char)a, (unsigned char)b, 0};
}

/* M5 (1) and (2), as somebody sees who sees everything. */
static void note_settled(struct world *w)
{
    for (unsigned v = 1; v < VERSIONS; v++) {
        unsigned old = 0, from = w->history.chosen[v][0];

        for (unsigned i = 0; i < MASTERS; i++) {
            const struct master *m = &w->masters[i];

            if (m->epoch != 0 && m->version == v && m->age >= TTL)
                old |= 1u << i;
        }
        if (from != w->history.chosen[v][1] && roster_is_majority(from, old))
            w->history.settled |= (uint8_t)(1u << v);
    }
}

static void take(struct world *next, struct move step)
{
    note_settled(next);
    explorer_take(next, step.kind, step.a, step.b, 0, world_judge(next));
}

static void arrive(const struct world *w, unsigned i, unsigned m)
{
    struct world done = *w;
    struct answer answer;

    done.hung[i] &= (uint8_t) ~(1u << m);
    master_do(&done, m, &w->out[i][m], &answer);
    if (w->history.slows > 0 && w->slow.kind == 0) {
        struct world next = done;

        next.history.slows--;
        next.slow = answer;
        next.slow_from = (uint8_t)m;
        next.slow_to = (uint8_t)i;
        next.out[i][m].kind = CHANGE_ASK_NOTHING; /* It is there, and its answer is not. */
        take(&next, step_of('s', i, m));
    }
    if (machine_give(&done, i, m, &answer))
        take(&done, step_of('x', i, m));
}

static bool link_anew(struct world *w, unsigned i, unsigned m)
{
    struct change c;

    machine_load(w, i, &c);
    w->out[i][m] = (struct request){0};
    w->hung[i] &= (uint8_t) ~(1u << m);
    if (w->slow.kind != 0 && w->slow_to == i && w->slow_from == m) {
        memset(&w->slow, 0, sizeof w->slow);
        w->slow_from = w->slow_to = 0;
    }
    change_on_link(&c, m, false);
    change_on_link(&c, m, true);
    return machine_go_on(w, i, &c);
}

static bool may_be_late(const struct world *w, const struct request *request)
{
    return w->history.lates > 0 && w->late.kind == 0 && request->kind > CHANGE_ASK_LOOK;
}

static void be_late(struct world *w, unsigned i, unsigned m)
{
    w->history.lates--;
    w->late = w->out[i][m];
    w->late_to = (uint8_t)m;
}

/* The link breaks: the request was done, or lost, or is late. */
static void break_link(const struct world *w, unsigned i, unsigned m)
{
    for (unsigned way = 0; way < 3; way++) {
        struct world next = *w;
        struct answer answer;

        if (way == 2 && !may_be_late(w, &w->out[i][m]))
            continue;
        if (way == 1 && w->out[i][m].kind == CHANGE_ASK_LOOK)
            continue; /* A look changes nothing. */
        next.history.breaks--;
        if (way == 1)
            master_do(&next, m, &w->out[i][m], &answer);
        if (way == 2)
            be_late(&next, i, m);
        if (link_anew(&next, i, m))
            take(&next, step_of("bBl"[way], i, m));
    }
}

/* A dead machine is followed by the next.  Without one, its wish stays a dead change. */
static void die(struct world *w, unsigned i, struct move step)
{
    unsigned life = w->lives[i] + 1u;
    unsigned wish = life < 2 ? scenario->wishes[i][life] : 0;

    w->history.kills--;
    w->machines[i] = 0;
    w->lives[i] = (uint8_t)life;
    memset(w->out[i], 0, sizeof w->out[i]);
    w->hung[i] = 0;
    if (w->slow.kind != 0 && w->slow_to == i) {
        memset(&w->slow, 0, sizeof w->slow);
        w->slow_from = w->slow_to = 0;
    }
    if (wish == 0)
        check_dead(w);
    if (wish == 0 || machine_begin(w, i, wish, scenario->gives_up[i][life]))
        take(w, step);
}

static void kill(const struct world *w, unsigned i)
{
    struct world next = *w;

    die(&next, i, step_of('K', i, MASTERS));
    for (unsigned m = 0; m < MASTERS; m++) {
        if (!may_be_late(w, &w->out[i][m]))
            continue;
        next = *w;
        be_late(&next, i, m);
        die(&next, i, step_of('K', i, m));
    }
}

/* Masters answer a machine in their order, but for those that hang. */
static bool has_turn(const struct world *w, unsigned i, unsigned master)
{
    for (unsigned m = 0; m < master; m++)
        if (w->out[i][m].kind != CHANGE_ASK_NOTHING && !(w->hung[i] >> m & 1))
            return w->hung[i] >> master & 1;
    return true;
}

/* The machine is beyond the bounds, and does no more. */
static bool is_aside(const struct world *w, unsigned i)
{
    struct change c;

    if (w->machines[i] == 0 || scenario->last == 0)
        return w->machines[i] == 0;
    machine_load(w, i, &c);
    return c.newest.version >= scenario->last;
}

static void machine_steps(const struct world *w, unsigned i)
{
    struct change c;
    struct stored stored = machine_load(w, i, &c);
    bool goes_on = c.status == CHANGE_GOES_ON;

    if (stored.wake_at <= NOW) {
        struct world next = *w;

        if (machine_go_on(&next, i, &c) && next.machines[i] != w->machines[i])
            take(&next, step_of('w', i, 0));
    }
    for (unsigned m = 0; m < MASTERS; m++) {
        if (w->out[i][m].kind == CHANGE_ASK_NOTHING || !has_turn(w, i, m))
            continue;
        if (w->history.hangs > 0 && !(w->hung[i] >> m & 1)) {
            struct world next = *w;

            next.history.hangs--;
            next.hung[i] |= (uint8_t)(1u << m);
            take(&next, step_of('H', i, m));
        }
        arrive(w, i, m);
        if (w->history.breaks > 0)
            break_link(w, i, m);
    }
    if (goes_on && w->history.kills > 0)
        kill(w, i);
}

/* Masters answer in their order. */
static void rescue_steps(const struct world *w)
{
    struct world next = *w;
    struct answer answer;

    for (unsigned m = 0; m < MASTERS; m++)
        if (w->out[0][m].kind != CHANGE_ASK_NOTHING) {
            master_do(&next, m, &w->out[0][m], &answer);
            rescuer_give(&next, m, &answer);
            take(&next, step_of('x', 0, m));
            return;
        }
}

void world_age_masters(struct world *w)
{
    for (unsigned i = 0; i < MASTERS; i++) {
        struct master *m = &w->masters[i];

        m->watch -= m->watch > 0;
        m->age += m->age < TTL && m->epoch != 0;
    }
    note_settled(w);
}

/* Masters answer in no time, unless they hang. */
static bool is_busy(const struct world *w)
{
    for (unsigned i = 0; i < MACHINES; i++)
        for (unsigned m = 0; m < MASTERS; m++)
            if (w->out[i][m].kind != CHANGE_ASK_NOTHING && !(w->hung[i] >> m & 1) &&
                !is_aside(w, i))
                return true;
    return false;
}

static void pass_time(const struct world *w)
{
    struct world next = *w;

    if (is_busy(w) && next.history.ticks-- == 0)
        return;
    world_age_masters(&next);
    for (unsigned i = 0; i < MACHINES; i++)
        if (w->machines[i] != 0 && scenario->rescued == 0)
            machine_age(&next, i);
    if (scenario->rescued != 0)
        rescuer_age(&next);
    if (memcmp(&next, w, sizeof next) != 0)
        take(&next, step_of('T', 0, 0));
}

/* ---- Others ---- */

static unsigned restored;

static void restore_step(const struct world *next, unsigned told)
{
    struct world copy = *next;

    take(&copy, step_of('I', restored, told));
}

static void help(const struct world *w, unsigned master)
{
    const struct master *m = &w->masters[master];

    for (unsigned v = 2; v < VERSIONS; v++) {
        const uint8_t *chosen = w->history.chosen[v], *before = w->history.chosen[v - 1];
        struct request request = {.kind = CHANGE_ASK_WRITE,
                                  .epoch = m->epoch,
                                  .at_version = m->version,
                                  .version = (uint8_t)v,
                                  .from = chosen[0],
                                  .to = chosen[1]};
        unsigned all = chosen[0] | chosen[1] | before[0] | before[1];
        struct world next = *w;
        struct answer answer;

        if (chosen[0] == 0 || !(all >> master & 1) || m->version == 0 || m->version >= v)
            continue;
        next.history.helps--;
        master_do(&next, master, &request, &answer);
        take(&next, step_of('h', master, v));
    }
}

/* A client draws a token from these masters, all of which show this version. */
static void draw(const struct world *w, unsigned v, unsigned masters)
{
    const struct roster_lists lists = {v, w->history.chosen[v][0], w->history.chosen[v][1]};
    struct world next = *w;
    uint8_t number = 0;

    for (unsigned i = 0; i < MASTERS; i++) {
        if (!(masters >> i & 1))
            continue;
        if (w->masters[i].epoch == 0 || w->masters[i].version != v)
            return;
        number = w->masters[i].number > number ? w->masters[i].number : number;
    }
    if (!roster_is_quorum(&lists, masters) || ++number > NUMBERS)
        return;
    for (unsigned i = 0; i < MASTERS; i++)
        if (masters >> i & 1)
            next.masters[i].number = number;
    next.history.draws--;
    if (number <= w->history.last)
        machine_note(&next, SMALL_TOKEN);
    next.history.last = number;
    take(&next, step_of('n', v, masters));
}

/* As after a loss of power. */
static void forget_together(const struct world *w)
{
    struct world next = *w;

    for (unsigned m = 0; m < MASTERS; m++)
        if (scenario->first >> m & 1)
            (void)master_forget(&next, m);
    next.history.forgets--;
    take(&next, step_of('F', MASTERS, 0));
}

static void other_steps(const struct world *w)
{
    if (scenario->together && w->history.forgets > 0)
        forget_together(w);
    for (unsigned m = 0; m < MASTERS; m++) {
        struct world next = *w;

        if (w->history.forgets > 0 && !scenario->together && master_forget(&next, m)) {
            next.history.forgets--;
            take(&next, step_of('F', m, 0));
        }
        restored = m;
        master_restore_steps(w, m, restore_step);
        if (w->history.helps > 0 && w->masters[m].epoch != 0)
            help(w, m);
    }
    for (unsigned v = 1; v < VERSIONS && w->history.draws > 0; v++)
        for (unsigned masters = 1; masters < 1u << MASTERS; masters++)
            if (w->history.chosen[v][0] != 0)
                draw(w, v, masters);
    if (w->late.kind != 0) {
        struct world next = *w;
        struct answer answer;

        master_do(&next, w->late_to, &w->late, &answer);
        memset(&next.late, 0, sizeof next.late);
        next.late_to = 0;
        take(&next, step_of('L', w->late_to, 0));
    }
    if (w->slow.kind != 0) {
        struct world next = *w;

        memset(&next.slow, 0, sizeof next.slow);
        next.slow_from = next.slow_to = 0;
        if (machine_give(&next, w->slow_to, w->slow_from, &w->slow))
            take(&next, step_of('S', w->slow_to, w->slow_from));
    }
}

/* ---- The model ---- */

void world_steps(const void *state)
{
    const struct world *w = state;

    for (unsigned i = 0; i < MACHINES && scenario->rescued == 0; i++)
        if (!is_aside(w, i))
            machine_steps(w, i);
    if (scenario->rescued != 0)
        rescue_steps(w);
    other_steps(w);
    if (scenario->budget.locks > 0)
        drawer_steps(w, take);
    pass_time(w);
}

void world_begin(void *state)
{
    struct world *w = state;

    w->history = scenario->budget;
    w->history.chosen[1][0] = w->history.chosen[1][1] = scenario->first;
    for (unsigned m = 0; m < machines_masters(); m++) {
        w->masters[m] = (struct master){.epoch = 1};
        if (scenario->empty >> m & 1)
            (void)master_forget(w, m);
        if (!((scenario->first & ~scenario->empty) >> m & 1))
            continue;
        w->masters[m].version = 1;
        w->masters[m].from = w->masters[m].to = scenario->first;
        w->masters[m].number = 1;
        w->masters[m].floor = scenario->budget.locks > 0;
    }
    w->history.last = 1;
    machines_begin(w);
    if (scenario->rescued != 0)
        rescuer_begin(w);
    if (scenario->budget.locks > 0)
        drawer_begin(w);
}

const char *world_judge(const struct world *w)
{
    const char *wrong = wrongs[w->history.wrong];

    return world_only == NULL || (wrong != NULL && strcmp(wrong, world_only) == 0) ? wrong : NULL;
}
