/*
 * oracle.c - what must always be true of locks, in true time.
 *
 * A *belief* is a lease that its client calls held.  It lasts until its deadline, unless the
 * program ends it before.  Beliefs begin and grow only in turns of their process, and keys
 * vanish only when a server executes a command or loses data.  So the oracle checks then:
 *
 *  exclusion   When a belief begins or grows, no other client has one, unless both are readers.
 *  deadline    When a belief begins or grows, or a key of it changes: the keys of a majority
 *              last longer than the belief, by the servers' clocks.
 *  growth      A belief only grows, and never after it has ended.  Renewals do not make it
 *              longer than its limit.
 *  release     A command deletes only keys whose token it names, and no key of a belief that its
 *              client counts.
 *  token       No token belongs to two rounds.
 *  permits     A semaphore has no more holders than permits.
 *  reentry     An inner lock sends no command (calls.c).
 *
 * Nothing is promised to a client that adopts a stale token: its owner keeps releasing it.  Clients
 * that share a token hold the lock together (partners.c).
 *
 * fences.c checks fencing tokens, sets.c sets of masters, claims.c tokens of dead rounds and the
 * numbers that come with votes, judge.c checks operations.
 */
#include "net.h"
#include "oracle.h"
#include "store.h"
#include "world.h"

#include "redlock/client/client.h"

#include <stdio.h>
#include <string.h>

#define TOKENS_MAX 65536 /* Tokens of one run. */
#define TABLE_LEN (2 * TOKENS_MAX)

static struct token *tokens[TOKENS_MAX];
static int tokens_len;
static int table[TABLE_LEN];          /* The numbers of tokens, by hash. */
static uint32_t table_run[TABLE_LEN]; /* The run to which an entry belongs. */
static uint32_t run;
static unsigned strangers;

/* The keys before the command that is being executed. */
static struct key keys_before[SIM_RESOURCES_MAX];

void oracle_reset(void)
{
    run++;
    tokens_len = 0;
    strangers = 0;
    fences_begin();
}

/* ---- Tokens ---- */

static uint32_t hash(const char *text, size_t len)
{
    uint32_t h = 2166136261u; /* FNV-1a */

    for (size_t i = 0; i < len && i < 16; i++)
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h;
}

int oracle_token(const char *text, size_t len)
{
    uint32_t at = hash(text, len) % TABLE_LEN;
    struct token *token;

    if (len == 0 || len > REDLOCK_TOKEN_MAX)
        world_fail("wire", "a token of %zu bytes", len);
    for (; table_run[at] == run; at = (at + 1) % TABLE_LEN) {
        token = tokens[table[at]];
        if (strncmp(token->text, text, len) == 0 && token->text[len] == '\0')
            return table[at];
    }
    if (tokens_len == TOKENS_MAX)
        world_fail("simulator", "too many tokens");
    token = memory_take(sizeof *token);
    memcpy(token->text, text, len);
    tokens[tokens_len] = token;
    table[at] = tokens_len;
    table_run[at] = run;
    return tokens_len++;
}

struct token *oracle_token_of(int number)
{
    return tokens[number];
}

int oracle_foreign_token(void)
{
    char text[24];

    (void)snprintf(text, sizeof text, "stranger-%u", ++strangers);
    return oracle_token(text, strlen(text));
}

const char *oracle_old_token(unsigned set)
{
    if (tokens_len == 0)
        return NULL;
    for (unsigned tries = 0; tries < 8; tries++) {
        const struct token *token = tokens[dice_below((uint64_t)tokens_len)];

        if (token->is_over && token->set == set)
            return token->text;
    }
    return NULL;
}

