/*
 * wait.c - fuzz target: any events, in any order, for a client that waits for one lock.
 *
 * The input picks the settings and the events: announcements and answers of masters, changes of
 * links, ends of rounds, and time.  The target obeys the machine as the library does.  It asks
 * the machine again at wake_at, and begins a round at try_at.  A query (a look, in the code)
 * stays out until it is answered or its link breaks.
 *
 * A shadow keeps its own books from the announcements alone.  After each call of wait_next():
 *
 *  - queries and notices go to masters that are up and owe no answer;
 *  - if a master granted the lock and can be sent a notice, one such master gets it;
 *  - a master that has just confirmed a subscription is queried;
 *  - without a waiter there is nothing to query, to try, or to wake for;
 *  - with a waiter wake_at is finite, and not later than the longest time between two queries;
 *    it is in the future, unless a round begins now;
 *  - in time all masters that are up are queried, whatever they announce;
 *  - a client relies on announcements only while it listens to a majority;
 *  - a round begins only if a majority became free since the round before;
 *  - if a majority is free, or will be, a round is planned, in time;
 *  - while nothing happens, the machine wakes no more often than queries may be sent.
 *
 * FUZZ_TELL in the environment prints the story of an input.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "must.h"
#include "redlock/core/wait.h"

#define START (77 * DRIFT_S) /* Not 0, so that an instant used as a span fails. */
#define EVENTS_MAX 2000      /* Events of one input. */
/* Ten years.  The machine does not believe a longer time to live. */
#define LEFT_MAX_MS (INT64_C(315360000) * 1000)

#define DAY (86400 * DRIFT_S)
#define DAYS_MAX 10000 /* Twice as many are 54 years; the clock lasts for 584. */

struct world {
    const unsigned char *bytes;
    size_t len;
    struct members members;
    unsigned masters;
    struct wait w;
    struct wait_now now;
    struct wait_actions act;
    bool in_round;
    drift_time began; /* When the round began. */
    quorum_mask hears, out, doubted, to_look, to_tell;
    unsigned rivals;
    /* The shadow's books. */
    drift_time free_at[QUORUM_MASTERS_MAX]; /* DRIFT_NEVER: unknown, or the key has no end. */
    drift_time looked_at; /* When all masters were queried, or a round began; 0: never. */
};

static bool tells;

