/*
 * world.c - the steps of a world.
 */
#include "founder/world.h"

#include <assert.h>
#include <string.h>

/* Times make no difference here: a pause may end at any time. */
#define NOW 1000
#define PAUSE 10

/* ---- Machines ---- */

/* The bit of a machine's master among all masters. */
static unsigned bit_of(unsigned list, unsigned m)
{
    unsigned bits = list;

    for (; m > 0; m--)
        bits &= bits - 1;
    return bits & (0u - bits);
}

static unsigned place_of(unsigned list, unsigned m)
{
    return (unsigned)__builtin_ctz(bit_of(list, m));
}

static void unpack(const struct packed *p, uint8_t list, struct founder *ret_founder)
{
    const char *text = world_list_text(list);
    const struct founder_config config = {
        (unsigned)__builtin_popcount(list), text, strlen(text), world_set_of(list), PAUSE, PAUSE};

    founder_init(ret_founder, &config);
    ret_founder->phase = p->phase;
    ret_founder->stopping = p->stopping;
    ret_founder->linked = (quorum_mask)((1u << config.masters) - 1);
    ret_founder->own = p->own;
    ret_founder->took = p->took;
    ret_founder->number = p->number;
    ret_founder->set = p->set;
    ret_founder->other.word = p->other;
    ret_founder->pause = PAUSE;
    memcpy(ret_founder->asked, p->asked, config.masters);
}

/* A new field of the machine that changes what it does must be packed, too. */
#ifdef __LP64__
_Static_assert(sizeof(struct founder) == 136, "see above");
#endif

/* What a machine will not use again is left out, so that fewer worlds differ. */
static void pack(const struct founder *f, struct packed *ret_packed)
{
    bool is_idle = founder_has_ended(f) || f->phase == FOUNDER_WAITING;
    bool is_reported = f->phase == FOUNDER_FOUNDED;

    *ret_packed = (struct packed){
        .phase = (uint8_t)f->phase,
        .stopping = f->stopping && !founder_has_ended(f),
        .own = is_idle ? 0 : (uint8_t)f->own,
        .took = is_idle ? 0 : (uint8_t)f->took,
        .number = is_idle ? 0 : (uint8_t)f->number,
        .set = is_idle && !is_reported ? 0 : (uint8_t)f->set,
        .other = is_idle ? 0 : (uint8_t)f->other.word,
    };
    memcpy(ret_packed->asked, f->asked, f->config.masters);
}

/* ---- Steps ---- */

static void emit(struct world *w, enum what what, unsigned founder, unsigned master,
                 enum cause cause)
{
    world_settle(w);
    explorer_take(w, (char)what, founder, master, cause, world_judge(w));
}

/* The machine goes on after an event. */
static void go_on(struct world *w, unsigned i, struct founder *f)
{
    struct founder_actions act;

    founder_next(f, NOW, world_free_number(w), &act);
    pack(f, &w->actors[i].machine);
}

static void begin(const struct world *w, unsigned i, const struct founder *machine)
{
    struct world n = *w;
    struct founder f = *machine;

    if (f.phase == FOUNDER_FOUNDED &&
        world_members(w, bounds.lists[i], (unsigned)f.set) == bounds.lists[i])
        return;
    if (f.phase != FOUNDER_WAITING)
        founder_begin(&f, 0);
    go_on(&n, i, &f);
    emit(&n, DO_BEGIN, i, 0, PLAIN);
}

static void stop(const struct world *w, unsigned i, const struct founder *machine)
{
    struct world n = *w;
    struct founder f = *machine;
    bool is_told = f.other.word != FOUNDER_SAYS_NOTHING;

    if (f.phase != FOUNDER_CLAIMING && f.phase != FOUNDER_LOOKING)
        return;
    founder_stop(&f);
    go_on(&n, i, &f);
    emit(&n, DO_STOP, i, 0, is_told ? PLAIN : OPERATOR);
}

static bool is_silent(const struct packed *p)
{
    static const uint8_t none[MASTERS];

    return memcmp(p->asked, none, sizeof none) == 0;
}

static void forget_dead(struct actor *a)
{
    if (is_silent(&a->machine))
        a->machine = (struct packed){.phase = FOUNDER_IDLE};
}

static void execute(const struct world *w, unsigned i, unsigned m, const struct founder *machine)
{
    struct world n = *w;
    struct packed *p = &n.actors[i].machine;
    struct founder f = *machine;
    struct founder_answer answer;
    unsigned k = place_of(bounds.lists[i], m);

    master_execute(&n.masters[k], (enum founder_command)f.asked[m], bounds.lists[i], p->number,
                   p->set, &answer);
    if (n.actors[i].is_dead) {
        p->asked[m] = FOUNDER_CMD_NONE;
        forget_dead(&n.actors[i]);
    } else {
        founder_on_answer(&f, m, &answer);
        go_on(&n, i, &f);
    }
    emit(&n, DO_EXECUTE, i, k, PLAIN);
}

