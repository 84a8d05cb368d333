/*
 * events.c - fuzz target: all legal events of the machine, in any order.
 *
 * The bytes pick the settings, and then the events: requests of the owner, actions and answers
 * of masters, votes that other clients pass on, changes of links and of the members, and time.  The
 * masters are modelled.  Each stores a token until it expires, executes commands in order, and
 * answers in order while its link stands.  A command of a broken link may be executed later, or
 * never.
 *
 * A shadow beside the machine checks every step (events-shadow.c).
 *
 * At the end all masters that are up answer, and alarms ring, until the machine is settled.  It
 * must settle soon.  No master may store a token then that it could have been told to release.
 *
 * FUZZ_TELL in the environment prints the story of an input.
 */
#include "events.h"

#include <string.h>

#define RINGS_MAX 4     /* Alarms at one instant: renew, fail, lost notice; one to spare. */
#define DRAIN_MAX 20000 /* Steps until a machine that is left alone is settled. */

static unsigned next_byte(struct world *w)
{
    if (w->len == 0)
        return 0;
    w->len--;
    return *w->bytes++;
}

/* ---- The masters ---- */

drift_span events_allowance(const struct world *w, drift_span lease)
{
    __extension__ typedef unsigned __int128 wide;
    wide parts = (wide)lease * w->config.drift.ppm;

    return (drift_span)((parts + 999999) / 1000000) + w->config.drift.fixed;
}

bool events_take(const struct master *master)
{
    return master->up && !master->full && master->queue_len + QUORUM_SENDS_EACH <= QUEUE_MAX;
}

static void expire(const struct world *w, struct master *master)
{
    if (master->stored != 0 && w->now >= master->until)
        master->stored = 0;
}

static void set_end(const struct world *w, struct master *master, const struct item *item)
{
    master->until = w->now + item->lease;
    master->late = w->now > item->sent + events_allowance(w, item->lease);
}

/* A standing token waits where it is refused, and is found where it was granted. */
static void do_set(const struct world *w, struct master *master, struct item *item)
{
    bool is_ours = w->config.stands && master->stored == item->token;

    master->waits.token = 0;
    if (master->foreign || (master->stored != 0 && !is_ours)) {
        item->vote = QUORUM_VOTE_NO;
        if (w->config.stands)
            master->waits = *item;
        return;
    }
    item->vote = QUORUM_VOTE_YES;
    if (is_ours && master->until >= w->now + item->lease)
        return;
    master->stored = item->token;
    master->excused = false;
    set_end(w, master, item);
}

static void do_extend(const struct world *w, struct master *master, struct item *item)
{
    if (master->stored != item->token) {
        item->vote = QUORUM_VOTE_NO;
        master->waits.token = 0;
        return;
    }
    item->vote = QUORUM_VOTE_YES;
    if (master->until < w->now + item->lease)
        set_end(w, master, item);
}

static void do_item(const struct world *w, struct master *master, struct item *item)
{
    expire(w, master);
    switch (item->command) {
    case QUORUM_CMD_SET:
    case QUORUM_CMD_GIVE:
        do_set(w, master, item);
        break;
    case QUORUM_CMD_EXTEND:
        do_extend(w, master, item);
        break;
    case QUORUM_CMD_RELEASE:
        item->vote = master->stored == item->token ? QUORUM_VOTE_YES : QUORUM_VOTE_NO;
        master->stored = master->stored == item->token ? 0 : master->stored;
        if (master->waits.token == item->token)
            master->waits.token = 0;
        break;
    case QUORUM_CMD_FENCE: /* The explorer and the simulator test fencing. */
    case QUORUM_CMD_RAISE:
        MUST(false);
    }
}

/* Execute the next command.  With an error, a SET or a release is not executed, and the release
 * is not repeated.  An extension may be executed and still answered with an error. */
