/*
 * unlock.c - `redlock unlock`: release a lock by its token, or take it from its holder.
 */
#include "redlock/cli/common/cli.h"

#include "redlock/cli/revoke.h"
#include "redlock/cli/common/session.h"

static int force(struct cli *cli, int argc, char **argv, const struct revoke_wanted *wanted)
{
    struct cli_names names;
    int code;

    cli_need_arguments(cli, argc, argv, 1, "NAME");
    cli_names(cli, argv[optind], &names);
    if (names.len > 1)
        cli_usage_error(cli, "--force takes one name, and a lock of several is lost with any of "
                             "them: write \\, for a comma in a name");
    code = revoke_run(cli, names.list[0], wanted);
    cli_names_done(&names);
    return code;
}

static int unlock_main(struct cli *cli, int argc, char **argv)
{
    struct redlock_lock_options opts;
    struct redlock_lease *lease;
    struct session session;
    struct revoke_wanted wanted = {.reason = NULL};
    bool is_forced = false;
    struct cli_names names;
    int option, code;

    redlock_lock_options_init(&opts);
    while ((option = cli_getopt(cli, argc, argv, false)) != -1) {
        if (option == OPTION_FORCE)
            is_forced = true;
        else if (option == OPTION_NOW)
            wanted.now = true;
        else if (option == OPTION_PERMIT)
            wanted.permit = cli_number(cli, "--permit", optarg, 1, REDLOCK_PERMITS_MAX);
        else if (option == OPTION_REASON)
            wanted.reason = optarg;
        else if (option == OPTION_YES)
            wanted.yes = true;
        else
            cli_take_lock_option(cli, option, &opts);
    }
    if (!is_forced && (wanted.now || wanted.permit > 0 || wanted.reason != NULL || wanted.yes))
        cli_usage_error(cli, "--now, --permit, --reason and --yes need --force");
    if (is_forced && (opts.permits > 0 || opts.shared))
        cli_usage_error(cli, "--force takes no --permits or --shared: --permit N is one permit");
    if (is_forced)
        return force(cli, argc, argv, &wanted);
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
    .options = OPTIONS_UNLOCK,
    .run = unlock_main,
    .usage = "unlock [--permits K | --shared] NAME[,NAME...] TOKEN\n"
             "       redlock unlock --force [--now] [--permit N] [--reason TEXT] [--yes] NAME",
    .help = "Release the lock NAME that is held with TOKEN.  With --force, take NAME from its\n"
            "holder, whoever that is: the holder can extend it no more, and learns that it is\n"
            "lost.  Others get it when the holder's time is over.\n",
    .more = "Example: redlock unlock backup $TOKEN\n"
            "Exit: 0 released, 64 usage, 69 too few masters confirmed it, 75 the answer was no,\n"
            "76 not held (with this token), 77 forbidden, 78 redlock did not write the key.\n",
};
