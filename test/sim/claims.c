/*
 * claims.c - tokens that a master may store until it gets a release.
 *
 *  cleanup   At the end of every turn, each master that may store the token of a dead round
 *            has been sent a release on the connection that is up now.  A round is dead when
 *            its lease neither holds it nor asks for it any more.
 *  forgotten A client frees a lease only when all keys that it asked for are released or expired.
 *  leak      When all leases are given up and all links are up, no master stores a token of
 *            a client that could have been deleted, and no client has leases in memory.
 *  regain    A lease that was extended has given its token to each master that is linked and votes,
 *            and that had said before this extension that it stores none.  Exceptions: it may have
 *            stored the token under some names, or an operator's text; or it did not answer an
 *            earlier SET or GIVE, with a proof, before the next command was sent to it.  Sets that
 *            change are left out.
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
    bool excused;
    quorum_mask may_store;
    quorum_mask stands; /* Masters where the token may wait with its waiter. */
    quorum_mask given;  /* Masters that were given the token, and did not confirm it yet. */
    quorum_mask errors; /* Masters that answered the release with an error. */
    const struct conn *told[SIM_SERVERS_MAX];
    uint32_t release_ask[SIM_SERVERS_MAX], extend_ask[SIM_SERVERS_MAX], raise_ask[SIM_SERVERS_MAX];
    uint32_t give_ask[SIM_SERVERS_MAX];
    quorum_mask answered; /* Masters that answered every SET and GIVE so far, with a proof. */
    quorum_mask owing;    /* Masters that did not answer the latest SET or GIVE. */
    quorum_mask unsure;   /* Those that had not when the next one was sent: it may still come. */
    quorum_mask unproven; /* Those whose proof has not come yet. */
    quorum_mask lacking;  /* Masters that said that they do not store the token, and were not given
                           * it since. */
    quorum_mask known;    /* Those of them that vote, when the latest extension was sent. */
    quorum_mask before;   /* The same for the one before it, which may be the one that is won. */
    uint32_t extension;   /* The latest extension. */
    uint64_t runs_out;    /* When all keys have expired, on the client's clock. */
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
    claim->unsure |= claim->owing & bit;
    claim->owing |= bit;
    claim->answered &= (quorum_mask)~bit;
    claim->unproven &= (quorum_mask)~bit;
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

/* The servers that the client may ask now. */
static quorum_mask voters(const struct ev_loop *process)
{
    quorum_mask servers = 0;

    for (unsigned m = 0; m < process->rl->masters.peers.len; m++)
        if (process->rl->masters.peers.up >> m & 1)
            servers |= (quorum_mask)(1u << process->servers[m]);
    return servers;
}

static void note_extension(const struct ev_loop *process, struct claim *claim, uint32_t number)
{
    if (number == claim->extension)
        return;
    claim->extension = number;
    claim->before = claim->known;
    claim->known = claim->lacking & voters(process);
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
        claim->release_ask[master] = ask->number;
    } else if (ask->what == QUORUM_CMD_GIVE) { /* A master that joined gets the token. */
        note_token(claim, master);
        claim->given |= (quorum_mask)(1u << master);
        claim->lacking &= (quorum_mask) ~(1u << master);
        claim->give_ask[master] = ask->number;
        lasts(process, claim, ask, args_number(&command, at.ttl));
    } else if (ask->what == QUORUM_CMD_RAISE) {
        claim->raise_ask[master] = ask->number;
    } else {
        note_extension(process, claim, ask->number);
        claim->extend_ask[master] = ask->number;
        lasts(process, claim, ask, args_number(&command, at.ttl));
    }
}

static bool is_many(unsigned set)
{
    return (set & (set - 1)) != 0;
}

/* The master stores nothing of the token, and nothing in its place. */
static bool is_lost(const struct claim *claim, const struct ask *ask, const struct answer *answer)
{
    return ask->what == QUORUM_CMD_EXTEND && answer->type == REPLY_INTEGER &&
           answer->integer == 0 && !is_many(oracle_token_of(claim->token)->set);
}

/* A master that refuses to extend several resources may store the token under some of them.  If it
 * never confirmed that it was given the token, it stores none: it takes all or nothing. */
static void on_script_answer(struct claim *claim, unsigned master, const struct ask *ask,
                             const struct answer *answer)
{
    quorum_mask bit = (quorum_mask)(1u << master);
    bool no = (answer->type == REPLY_INTEGER && answer->integer == 0) ||
              strstr(answer->text, "WRONGTYPE") != NULL || answer->type == REPLY_TEXT;
    bool is_yes = answer->type == REPLY_STATUS || answer->integer > 0;

    if (ask->what == QUORUM_CMD_GIVE)
        claim->owing &= (quorum_mask)~bit;
    if (ask->what == QUORUM_CMD_GIVE && claim->give_ask[master] == ask->number &&
        claim->extend_ask[master] < ask->number)
        claim->unproven |= bit;
    if (is_lost(claim, ask, answer) && claim->extend_ask[master] == ask->number)
        claim->lacking |= bit;
    if (is_yes && (ask->what == QUORUM_CMD_GIVE || ask->what == QUORUM_CMD_EXTEND))
        claim->given &= (quorum_mask)~bit;
    if (ask->what == QUORUM_CMD_RELEASE && claim->release_ask[master] == ask->number) {
        claim->may_store &= (quorum_mask)~bit;
        claim->errors |= answer->type == REPLY_ERROR ? bit : 0;
    } else if (ask->what == QUORUM_CMD_GIVE && claim->give_ask[master] == ask->number) {
        if (answer->type != REPLY_STATUS)
            claim->may_store &= (quorum_mask)~bit;
    } else if (ask->what == QUORUM_CMD_EXTEND && claim->extend_ask[master] == ask->number && no) {
        if (!is_many(oracle_token_of(claim->token)->set) || (claim->given & bit) != 0)
            claim->may_store &= (quorum_mask)~bit;
    } else if (ask->what == QUORUM_CMD_RAISE && claim->raise_ask[master] == ask->number && no) {
        if (!is_many(oracle_token_of(claim->token)->set))
            claim->may_store &= (quorum_mask)~bit;
    }
}