static void obey(struct world *w, struct master *master, bool error)
{
    struct item *item = &master->queue[master->done];
    bool gives = item->command == QUORUM_CMD_GIVE && (item->ask & 1); /* Done, but void. */

    if (!master->up || master->done == master->queue_len)
        return;
    if (!error || item->command == QUORUM_CMD_EXTEND || gives)
        do_item(w, master, item);
    if (error && gives) {
        item->vote = item->vote == QUORUM_VOTE_YES ? QUORUM_VOTE_VOID : item->vote;
    } else if (error) {
        item->vote = QUORUM_VOTE_NONE;
        if (item->command == QUORUM_CMD_RELEASE)
            master->excused = true;
    }
    master->done++;
}

/*
 * settle_by covers masters that obey at once, or that get a release when their answer
 * comes.  A master that obeyed late, and cannot get a release, may keep the token.  So may one that
 * obeyed late with a token of another: the machine does not release it unasked.
 */
static void excuse(const struct world *w, struct master *master)
{
    if ((w->is_adopted || !events_take(master)) && (master->late || quorum_is_settled(&w->q)))
        master->excused = true;
}

/* Execute the command that a broken link left behind. */
static void obey_ghost(struct world *w, struct master *master)
{
    if (master->ghost.token == 0)
        return;
    do_item(w, master, &master->ghost);
    if (master->ghost.command != QUORUM_CMD_RELEASE &&
        (master->ghost.vote == QUORUM_VOTE_YES || master->waits.token != 0))
        master->excused = true; /* The client does not learn of it. */
    master->ghost.token = 0;
}

/* ---- Events ---- */

static void step_type(struct world *w, enum quorum_event_type type)
{
    struct quorum_event event = {.type = type, .random = next_byte(w) * UINT32_C(16777259)};

    shadow_step(w, &event);
}

/* Move the next round: sooner, later, or as late as possible. */
static void do_wake(struct world *w)
{
    unsigned byte = next_byte(w);
    struct quorum_event event = {
        .type = QUORUM_EV_WAKE,
        .random = byte * UINT32_C(16777259),
        .until = byte < 128   ? w->now + byte * DRIFT_MS / 4
                 : byte < 192 ? 0
                              : DRIFT_NEVER,
    };

    shadow_step(w, &event);
}

static void ring(struct world *w)
{
    if (w->act.wake_at > w->now)
        w->rings = 0; /* The alarm was set to a later time. */
    step_type(w, QUORUM_EV_TIMER);
    if (w->act.wake_at > w->now)
        return;
    MUST(++w->rings <= RINGS_MAX);
}

static void hear(struct world *w, unsigned m)
{
    struct master *master = &w->masters[m];
    struct quorum before = w->q;
    struct quorum_event event = {.type = QUORUM_EV_REPLY, .master = m};
    struct item item = master->queue[0];

    if (!master->up || master->done == 0)
        return;
    master->done--;
    master->queue_len--;
    memmove(master->queue, master->queue + 1, master->queue_len * sizeof item);
    master->heard = item;
    excuse(w, master);
    shadow_answer(w, m, &item);
    event.ask = item.ask;
    event.command = item.command;
    event.vote = item.vote;
    event.revoked = events_is_revoked(&item);
    event.stands =
        w->config.stands && item.command == QUORUM_CMD_SET && item.vote != QUORUM_VOTE_YES;
    event.elsewhere = !w->config.stands && item.vote == QUORUM_VOTE_NO &&
                      (item.ask & 1) != 0; /* For every other ask.  No permit stands. */
    shadow_step(w, &event);
    /* A round with a majority of yes is won. */
    if (before.state == QUORUM_ACQUIRING && w->live != 0 && decides(w, w->ask_yes))
        MUST(is_held(&w->q));
}

/* The other client releases its key, and passes it on to the token that waits.  A token waits no
 * longer than its lease would last. */
static void pass_on(const struct world *w, struct master *master)
{
    master->foreign = false;
    if (master->waits.token == 0 || w->now > master->waits.sent + master->waits.lease)
        return;
    master->stored = master->waits.token;
    master->grant = master->waits;
    master->waits.token = 0;
    master->until = w->now + master->grant.lease;
    master->late = false;
}

/* The message may come twice, or late.  The shell hands over those for the token of the round, from
 * masters that are up. */
