/*
 * claims.c - tokens that a master may store until it gets a release, and numbers that it counted
 * to.  It is longer than others, because all of these are judged by one record of what a client
 * asked each master.
 *
 *  cleanup   At the end of every turn, each master that may store the token of a dead round
 *            has been sent a release on the connection that is up now.  A round is dead when
 *            its lease neither holds it nor asks for it any more.
 *  forgotten A client frees a lease only when all keys that it asked for are released or expired.
 *  leak      When all leases are given up and all links are up, no master stores a token of
 *            a client that could have been deleted, and no client has leases in memory.
 *  regain    The step that wins an extension gives the token to every member that can take a
 *            command and lacks the token (rule 14 of quorum.c).  These members are excepted:
 *            - those that this extension asked;
 *            - those that refused an earlier command while it was out;
 *            - those that owe the lease an answer;
 *            - those that showed an operator's text or refused a raise;
 *            - those whose link changed while they owed the answer to a SET, GIVE or release of
 *              this token, or to a command after it.
 *            An extension that does not move the deadline is not judged.
 *  counted   No yes carries a number that its master did not count to.  A server notes what it
 *            counts to, floor and counter, when it executes the count.  A connection answers in
 *            order, so each note goes with its answer to the round that asked.  The client adds
 *            the floor that it knows, and the sum must be the same.  This is stronger than the
 *            property fencing (fences.c): a wrong number is rarely given to two holders.
 *
 * Masters are numbered as servers, whatever their numbers in the clients are.
 *
 * A token is excused if its client was closed or its lease detached, if the command that
 * stored it came over a closed connection, or if the release failed with an error.  Such
 * keys expire by themselves, which is checked, too.
 */
#include "net.h"
#include "oracle.h"
#include "store.h"
#include "world.h"

#include "redlock/client/client.h"

#include <string.h>

/* One round of one lease. */
struct claim {
    struct claim *next; /* The next claim of the same client. */
    uint32_t slot, serial, round;
    int token;
    quorum_mask may_store;
    quorum_mask stands; /* Masters where the token may wait with its waiter. */
    quorum_mask given;  /* Masters that were given the token, and did not confirm it yet. */
    quorum_mask errors; /* Masters that answered the release with an error. */
    const struct conn *told[SIM_SERVERS_MAX];
    uint32_t release_ask[SIM_SERVERS_MAX], extend_ask[SIM_SERVERS_MAX], raise_ask[SIM_SERVERS_MAX];
    uint32_t give_ask[SIM_SERVERS_MAX];
    quorum_mask deciding; /* Masters that owe the answer to a SET, GIVE or release of this token, or
                           * to a later command. */
    quorum_mask barred;   /* Masters that need not get the token again. */
    uint32_t extension;   /* The latest extension. */
    quorum_mask lacking;  /* Masters whose no to an earlier command came after it was sent. */
    uint64_t runs_out;    /* When all keys have expired, on the client's clock. */
    uint64_t counted[SIM_SERVERS_MAX]; /* The number that each had reached by its latest count. */
};

/* A count that a server has executed. */
struct count {
    struct count *next; /* The next one of its connection. */
    uint64_t number;
};

/* The latest commands of one lease, whatever rounds they belong to. */
struct asks {
    struct asks *next;
    uint32_t slot, serial;
    uint32_t latest[SIM_SERVERS_MAX];
    quorum_mask owing; /* Masters whose answers to these the client has not counted. */
};

static const char *const names[] = {"SET", "EXTEND", "RELEASE", "FENCE", "RAISE", "GIVE"};

/* ---- Commands ---- */

/* Find a claim by its round (token is -1), or by its token (round is 0). */
static struct claim *find(const struct ev_loop *process, uint32_t serial, uint32_t round, int token)
{
    struct claim *claim = process->claims;

    while (claim != NULL &&
           (claim->serial != serial || (claim->round != round && claim->token != token)))
        claim = claim->next;
    return claim;
}

