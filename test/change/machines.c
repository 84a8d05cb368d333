/*
 * machines.c - machines that are loaded, get an event, and are stored.
 *
 * A machine is large, and few different ones occur.  So each is stored once, without the past: all
 * its times are told as of NOW, and what it will not read again is zero.
 */
#include "change/machines.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "models/hash.h"

#define NEVER DRIFT_NEVER
#define NONCE 99

bool machines_unbounded;
unsigned machines_pause;
uint32_t machines_random;

/* ---- Stored machines ---- */

static struct stored *machines;
static uint32_t machines_len, machines_max;
static uint32_t *table; /* 1 + the number of a machine; 0: free.  Four times as long as machines. */
static struct roster roster;
static struct config configs[1 << MASTERS][1 << MASTERS];

unsigned machines_count(void)
{
    return machines_len;
}

/* The last master that is in any list. */
unsigned machines_masters(void)
{
    unsigned all = scenario->first | scenario->rescued, len = 0;

    for (unsigned i = 0; i < MACHINES; i++)
        all |= scenario->wishes[i][0] | scenario->wishes[i][1];
    while (all >> len != 0)
        len++;
    return len;
}

void machines_free(void)
{
    free(machines);
    free(table);
    machines = NULL;
    table = NULL;
    machines_len = machines_max = 0;
}

static uint32_t *slot_of(const struct stored *machine)
{
    uint32_t mask = 4 * machines_max - 1;
    uint32_t at = (uint32_t)hash_of(machine, sizeof *machine / sizeof(uint32_t)) & mask;

    _Static_assert(sizeof *machine % sizeof(uint32_t) == 0, "made of words");

    while (table[at] != 0 && memcmp(&machines[table[at] - 1], machine, sizeof *machine) != 0)
        at = (at + 1) & mask;
    return &table[at];
}

static void grow(void)
{
    machines_max = machines_max ? 2 * machines_max : 4096;
    machines = realloc(machines, machines_max * sizeof *machines);
    free(table);
    table = calloc(4 * (size_t)machines_max, sizeof *table);
    if (machines == NULL || table == NULL)
        exit(2);
    for (uint32_t i = 0; i < machines_len; i++)
        *slot_of(&machines[i]) = i + 1;
}

static uint32_t store(const struct stored *machine)
{
    uint32_t *slot;

    if (machines_len == machines_max)
        grow();
    slot = slot_of(machine);
    if (*slot == 0) {
        machines[machines_len] = *machine;
        *slot = ++machines_len;
    }
    return *slot;
}

/* ---- One form for each machine ---- */

static drift_time past(drift_time at, unsigned ticks)
{
    return at < NOW - ticks * TICK ? NOW - ticks * TICK : at;
}

static void trim_master(const struct change *c, struct change_master *m, unsigned i)
{
    bool checks = c->phase == CHANGE_CHECKING;

    m->looked = checks && m->looked >= c->checked_from ? NOW : 0;
    m->asked_at = checks && m->asked == CHANGE_ASK_LOOK && m->asked_at >= c->checked_from ? NOW : 0;
    if (m->look_at <= NOW)
        m->look_at = NOW;
    if (m->asked != CHANGE_ASK_PREPARE && m->asked != CHANGE_ASK_ACCEPT)
        m->asked_ballot = 0;
    if (m->asked == CHANGE_ASK_NOTHING || m->asked == CHANGE_ASK_LOOK)
        m->asked_version = 0;
    if (!checks)
        m->high = 0;
    if (!(c->seen & roster_bit(i)))
        m->seen_epoch = 0;
    if (!m->known && !m->linked)
        m->epoch = 0;
}

static void trim(struct change *c)
{
    bool waits = c->phase == CHANGE_WAITING || c->phase == CHANGE_CHECKING;
    bool has_end =
        c->phase == CHANGE_LEARNING || c->phase == CHANGE_PAUSING || c->phase == CHANGE_TELLING;

    if (c->status != CHANGE_GOES_ON) {
        enum change_status status = c->status;
        struct roster_lists newest = c->newest;

        memset(c, 0, sizeof *c);
        c->roster = &roster;
        c->status = status;
        c->newest = newest;
        return;
    }
    c->until = has_end ? past(c->until, 0) : 0;
    c->since = waits ? past(c->since, TTL) : 0;
    if (!waits)
        c->seen = 0;
    if (c->phase != CHANGE_COUNTING)
        c->number = c->counted = 0;
    for (unsigned i = 0; i < MASTERS; i++)
        trim_master(c, &c->masters[i], i);
    c->checked_from = c->phase == CHANGE_CHECKING ? NOW : 0;
    c->ballots = 0;
    if (c->ballot == 0) {
        c->ballot_end = 0;
        c->promised = c->accepted = c->refused = 0;
        c->accepting = false;
    }
    if (c->accepting)
        c->promised = 0;
    if (c->ballot == 0 || c->accepting) {
        c->found_ballot = 0;
        memset(&c->found, 0, sizeof c->found);
    }
    if (!c->accepting)
        memset(&c->value, 0, sizeof c->value);
}

