/*
 * revoke.c - reads who holds a lock, asks the operator, and carries out what core/revoke.h decides.
 *
 * The loop runs while the operator thinks, so that links stay up.  What was read then may be out of
 * date, but the script compares the token and the epoch.
 */
#include "redlock/cli/revoke.h"

#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drift/drift.h"
#include "redlock/base/error.h"
#include "redlock/base/note.h"
#include "redlock/base/text.h"
#include "redlock/cli/common/loop.h"
#include "redlock/cli/common/question.h"
#include "redlock/cli/common/remark.h"
#include "redlock/cli/common/session.h"
#include "redlock/client/inspect.h"
#include "redlock/wire/name.h"
#include "redlock/wire/reply.h"
#include "redlock/wire/revocation.h"
#include "redlock/wire/vote.h"

/* USER@HOST/PID, of 12, 14 and 7 bytes at most: PIDs are below 2^22. */
#define WHO_MAX (REDLOCK_TOKEN_MAX - WIRE_REVOKED_LEN - 2 - REDLOCK_NOTE_MAX)

enum query { QUERY_READ, QUERY_REVOKE, QUERY_RAISE, QUERY_DELETE };

struct revoking {
    struct cli *cli;
    const struct revoke_wanted *wanted;
    struct session session;
    const char *name;
    char key[WIRE_KEY_MAX];
    size_t key_len;
    char text[REDLOCK_TOKEN_MAX + 1];
    struct revoke revoke;
    char state[REDLOCK_MASTERS_MAX][WIRE_STATE_MAX + 1];
    struct remark remarks[REDLOCK_MASTERS_MAX]; /* Why an answer is no help. */
    struct question question;
    enum query asked; /* The latest question. */
    quorum_mask deleted;
};

/* ---- The text ---- */

/* "revoked by USER@HOST/PID: REASON".  With the PID no later attempt has the same text. */
static void write_text(struct revoking *r)
{
    const char *user = getenv("USER"), *reason = r->wanted->reason;
    const struct passwd *account = user == NULL ? getpwuid(getuid()) : NULL;
    char host[WHO_MAX - 21 + 1] = "";

    (void)gethostname(host, sizeof host - 1); /* Without a host if this fails. */
    (void)snprintf(r->text, sizeof r->text, WIRE_REVOKED "%.12s@%.*s/%d%s%s",
                   user != NULL      ? user
                   : account != NULL ? account->pw_name
                                     : "somebody",
                   (int)sizeof host, host, (int)getpid(), reason != NULL ? ": " : "",
                   reason != NULL ? reason : "");
    (void)text_clean(r->text);
}

static void write_key(struct revoking *r, const char *name)
{
    char prefixed[WIRE_PERMIT_LEN + REDLOCK_NAME_MAX + 1];

    r->name = name;
    if (r->wanted->permit == 0) {
        r->key_len = strlen(name);
        memcpy(r->key, name, r->key_len);
        return;
    }
    (void)snprintf(prefixed, sizeof prefixed, WIRE_PERMIT "%s", name);
    r->key_len = wire_permit_key(r->key, prefixed, strlen(prefixed), r->wanted->permit - 1);
}

/* ---- Asking masters ---- */

/* Why this answer is no help. */
static struct remark read_answer(struct revoking *r, unsigned m, enum query query,
                                 const struct reply *reply)
{
    const struct remark none = {MSG_NONE, ""};
    struct revoke_seen seen;
    struct revoke_done done;

    if (query == QUERY_READ && revocation_read(reply, r->state[m], &seen)) {
        revoke_on_read(&r->revoke, m, &seen);
        return r->revoke.is_guarded && seen.version == 0
                   ? (struct remark){MSG_WARMING, "it lost its data, and is warming up"}
                   : none;
    }
    if (query == QUERY_REVOKE && revocation_done(reply, &done)) {
        revoke_on_done(&r->revoke, m, &done);
        return done.is_revoked ? none
                               : (struct remark){MSG_NOT_STORED, "it does not store this holder"};
    }
    if (query == QUERY_REVOKE && reply->type == REPLY_NIL)
        return (struct remark){MSG_SET_CHANGED, "its epoch, or its set, has just changed"};
    if (query == QUERY_RAISE && reply->type != REPLY_ERROR) {
        const struct vote vote = vote_read(QUORUM_CMD_RAISE, reply);

        if (vote.vote != QUORUM_VOTE_YES)
            return (struct remark){MSG_SET_CHANGED, "its epoch or its set has changed, or the key"};
        revoke_on_raised(&r->revoke, m, vote.counter);
        return none;
    }
    if (query != QUERY_DELETE || reply->type != REPLY_INTEGER)
        return remark_of_reply("", reply);
    r->deleted |= mask_of(m);
    return none;
}