/* A command that is sent again in full counts from its first time, as it does for the client. */
static void lasts(const struct ev_loop *process, struct claim *claim, const struct ask *ask,
                  uint64_t ttl_ms)
{
    const struct plan *plan = &world.plan;
    const struct drift_bound bound = {plan->drift_ppm, plan->drift_fixed_ms * DRIFT_MS};
    uint64_t span = ttl_ms * DRIFT_MS + drift_allowance(ttl_ms * DRIFT_MS, &bound);

    if (ask->flags & ASK_IN_FULL)
        return;
    /* From the beginning of the turn, because the machine may have read the clock then. */
    claim->runs_out = sim_max(claim->runs_out, clock_at(&process->clock, world.now) + span);
}

/* The token is sent to the master, by SET or GIVE. */
static void note_token(struct claim *claim, unsigned master)
{
    quorum_mask bit = (quorum_mask)(1u << master);

    claim->may_store |= bit;
    claim->deciding |= bit;
    claim->told[master] = NULL;
}

static void on_set(struct ev_loop *process, unsigned master, const struct ask *ask,
                   const struct command *command)
{
    const struct parts at = args_parts(command);
    int token = args_token(command, at.token);
    struct claim *claim = find(process, ask->serial, ask->number, -1);

    oracle_on_set(process, ask, args_set(command), token);
    if (claim == NULL) {
        claim = memory_take(sizeof *claim);
        claim->slot = ask->slot;
        claim->serial = ask->serial;
        claim->round = ask->number;
        claim->token = token;
        claim->next = process->claims;
        process->claims = claim;
    }
    if (claim->token != token)
        world_fail("token", "one round has two tokens");
    if (!(ask->flags & ASK_IN_FULL))
        judge_on_set(process, master, ask->serial, ask->number);
    judge_on_waiter(process, ask->serial, command);
    note_token(claim, master);
    if (args_stands(command)) /* The token may be granted until the waiter is dead. */
        claim->stands |= (quorum_mask)(1u << master);
    lasts(process, claim, ask,
          args_number(command, at.ttl) + (claim->stands != 0 ? args_number(command, at.ttl) : 0));
}

static struct asks *find_asks(const struct ev_loop *process, uint32_t serial)
{
    struct asks *asks = process->asks;

    while (asks != NULL && asks->serial != serial)
        asks = asks->next;
    return asks;
}

static void note_ask(struct ev_loop *process, unsigned master, const struct ask *ask)
{
    struct asks *asks = find_asks(process, ask->serial);

    if (asks == NULL) {
        asks = memory_take(sizeof *asks);
        asks->slot = ask->slot;
        asks->serial = ask->serial;
        asks->next = process->asks;
        process->asks = asks;
    }
    asks->latest[master] = ask->number;
    asks->owing |= (quorum_mask)(1u << master);
}

void oracle_on_send(struct ev_loop *process, unsigned master, const struct conn *conn,
                    const struct ask *ask, const char *bytes, size_t len)
{
    struct command command;
    size_t command_len = resp_command(bytes, len, &command);
    struct claim *claim;
    struct parts at;

    if (command_len != len)
        world_fail("wire", "%zu bytes are sent for a command of %zu", len, command_len);
    at = args_parts(&command);
    if (ask->what == WHAT_WAIT)
        storms_on_query(process, master, &command);
    if (at.is_other || ask->what == WHAT_LEAVE) /* The command belongs to no round. */
        return;
    world_say("    client %u asks master %u: %s %u, lease %u, token %d", process->number, master,
              names[ask->what], ask->number, ask->serial, args_token(&command, at.token));
    note_ask(process, master, ask);
    if (ask->what == QUORUM_CMD_SET || ask->what == QUORUM_CMD_FENCE) {
        on_set(process, master, ask, &command);
        return;
    }
    if (ask->what == QUORUM_CMD_RELEASE)
        partners_on_release(process, ask->serial, args_token(&command, at.token));
    claim = find(process, ask->serial, 0, args_token(&command, at.token));
    if (claim == NULL && ask->what == QUORUM_CMD_GIVE)
        oracle_token_of(args_token(&command, at.token))->is_excused = true;
    if (claim == NULL)
        return; /* The token is adopted, or its claim is over. */
    if (ask->what == QUORUM_CMD_RELEASE) {
        claim->told[master] = conn;
        claim->deciding |= (quorum_mask)(1u << master);
        claim->release_ask[master] = ask->number;
    } else if (ask->what == QUORUM_CMD_GIVE) { /* A master that lacks the token gets it. */
        note_token(claim, master);
        claim->given |= (quorum_mask)(1u << master);
        claim->give_ask[master] = ask->number;
        lasts(process, claim, ask, args_number(&command, at.ttl));
    } else if (ask->what == QUORUM_CMD_RAISE) {
        claim->raise_ask[master] = ask->number;
        judge_on_raise(process, ask->serial, ask->number);
    } else {
        if (claim->extension != ask->number)
            claim->lacking = 0;
        claim->extension = ask->number;
        claim->extend_ask[master] = ask->number;
        lasts(process, claim, ask, args_number(&command, at.ttl));
    }
}