static void hear_grant(struct world *w, unsigned m, bool again)
{
    struct master *master = &w->masters[m];
    struct quorum_event event = {.type = QUORUM_EV_GRANT, .master = (uint8_t)m};
    struct item item = master->grant;
    quorum_mask yes = w->ask_yes, counts;

    if (!again)
        master->grant.token = 0;
    if (item.token == 0 || item.token != w->q.round || !master->up)
        return;
    shadow_grant(w, m, &item);
    counts = w->ask_yes & (quorum_mask)~yes;
    event.sent = item.sent;
    shadow_step(w, &event);
    if (counts != 0 && w->live != 0 && decides(w, w->ask_yes))
        MUST(is_held(&w->q));
}

/* An answer comes a second time, perhaps with another vote. */
static void hear_again(struct world *w, unsigned m)
{
    const struct item *item = &w->masters[m].heard;
    struct quorum_event event = {.type = QUORUM_EV_REPLY, .master = m};

    if (item->token == 0)
        return;
    if (w->masters[m].queue_len > 0 && w->masters[m].queue[0].ask == item->ask)
        return; /* A GIVE has the number of its extension.  No link answers one for the other. */
    event.ask = item->ask;
    event.command = item->command;
    event.vote = (enum quorum_vote)(next_byte(w) % 3);
    shadow_step(w, &event);
}

static void change_link(struct world *w, unsigned m, bool up)
{
    struct master *master = &w->masters[m];
    struct quorum_event event = {.type = QUORUM_EV_LINK, .master = m};

    if (master->up == up && !master->coming)
        return;
    if (master->up && master->done < master->queue_len)
        master->ghost = master->queue[master->done];
    w->ask_yes &= (quorum_mask) ~(1u << m);
    for (unsigned i = 0; i < master->queue_len; i++)
        master->barred |= events_decides(w, &master->queue[i]);
    master->queue_len = master->done = 0;
    master->heard.token = 0; /* No answer comes again over another connection. */
    master->up = up;
    master->coming = master->full = false;
    excuse(w, master);
    if (quorum_cares(&w->q, m))
        shadow_step(w, &event);
}

/* Another master gets the number.  It is empty, and its link is down. */
static void renumber(struct world *w, quorum_mask left)
{
    for (unsigned m = 0; m < w->masters_len; m++)
        if (left & 1u << m)
            memset(&w->masters[m], 0, sizeof w->masters[m]);
}

static quorum_mask next_mask(struct world *w)
{
    unsigned mask = next_byte(w);

    mask |= next_byte(w) << 8;
    return (quorum_mask)(mask & ((1u << w->masters_len) - 1));
}

/* Two lists become the new one, or the old one again.  One list becomes two, or, if the client
 * missed versions, anything else. */
static void change_members(struct world *w)
{
    unsigned how = next_byte(w);
    quorum_mask list = next_mask(w), left = how & 1 ? next_mask(w) : 0;
    struct members next = {w->members.to, list};

    if (w->members.from != w->members.to)
        next = (how & 6) == 0   ? (struct members){w->members.from, w->members.from}
               : (how & 6) == 2 ? (struct members){list, list}
                                : (struct members){w->members.to, w->members.to};
    else if ((how & 6) == 0)
        next = (struct members){list, next_mask(w)};
    if (next.from == 0 || next.to == 0)
        return;
    left &= (quorum_mask)~members_all(&next);
    renumber(w, left);
    shadow_change(w, next, left);
}

static void do_extend_event(struct world *w)
{
    static const drift_span leases[] = {0, DRIFT_MS, 10 * DRIFT_MS, 200 * DRIFT_MS, DRIFT_S};
    struct quorum_event event = {.type = QUORUM_EV_EXTEND};

    if (w->op != OP_NONE || !quorum_may_extend(&w->q))
        return;
    event.lease = leases[next_byte(w) % 5];
    event.random = next_byte(w) * UINT32_C(16777259);
    w->op = OP_EXTEND;
    shadow_step(w, &event);
}

static void do_release(struct world *w)
{
    if (w->op == OP_LOCK || w->op == OP_RELEASE || w->q.state == QUORUM_IDLE)
        return;
    w->op = OP_RELEASE; /* The caller drops an extension that is under way. */
    w->releasing = w->live;
    step_type(w, QUORUM_EV_RELEASE);
}

