/*
 * fencing.c - the steps of fencing.h: rounds that draw tokens, and a change of the set of masters,
 * after which no token may come twice.
 */
#include "models/fencing.h"

#include <string.h>

static const char same_token[] = "two locks have the same token";
static const char smaller_token[] = "a token is smaller than that of an earlier lock";

static unsigned count(set masters)
{
    return (unsigned)__builtin_popcount(masters);
}

static unsigned given_up; /* history.back of the world at hand. */

static bool is_joint_version(unsigned version)
{
    return version % 2 == 0;
}

/* The number of the first list of a version. */
static unsigned list_number(unsigned version)
{
    unsigned changes = (version - 1) / 2;

    return changes - count(given_up & ((1u << changes) - 1));
}

/* Versions are simple and joint in turn: 1, 3 and 5 have one list, 2 and 4 two. */
static struct configuration lists_at(unsigned version)
{
    unsigned from = list_number(version), to = from + (is_joint_version(version) ? 1 : 0);

    return (struct configuration){bounds.lists[from], bounds.lists[to]};
}

static bool has_quorum(unsigned version, set votes)
{
    struct configuration c = lists_at(version);

    return is_majority(c.from, votes) && is_majority(c.to, votes);
}

/* N - Q + 1: so many share a member with every majority. */
static unsigned enough_of(set list)
{
    return count(list) - count(list) / 2;
}

static unsigned majority_of(set list)
{
    return count(list) / 2 + 1;
}

/* ---- Rounds ---- */

static unsigned number_at(const struct fencing_client *c, unsigned master)
{
    return c->numbers >> 4 * master & 15;
}

static void set_number(struct fencing_client *c, unsigned master, unsigned number)
{
    c->numbers = (c->numbers & ~(15u << 4 * master)) | number << 4 * master;
    if (number > c->greatest)
        c->greatest = number;
}

static void end_round(struct fencing_world *w, unsigned client)
{
    unsigned version = w->clients[client].version;

    for (unsigned m = 0; m < bounds.masters; m++)
        if (w->masters[m].owner == client + 1)
            w->masters[m].owner = w->masters[m].left = 0;
    memset(&w->clients[client], 0, sizeof w->clients[client]);
    w->clients[client].version = bounds.again ? version : 0;
    w->clients[client].over = !bounds.again;
}

/* F2.  0: there is no token yet. */
static unsigned find_token(const struct fencing_client *c)
{
    set only_second = lists_at(c->version).to;

    for (unsigned number = c->greatest; number > 0; number--) {
        set agreed = 0;
        for (unsigned m = 0; m < bounds.masters; m++)
            if ((c->good & bit_of(m)) && number_at(c, m) == number)
                agreed |= bit_of(m);
        if (has_quorum(c->version, agreed))
            return number;
        if (is_planted(BUG_TOKEN_ONE_QUORUM) && is_majority(only_second, agreed) &&
            has_quorum(c->version, c->good))
            return number;
    }
    return 0;
}

static const char *grant(struct fencing_world *w, unsigned client, unsigned token)
{
    struct fencing_client *c = &w->clients[client];
    const char *broken = NULL;

    if ((w->history.granted >> token & 1) || (token == w->history.last && !bounds.clock_steps))
        broken = same_token;
    else if (token <= c->begun || (token <= w->history.last && !bounds.clock_steps))
        broken = smaller_token;
    if (bounds.clock_steps)
        w->history.granted |= 1u << token;
    if (token > w->history.last)
        w->history.last = token;
    if (!bounds.overlap) {
        end_round(w, client);
        return broken;
    }
    c->left = bounds.ttl - c->age;
    c->round = HOLDING;
    c->age = c->asked = c->stored = c->good = 0;
    c->numbers = c->greatest = c->begun = 0;
    return broken;
}

static void judge(struct fencing_world *next, unsigned client, char kind, unsigned master)
{
    unsigned token = find_token(&next->clients[client]);
    const char *broken = token != 0 ? grant(next, client, token) : NULL;

    explorer_take(next, kind, client, master, token, broken);
}

/* F1: numbers of another version do not count. */
static void take_over(struct fencing_client *c, unsigned version)
{
    c->version = version;
    if (is_planted(BUG_NUMBERS_KEPT))
        return;
    c->asked = c->stored = c->good = c->numbers = 0;
    if (c->round == RAISING)
        c->round = ASKING;
}