void oracle_on_set(const struct ev_loop *process, const struct ask *ask, unsigned set, int number)
{
    struct token *token = tokens[number];

    if (!token->is_ours) {
        token->is_ours = true;
        token->process = process->number;
        token->client = process->client;
        token->serial = ask->serial;
        token->round = ask->number;
        token->set = set;
        return;
    }
    if (token->process != process->number || token->client != process->client ||
        token->serial != ask->serial || token->round != ask->number)
        world_fail("token",
                   "round %u of lease %u of client %u has the token %s of round %u of lease %u "
                   "of client %u",
                   ask->number, ask->serial, process->number, token->text, token->round,
                   token->serial, token->process);
}

/* ---- Beliefs ---- */

static uint64_t deadline_of(const struct lease_rec *rec)
{
    if (rec->state == REC_GONE)
        return 0;
    return atomic_load_explicit(&rec->lease->deadline, memory_order_relaxed);
}

/* What redlock_remaining_ms() returns at that instant. */
uint32_t oracle_remaining_ms(const struct lease_rec *rec, sim_time at)
{
    struct ev_loop *process = rec->process;
    const bool in_turn = process->in_turn, observed = process->observed;
    const sim_time ahead = process->ahead;
    uint32_t remaining_ms;

    process->in_turn = process->observed = true;
    process->ahead = at - world.now;
    remaining_ms = redlock_remaining_ms(rec->lease);
    process->in_turn = in_turn;
    process->observed = observed;
    process->ahead = ahead;
    return remaining_ms;
}

/* A permit that is held is one of the slots; a waiter's rec->set has all slots. */
static unsigned held_set(const struct lease_rec *rec)
{
    return world.plan.permits ? 1u << (info_permit(rec->lease) - 1) : rec->set;
}

/* Clients with one token hold the lock together.  The first of them counts. */
static bool is_first(const struct lease_rec *rec, sim_time now)
{
    for (unsigned i = 0; i <= rec->process->number; i++)
        for (unsigned place = 0; place < world.plan.leases; place++) {
            const struct lease_rec *other = world.processes[i].recs[place];

            if (other != NULL && other->token == rec->token && oracle_remaining_ms(other, now) > 0)
                return other == rec;
        }
    return true;
}

static void check_permits(sim_time now)
{
    unsigned holders = 0;

    for (unsigned i = 0; i < world.plan.processes; i++) {
        for (unsigned place = 0; place < world.plan.leases; place++) {
            const struct lease_rec *rec = world.processes[i].recs[place];

            holders += rec != NULL && rec->state != REC_GONE && !partners_are_done(rec) &&
                       oracle_remaining_ms(rec, now) > 0 && is_first(rec, now);
        }
    }
    if (holders > world.plan.resources)
        world_fail("permits", "%u hold a semaphore of %u permits", holders, world.plan.resources);
}

static void check_exclusion(const struct lease_rec *rec)
{
    sim_time now = process_now(rec->process);

    tally.checks++;
    for (unsigned i = 0; i < world.plan.processes; i++) {
        for (unsigned place = 0; place < world.plan.leases; place++) {
            const struct lease_rec *other = world.processes[i].recs[place];

            if (other == NULL || other == rec || !(held_set(other) & rec->set) ||
                other->state == REC_GONE || partners_are_done(other))
                continue;
            if (oracle_remaining_ms(other, now) == 0 || oracle_remaining_ms(rec, now) == 0)
                continue;
            if (other->token == rec->token)
                world_outcome(OUTCOME_PARTNERS);
            else if (rec->is_shared && other->is_shared)
                world_outcome(OUTCOME_SHARED);
            else
                world_fail("exclusion", "clients %u and %u hold resources at once (sets %x and %x)",
                           rec->process->number, other->process->number, rec->set, other->set);
        }
    }
}

/* True if this master stores the token of rec under this resource until that instant. */
static bool stores_one(struct server *server, const struct lease_rec *rec, unsigned resource,
                       sim_time until)
{
    struct key *key = store_key(server, resource);
    const struct reader *reader;

    if (key == NULL || (!rec->is_shared && key->wrong_type) || store_key_end(server, key) < until)
        return false;
    if (revokes_was(key, rec->token))
        return true;
    if (!rec->is_shared)
        return key->token == rec->token;
    reader = store_reader(server, key, rec->token);
    return reader != NULL && store_reader_end(server, reader) >= until;
}