static void take(void *asker, unsigned m, uint32_t query, const struct reply *reply)
{
    struct revoking *r = asker;

    r->remarks[m] = read_answer(r, m, (enum query)query, reply);
}

static size_t write_query(const struct revoking *r, unsigned m, enum query query,
                          char buf[WIRE_MAX])
{
    bool is_guarded = r->revoke.is_guarded;
    const struct revocation read = {
        .key = r->key,
        .key_len = r->key_len,
        .token = "",
        .text = "",
        .state = is_guarded ? "?" : "",
    };
    const struct revocation revoke = {
        .key = r->key,
        .key_len = r->key_len,
        .token = r->revoke.text,
        .text = r->text,
        .state = is_guarded ? r->state[m] : "",
    };
    const struct wire_args args = {
        .name = r->key,
        .name_len = r->key_len,
        .token = r->text,
        .token_len = strlen(r->text),
        .counter = r->revoke.number,
        .epoch = r->state[m],
    };

    if (query == QUERY_READ)
        return revocation_write(buf, &read);
    if (query == QUERY_REVOKE)
        return revocation_write(buf, &revoke);
    if (query == QUERY_RAISE)
        return wire_script(buf, SCRIPT_RAISE, true, &args);
    return wire_script(buf, r->wanted->permit > 0 ? SCRIPT_RELEASE_PERMIT : SCRIPT_RELEASE, true,
                       &args);
}

/* True: a master may still be linked, or tell its set, for the first time. */
static bool masters_are_coming(void *arg)
{
    const struct revoking *r = arg;
    const struct inspect_client client = inspect_client(r->session.rl);

    if (r->session.signal != 0)
        return false;
    for (unsigned m = 0; m < client.masters; m++)
        if (inspect_master(r->session.rl, m).is_looked_at)
            return true;
    return client.connecting != 0;
}

static void send(void *asker, unsigned m)
{
    struct revoking *r = asker;
    char buf[WIRE_MAX];

    question_write(&r->question, m, r->asked, buf, write_query(r, m, r->asked, buf));
}

/* Ask those of the masters whose links are up.  A late answer counts for nothing: what it says may
 * be of another set than what was decided by.  That master may do what it was asked to do. */
static void ask(struct revoking *r, quorum_mask masters, enum query query)
{
    masters &= inspect_client(r->session.rl).linked;
    r->asked = query;
    r->question = (struct question){
        .rl = r->session.rl,
        .loop = r->session.loop,
        .cli = r->cli,
        .left_out = (quorum_mask)~masters,
        .asker = r,
        .send = send,
        .take = take,
    };
    question_ask(&r->question);
    for (unsigned m = 0; m < r->question.masters; m++)
        if (r->question.of[m].why.why != WHY_NONE)
            r->remarks[m] = question_why(&r->question, m);
}

/* ---- Messages ---- */

static const char *show_name(const struct revoking *r, char buf[CLI_NAMES_SHOWN_MAX + 24])
{
    char shown[CLI_NAMES_SHOWN_MAX];

    (void)cli_show_name(r->name, shown);
    if (r->wanted->permit > 0)
        (void)snprintf(buf, CLI_NAMES_SHOWN_MAX + 24, "permit %u of %s", r->wanted->permit, shown);
    else
        (void)snprintf(buf, CLI_NAMES_SHOWN_MAX + 24, "%s", shown);
    return buf;
}

static const char *show_text(const char *text, char buf[CLI_NAMES_SHOWN_MAX])
{
    return text_quote(text, strlen(text), buf, CLI_NAMES_SHOWN_MAX);
}

/* Say what is wrong with the masters.  Returns the exit code. */
static int too_few(const struct revoking *r, const char *what)
{
    const struct inspect_client client = inspect_client(r->session.rl);
    char name[CLI_NAMES_SHOWN_MAX + 24];
    unsigned forbidden = 0, others = 0;

    cli_say(MSG_NOT_REVOKED, "%s %s: too few masters answered as they should", show_name(r, name),
            what);
    for (unsigned m = 0; m < client.masters; m++) {
        const struct inspect_master master = inspect_master(r->session.rl, m);
        const struct remark remark =
            (client.linked & mask_of(m)) != 0 ? r->remarks[m] : master.remark;

        if (remark.message == MSG_NONE)
            continue;
        forbidden += remark.message == MSG_NO_RIGHT;
        others += remark.message != MSG_NO_RIGHT;
        cli_say(remark.message, "master %u (%s): %s", m + 1, master.name, remark.text);
    }
    if (members_all(&client.lists) == 0)
        cli_hint("no set of masters is known: `redlock status%s` says more",
                 r->cli->masters_option);
    return forbidden > others ? CLI_FORBIDDEN : CLI_UNREACHABLE;
}