static void prove(const struct fencing_world *w, unsigned client, unsigned master)
{
    const struct fencing_master *m = &w->masters[master];
    struct fencing_world next = *w;
    struct fencing_client *c = &next.clients[client];

    if (!(c->stored & bit_of(master)))
        return;
    c->stored &= ~bit_of(master);
    if (m->memory && m->version > c->version)
        take_over(c, m->version);
    if (m->memory && m->version == c->version &&
        (m->version == w->clients[client].version || is_planted(BUG_NUMBERS_KEPT)))
        c->good |= bit_of(master);
    judge(&next, client, 'P', master);
}

/* SET NX and HINCRBY.  The master counts although the key is another's.  The greatest token is
 * noted when the round begins. */
static void ask(const struct fencing_world *w, unsigned client, unsigned master)
{
    struct fencing_world next = *w;
    struct fencing_client *c = &next.clients[client];
    struct fencing_master *m = &next.masters[master];
    unsigned number = m->counter + 1;

    if (c->round > ASKING || (c->asked & bit_of(master)) || number > bounds.numbers || !m->memory)
        return;
    if (c->round == NO_ROUND && bounds.clock_steps)
        c->begun = w->history.last;
    c->round = ASKING;
    c->asked |= bit_of(master);
    m->counter = number;
    if (m->owner == 0 || m->owner == client + 1) {
        m->owner = client + 1;
        if (bounds.ttl - c->age > m->left)
            m->left = bounds.ttl - c->age;
        c->stored |= bit_of(master);
        set_number(c, master, number);
    } else if (number > c->greatest) {
        c->greatest = number;
    }
    if (bounds.split || !(c->stored & bit_of(master)))
        explorer_take(&next, 'S', client, master, number, NULL);
    else
        prove(&next, client, master);
}

/* Enough votes, but they do not agree on a number: the round raises them, once. */
static void begin_raising(const struct fencing_world *w, unsigned client)
{
    struct fencing_world next = *w;
    struct fencing_client *c = &next.clients[client];

    if (c->round != ASKING || !has_quorum(c->version, c->good) || c->greatest >= bounds.numbers)
        return;
    c->round = RAISING;
    c->asked = 0;
    c->greatest++; /* It is what all are asked to count to. */
    c->stored = 0;
    explorer_take(&next, 'n', client, c->greatest, 0, NULL);
}

/* The script raise: it compares the key, the epoch and the version. */
static void raise_number(const struct fencing_world *w, unsigned client, unsigned master)
{
    struct fencing_world next = *w;
    struct fencing_client *c = &next.clients[client];
    struct fencing_master *m = &next.masters[master];
    unsigned target = w->clients[client].greatest, number = target;

    if (c->round != RAISING || (c->asked & bit_of(master)) || !(c->good & bit_of(master)) ||
        !m->memory || m->owner != client + 1)
        return;
    if (m->version > c->version && !is_planted(BUG_TOKEN_NO_VERSION)) {
        take_over(c, m->version);
        explorer_take(&next, 'V', client, master, 0, NULL);
        return;
    }
    if (m->counter >= number)
        number = m->counter + 1;
    if (number > bounds.numbers)
        return;
    m->counter = number;
    c->asked |= bit_of(master);
    set_number(c, master, number);
    c->greatest = target; /* The others are asked for the same. */
    judge(&next, client, 'N', master);
}

static void client_rounds(const struct fencing_world *w, unsigned client)
{
    const struct fencing_client *c = &w->clients[client];
    struct fencing_world next = *w;
    struct configuration lists;

    if (c->over || (!bounds.overlap && client > 0 && !w->clients[client - 1].over))
        return;
    lists = lists_at(c->version);
    for (unsigned m = 0; m < bounds.masters; m++) {
        if ((lists.from | lists.to) & bit_of(m))
            ask(w, client, m);
        prove(w, client, m);
        raise_number(w, client, m);
    }
    begin_raising(w, client);
    if (c->round == NO_ROUND || (c->round != HOLDING && !bounds.again))
        return;
    end_round(&next, client);
    explorer_take(&next, 'R', client, 0, 0, NULL);
}

/* ---- The change ---- */

static void begin_change(const struct fencing_world *w)
{
    struct fencing_world next = *w;

    if (is_joint_version(w->history.newest) || w->history.newest >= bounds.versions ||
        list_number(w->history.newest) + 1 >= bounds.lists_len)
        return;
    next.history.newest++;
    explorer_take(&next, 'O', next.history.newest, 0, 0, NULL);
}