static bool is_many(unsigned set)
{
    return (set & (set - 1)) != 0;
}

/* ---- Numbers ---- */

/* The floor is that of this instant, whatever the client knows. */
void claims_on_executed(struct conn *conn, const struct command *command,
                        const struct answer *answer)
{
    struct count *count;

    if (answer->type != REPLY_INTEGER ||
        (!args_is(command, 0, "HINCRBY") && args_script(command) != SCRIPT_COUNT_MANY))
        return;
    count = memory_take(sizeof *count);
    count->number = conn->server->marker.floor + (uint64_t)answer->integer;
    if (conn->counts == NULL)
        conn->counts = count;
    else
        conn->last_count->next = count;
    conn->last_count = count;
}

/* A connection answers in order, so this is the answer to its first count. */
static void on_count(const struct ev_loop *process, unsigned master, struct conn *conn,
                     const struct ask *ask)
{
    struct claim *claim = find(process, ask->serial, ask->number, -1);

    if (conn->counts == NULL)
        world_fail("simulator", "an answer to a count that was not executed");
    if (claim != NULL)
        claim->counted[master] = conn->counts->number;
    conn->counts = conn->counts->next;
}

/* The machine gets a vote.  RAISE needs no check: its script compares the text of the epoch, and
 * answers the number itself. */
static void check_number(const struct ev_loop *process, const struct redlock_lease *lease,
                         const struct quorum_event *event)
{
    unsigned server = process->servers[event->master];
    const struct claim *claim;

    if (event->type != QUORUM_EV_REPLY || event->command != QUORUM_CMD_FENCE ||
        event->vote != QUORUM_VOTE_YES)
        return;
    claim = find(process, (uint32_t)lease->serial, event->ask, -1);
    if (claim == NULL)
        return; /* A late vote, for a round that is dead. */
    tally.checks++;
    if (event->counter != claim->counted[server])
        world_fail("counted",
                   "client %u gets the number %llu with a yes of master %u, which counted to %llu",
                   process->number, (unsigned long long)event->counter, server,
                   (unsigned long long)claim->counted[server]);
}

/* ---- Answers ---- */

/* The master does not store the token under all of its names. */
static bool is_refusal(const struct answer *answer)
{
    return (answer->type == REPLY_INTEGER && answer->integer == 0) ||
           strstr(answer->text, "WRONGTYPE") != NULL || answer->type == REPLY_TEXT;
}

static void on_refusal(const struct ev_loop *process, unsigned master, uint32_t serial)
{
    for (unsigned place = 0; place < world.plan.leases; place++) {
        struct lease_rec *rec = process->recs[place];

        if (rec != NULL && (uint32_t)rec->lease->serial == serial)
            rec->refused |= (quorum_mask)(1u << master);
    }
}

/* A master that refuses to extend several resources may store the token under some of them.  If it
 * never confirmed that it was given the token, it stores none: it takes all or nothing. */