/* The client closes a link whose proof is wrong, and then has no answer to what was before it. */
static void on_proof(struct ev_loop *process, unsigned master, const struct answer *answer)
{
    quorum_mask bit = (quorum_mask)(1u << master);
    bool is_right = false;

    for (unsigned m = 0; m < process->rl->masters.peers.len; m++)
        is_right |= process->servers[m] == master && answer->text[0] != '\0' &&
                    strcmp(answer->text, masters_state(&process->rl->masters, m)) == 0;
    for (struct claim *claim = process->claims; claim != NULL; claim = claim->next) {
        claim->answered |= is_right ? claim->unproven & bit : 0;
        claim->unproven &= (quorum_mask)~bit;
    }
}

void oracle_on_answer(struct ev_loop *process, unsigned master, const struct ask *ask,
                      const struct answer *answer)
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
    if (ask->what == WHAT_PROOF)
        on_proof(process, master, answer);
    if (ask->what == WHAT_LOOK || ask->what == WHAT_PROOF || ask->what == WHAT_COUNT ||
        ask->what == WHAT_FOUND || ask->what == WHAT_WITNESS) {
        world_say("    client %u queries master %u: %s %lld", process->number, master, answer->text,
                  answer->integer);
        return;
    }
    world_say("    client %u gets from master %u: %s %u, lease %u: %s %lld", process->number,
              master, names[ask->what], ask->number, ask->serial, answer->text, answer->integer);
    if (ask->what != QUORUM_CMD_SET && ask->what != QUORUM_CMD_FENCE) {
        for (claim = process->claims; claim != NULL; claim = claim->next)
            if (claim->serial == ask->serial)
                on_script_answer(claim, master, ask, answer);
        return;
    }
    claim = find(process, ask->serial, ask->number, -1);
    if (claim != NULL)
        claim->owing &= (quorum_mask) ~(1u << master);
    if (taken && world.plan.permits)
        world_outcome(hints ? OUTCOME_PERMIT_ELSEWHERE : OUTCOME_PERMITS_GONE);
    else if (taken && claim != NULL && is_many(oracle_token_of(claim->token)->set))
        world_outcome(OUTCOME_MANY_TAKEN);
    if (answer->type == REPLY_NIL || taken)
        judge_on_no(process, ask->serial, ask->number, hints);
    if (claim != NULL && claim->extend_ask[master] == 0 && claim->raise_ask[master] == 0)
        claim->unproven |= (quorum_mask)(1u << master);
    if (claim != NULL && !yes && !(claim->stands >> master & 1))
        claim->may_store &= (quorum_mask) ~(1u << master);
}

/* ---- Turns ---- */

static const struct redlock_lease *lease_of(const struct ev_loop *process,
                                            const struct claim *claim)
{
    const struct redlock *rl = process->rl;
    const struct redlock_lease *lease =
        claim->slot < rl->leases.slots_len ? rl->leases.slots[claim->slot] : NULL;

    return lease != NULL && (uint32_t)lease->serial == claim->serial ? lease : NULL;
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

void claims_on_longer(const struct lease_rec *rec)
{
    const struct ev_loop *process = rec->process;
    const struct quorum *q = &rec->lease->q;
    const struct claim *claim = find(process, (uint32_t)rec->lease->serial, q->round, -1);
    quorum_mask lacking;

    if (claim == NULL || q->adopted || q->state != QUORUM_HELD || world.plan.operators > 0)
        return;
    lacking = claim->known & claim->before & claim->lacking & claim->answered &
              (quorum_mask)~claim->unsure & voters(process);
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

void claims_on_turn(struct ev_loop *process)
{
    uint64_t now = process_clock(process);
    struct claim **at = &process->claims, *claim;

    while ((claim = *at) != NULL) {
        const struct redlock_lease *lease = lease_of(process, claim);

        if (world.plan.operators > 0)
            forget_removed(process, claim);
        if (claim->may_store == 0 || now >= claim->runs_out) {
            oracle_token_of(claim->token)->is_excused |=
                claim->errors != 0 || claim->may_store != 0;
            *at = claim->next;
            continue;
        }
        at = &claim->next;
        if (lease != NULL && lease->q.round == claim->round)
            continue;
        oracle_token_of(claim->token)->is_over = true;
        if (lease == NULL)
            world_fail("forgotten",
                       "client %u freed lease %u, and masters (mask %x) may store its token",
                       process->number, claim->serial, claim->may_store);
        check_told(process, claim);
    }
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