/* ---- Machines ---- */

static const struct config *config_of(unsigned version, unsigned from, unsigned to)
{
    struct config *config = &configs[from][to];

    if (config->members_len == 0) {
        struct roster_lists lists = {1, from, to};

        roster_write(&roster, &lists, 1, config);
    }
    config->version = version;
    return config;
}

struct stored machine_load(const struct world *w, unsigned machine, struct change *ret_change)
{
    struct stored stored = machines[w->machines[machine] - 1];

    *ret_change = stored.change;
    memcpy(ret_change->masters, stored.masters, sizeof stored.masters);
    return stored;
}

static uint8_t small_ballot(change_ballot ballot)
{
    return ballot == 0 ? 0 : BALLOT(ballot >> 32, ballot & 3);
}

static change_ballot large_ballot(uint8_t ballot)
{
    return ballot == 0 ? 0 : (change_ballot)(ballot >> 2) << 32 | (ballot & 3);
}

void machine_note(struct world *w, enum wrong wrong)
{
    if (w->history.wrong == NOTHING_WRONG)
        w->history.wrong = (uint8_t)wrong;
}

/* M6, as somebody sees who sees everything.  A master that forgets may do so at any time. */
static bool is_too_soon(const struct world *w, const struct roster_lists *lists)
{
    roster_mask ready = 0;

    for (unsigned i = 0; i < MASTERS; i++)
        ready |= w->masters[i].epoch != 0 ? roster_bit(i) : 0;
    return scenario->budget.forgets == 0 && roster_is_joint(lists) &&
           ((lists->to & ~lists->from & ~ready) != 0 || !roster_is_majority(lists->to, ready));
}

/* The wish is of the configuration that was the newest when the machine had learned.  If that was
 * joint, the wish is of what became of it. */
static void note_base(struct world *w, unsigned machine, const struct change *c)
{
    uint8_t *base = w->base[machine];
    bool is_next = c->newest.version == base[0] + 1u;

    if ((base[0] == 0 && c->phase != CHANGE_LEARNING) || (base[1] != base[2] && is_next)) {
        base[0] = (uint8_t)c->newest.version;
        base[1] = (uint8_t)c->newest.from;
        base[2] = (uint8_t)c->newest.to;
    }
    if (c->status != CHANGE_GOES_ON || c->ballot == 0 || c->newest.version == base[0])
        return;
    if (!is_next || c->newest.from != base[1] || c->newest.to != c->wish)
        machine_note(w, OTHER_BASE);
}

/* A machine believes that this configuration is chosen. */
static void note_chosen(struct world *w, const struct roster_lists *lists)
{
    uint8_t *chosen, *before;

    if (lists->version == 0 || lists->version >= VERSIONS)
        return;
    chosen = w->history.chosen[lists->version];
    before = w->history.chosen[lists->version - 1];
    if (chosen[0] == 0 && lists->version > 1 && !roster_is_joint(lists) && lists->to != before[0] &&
        !(w->history.settled >> (lists->version - 1) & 1))
        machine_note(w, TOO_EARLY);
    if (chosen[0] != 0 && (chosen[0] != lists->from || chosen[1] != lists->to))
        machine_note(w, TWO_CHOSEN);
    if (chosen[0] == 0 && is_too_soon(w, lists))
        machine_note(w, TOO_SOON);
    chosen[0] = (uint8_t)lists->from;
    chosen[1] = (uint8_t)lists->to;
}

static void fill(struct world *w, unsigned machine, unsigned master, const struct change *c)
{
    const struct change_master *m = &c->masters[master];
    struct request *out = &w->out[machine][master];
    const struct roster_lists *lists = m->asked == CHANGE_ASK_ACCEPT ? &c->value : &c->newest;

    *out = (struct request){.kind = (uint8_t)m->asked};
    if (m->asked == CHANGE_ASK_LOOK)
        return;
    out->epoch = (uint8_t)m->epoch;
    out->at_version = (uint8_t)m->version;
    if (m->asked == CHANGE_ASK_PREPARE || m->asked == CHANGE_ASK_ACCEPT)
        out->ballot = small_ballot(c->ballot);
    if (m->asked == CHANGE_ASK_ACCEPT || m->asked == CHANGE_ASK_WRITE) {
        out->version = (uint8_t)lists->version;
        out->from = (uint8_t)lists->from;
        out->to = (uint8_t)lists->to;
    }
    if (m->asked == CHANGE_ASK_COUNT)
        out->number = (uint8_t)c->number;
}