/* M5 (1). */
static void see_joint(const struct fencing_world *w, unsigned master)
{
    set list = lists_at(w->history.newest).from;
    const struct fencing_master *m = &w->masters[master];
    struct fencing_world next = *w;
    struct fencing_admin *a = &next.admin;

    if (a->waiting || !(list & bit_of(master) & ~a->seen) || !m->memory ||
        m->version != w->history.newest)
        return;
    a->seen |= bit_of(master);
    if (is_majority(list, a->seen)) {
        a->waiting = 1;
        a->wait = bounds.ttl;
    }
    explorer_take(&next, 'e', master, 0, 0, NULL);
}

static unsigned enough_to_read(const struct fencing_world *w)
{
    unsigned enough = enough_of(lists_at(w->history.newest).from);

    return is_planted(BUG_READ_FEW) ? enough - 1 : enough;
}

/* F4. */
static unsigned enough_to_raise(const struct fencing_world *w)
{
    set list = lists_at(w->history.newest).to;

    if (is_planted(BUG_NO_RAISE))
        return 0;
    if (is_planted(BUG_RAISE_EVEN))
        return enough_of(list);
    return is_planted(BUG_RAISE_FEW) ? majority_of(list) - 1 : majority_of(list);
}

/* F3. */
static void read_number(const struct fencing_world *w, unsigned master)
{
    set list = lists_at(w->history.newest).from;
    const struct fencing_master *m = &w->masters[master];
    struct fencing_world next = *w;
    struct fencing_admin *a = &next.admin;

    if (!(list & bit_of(master) & ~a->read) || !m->memory || count(a->read) >= enough_to_read(w))
        return;
    if (!a->waiting && !is_planted(BUG_RAISE_EARLY))
        return;
    if (m->version != w->history.newest && !is_planted(BUG_READ_UNSEEN) &&
        !is_planted(BUG_RAISE_EARLY))
        return;
    a->read |= bit_of(master);
    if (m->counter > a->greatest)
        a->greatest = m->counter;
    explorer_take(&next, 'd', master, m->counter, 0, NULL);
}

static void raise_counter(const struct fencing_world *w, unsigned master)
{
    set list = lists_at(w->history.newest).to;
    struct fencing_world next = *w;
    struct fencing_master *m = &next.masters[master];

    if (count(w->admin.read) < enough_to_read(w) || !(list & bit_of(master) & ~w->admin.raised) ||
        !m->memory || count(w->admin.raised) >= enough_to_raise(w))
        return;
    if (w->admin.greatest > m->counter)
        m->counter = w->admin.greatest;
    next.admin.raised |= bit_of(master);
    explorer_take(&next, 'u', master, w->admin.greatest, 0, NULL);
}

/* M5 (3). */
static void choose_next(const struct fencing_world *w)
{
    struct fencing_world next = *w;

    if (!w->admin.waiting || w->admin.wait > 0 || w->admin.spoilt ||
        count(w->admin.raised) < enough_to_raise(w))
        return;
    next.history.newest++;
    memset(&next.admin, 0, sizeof next.admin);
    explorer_take(&next, 'O', next.history.newest, 0, 0, NULL);
}

/* The joint version is given up. */
static void choose_first(const struct fencing_world *w)
{
    struct fencing_world next = *w;

    if (!bounds.give_up)
        return;
    next.history.back |= 1u << (w->history.newest / 2 - 1);
    next.history.newest++;
    memset(&next.admin, 0, sizeof next.admin);
    explorer_take(&next, 'O', next.history.newest, 0, 0, NULL);
}

static void admin_change(const struct fencing_world *w)
{
    struct fencing_world next = *w;

    begin_change(w);
    if (!is_joint_version(w->history.newest))
        return;
    for (unsigned m = 0; m < bounds.masters; m++) {
        see_joint(w, m);
        read_number(w, m);
        raise_counter(w, m);
    }
    choose_next(w);
    choose_first(w);
    if (!bounds.kills || (w->admin.seen == 0 && w->admin.read == 0))
        return;
    memset(&next.admin, 0, sizeof next.admin);
    explorer_take(&next, 'K', 0, 0, 0, NULL);
}

/* ---- Masters ---- */

static void write_newest(const struct fencing_world *w, unsigned master, unsigned version)
{
    struct configuration before = lists_at(version - 1), now = lists_at(version);
    struct fencing_world next = *w;

    if (w->masters[master].version >= version ||
        !((before.from | before.to | now.from | now.to) & bit_of(master)))
        return;
    next.masters[master].version = version;
    explorer_take(&next, 'W', master, version, 0, NULL);
}

