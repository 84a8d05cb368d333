/*
 * extend.c - `redlock extend`: make a lock last longer, by its token.
 */
#include "redlock/cli/common/cli.h"

#include "redlock/cli/common/session.h"

static int extend(struct session *session, const struct cli_names *names, const char *token,
                  const struct redlock_lock_options *opts)
{
    struct redlock_lease *lease;
    int code = session_adopt(session, names, token, opts, &lease);

    if (code != CLI_OK)
        return code;
    code = session_extend(session, lease, opts->ttl_ms);
    if (code == CLI_OK && session->cli->json) {
        cli_print_lease_json(names, lease, opts->ttl_ms);
        code = cli_flush_output();
    }
    (void)redlock_detach(lease); /* Also after a failure: nothing is released. */
    return code;
}

static int extend_main(struct cli *cli, int argc, char **argv)
{
    struct redlock_lock_options opts;
    struct session session;
    struct cli_names names;
    int option, code;

    redlock_lock_options_init(&opts);
    opts.no_renew = true;
    while ((option = cli_getopt(cli, argc, argv, false)) != -1)
        cli_take_lock_option(cli, option, &opts);
    cli_need_arguments(cli, argc, argv, 2, "NAME TOKEN");
    cli_check_ttl(cli, opts.ttl_ms);
    cli_names(cli, argv[optind], &names);
    cli_check_lock(cli, &names, &opts);
    code = session_open(&session, cli);
    if (code == CLI_OK) {
        code = extend(&session, &names, argv[optind + 1], &opts);
        session_close(&session);
    }
    cli_names_done(&names);
    return code;
}

const struct cli_command cli_extend = {
    .name = "extend",
    .options = OPTIONS_EXTEND,
    .run = extend_main,
    .usage = "extend [--permits K | --shared] [--ttl 10s] NAME[,NAME...] TOKEN",
    .help = "Extend the lock NAME that is held with TOKEN.  An extension never makes a lock\n"
            "shorter.\n",
    .more = "Example: redlock extend --ttl 30s backup $TOKEN\n"
            "Exit: 0 extended, 64 usage, 69 too few masters, 76 not held with this token,\n"
            "77 forbidden, 78 wrong list of masters.\n",
};