/* The same for all resources of rec. */
static bool stores(struct server *server, const struct lease_rec *rec, sim_time until)
{
    for (unsigned r = 0; r < world.plan.resources; r++)
        if ((rec->set & 1u << r) != 0 && !stores_one(server, rec, r, until))
            return false;
    return true;
}

/* Enough masters, but for these, store all keys until then, or may have lost them: their data are
 * lost, or their clock was stepped. */
static bool is_backed(const struct lease_rec *rec, const struct lists *lists, sim_time until,
                      unsigned but)
{
    unsigned members = (lists->from | lists->to) & ~but;
    unsigned servers = (world.plan.may_forget | world.plan.may_step) & members;

    for (unsigned m = 0; m < world.plan.servers; m++)
        if ((members & ~servers) >> m & 1 && stores(&world.servers[m], rec, until))
            servers |= 1u << m;
    return moves_are_quorum(lists, servers);
}

/* The masters that an operator has revoked the lock on before this time of the client's clock. */
static unsigned revoked_before(const struct lease_rec *rec, uint64_t reading)
{
    unsigned servers = 0;

    for (unsigned m = 0; m < world.plan.servers; m++)
        for (unsigned r = 0; r < world.plan.resources; r++) {
            const struct key *key = store_key(&world.servers[m], r);

            if ((rec->set & 1u << r) && key != NULL && revokes_was(key, rec->token) &&
                process_reading(rec->process, key->revoked_at) < reading)
                servers |= 1u << m;
        }
    return servers;
}

/* When the extension was sent that gave this deadline.  q.sent may be of the next one already. */
static uint64_t sent_for(const struct quorum *q, uint64_t deadline)
{
    return deadline - drift_deadline(0, q->config.lease, &q->config.drift);
}

/* A key was revoked.  Once a majority stores such texts, the lease is revoked for good, also when
 * the texts have ended.  Another set, of which the operator does not know, may store it still. */
void oracle_on_revoked(void)
{
    for (unsigned i = 0; i < world.plan.processes && world.plan.operators == 0; i++) {
        const struct lists lists = process_lists(&world.processes[i]);

        for (unsigned place = 0; place < world.plan.leases; place++) {
            struct lease_rec *rec = world.processes[i].recs[place];

            if (rec == NULL || rec->token < 0 || rec->deadline == 0 ||
                !moves_are_quorum(&lists, revoked_before(rec, UINT64_MAX)))
                continue;
            rec->revoked = process_reading(rec->process, world.now);
            rec->revoked_token = rec->token;
        }
    }
}

/* No extension that was sent after a majority was revoked makes a lease last longer. */
static void check_revoked(const struct lease_rec *rec, uint64_t deadline)
{
    const struct lists lists = process_lists(rec->process);

    uint64_t sent = sent_for(&rec->lease->q, deadline);
    bool was_revoked = rec->revoked != 0 && rec->revoked < sent && rec->revoked_token == rec->token;

    if (was_revoked || moves_are_quorum(&lists, revoked_before(rec, sent)))
        world_fail("revoked", "client %u extends a lease that was revoked on a majority",
                   rec->process->number);
}

bool oracle_has_keys(const struct lease_rec *rec)
{
    const struct lists lists = process_lists(rec->process);

    return rec->token >= 0 && revoked_before(rec, UINT64_MAX) == 0 &&
           is_backed(rec, &lists, world.now + 1, rec->lease->q.adopted ? rec->refused : 0);
}