static void forget(const struct fencing_world *w, unsigned master)
{
    struct fencing_world next = *w;

    if (w->history.forgotten >= bounds.forgets)
        return;
    for (unsigned m = 0; m < bounds.masters; m++)
        if (!w->masters[m].memory)
            return;
    memset(&next.masters[master], 0, sizeof next.masters[master]);
    next.masters[master].watch = bounds.ttl;
    next.history.forgotten++;
    for (unsigned c = 0; c < bounds.clients; c++)
        next.clients[c].stored &= ~bit_of(master);
    if (w->admin.seen & bit_of(master))
        next.admin.spoilt = 1;
    explorer_take(&next, 'F', master, 0, 0, NULL);
}

static void read_other(const struct fencing_world *w, unsigned master, unsigned other)
{
    const struct fencing_master *teller = &w->masters[other];
    struct fencing_world next = *w;
    struct fencing_master *m = &next.masters[master];

    if (other == master || !teller->memory || (m->told & bit_of(other)))
        return;
    m->told |= bit_of(other);
    if (teller->version > m->version)
        m->version = teller->version;
    if (teller->counter > m->counter)
        m->counter = teller->counter;
    explorer_take(&next, 'r', master, other, teller->counter, NULL);
}

/* F5. */
static void install(const struct fencing_world *w, unsigned master)
{
    const struct fencing_master *m = &w->masters[master];
    unsigned fewer = is_planted(BUG_FLOOR_FEW) ? 1 : 0;
    struct fencing_world next = *w;
    struct configuration c;

    if (m->version == 0)
        return;
    c = lists_at(m->version);
    if (count(m->told & c.from) + fewer < enough_of(c.from) ||
        count(m->told & c.to) + fewer < enough_of(c.to))
        return;
    next.masters[master].memory = 1;
    next.masters[master].told = 0;
    explorer_take(&next, 'I', master, m->counter, 0, NULL);
}

/* The clock of a master is stepped forward: its key ends early. */
static void step_clock(const struct fencing_world *w, unsigned master)
{
    struct fencing_world next = *w;

    if (!bounds.clock_steps || w->masters[master].owner == 0)
        return;
    next.masters[master].owner = next.masters[master].left = 0;
    explorer_take(&next, 'c', master, 0, 0, NULL);
}

static void pass_time(const struct fencing_world *w)
{
    struct fencing_world next = *w;

    for (unsigned i = 0; i < bounds.masters; i++) {
        struct fencing_master *m = &next.masters[i];
        if (m->left > 0 && --m->left == 0)
            m->owner = 0;
        if (!m->memory && m->watch > 0)
            m->watch--;
    }
    for (unsigned i = 0; i < bounds.clients; i++) {
        struct fencing_client *c = &next.clients[i];
        if (c->round == HOLDING ? --c->left == 0 : c->round != NO_ROUND && ++c->age >= bounds.ttl)
            end_round(&next, i);
    }
    if (next.admin.wait > 0)
        next.admin.wait--;
    if (memcmp(&next, w, sizeof next) != 0)
        explorer_take(&next, 'T', 0, 0, 0, NULL);
}

/* A client of which nothing else is known counts, and does not get the key. */
static void count_rival(const struct fencing_world *w, unsigned master)
{
    struct fencing_world next = *w;

    if (!bounds.rivals || !w->masters[master].memory || w->masters[master].counter >= bounds.rivals)
        return;
    next.masters[master].counter++;
    explorer_take(&next, 'h', master, next.masters[master].counter, 0, NULL);
}

static void master_change(const struct fencing_world *w, unsigned master)
{
    step_clock(w, master);
    count_rival(w, master);
    if (w->masters[master].memory) {
        for (unsigned v = 2; v <= w->history.newest; v++)
            write_newest(w, master, v);
        forget(w, master);
    } else if (w->masters[master].watch == 0) {
        for (unsigned other = 0; other < bounds.masters; other++)
            read_other(w, master, other);
        install(w, master);
    }
}

void fencing_steps(const void *world)
{
    const struct fencing_world *w = world;

    given_up = w->history.back;
    pass_time(w);
    for (unsigned c = 0; c < bounds.clients; c++)
        client_rounds(w, c);
    admin_change(w);
    for (unsigned m = 0; m < bounds.masters; m++)
        master_change(w, m);
}

void fencing_begin(void *world)
{
    struct fencing_world *w = world;

    w->history.newest = 1;
    for (unsigned m = 0; m < bounds.masters; m++)
        w->masters[m].memory = w->masters[m].version = 1;
    for (unsigned c = 0; c < bounds.clients; c++)
        w->clients[c].version = 1;
}