static void on_script_answer(struct claim *claim, unsigned master, const struct ask *ask,
                             const struct answer *answer)
{
    quorum_mask bit = (quorum_mask)(1u << master);
    bool no = is_refusal(answer);
    bool is_yes =
        answer->type == REPLY_STATUS || /* The number of a GIVE is that of a taken name. */
        (ask->what == QUORUM_CMD_EXTEND && answer->integer > 0);

    if (ask->what == QUORUM_CMD_EXTEND && claim->extend_ask[master] == ask->number)
        claim->barred |= answer->type == REPLY_TEXT ? bit : 0;
    if (ask->what == QUORUM_CMD_RAISE && claim->raise_ask[master] == ask->number)
        claim->barred |= no ? bit : 0;
    if (is_yes && (ask->what == QUORUM_CMD_GIVE || ask->what == QUORUM_CMD_EXTEND))
        claim->given &= (quorum_mask)~bit;
    if (ask->what == QUORUM_CMD_RELEASE && claim->release_ask[master] == ask->number) {
        claim->may_store &= (quorum_mask)~bit;
        claim->errors |= answer->type == REPLY_ERROR ? bit : 0;
    } else if (ask->what == QUORUM_CMD_GIVE && claim->give_ask[master] == ask->number) {
        if (answer->type == REPLY_ERROR && !no) /* Else it may have the token from a partner. */
            claim->may_store &= (quorum_mask)~bit;
    } else if (ask->what == QUORUM_CMD_EXTEND && claim->extend_ask[master] == ask->number && no) {
        if (!is_many(oracle_token_of(claim->token)->set) || (claim->given & bit) != 0)
            claim->may_store &= (quorum_mask)~bit;
    } else if (ask->what == QUORUM_CMD_RAISE && claim->raise_ask[master] == ask->number && no) {
        if (!is_many(oracle_token_of(claim->token)->set))
            claim->may_store &= (quorum_mask)~bit;
    }
}

void oracle_on_answer(struct ev_loop *process, unsigned master, struct conn *conn,
                      const struct ask *ask, const struct answer *answer)
{
    struct claim *claim;
    bool yes = answer->type == REPLY_STATUS;
    bool taken = answer->type == REPLY_INTEGER; /* A taken name, another permit, or a ticket. */
    bool hints = world.plan.permits && answer->integer > 0;

    if (ask->what == WHAT_TIME || ask->what == WHAT_LEAVE)
        return;
    if (yes)
        waits_on_heard(process, 0); /* A grant to one reader lets the next reader try at once. */
    if (ask->what == WHAT_WAIT) {
        world_say("    client %u waits, and gets from master %u: %lld %s", process->number, master,
                  answer->integer, answer->text);
        waits_on_heard(process, answer->integer > 0 ? (sim_time)answer->integer * DRIFT_MS : 0);
        return;
    }
    if (ask->what == WHAT_LOOK || ask->what == WHAT_FOUND)
        sets_on_answer(process, answer);
    if (ask->what == WHAT_COUNT && answer->type == REPLY_INTEGER)
        on_count(process, master, conn, ask);
    if (ask->what == WHAT_LOOK || ask->what == WHAT_PROOF || ask->what == WHAT_COUNT ||
        ask->what == WHAT_FOUND || ask->what == WHAT_WITNESS) {
        world_say("    client %u queries master %u: %s %lld", process->number, master, answer->text,
                  answer->integer);
        return;
    }
    world_say("    client %u gets from master %u: %s %u, lease %u: %s %lld", process->number,
              master, names[ask->what], ask->number, ask->serial, answer->text, answer->integer);
    if (ask->what == QUORUM_CMD_EXTEND && is_refusal(answer))
        on_refusal(process, master, ask->serial);
    if (ask->what != QUORUM_CMD_SET && ask->what != QUORUM_CMD_FENCE) {
        for (claim = process->claims; claim != NULL; claim = claim->next)
            if (claim->serial == ask->serial)
                on_script_answer(claim, master, ask, answer);
        return;
    }
    claim = find(process, ask->serial, ask->number, -1);
    if (taken && world.plan.permits)
        world_outcome(hints ? OUTCOME_PERMIT_ELSEWHERE : OUTCOME_PERMITS_GONE);
    else if (taken && claim != NULL && is_many(oracle_token_of(claim->token)->set))
        world_outcome(OUTCOME_MANY_TAKEN);
    if (answer->type == REPLY_NIL || taken)
        judge_on_no(process, ask->serial, ask->number, hints);
    if (claim != NULL && !yes && !(claim->stands >> master & 1))
        claim->may_store &= (quorum_mask) ~(1u << master);
}

/* ---- Turns ---- */