static void check_deadline(const struct lease_rec *rec)
{
    sim_time until = clock_when(&rec->process->clock, rec->deadline);

    tally.checks++;
    if (until <= world.now || is_backed(rec, &rec->lists, until, 0))
        return;
    world_fail("deadline",
               "client %u holds resource %u for %.3f ms more, and too few masters will "
               "store its token for so long",
               rec->process->number, rec->resource, (double)(until - world.now) / 1e6);
}

/* Check a new deadline of a belief. */
static void check_growth(const struct lease_rec *rec, uint64_t deadline)
{
    uint64_t before = rec->deadline != 0 ? rec->deadline : rec->over;

    if (before != 0 && process_reading(rec->process, world.now) >= before)
        world_fail("growth", "client %u holds a lease again that was over", rec->process->number);
    if (deadline < before)
        world_fail("growth", "client %u holds a lease for %.3f ms less than before",
                   rec->process->number, (double)(before - deadline) / 1e6);
    if (rec->hold_max != 0 && !rec->is_extended &&
        deadline > rec->granted + rec->hold_max + rec->ttl_ms * DRIFT_MS)
        world_fail("growth",
                   "client %u renews a lease that it has held for %.3f ms, its limit "
                   "is %.3f ms",
                   rec->process->number, (double)(process_clock(rec->process) - rec->granted) / 1e6,
                   (double)rec->hold_max / 1e6);
}

static void on_belief(struct lease_rec *rec, uint64_t deadline)
{
    const char *token = info_token(rec->lease);

    if (world.plan.permits)
        rec->set = 1u << (rec->resource = info_permit(rec->lease) - 1);
    if (rec->granted == 0)
        rec->granted = process_clock(rec->process);
    check_growth(rec, deadline);
    if (rec->deadline == 0) {
        tally.grants++;
        storms_on_win(rec);
        line_on_held(rec);
        moves_on_held(rec); /* It may be released within this turn. */
        if (!rec->is_stale)
            fences_check(rec);
        if (rec->is_shared && rec->state == REC_LOCKING)
            waits_on_reader(rec->resource, rec->round_sent);
        world_note("believes: client, resource, lease", rec->process->number, rec->resource,
                   rec->number);
    } else {
        world_outcome(OUTCOME_RENEWED);
        world_note("believes longer: client, resource, lease", rec->process->number, rec->resource,
                   rec->number);
    }
    rec->deadline = deadline;
    rec->published = process_now(rec->process);
    rec->token = oracle_token(token, strlen(token));
    check_revoked(rec, deadline);
    rec->lists = process_lists(rec->process);
    sets_on_belief(rec->process);
    partners_on_held(rec);
    if (!world.plan.exclusive || partners_are_done(rec))
        return;
    if (world.plan.permits)
        check_permits(process_now(rec->process));
    check_exclusion(rec);
    check_deadline(rec);
}

void oracle_look(struct ev_loop *process)
{
    for (unsigned place = 0; place < world.plan.leases; place++) {
        struct lease_rec *rec = process->recs[place];
        uint64_t deadline = rec != NULL ? deadline_of(rec) : 0;

        if (rec == NULL || deadline == rec->deadline)
            continue;
        if (deadline != 0) {
            on_belief(rec, deadline);
            continue;
        }
        world_note("believes no more: client, resource, lease", process->number, rec->resource,
                   rec->number);
        rec->over = rec->deadline;
        rec->deadline = 0;
    }
}

/* ---- Keys ---- */

void oracle_before(struct server *server, const struct command *command)
{
    unsigned set = args_set(command);

    for (unsigned r = 0; r < SIM_RESOURCES_MAX; r++) {
        const struct key *key = set & 1u << r ? store_key(server, r) : NULL;

        keys_before[r] = key != NULL ? *key : (struct key){.exists = false};
    }
}

/* A master that refused to raise the counters of several names, one of which was revoked, is sent a
 * release: its vote does not count. */
