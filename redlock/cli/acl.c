/*
 * acl.c - `redlock acl`: the rules of a user of the masters, to paste into redis-cli.
 */
#include "redlock/cli/common/cli.h"

#include <string.h>

#include "redlock/cli/doctor/rights.h"

#define LINE_MAX_LEN 78 /* Columns.  The manual shows the lines unchanged. */

/* The line that is being printed. */
struct page {
    struct cli *cli;
    const char *user;
    size_t column; /* The length of this line. */
    size_t words;  /* The number of words in all lines. */
};

static void begin_line(struct page *page)
{
    if (page->cli->json)
        return;
    if (page->column > 0)
        (void)printf("\n");
    page->column = (size_t)printf("ACL SETUSER %s", page->user);
}

static void put(struct page *page, const char *word)
{
    page->words++;
    if (page->cli->json) {
        (void)printf("%s", page->words > 1 ? "," : "");
        cli_json_string(stdout, word);
        return;
    }
    if (page->column + 1 + strlen(word) > LINE_MAX_LEN)
        begin_line(page);
    page->column += (size_t)printf(" %s", word);
}

/* The rules of a place for all patterns.  That of the marker has no pattern in it, so it is equal
 * for all. */
static void put_place(struct page *page, size_t place, const struct rights_wanted *wanted)
{
    char first[RIGHTS_RULE_MAX] = "", rule[RIGHTS_RULE_MAX];

    if (rights_place(place, wanted->names[0], wanted->kinds, first))
        put(page, first);
    for (size_t i = 1; i < wanted->names_len; i++)
        if (rights_place(place, wanted->names[i], wanted->kinds, rule) && strcmp(rule, first) != 0)
            put(page, rule);
}

static bool is_put(size_t right, unsigned kinds)
{
    for (size_t i = 0; i < right; i++)
        if ((rights_all[i].kinds & kinds) != 0 &&
            strcmp(rights_all[i].rule, rights_all[right].rule) == 0)
            return true;
    return false;
}

static void put_commands(struct page *page, unsigned kinds)
{
    for (size_t i = 0; i < rights_len; i++)
        if ((rights_all[i].kinds & kinds) != 0 && !is_put(i, kinds))
            put(page, rights_all[i].rule);
}

/* -@all comes before the commands, because a later rule overrides an earlier one. */
static int print_rules(struct cli *cli, const char *user, const struct rights_wanted *wanted,
                       bool lists)
{
    static const char *const start[] = {"reset", "on", ">PASSWORD", "resetchannels", "-@all"};
    struct page page = {.cli = cli, .user = user};

    if (cli->json) {
        (void)printf("{\"user\":");
        cli_json_string(stdout, user);
        (void)printf(",\"rules\":[");
    }
    begin_line(&page);
    for (size_t i = 0; i < sizeof start / sizeof start[0]; i++)
        put(&page, start[i]);
    begin_line(&page);
    put_commands(&page, wanted->kinds);
    if (lists) {
        put(&page, "+scan");
        put(&page, "+strlen");
    }
    begin_line(&page);
    for (size_t i = 0; i < RIGHTS_PLACES_LEN; i++)
        put_place(&page, i, wanted);
    (void)printf("%s\n", cli->json ? "]}" : "");
    if (!cli->json)
        cli_hint("replace PASSWORD; then CONFIG REWRITE, or ACL SAVE with an aclfile, or the user "
                 "is gone after a restart");
    return cli_flush_output();
}

static void check_user(const struct cli *cli, const char *user)
{
    char shown[CLI_NAMES_SHOWN_MAX];

    for (const char *p = user; *p != '\0' || p == user; p++)
        if ((unsigned char)*p <= ' ' || *p == 127 || strchr("\"'", *p))
            cli_usage_error(
                cli,
                "--user is '%s', but must not be empty, or have blanks, quotes or control "
                "characters",
                cli_show_argument(user, shown));
    /* Every connection that gives no user name is this user, and so may an administrator's be. */
    if (strcmp(user, "default") == 0)
        cli_usage_error(
            cli, "--user is 'default', but the rules take away all its other rights, and with them "
                 "can lock out whoever administers the master: give another name");
}

static int acl_main(struct cli *cli, int argc, char **argv)
{
    struct rights_wanted wanted = {.kinds = 0};
    const char *user = "redlock";
    bool lists = false;
    int option;

    while ((option = cli_getopt(cli, argc, argv, false)) != -1) {
        if (option == OPTION_USER)
            user = optarg;
        else if (option == OPTION_LIST)
            lists = true;
        else
            rights_take_option(cli, option, &wanted);
    }
    cli_need_arguments(cli, argc, argv, 0, "none");
    check_user(cli, user);
    rights_check(cli, &wanted);
    if (wanted.names_len == 0)
        wanted.names[wanted.names_len++] = "*";
    return print_rules(cli, user, &wanted, lists);
}

const struct cli_command cli_acl = {
    .name = "acl",
    .options = OPTIONS_ACL,
    .run = acl_main,
    .usage = "acl [--user NAME] [--names PATTERN]... [--list] [--fair] [--fence] [--permits] "
             "[--shared]",
    .help = "Print the ACL rules of a user that may take locks and do nothing else.\n"
            "To load them, replace PASSWORD by a password, where the > belongs to the rule, and\n"
            "paste all lines into redis-cli on each master; acl itself asks no master.\n"
            "The first line takes away all rights of an existing user: use a new user, or add\n"
            "only the other lines.\n"
            "To keep them, run ACL SAVE if the master has an aclfile, else CONFIG REWRITE,\n"
            "which writes users to redis.conf.\n"
            "Check them with `redlock doctor` and the same options, but --list.\n",
    .more = "Example: redlock acl --user jobs --names 'jobs/*'\n"
            "Exit: 0 printed, 64 usage.\n",
};
