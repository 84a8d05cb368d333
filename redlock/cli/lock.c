/*
 * lock.c - `redlock lock`: take a lock and leave it held, for a script that uses its token.
 */
#include "redlock/cli/common/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <ev.h>

#include "redlock/base/note.h"
#include "redlock/cli/common/session.h"

/* How often to look whether a full pipe has room again.  Chosen. */
#define LOOK_EVERY_S 0.005

static void print_lease(const struct cli *cli, const struct cli_names *names,
                        const struct redlock_lease *lease, uint32_t ttl_ms)
{
    const struct redlock_lease_info info = cli_lease_info(lease);

    if (cli->json)
        cli_print_lease_json(names, lease, ttl_ms);
    else if (info.fence != 0)
        (void)printf("%s %" PRIu64 "\n", info.token, info.fence);
    else
        (void)printf("%s\n", info.token);
}

static void on_look(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)timer, (void)events; /* It only wakes the loop. */
}

static bool is_blocked(void *arg)
{
    const struct session *session = arg;

    return session->signal == 0 && !cli_takes_output();
}

/* Wait while standard output is a full pipe.  False: the lock ran out first, perhaps while this
 * process was stopped, or a signal came. */
static bool await_space(struct session *session, const struct redlock_lease *lease)
{
    ev_timer look;

    if (!cli_takes_output()) {
        ev_timer_init(&look, on_look, LOOK_EVERY_S, LOOK_EVERY_S);
        ev_timer_start(session->loop, &look);
        cli_linger(session->loop, is_blocked, session, redlock_remaining_ms(lease));
        ev_timer_stop(session->loop, &look);
    }
    return cli_takes_output() && session->signal == 0 && redlock_remaining_ms(lease) > 0;
}

/* Print the token, and leave the lock held.  If the token cannot be printed, or not while the lock
 * is held, release the lock. */
static int hand_over(struct session *session, const struct cli_names *names,
                     struct redlock_lease *lease, uint32_t ttl_ms)
{
    char shown[CLI_NAMES_SHOWN_MAX];
    int code;

    if (!await_space(session, lease)) {
        if (session->signal == 0)
            cli_say(MSG_LOST, "the lock %s ran out before its token could be printed",
                    cli_show_names(names, shown));
        redlock_cancel(lease);
        return session->signal == 0 ? CLI_LOST : session_signal_exit(session);
    }
    print_lease(session->cli, names, lease, ttl_ms);
    code = cli_flush_output();
    if (code == CLI_OK)
        (void)redlock_detach(lease); /* Cannot fail: it is held, and nothing is under way. */
    else if (session_unlock(session, lease) == CLI_OK)
        cli_hint("the lock %s was released", cli_show_names(names, shown));
    return code; /* The first failure counts. */
}

/* The lock outlives this process, so its note names the one that called it.  The note is printed
 * with the token, so a host with blanks in its name has none here. */
static const char *name_caller(char buf[REDLOCK_NOTE_MAX + 1])
{
    char host[REDLOCK_NOTE_MAX - sizeof "/-2147483648" + 2] = "";

    if (gethostname(host, sizeof host - 1) != 0 || !note_is_valid(host) ||
        strchr(host, ' ') != NULL)
        host[0] = '\0';
    (void)snprintf(buf, REDLOCK_NOTE_MAX + 1, "%s/%ld", host, (long)getppid());
    return buf;
}

static int lock_main(struct cli *cli, int argc, char **argv)
{
    struct redlock_lock_options opts;
    struct redlock_lease *lease;
    struct session session;
    struct cli_names names;
    char caller[REDLOCK_NOTE_MAX + 1];
    int option, code;

    redlock_lock_options_init(&opts);
    opts.no_renew = true;
    while ((option = cli_getopt(cli, argc, argv, false)) != -1)
        cli_take_lock_option(cli, option, &opts);
    if (opts.note == NULL)
        opts.note = name_caller(caller);
    else if (strpbrk(opts.note, " \t") != NULL)
        cli_usage_error(cli, "--note must be one word: redlock lock prints it behind the token");
    cli_need_arguments(cli, argc, argv, 1, "NAME");
    cli_check_ttl(cli, opts.ttl_ms);
    cli_names(cli, argv[optind], &names);
    cli_check_lock(cli, &names, &opts);
    code = session_open(&session, cli);
    if (code == CLI_OK) {
        code = session_lock(&session, &names, &opts, &lease);
        if (code == CLI_OK)
            code = hand_over(&session, &names, lease, opts.ttl_ms);
        session_close(&session);
    }
    cli_names_done(&names);
    return code;
}

const struct cli_command cli_lock = {
    .name = "lock",
    .options = OPTIONS_LOCK,
    .run = lock_main,
    .usage =
        "lock [--fence] [--fair|--permits K|--shared] [--ttl 10s] [--wait 0|DURATION|forever]\n"
        "            [--note TEXT] NAME[,NAME...]",
    .help = "Take the lock NAME, print its token, and leave it held.  Nothing renews it: use\n"
            "`redlock extend` in time, and `redlock unlock` at the end.  Of several names, all\n"
            "are taken, or none.\n",
    .more = "Example: redlock lock --ttl 1m backup\n"
            "Exit: 0 locked, 64 usage, 69 too few masters, 75 another client has the lock, 76 the\n"
            "lock ran out before its token could be printed, 77 forbidden, 78 wrong list of\n"
            "masters or foreign key.\n",
};