static void do_cancel(struct world *w, enum quorum_event_type type)
{
    w->op = OP_NONE;
    if (type == QUORUM_EV_DETACH)
        w->is_detached = true;
    step_type(w, type);
    MUST(!w->act.ended && w->q.state == QUORUM_IDLE);
}

/* A span, or to a nanosecond before, at, or after the deadline or the alarm. */
static void pass_time(struct world *w, unsigned how)
{
    static const drift_span spans[] = {1, DRIFT_MS, 7 * DRIFT_MS, 60 * DRIFT_MS, DRIFT_S};
    drift_time before = w->now;
    drift_time at = how & 8 ? w->q.deadline : w->act.wake_at;

    if (how < 5)
        w->now += spans[how];
    else if (at != DRIFT_NEVER && at > w->now)
        w->now = at - 1 + (how & 3) % 3 < w->now ? w->now : at - 1 + (how & 3) % 3;
    if (w->now > before)
        w->rings = 0;
}

static void do_next(struct world *w)
{
    unsigned byte = next_byte(w);
    unsigned m = next_byte(w) % w->masters_len;
    struct master *master = &w->masters[m];

    switch (byte % 20) {
    case 0:
    case 1:
    case 2:
        obey(w, master, false);
        break;
    case 3:
        obey(w, master, true);
        break;
    case 4:
    case 5:
    case 6:
        hear(w, m);
        break;
    case 7:
        obey(w, master, false);
        hear(w, m);
        break;
    case 8:
        change_link(w, m, false);
        break;
    case 9:
        change_link(w, m, true);
        break;
    case 10:
        pass_time(w, next_byte(w) % 16);
        break;
    case 11:
        if (w->act.wake_at != DRIFT_NEVER && w->act.wake_at > w->now)
            w->now = w->act.wake_at;
        ring(w);
        break;
    case 12:
        if (byte >= 200)
            do_wake(w);
        else
            step_type(w, QUORUM_EV_TIMER);
        break;
    case 13:
        do_extend_event(w);
        break;
    case 14:
        do_release(w);
        break;
    case 15:
        if (m == 0) /* Rarely, because little happens after it. */
            do_cancel(w, byte < 128 ? QUORUM_EV_CANCEL : QUORUM_EV_DETACH);
        break;
    case 16:
        master->full = master->up && !master->full;
        excuse(w, master);
        break;
    case 17:
        expire(w, master);
        if (byte >= 128 && master->foreign)
            pass_on(w, master);
        else
            master->foreign = master->stored == 0 && !master->foreign;
        break;
    case 18:
        if (byte < 128 && master->grant.token != 0)
            hear_grant(w, m, byte < 64);
        else if (byte < 128)
            hear_again(w, m);
        else
            obey_ghost(w, master);
        break;
    case 19:
        if (byte < 64) /* FLUSHALL. */
            master->stored = master->waits.token = 0;
        else if (byte >= 128)
            change_members(w);
        break;
    }
}

/* ---- The beginning and the end ---- */

static void set_up(struct world *w)
{
    static const drift_span waits[] = {0, 30 * DRIFT_MS, 200 * DRIFT_MS, DRIFT_NEVER};
    static const drift_span leases[] = {DRIFT_MS, 20 * DRIFT_MS, 500 * DRIFT_MS, 2 * DRIFT_S};
    static const drift_span margins[] = {0, DRIFT_MS, 100 * DRIFT_MS, 5 * DRIFT_S};
    unsigned byte = next_byte(w);
    struct quorum_config *config = &w->config;

    w->now = START;
    w->masters_len = 1 + byte % QUORUM_MASTERS_MAX;
    w->members = members_first(byte & 32 ? (w->masters_len + 1) / 2 : w->masters_len);
    config->renew = (byte & 16) == 0;
    byte = next_byte(w);
    config->wait = waits[byte & 3];
    config->lease = leases[byte >> 2 & 3];
    config->lost_margin = margins[byte >> 4 & 3];
    config->hold_max = byte & 64 ? 3 * config->lease : DRIFT_NEVER;
    w->is_adopted = (byte & 128) != 0;
    byte = next_byte(w);
    config->reply_timeout = (byte & 1) ? 50 * DRIFT_MS : 2 * DRIFT_MS;
    config->pause_min = (byte >> 1 & 3) * 10 * DRIFT_MS;
    config->pause_max = config->pause_min + (byte >> 3 & 3) * 10 * DRIFT_MS;
    config->drift.ppm = (byte & 32) ? 10000 : 333;
    config->drift.fixed = (byte & 64) ? 2 * DRIFT_MS : 0;
    config->stands = (byte & 128) != 0 && !w->is_adopted;
    for (unsigned m = 0; m < w->masters_len; m++) {
        byte = next_byte(w) % 8;
        w->masters[m].up = byte < 5;
        w->masters[m].coming = byte == 5 || byte == 6;
    }
    quorum_init(&w->q, config);
    quorum_init(&w->twin, config);
    w->act.wake_at = DRIFT_NEVER;
}