/* The machine says what to do.  Returns false if its ballots are beyond the bounds. */
bool machine_go_on(struct world *w, unsigned machine, struct change *c)
{
    struct change_actions act;
    struct stored stored;
    roster_mask asked;

    change_next(c, NOW, machine | machines_random << 2, &act);
    note_chosen(w, &c->newest);
    note_base(w, machine, c);
    asked = act.look | act.prepare | act.accept | act.write | act.count;
    for (unsigned i = 0; i < MASTERS; i++)
        if (asked & roster_bit(i))
            fill(w, machine, i, c);
    if (c->status != CHANGE_GOES_ON) {
        memset(w->out[machine], 0, sizeof w->out[machine]);
        w->hung[machine] = 0;
    }
    if (c->status == CHANGE_IMPOSSIBLE)
        machine_note(w, MISTAKEN);
    if (c->round > scenario->rounds && !machines_unbounded)
        return false;
    trim(c);
    memset(&stored, 0, sizeof stored);
    memcpy(stored.masters, c->masters, sizeof stored.masters);
    memset(c->masters, 0, sizeof c->masters);
    stored.change = *c;
    stored.wake_at = c->status != CHANGE_GOES_ON ? NEVER : act.wake_at <= NOW ? NOW : act.wake_at;
    w->machines[machine] = store(&stored);
    return true;
}

bool machine_begin(struct world *w, unsigned machine, unsigned wish, bool gives_up)
{
    const struct change_config config = {.set = 1,
                                         .max_ttl_ms = TTL * 1000,
                                         .gives_up = gives_up,
                                         .allows_even = true,
                                         .timeout = NEVER,
                                         .look_every = scenario->empty != 0 ? TICK : 0,
                                         .pause_min = machines_pause * TICK,
                                         .pause_max = 8 * machines_pause * TICK};
    struct change c;

    memset(&c, 0, sizeof c);
    change_init(&c, &config, &roster, config_of(1, wish, wish), NOW);
    for (unsigned i = 0; i < machines_masters(); i++)
        change_on_link(&c, i, true);
    memset(w->out[machine], 0, sizeof w->out[machine]);
    memset(w->base[machine], 0, sizeof w->base[machine]);
    return machine_go_on(w, machine, &c);
}

bool machine_give(struct world *w, unsigned machine, unsigned master, const struct answer *answer)
{
    const struct config *config =
        answer->from != 0 ? config_of(answer->version, answer->from, answer->to) : NULL;
    struct change c;

    machine_load(w, machine, &c);
    w->out[machine][master] = (struct request){0};
    if (answer->kind == CHANGE_ASK_LOOK) {
        struct change_look look = {.ready = answer->epoch != 0,
                                   .epoch = answer->epoch != 0 ? answer->epoch : NONCE,
                                   .max_ttl_ms = TTL * 1000,
                                   .high = answer->number,
                                   .config = answer->epoch != 0 ? config : NULL};
        change_on_look(&c, master, &look, NOW);
    } else {
        struct change_reply reply = {
            .answer = answer->answer, .ballot = large_ballot(answer->ballot), .config = config};
        change_on_reply(&c, master, &reply, NOW);
    }
    return machine_go_on(w, machine, &c);
}

/* ---- Time ---- */

static drift_time one_tick_less(drift_time at)
{
    return at == 0 || at == NEVER ? at : at - TICK;
}

void machine_age(struct world *w, unsigned i)
{
    struct change c;
    struct stored stored = machine_load(w, i, &c);

    c.until = one_tick_less(c.until);
    c.since = one_tick_less(c.since);
    c.ballot_end = one_tick_less(c.ballot_end);
    if (c.ballot_end < NOW && c.ballot_end != 0)
        c.ballot_end = NOW;
    for (unsigned m = 0; m < MASTERS; m++)
        c.masters[m].look_at = one_tick_less(c.masters[m].look_at);
    trim(&c);
    memcpy(stored.masters, c.masters, sizeof stored.masters);
    memset(c.masters, 0, sizeof c.masters);
    stored.change = c;
    stored.wake_at = one_tick_less(stored.wake_at);
    if (stored.wake_at < NOW)
        stored.wake_at = NOW;
    w->machines[i] = store(&stored);
}

/* ---- The first world ---- */

void machines_begin(struct world *w)
{
    static const char places[MASTERS][8] = {"m1:1", "m2:1", "m3:1", "m4:1", "m5:1"};

    memset(&roster, 0, sizeof roster);
    for (unsigned i = 0; i < machines_masters(); i++)
        (void)roster_add(&roster, places[i]);
    for (unsigned i = 0; i < MACHINES; i++)
        if (scenario->wishes[i][0] != 0)
            (void)machine_begin(w, i, scenario->wishes[i][0], scenario->gives_up[i][0]);
}