static const struct redlock_lease *lease_of(const struct ev_loop *process, uint32_t slot,
                                            uint32_t serial)
{
    const struct redlock *rl = process->rl;
    const struct redlock_lease *lease = slot < rl->leases.slots_len ? rl->leases.slots[slot] : NULL;

    return lease != NULL && (uint32_t)lease->serial == serial ? lease : NULL;
}

static void check_told(const struct ev_loop *process, const struct claim *claim)
{
    for (unsigned m = 0; m < process->rl->masters.peers.len; m++) {
        unsigned server = process->servers[m];

        /* The link is down or full, or the master is warming: its keys expire before it votes. */
        if (!(process->rl->masters.peers.up >> m & 1) || !(claim->may_store >> server & 1))
            continue;
        if (claim->told[server] != conn_of(process, process->rl->masters.peers.links[m]))
            world_fail("cleanup",
                       "master %u may store the token of the dead round %u of lease %u of client "
                       "%u, is linked, and was not sent a release",
                       server, claim->round, claim->serial, process->number);
    }
}

static bool is_lack(const struct quorum_event *event)
{
    return event->vote == QUORUM_VOTE_NO && event->command != QUORUM_CMD_RELEASE &&
           event->command != QUORUM_CMD_GIVE;
}

/* The client counts an answer now, or what it was owed over a link ends. */
void claims_before_step(const struct ev_loop *process, const struct redlock_lease *lease,
                        const struct quorum_event *event)
{
    struct asks *asks = find_asks(process, (uint32_t)lease->serial);
    unsigned server = process->servers[event->master];
    quorum_mask bit = (quorum_mask)(1u << server);
    bool is_link = event->type == QUORUM_EV_LINK;

    check_number(process, lease, event);
    if (asks == NULL ||
        !(is_link || (event->type == QUORUM_EV_REPLY && event->ask == asks->latest[server])))
        return;
    asks->owing &= (quorum_mask)~bit;
    for (struct claim *claim = process->claims; claim != NULL; claim = claim->next) {
        if (claim->serial != asks->serial)
            continue;
        claim->barred |= is_link ? claim->deciding & bit : 0;
        claim->lacking |= !is_link && is_lack(event) ? bit : 0;
        claim->deciding &= (quorum_mask)~bit;
    }
}

/* Masters that may store a token of this lease. */
static quorum_mask find_stores(const struct ev_loop *process, uint32_t serial)
{
    quorum_mask stores = 0;

    for (const struct claim *claim = process->claims; claim != NULL; claim = claim->next)
        if (claim->serial == serial)
            stores |= claim->may_store;
    return stores;
}

void claims_on_longer(struct ev_loop *process, const struct redlock_lease *lease,
                      const struct quorum_event *event, const struct quorum_actions *actions)
{
    const struct claim *claim = find(process, (uint32_t)lease->serial, lease->q.round, -1);
    quorum_mask given = 0, lacking = 0, excused;

    if (claim == NULL || lease->q.adopted)
        return;
    tally.checks++;
    excused = claim->barred | claim->lacking | find_stores(process, claim->serial) |
              find_asks(process, claim->serial)->owing;
    for (unsigned i = 0; i < actions->send_len; i++)
        given |= actions->send[i].command == QUORUM_CMD_GIVE ? actions->send[i].to : 0;
    for (unsigned m = 0; m < process->rl->masters.peers.len; m++) {
        unsigned server = process->servers[m];
        bool is_up = (event->up & members_all(&event->members) & mask_of(m)) != 0;
        bool was_asked = claim->extend_ask[server] == claim->extension ||
                         claim->give_ask[server] == claim->extension; /* It joined. */

        if (is_up && !was_asked && !(given >> m & 1) && !(excused >> server & 1))
            lacking |= (quorum_mask)(1u << server);
    }
    if (lacking != 0)
        world_fail("regain",
                   "client %u extended lease %u, and masters (mask %x) do not get it back",
                   process->number, claim->serial, lacking);
}

/* The client has no links to masters that were removed from the set a while ago.  Keys that they
 * may store expire. */
