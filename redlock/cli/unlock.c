/*
 * unlock.c - `redlock unlock`: give a lock back, by its token.
 */
#include "redlock/cli/cli.h"

#include "redlock/cli/session.h"

static int unlock(struct session *session, const char *name, const char *token)
{
    struct redlock_lock_options opts;
    struct redlock_lease *lease;
    int status;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = session->cli->max_ttl_ms; /* It was not taken for longer. */
    status = redlock_adopt(session->rl, name, token, &opts, &lease);
    if (status != REDLOCK_OK) {
        cli_say("%s", redlock_errmsg(session->rl));
        return cli_exit_of(status);
    }
    return session_unlock(session, lease);
}

static int unlock_main(struct cli *cli, int argc, char **argv)
{
    struct session session;
    int code;

    (void)cli_getopt(cli, argc, argv, false, NULL);
    cli_need_arguments(cli, argc, argv, 2, "NAME TOKEN");
    code = session_open(&session, cli);
    if (code != CLI_OK)
        return code;
    code = unlock(&session, argv[optind], argv[optind + 1]);
    session_close(&session);
    return code;
}

const struct cli_command cli_unlock = {
    .name = "unlock",
    .run = unlock_main,
    .usage = "unlock NAME TOKEN",
    .help = "Give back the lock NAME, which `redlock lock` gave the TOKEN for.\n"
            "\n"
            "Exit: 64 usage, 69 too few masters confirmed it, 76 it was not held.\n",
};