static bool has_given_up(const struct lease_rec *rec, const struct server *server)
{
    unsigned m = process_master(rec->process, server->number);
    const struct quorum *q = &rec->lease->q;

    return options_are_many(rec) && m < QUORUM_MASTERS_MAX && !(q->live & mask_of(m));
}

/* A key has changed.  If it belongs to a belief, check that. */
static void on_loss(const struct server *server, unsigned resource, int token, bool is_gone)
{
    for (unsigned i = 0; i < world.plan.processes; i++) {
        for (unsigned place = 0; place < world.plan.leases; place++) {
            const struct lease_rec *rec = world.processes[i].recs[place];

            if (rec == NULL || rec->deadline == 0 || partners_are_done(rec) ||
                !(rec->set & 1u << resource) || rec->token != token ||
                oracle_remaining_ms(rec, world.now) == 0)
                continue;
            if (is_gone && !has_given_up(rec, server))
                world_fail("release",
                           "the key on master %u of resource %u is deleted while "
                           "client %u holds it",
                           server->number, resource, i);
            if (world.plan.exclusive)
                check_deadline(rec);
        }
    }
}

static bool has_token(struct server *server, int named)
{
    for (unsigned r = 0; r < world.plan.resources; r++) {
        struct key *key = store_key(server, r);

        if (key != NULL && (key->token == named || store_reader(server, key, named) != NULL))
            return true;
    }
    return false;
}

/* Check what a command did to a token that was stored before it. */
static void check_token(struct server *server, unsigned resource, int token, uint64_t before_ms,
                        int named, bool is_set)
{
    struct key *key = store_key(server, resource);
    const struct reader *reader = key != NULL ? store_reader(server, key, token) : NULL;
    bool is_there = key != NULL && (key->token == token || reader != NULL);
    uint64_t end_ms = reader != NULL ? reader->end_ms : is_there ? key->end_ms : 0;

    if (!is_there && (is_set || named != token))
        world_fail("release",
                   "master %u loses a key of resource %u to a command that names "
                   "another token",
                   server->number, resource);
    if (!is_there) {
        if (!has_token(server, named))
            tokens[named]->deleted |= (quorum_mask)(1u << server->number);
        on_loss(server, resource, token, true);
    } else if (end_ms < before_ms || (reader != NULL && key->end_ms + 1 < reader->end_ms)) {
        on_loss(server, resource, token, false);
    }
}

static void check_key(struct conn *conn, unsigned resource, int named, bool is_set)
{
    struct server *server = conn->server;
    struct key *key = store_key(server, resource), *before = &keys_before[resource];
    bool was_reader = before->exists && store_reader(server, before, named) != NULL;

    if (is_set && key != NULL && key->token == named && !before->exists)
        claims_on_stored(conn, named);
    if (is_set && key != NULL && store_reader(server, key, named) != NULL && !was_reader)
        claims_on_stored(conn, named);
    if (!before->exists)
        return;
    if (before->readers == 0)
        check_token(server, resource, before->token, before->end_ms, named, is_set);
    for (unsigned i = 0; i < before->readers; i++)
        if (store_reader(server, before, before->reader[i].token) != NULL)
            check_token(server, resource, before->reader[i].token, before->reader[i].end_ms, named,
                        is_set);
}

void oracle_after(struct conn *conn, const struct command *command, const struct answer *answer)
{
    const struct parts at = args_parts(command);
    bool is_set = at.command == QUORUM_CMD_SET || at.command == QUORUM_CMD_FENCE;
    int named = args_token(command, at.token);
    unsigned set = args_set(command);

    world_note(is_set ? "set: master, token, answer" : "script: master, token, answer",
               conn->server->number, (uint64_t)named,
               (uint64_t)answer->type * 10 + (uint64_t)answer->integer);
    tally.checks++;
    for (unsigned r = 0; r < SIM_RESOURCES_MAX; r++)
        if (set & 1u << r)
            check_key(conn, r, named, is_set);
}