/* The exit code if there is no holder to revoke. */
static int refuse(const struct revoking *r, enum revoke_status status)
{
    char name[CLI_NAMES_SHOWN_MAX + 24], masters[CLI_MASTERS_SHOWN_MAX];

    (void)show_name(r, name);
    switch (status) {
    case REVOKE_TOO_FEW:
        return too_few(r, "was left alone");
    case REVOKE_OVERTAKEN:
        cli_say(MSG_NOT_REVOKED,
                "%s was left alone: the set of masters has just changed: run this again", name);
        return CLI_UNREACHABLE;
    case REVOKE_NO_LOCK:
        cli_say(MSG_FOREIGN_KEY, "%s: redlock did not write this key on %s: delete it there", name,
                cli_show_masters(r->session.rl, r->revoke.foreign, masters));
        return CLI_CHANGE;
    case REVOKE_NOBODY:
        cli_say(MSG_LOST, "nobody holds %s on a majority of the masters%s", name,
                r->wanted->permit == 0 ? ".  For a permit of this name use --permit N" : "");
        return CLI_LOST;
    case REVOKE_ALREADY:
    case REVOKE_OK:
        break;
    }
    return CLI_OK;
}

/* ---- The question ---- */

static bool has_input(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

    return poll(&input, 1, 0) > 0;
}

/* Wait for a line in the loop.  False: it is not yes, or a signal came. */
static bool is_answered_yes(struct revoking *r)
{
    char line[16] = "";

    while (!has_input() && r->session.signal == 0)
        session_turn(&r->session, DRIFT_NEVER);
    if (r->session.signal != 0 || fgets(line, sizeof line, stdin) == NULL)
        return false;
    return strcmp(line, "y\n") == 0 || strcmp(line, "yes\n") == 0;
}

static bool is_wanted(struct revoking *r, bool is_revoked)
{
    char name[CLI_NAMES_SHOWN_MAX + 24], holder[CLI_NAMES_SHOWN_MAX];
    const struct revoke *revoke = &r->revoke;

    cli_hint("%s %s%s for %.3f s more", show_name(r, name), is_revoked ? "is " : "is held by ",
             revoke->has_readers ? "readers" : show_text(revoke->text, holder),
             revoke_left_ms(revoke) / 1e3);
    if (r->wanted->yes)
        return true;
    (void)fprintf(
        stderr, "redlock: %s [y/N] ",
        r->wanted->now
            ? "delete it at once?  Two may work until this time is over."
            : "revoke it?  It can be extended no more, and is free when this time is over.");
    return is_answered_yes(r);
}

/* ---- All ---- */

static int print(const struct revoking *r, unsigned masters, uint32_t left_ms, uint64_t number)
{
    char name[CLI_NAMES_SHOWN_MAX + 24];

    if (r->cli->json) {
        (void)printf("{\"resource\":");
        cli_json_string(stdout, r->name);
        if (r->wanted->permit > 0)
            (void)printf(",\"permit\":%u", r->wanted->permit);
        cli_json_member("revoked", r->text);
        (void)printf(",\"agreeing\":%u,\"free_in_ms\":%" PRIu32, masters, left_ms);
        if (number > 0)
            (void)printf(",\"fence\":%" PRIu64 "}\n", number);
        else
            (void)printf(",\"fence\":null}\n");
        return cli_flush_output();
    }
    (void)printf("%s: revoked on %u masters, a majority; free %s", show_name(r, name), masters,
                 left_ms == 0 ? "now\n" : "");
    if (left_ms > 0)
        (void)printf("in at most %.3f s\n", left_ms / 1e3);
    if (number > 0)
        (void)printf("later fencing tokens are greater than %" PRIu64
                     ", earlier ones are smaller\n",
                     number);
    return cli_flush_output();
}

/* The text of the first time stays, also if another reason is given now. */
static int print_again(const struct revoking *r)
{
    char shown[CLI_NAMES_SHOWN_MAX];
    int code = print(r, mask_count(r->revoke.holders), revoke_left_ms(&r->revoke), 0);

    if (code != CLI_OK || r->cli->json)
        return code;
    (void)printf("it was %s before; nothing was changed\n", show_text(r->text, shown));
    return cli_flush_output();
}