static void delay(const struct world *w, unsigned i, unsigned m, const struct founder *machine)
{
    struct world n = *w;
    struct founder f = *machine;
    const struct packed *p = &w->actors[i].machine;
    unsigned k = place_of(bounds.lists[i], m);

    if (w->delays >= bounds.delays || w->mail.command || p->asked[m] == FOUNDER_CMD_LOOK)
        return;
    n.delays++;
    n.mail = (struct mail){p->asked[m], (uint8_t)k, bounds.lists[i], p->number, p->set};
    founder_on_silence(&f, m);
    go_on(&n, i, &f);
    emit(&n, DO_DELAY, i, k, FAULT);
}

static void arrive(const struct world *w)
{
    struct world n = *w;
    const struct mail *mail = &w->mail;
    struct founder_answer answer;

    if (!mail->command)
        return;
    master_execute(&n.masters[mail->master], (enum founder_command)mail->command, mail->list,
                   mail->number, mail->set, &answer);
    n.mail = (struct mail){.command = FOUNDER_CMD_NONE};
    emit(&n, DO_ARRIVE, 0, mail->master, PLAIN);
}

/* The commands of a dead founder are still executed, or never.  Looks change nothing. */
static void crash(const struct world *w, unsigned i, const struct founder *machine)
{
    struct world n = *w;
    struct packed *p = &n.actors[i].machine;

    if (w->crashes >= bounds.crashes || machine->phase == FOUNDER_IDLE ||
        machine->phase == FOUNDER_WAITING || founder_has_ended(machine))
        return;
    n.crashes++;
    n.actors[i].is_dead = 1;
    p->phase = p->stopping = p->own = p->took = p->other = 0;
    for (unsigned m = 0; m < MASTERS; m++)
        if (p->asked[m] == FOUNDER_CMD_LOOK)
            p->asked[m] = FOUNDER_CMD_NONE;
    forget_dead(&n.actors[i]);
    emit(&n, DO_DIE, i, 0, FAULT);
}

static void revive(const struct world *w, unsigned i)
{
    struct world n = *w;

    if (!is_silent(&w->actors[i].machine))
        return;
    memset(&n.actors[i], 0, sizeof n.actors[i]);
    emit(&n, DO_REVIVE, i, 0, OPERATOR);
}

/* A decision for this list was made, and may still be written, or was. */
static bool is_list_decided(const struct world *w, unsigned list)
{
    bool is = w->mail.list == list &&
              (world_is_decided(w, w->mail.number) || world_is_decided(w, w->mail.set));

    for (unsigned k = 0; k < bounds.masters; k++)
        is = is || (w->masters[k].list == list && world_is_decided(w, w->masters[k].number));
    for (unsigned i = 0; i < bounds.founders; i++) {
        const struct packed *p = &w->actors[i].machine;

        is = is || (bounds.lists[i] == list &&
                    (world_is_decided(w, p->number) || world_is_decided(w, p->set)));
    }
    return is;
}

static void forget(const struct world *w, unsigned k)
{
    struct world n = *w;
    struct master *m = &n.masters[k];
    bool excused = m->excused || (m->has != HAS_NOTHING && is_list_decided(w, m->list));

    if (w->forgets >= bounds.forgets)
        return;
    n.forgets++;
    *m = (struct master){.forgot = 1, .excused = excused};
    emit(&n, DO_FORGET, 0, k, FAULT);
}

/* Only a founded set gets other versions. */
static void change(const struct world *w, unsigned k)
{
    struct world n = *w;
    struct master *m = &n.masters[k];

    if (w->changes >= bounds.changes || m->has != HAS_SET || m->ver > 1 ||
        !world_is_majority(m->list, world_members(w, m->list, m->number)))
        return;
    n.changes++;
    m->ver = 2;
    emit(&n, DO_CHANGE, 0, k, FAULT);
}

static void actor_steps(const struct world *w, unsigned i)
{
    const struct actor *a = &w->actors[i];
    unsigned len = (unsigned)__builtin_popcount(bounds.lists[i]);
    struct founder f;

    unpack(&a->machine, bounds.lists[i], &f);
    for (unsigned m = 0; m < len; m++) {
        if (a->machine.asked[m] == FOUNDER_CMD_NONE)
            continue;
        execute(w, i, m, &f);
        if (!a->is_dead)
            delay(w, i, m, &f);
    }
    if (a->is_dead) {
        revive(w, i);
        return;
    }
    if (f.phase == FOUNDER_IDLE || f.phase == FOUNDER_WAITING || founder_has_ended(&f))
        begin(w, i, &f);
    else
        stop(w, i, &f);
    crash(w, i, &f);
}

void world_begin(void *ret_world)
{
    struct world *w = ret_world;

    for (unsigned k = 0; k < 3 && bounds.begun; k++)
        w->masters[k] = (struct master){k < 2 ? HAS_SET : HAS_CLAIM,
                                        bounds.lists[0],
                                        k < 2 ? world_set_of(bounds.lists[0]) : FOUNDERS + 1,
                                        k < 2,
                                        0,
                                        0};
    if (bounds.begun)
        w->decided[0] = (uint8_t)(1u << world_set_of(bounds.lists[0]));
    world_settle(w);
}

void world_steps(const void *world)
{
    const struct world *w = world;

    for (unsigned i = 0; i < bounds.founders; i++)
        actor_steps(w, i);
    for (unsigned k = 0; k < bounds.masters; k++) {
        forget(w, k);
        change(w, k);
    }
    arrive(w);
}
