/*
 * unlock.c - `redlock unlock`: release a lock, by its token.
 */
#include "redlock/cli/cli.h"

#include "redlock/cli/session.h"

static int unlock_main(struct cli *cli, int argc, char **argv)
{
    static const struct option own[] = {
        {"permits", required_argument, NULL, CLI_OPTION_PERMITS},
        {"shared", no_argument, NULL, CLI_OPTION_SHARED},
        {NULL, 0, NULL, 0},
    };
    struct redlock_lock_options opts;
    struct redlock_lease *lease;
    struct session session;
    struct cli_names names;
    int option, code;

    redlock_lock_options_init(&opts);
    while ((option = cli_getopt(cli, argc, argv, false, own)) != -1)
        cli_take_lock_option(cli, option, &opts);
    opts.ttl_ms = cli->max_ttl_ms; /* No lease is longer. */
    cli_need_arguments(cli, argc, argv, 2, "NAME TOKEN");
    cli_names(cli, argv[optind], &names);
    cli_check_lock(cli, &names, &opts);
    code = session_open(&session, cli);
    if (code == CLI_OK) {
        code = session_adopt(&session, &names, argv[optind + 1], &opts, &lease);
        if (code == CLI_OK)
            code = session_unlock(&session, lease);
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