/* The masters that store the text delete it, and announce that they are free. */
static int delete_now(struct revoking *r, quorum_mask masters)
{
    char name[CLI_NAMES_SHOWN_MAX + 24];
    uint32_t left_ms = revoke_left_ms(&r->revoke);

    ask(r, masters, QUERY_DELETE);
    if (!members_decide(&r->revoke.lists, r->deleted))
        return too_few(r, "is revoked, but was not deleted on a majority");
    cli_say(MSG_TWO_HOLDERS, "%s: two may work for %.3f s more, unless the holder has ended",
            show_name(r, name), left_ms / 1e3);
    return print(r, mask_count(masters), 0, revoke_number(&r->revoke));
}

static int carry_out(struct revoking *r)
{
    char name[CLI_NAMES_SHOWN_MAX + 24];
    enum revoke_status status;
    quorum_mask revoked;
    drift_time since = loop_clock();

    ask(r, r->revoke.read, QUERY_REVOKE);
    status = revoke_judge(&r->revoke, drift_to_ms(drift_until(since, loop_clock())) + 1);
    revoked = revoke_masters(&r->revoke);
    if (status == REVOKE_TOO_FEW && revoked != 0)
        cli_say(MSG_NOT_REVOKED,
                "%s is revoked on %u masters, which are no majority: its holder may go on, so run "
                "this again",
                show_name(r, name), mask_count(revoked));
    if (status == REVOKE_TOO_FEW)
        return too_few(r, "is not revoked");
    if (status == REVOKE_NOBODY) {
        cli_say(MSG_LOST, "the holder of %s has ended meanwhile: nothing was revoked",
                show_name(r, name));
        return CLI_LOST;
    }
    ask(r, revoke_behind(&r->revoke), QUERY_RAISE);
    if (r->revoke.is_guarded && revoke_number(&r->revoke) == 0)
        cli_hint("no fencing number is known: too few masters counted");
    if (r->wanted->now)
        return delete_now(r, revoked);
    return print(r, mask_count(revoked), revoke_left_ms(&r->revoke), revoke_number(&r->revoke));
}

static int leave_alone(const struct revoking *r)
{
    char name[CLI_NAMES_SHOWN_MAX + 24];

    if (r->session.signal != 0)
        return session_signal_exit(&r->session);
    cli_say(MSG_NOT_REVOKED, "%s was left alone: the answer was not yes", show_name(r, name));
    return CLI_HELD;
}

static int run(struct revoking *r)
{
    struct inspect_client client;
    enum revoke_status status;
    int code;

    /* No round waits for a master that is linked later, as those of a lease do. */
    cli_linger(r->session.loop, masters_are_coming, r,
               r->cli->connect_timeout_ms + r->cli->reply_timeout_ms);
    if (r->session.signal != 0)
        return session_signal_exit(&r->session);
    client = inspect_client(r->session.rl);
    revoke_init(&r->revoke, &client.lists, client.restart_guard, client.set_version);
    ask(r, members_all(&client.lists), QUERY_READ);
    status = revoke_choose(&r->revoke);
    code = refuse(r, status);
    if (code != CLI_OK)
        return code;
    if (status == REVOKE_ALREADY && !r->wanted->now) {
        (void)snprintf(r->text, sizeof r->text, "%s", r->revoke.text);
        return print_again(r);
    }
    if (!is_wanted(r, status == REVOKE_ALREADY))
        return leave_alone(r);
    if (status != REVOKE_ALREADY)
        return carry_out(r);
    (void)snprintf(r->text, sizeof r->text, "%s", r->revoke.text);
    return delete_now(r, r->revoke.holders);
}

int revoke_run(struct cli *cli, const char *name, const struct revoke_wanted *wanted)
{
    static struct revoking r;
    int code;

    if (name_check(name) != REDLOCK_OK)
        cli_usage_error(cli, "%s", redlock_errmsg(NULL));
    if (wanted->reason != NULL && !note_is_valid(wanted->reason))
        cli_usage_error(cli, "--reason has more than %d bytes, or a control character",
                        REDLOCK_NOTE_MAX);
    if (!wanted->yes && !isatty(STDIN_FILENO))
        cli_usage_error(cli, "--force asks first, but there is no terminal: use --yes");
    r = (struct revoking){.cli = cli, .wanted = wanted};
    write_text(&r);
    write_key(&r, name);
    cli->looks_only = true;
    code = session_open(&r.session, cli);
    if (code != CLI_OK)
        return code;
    code = run(&r);
    session_close(&r.session);
    return code;
}