/* Adopt a token that some masters store, for a while. */
static void adopt(struct world *w)
{
    step_type(w, QUORUM_EV_ADOPT);
    w->live = w->newest = w->q.round;
    w->fresh = w->members.to & (quorum_mask)~w->members.from;
    for (unsigned m = 0; m < w->masters_len; m++) {
        w->masters[m].in_doubt = members_all(&w->members) >> m & 1;
        w->masters[m].asked = w->live;
        w->masters[m].excused = !w->masters[m].in_doubt; /* The machine does not know it. */
        if (next_byte(w) % 4 == 0)
            continue;
        w->masters[m].stored = w->live;
        w->masters[m].until = w->now + w->config.lease;
    }
}

/* Returns true if the master had a command to execute. */
static bool work_off(struct world *w, unsigned m)
{
    struct master *master = &w->masters[m];
    bool worked = master->up && master->queue_len > 0;

    if (!worked)
        return false;
    obey(w, master, false);
    hear(w, m);
    return true;
}

static bool ring_next(struct world *w)
{
    if (w->act.wake_at == DRIFT_NEVER)
        return false;
    if (w->act.wake_at > w->now) {
        w->now = w->act.wake_at;
        w->rings = 0;
    }
    ring(w);
    return true;
}

/* All masters that can answer do.  Operations end, the lock is given up, and tokens are
 * released. */
static void drain(struct world *w)
{
    unsigned steps = 0;

    w->len = 0;
    for (unsigned m = 0; m < w->masters_len; m++) {
        w->masters[m].full = false;
        if (w->masters[m].coming)
            change_link(w, m, false);
    }
    step_type(w, QUORUM_EV_TIMER); /* The machine sees that queues have room. */
    if (w->op != OP_NONE && w->config.wait == DRIFT_NEVER)
        do_cancel(w, QUORUM_EV_CANCEL);
    while (w->op != OP_NONE) {
        bool worked = false;

        for (unsigned m = 0; m < w->masters_len; m++)
            worked |= work_off(w, m);
        if (w->op != OP_NONE && !worked)
            MUST(ring_next(w));
        MUST(++steps < DRAIN_MAX);
    }
    if (w->q.state != QUORUM_IDLE)
        do_cancel(w, QUORUM_EV_CANCEL);
    for (unsigned m = 0; m < w->masters_len; m++)
        while (work_off(w, m))
            MUST(++steps < DRAIN_MAX);
}

static void check_leaks(struct world *w)
{
    for (unsigned m = 0; m < w->masters_len && !w->is_detached; m++) {
        struct master *master = &w->masters[m];

        expire(w, master);
        if (master->up && !master->excused)
            MUST(master->stored == 0);
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t len);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t len)
{
    struct world w = {.bytes = bytes, .len = len};

    set_up(&w);
    if (w.is_adopted) {
        adopt(&w);
    } else {
        w.op = OP_LOCK;
        step_type(&w, QUORUM_EV_ACQUIRE);
    }
    while (w.len > 0)
        do_next(&w);
    drain(&w);
    check_leaks(&w);
    for (unsigned i = 0; i < DRAIN_MAX && ring_next(&w); i++)
        ;
    MUST(quorum_is_settled(&w.q) && w.act.wake_at == DRIFT_NEVER);
    return 0;
}