__attribute__((format(printf, 2, 3))) static void tell(const struct world *t, const char *format,
                                                       ...)
{
    va_list args;

    if (!tells)
        return;
    fprintf(stderr, "%12.6f  ", (double)t->now.now / 1e9);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

static unsigned next_byte(struct world *t)
{
    if (t->len == 0)
        return 0;
    t->len--;
    return *t->bytes++;
}

static uint32_t next_word(struct world *t)
{
    uint32_t word = 0;

    for (unsigned i = 0; i < 4; i++)
        word = word << 8 | next_byte(t);
    return word;
}

static quorum_mask bit(unsigned master)
{
    return (quorum_mask)(1u << master);
}

static unsigned count(quorum_mask mask)
{
    return (unsigned)__builtin_popcount(mask);
}

static quorum_mask all(const struct world *t)
{
    return (quorum_mask)((1u << t->masters) - 1);
}

static unsigned majority(const struct world *t)
{
    return t->masters / 2 + 1;
}

/* ---- The shadow ---- */

static void learn(struct world *t, quorum_mask masters, drift_time free_at)
{
    for (unsigned m = 0; m < t->masters; m++)
        if (masters & bit(m))
            t->free_at[m] = free_at;
}

static drift_time end_of(const struct world *t, uint64_t left_ms)
{
    return t->now.now + (left_ms + 1) * DRIFT_MS;
}

/* When the lock is free on a majority of masters that are up; DRIFT_NEVER: unknown. */
static drift_time majority_free(const struct world *t)
{
    drift_time found = DRIFT_NEVER;

    for (unsigned m = 0; m < t->masters; m++) {
        quorum_mask sooner = 0;

        for (unsigned other = 0; other < t->masters; other++)
            if (t->free_at[other] <= t->free_at[m])
                sooner |= bit(other);
        if (count(sooner & t->now.up) >= majority(t) && t->free_at[m] < found)
            found = t->free_at[m];
    }
    return found;
}

static void use_up(struct world *t, drift_time began)
{
    for (unsigned m = 0; m < t->masters; m++)
        if (t->free_at[m] <= began)
            t->free_at[m] = DRIFT_NEVER;
    t->looked_at = began;
}

static drift_span longest_look(const struct world *t)
{
    drift_span span = WAIT_PATIENCE * t->now.pause_max;

    return span > DRIFT_MS ? span : DRIFT_MS;
}

static drift_span shortest_look(const struct world *t)
{
    drift_span span = WAIT_PATIENCE * t->now.pause_min;

    return span > DRIFT_MS ? span : DRIFT_MS;
}

/* ---- Checks of decisions ---- */

static void check_masks(const struct world *t)
{
    const struct wait_actions *act = &t->act;
    quorum_mask may_tell = t->to_tell & t->hears & t->now.up & (quorum_mask)~t->out;

    MUST(((act->look | act->tell) & ~(all(t) & t->now.up)) == 0);
    MUST(((act->look | act->tell) & t->out) == 0);
    MUST((act->look & act->tell) == 0);
    MUST(count(act->tell) == (may_tell != 0) && (act->tell & ~may_tell) == 0);
    if (t->now.waits)
        MUST((t->to_look & t->now.up & ~(t->out | act->tell | act->look)) == 0);
}

static void check_idle(const struct wait_actions *act)
{
    MUST(act->look == 0 && !act->relies);
    MUST(act->try_at == DRIFT_NEVER && act->wake_at == DRIFT_NEVER);
}

static void check_times(const struct world *t)
{
    const struct wait_actions *act = &t->act;
    drift_time now = t->now.now, expected = majority_free(t), latest = now + longest_look(t);
    quorum_mask asked = act->look | act->tell | t->out;

    MUST(act->wake_at <= act->try_at && act->wake_at <= latest);
    MUST(act->wake_at > now || act->try_at <= now);
    MUST(!act->relies || count(t->hears & t->now.up) >= majority(t));
    if (t->looked_at != 0 && now - t->looked_at >= WAIT_TRUST * longest_look(t))
        MUST((t->now.up & ~asked) == 0);
    if (act->try_at <= now)
        MUST(expected <= now);
    if (expected == DRIFT_NEVER)
        MUST(act->try_at == DRIFT_NEVER);
    else if (expected > now)
        MUST(act->try_at >= expected + WAIT_EXPIRY_MIN &&
             act->try_at <= expected + WAIT_EXPIRY_MAX);
    else
        MUST(act->try_at <= latest || act->try_at <= expected + WAIT_EXPIRY_MAX);
}

static void begin_round(struct world *t, drift_time began)
{
    tell(t, "round");
    wait_on_try(&t->w, began);
    use_up(t, began);
    t->in_round = true;
    t->began = began;
}

static void ask(struct world *t)
{
    if (t->in_round)
        return;
    t->now.random = next_word(t);
    wait_next(&t->w, &t->now, &t->act);
    tell(t, "look %x, tell %x, relies %d, try in %f, wake in %f", t->act.look, t->act.tell,
         t->act.relies, (double)(int64_t)(t->act.try_at - t->now.now) / 1e9,
         (double)(int64_t)(t->act.wake_at - t->now.now) / 1e9);
    check_masks(t);
    t->to_tell = 0;
    if (!t->now.waits) {
        check_idle(&t->act);
        t->out |= t->act.tell;
        return;
    }
    check_times(t);
    t->out |= t->act.look | t->act.tell;
    t->to_look &= (quorum_mask)~t->act.look;
    if (t->looked_at == 0 || (t->now.up & ~t->out) == 0)
        t->looked_at = t->now.now;
    if (t->act.try_at <= t->now.now)
        begin_round(t, t->now.now);
}

/* ---- Events ---- */

static void hear(struct world *t, unsigned master, bool hears)
{
    tell(t, "master %u is %s", master, hears ? "heard" : "not heard");
    wait_on_hears(&t->w, master, hears);
    t->free_at[master] = DRIFT_NEVER;
    t->hears &= (quorum_mask)~bit(master);
    t->to_look &= (quorum_mask)~bit(master);
    if (hears) {
        t->hears |= bit(master);
        t->to_look |= bit(master);
    }
}

static void announce_free(struct world *t, unsigned master)
{
    quorum_mask of = wait_speaks_for(&t->w, master);
    unsigned rivals = next_byte(t);

    if (rivals > 200)
        rivals = next_word(t);
    tell(t, "master %u: free %u", master, rivals);
    MUST(of == bit(master) || of == t->hears);
    wait_on_free(&t->w, master, rivals, t->now.now);
    MUST(wait_speaks_for(&t->w, master) == bit(master));
    t->rivals = rivals;
    t->doubted |= t->out & bit(master);
    learn(t, of & t->hears, t->now.now);
}

static uint32_t next_left(struct world *t)
{
    unsigned byte = next_byte(t);

    return byte > 250 ? next_word(t) : byte * 10;
}

static void announce_held(struct world *t, unsigned master)
{
    uint32_t left_ms = next_left(t);

    tell(t, "master %u: held %u", master, left_ms);
    wait_on_held(&t->w, master, left_ms, t->now.now);
    learn(t, bit(master) & t->hears, end_of(t, left_ms));
}

static void announce_taken(struct world *t, unsigned master)
{
    uint32_t left_ms = next_left(t);

    tell(t, "master %u: taken %u", master, left_ms);
    wait_on_taken(&t->w, master, left_ms, t->now.now);
    if (!(t->hears & bit(master)))
        return;
    MUST(wait_speaks_for(&t->w, master) == t->hears);
    learn(t, (quorum_mask)~t->hears, DRIFT_NEVER);
    learn(t, t->hears, end_of(t, left_ms));
}

static int64_t next_pttl(struct world *t)
{
    unsigned byte = next_byte(t);

    if (byte < 128)
        return (int64_t)byte % 4 - 3;
    if (byte < 250)
        return byte - 128;
    return (int64_t)((uint64_t)next_word(t) << 32 | next_word(t));
}

static void answer(struct world *t, unsigned master)
{
    int64_t pttl_ms = next_pttl(t);
    bool is_heard = (t->hears & bit(master)) != 0, doubted = (t->doubted & bit(master)) != 0;

    if (!(t->out & bit(master)))
        return;
    tell(t, "master %u answers %" PRId64, master, pttl_ms);
    wait_on_look(&t->w, master, pttl_ms, t->now.now);
    t->out &= (quorum_mask)~bit(master);
    t->doubted &= (quorum_mask)~bit(master);
    if (pttl_ms == -2)
        t->free_at[master] = t->now.now;
    else if (!is_heard || pttl_ms < 0 || pttl_ms > LEFT_MAX_MS)
        t->free_at[master] =
            is_heard && pttl_ms == -1 && doubted ? t->free_at[master] : DRIFT_NEVER;
    else if (!doubted)
        t->free_at[master] = end_of(t, (uint64_t)pttl_ms);
}

/* The link for commands to the master goes up or down. */
static void link_up_or_down(struct world *t, unsigned master)
{
    bool up = (t->now.up & bit(master)) == 0;

    tell(t, "master %u is %s", master, up ? "up" : "down");
    t->now.up ^= bit(master);
    if (up)
        return;
    wait_on_link(&t->w, master);
    t->out &= (quorum_mask)~bit(master);
    t->doubted &= (quorum_mask)~bit(master);
}

static void win(struct world *t)
{
    quorum_mask granted = (quorum_mask)next_word(t) & all(t);
    bool others = next_byte(t) % 2 != 0;

    tell(t, "won, by %x", granted);
    wait_on_won(&t->w, granted, others);
    if (t->w.shared)
        learn(t, granted, 0);
    else
        t->to_tell = t->rivals != 1 || others ? granted : 0;
    if (t->in_round) {
        wait_on_turn(&t->w, others);
        t->now.waits = others;
    }
    t->in_round = false;
}

static void lose(struct world *t)
{
    if (!t->in_round)
        return;
    tell(t, "lost");
    wait_on_lost(&t->w, t->now.now - t->began, &t->now);
    t->in_round = false;
}

/* A lease waits when it has lost its first round; or the last lease that waits gives up. */
static void come_or_go(struct world *t)
{
    drift_span ago = next_byte(t) * DRIFT_MS;

    if (t->in_round)
        return;
    tell(t, t->now.waits ? "gives up" : "waits");
    t->now.waits = !t->now.waits;
    if (!t->now.waits) {
        wait_on_turn(&t->w, false);
        return;
    }
    begin_round(t, t->now.now - ago);
    lose(t);
}

static void end_hold(struct world *t)
{
    wait_on_over(&t->w);
    t->to_tell = 0;
}

static drift_span next_span(struct world *t)
{
    static const drift_span units[] = {10000, DRIFT_MS, 50 * DRIFT_MS, 3 * DRIFT_S};
    unsigned byte = next_byte(t);

    if (byte == 255 && t->now.now < DAYS_MAX * DAY)
        return next_word(t) % DAYS_MAX * DAY;
    return (1 + byte / 4) * units[byte % 4];
}

/* Time passes without events.  The machine is asked at each wake_at. */
static void pass(struct world *t, drift_span span)
{
    drift_time until = t->now.now + span;
    unsigned wakes = 0;

    while (!t->in_round && t->now.waits && t->act.wake_at <= until && wakes < 100) {
        drift_span slept = drift_until(t->now.now, t->act.wake_at);

        t->now.now += slept;
        ask(t);
        wakes++;
        MUST(wakes <= 3 + span / shortest_look(t));
    }
    t->now.now = until;
}

static void happen(struct world *t)
{
    unsigned byte = next_byte(t), master = byte / 16 % t->masters;

    switch (byte % 16) {
    case 0:
    case 1:
        pass(t, next_span(t));
        break;
    case 2:
        hear(t, master, next_byte(t) % 4 != 0);
        break;
    case 3:
    case 4:
        announce_free(t, master);
        break;
    case 5:
        announce_held(t, master);
        break;
    case 6:
        announce_taken(t, master);
        break;
    case 7:
    case 8:
    case 9:
        answer(t, master);
        break;
    case 10:
        link_up_or_down(t, master);
        break;
    case 11:
        win(t);
        break;
    case 12:
    case 13:
        lose(t);
        break;
    case 14:
        come_or_go(t);
        break;
    default:
        if (byte / 16 < 8)
            end_hold(t);
        else if (t->now.waits && !t->in_round && !t->act.relies)
            begin_round(t, t->now.now); /* The quorum machine begins it by itself. */
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    tells = getenv("FUZZ_TELL") != NULL;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t pauses[][2] = {{50, 200}, {0, 0}, {1, 1}, {0, UINT32_MAX}};
    struct world t = {.bytes = data, .len = size};
    unsigned masters = next_byte(&t), settings = next_byte(&t);

    t.masters = 1 + masters % QUORUM_MASTERS_MAX;
    t.members = members_first(t.masters);
    wait_init(&t.w, &t.members, settings % 4 == 3);
    t.w.permits = settings / 16 % 2 != 0;
    t.now.now = START;
    t.now.waits = true;
    t.now.up = all(&t);
    t.now.pause_min = pauses[settings / 4 % 4][0] * DRIFT_MS;
    t.now.pause_max = pauses[settings / 4 % 4][1] * DRIFT_MS;
    for (unsigned m = 0; m < t.masters; m++)
        t.free_at[m] = DRIFT_NEVER;
    for (unsigned i = 0; i < EVENTS_MAX && t.len > 0; i++) {
        happen(&t);
        ask(&t);
    }
    return 0;
}
