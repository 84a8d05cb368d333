/*
 * unlock.c - `redlock unlock`: release a lock, by its token.
 */
#include "redlock/cli/cli.h"

#include "redlock/cli/session.h"

static int unlock(struct session *session, const struct cli_names *names, const char *token,
                  const struct redlock_lock_options *how)
{
    struct redlock_lock_options opts;
    struct redlock_lease *lease;
    int code;

    redlock_lock_options_init(&opts);
    opts.permits = how->permits;
    opts.shared = how->shared;
    opts.ttl_ms = session->cli->max_ttl_ms; /* No lease is longer. */
    code = session_adopt(session, names, token, &opts, &lease);
    return code == CLI_OK ? session_unlock(session, lease) : code;
}

static int unlock_main(struct cli *cli, int argc, char **argv)
{
    static const struct option own[] = {
        {"permits", required_argument, NULL, CLI_OPTION_PERMITS},
        {"shared", no_argument, NULL, CLI_OPTION_SHARED},
        {NULL, 0, NULL, 0},
    };
    struct session session;
    struct cli_names names;
    struct redlock_lock_options how;
    int option, code;

    redlock_lock_options_init(&how);
    while ((option = cli_getopt(cli, argc, argv, false, own)) != -1)
        cli_take_lock_option(cli, option, &how);
    cli_need_arguments(cli, argc, argv, 2, "NAME TOKEN");
    cli_names(cli, argv[optind], &names);
    cli_check_lock(cli, &names, &how);
    code = session_open(&session, cli);
    if (code == CLI_OK) {
        code = unlock(&session, &names, argv[optind + 1], &how);
        session_close(&session);
    }
    cli_names_done(&names);
    return code;
}

const struct cli_command cli_unlock = {
    .name = "unlock",
    .run = unlock_main,
    .usage = "unlock [--permits K | --shared] NAME[,NAME...] TOKEN",
    .help = "Release the lock NAME that is held with TOKEN.\n"
            "\n"
            "  --permits K, --shared  as they were with `redlock lock`\n"
            "\n"
            "Exit: 64 usage, 69 too few masters confirmed it, 76 not held with this token.\n",
};