static void forget_removed(const struct ev_loop *process, struct claim *claim)
{
    quorum_mask known = 0;

    for (unsigned m = 0; m < process->rl->masters.peers.len; m++)
        if (process->rl->masters.peers.links[m] != NULL)
            known |= (quorum_mask)(1u << process->servers[m]);
    if (claim->may_store & ~known)
        oracle_token_of(claim->token)->is_excused = true;
    claim->may_store &= known;
}

static void forget_asks(struct ev_loop *process)
{
    struct asks **at = &process->asks;

    while (*at != NULL)
        if (lease_of(process, (*at)->slot, (*at)->serial) == NULL)
            *at = (*at)->next;
        else
            at = &(*at)->next;
}

void claims_on_turn(struct ev_loop *process)
{
    uint64_t now = process_clock(process);
    struct claim **at = &process->claims, *claim;

    while ((claim = *at) != NULL) {
        const struct redlock_lease *lease = lease_of(process, claim->slot, claim->serial);
        bool is_live = lease != NULL && lease->q.round == claim->round;

        if (world.plan.operators > 0)
            forget_removed(process, claim);
        if (!is_live && (claim->may_store == 0 || now >= claim->runs_out)) {
            oracle_token_of(claim->token)->is_excused |=
                claim->errors != 0 || claim->may_store != 0;
            *at = claim->next;
            continue;
        }
        at = &claim->next;
        if (is_live)
            continue;
        oracle_token_of(claim->token)->is_over = true;
        if (lease == NULL)
            world_fail("forgotten",
                       "client %u freed lease %u, and masters (mask %x) may store its token",
                       process->number, claim->serial, claim->may_store);
        check_told(process, claim);
    }
    forget_asks(process);
}

/* ---- The end ---- */

/* No client will release the tokens of this lease. */
void claims_on_detach(struct ev_loop *process, uint32_t serial)
{
    struct claim **at = &process->claims, *claim;

    while ((claim = *at) != NULL) {
        if (claim->serial != serial) {
            at = &claim->next;
            continue;
        }
        oracle_token_of(claim->token)->is_excused = true;
        *at = claim->next;
    }
}

void claims_on_close(struct ev_loop *process)
{
    for (struct claim *claim = process->claims; claim != NULL; claim = claim->next)
        oracle_token_of(claim->token)->is_excused = true;
    process->claims = NULL;
    process->asks = NULL;
}

void claims_on_stored(const struct conn *conn, int token)
{
    if (conn->client == NULL)
        oracle_token_of(token)->is_excused = true;
}

static void check_token(struct server *server, int number, sim_time end)
{
    const struct token *token = oracle_token_of(number);
    sim_time longest = world.now + world.plan.ttl_max_ms * DRIFT_MS + 2 * DRIFT_MS;

    if (world.plan.may_step & 1u << server->number)
        longest += 2 * PLAN_STEP_MAX; /* A clock that is set back keeps keys longer. */
    if (!token->is_ours)
        return;
    if (end > longest)
        world_fail("leak", "master %u stores a client's token for longer than any lease",
                   server->number);
    if (!token->is_excused)
        world_fail("leak",
                   "master %u stores the token of round %u of lease %u of client %u, "
                   "which should be deleted",
                   server->number, token->round, token->serial, token->process);
}

static void check_key(struct server *server, unsigned resource)
{
    const struct key *key = store_key(server, resource);

    if (key != NULL && key->readers == 0)
        check_token(server, key->token, store_key_end(server, key));
    for (unsigned i = 0; key != NULL && i < key->readers; i++)
        check_token(server, key->reader[i].token, store_key_end(server, key));
}

void oracle_on_quiet(void)
{
    for (unsigned i = 0; i < world.plan.processes; i++) {
        const struct redlock *rl = world.processes[i].rl;

        if (rl->env.stats.leases != 0)
            world_fail("leak", "client %u has %u leases in memory, and its program has none", i,
                       rl->env.stats.leases);
        if (rl->lines.channels.len != 0)
            world_fail("leak", "client %u listens for %u names, and has no waiter", i,
                       rl->lines.channels.len);
    }
    for (unsigned m = 0; m < world.plan.servers; m++)
        for (unsigned r = 0; r < world.plan.resources; r++)
            check_key(&world.servers[m], r);
    line_on_quiet();
}
