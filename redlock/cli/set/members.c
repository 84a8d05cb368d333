/*
 * members.c - `redlock members`: show the set of masters, and change it.
 *
 * The command computes a wish, the list that is wanted, from the present list (wish.h), and
 * driver.h carries it out.  If it finds a change unfinished, it finishes that change first.
 */
#include "redlock/cli/common/cli.h"

#include <string.h>

#include "redlock/base/text.h"
#include "redlock/cli/set/driver.h"
#include "redlock/cli/set/rescue.h"
#include "redlock/cli/set/set_refusal.h"
#include "redlock/cli/set/set_report.h"
#include "redlock/cli/set/survey.h"
#include "redlock/cli/set/wish.h"

#define TRIES_MAX 8 /* Tries to change the set, if others change it meanwhile.  Chosen. */

enum { LIST_MAX = CONFIG_TEXT_MAX + 1 };

struct order {
    struct cli *cli;
    char *list;
    struct wish wish;
    struct survey_uri
        uris[2 * REDLOCK_MASTERS_MAX]; /* The joiners; then the leavers, see asks_leavers(). */
    unsigned asked_len;                /* How many of them are leavers. */
    const char *lost; /* Of a rescue: the members that are lost.  NULL: the option is not given. */
    bool shows, is_dry, rescues;
    bool has_warned;                    /* warn_of_passwords() has run. */
    bool has_finished;                  /* An unfinished change was found, and finished. */
    bool has_left[REDLOCK_MASTERS_MAX]; /* For each leaver: a master of the set knows it. */
    struct survey survey;
};

/* ---- Arguments ---- */

/* `ps` shows the memory of argv.  See take_masters() in cli.c. */
static void take_joiner(struct order *order, char *text)
{
    struct wish *wish = &order->wish;
    struct survey_uri *joiner = &order->uris[wish->joiners_len];

    if (wish->joiners_len == REDLOCK_MASTERS_MAX)
        cli_usage_error(order->cli, "more than %d masters", REDLOCK_MASTERS_MAX);
    joiner->text = cli_copy(text);
    if (strchr(text, '@') != NULL)
        memset(text, '*', strlen(text));
    if (uri_parse(joiner->text, strlen(joiner->text), &joiner->uri) != REDLOCK_OK)
        cli_usage_error(order->cli, "master %u of the arguments: %s", wish->joiners_len + 1,
                        redlock_errmsg(NULL));
    if (!inspect_place(&joiner->uri, &wish->joiners[wish->joiners_len]))
        cli_usage_error(order->cli, "master %u of the arguments: no set can have this place",
                        wish->joiners_len + 1);
    wish->joiners_len++;
}

/* An argument may be a list with commas, as that of --masters.  Make it several arguments. */
static void take_each(struct order *order, char *text, void (*take)(struct order *, char *))
{
    for (char *next; text != NULL; text = next) {
        next = strchr(text, ',');
        if (next != NULL)
            *next++ = '\0';
        take(order, text);
    }
}

/* A name of a member has no other characters.  A URI may have a password. */
static void take_leaver(struct order *order, char *name)
{
    struct wish *wish = &order->wish;
    char shown[CLI_NAMES_SHOWN_MAX];

    for (const char *p = name; *p != '\0' || p == name; p++)
        if (*p <= ' ' || *p > '~' || *p == '@')
            cli_usage_error(order->cli, "'%s' is no name of a member%s",
                            cli_show_argument(name, shown),
                            *p == '@' ? ": give the name without user and password" : "");
    if (wish->leavers_len == REDLOCK_MASTERS_MAX)
        cli_usage_error(order->cli, "more than %d masters", REDLOCK_MASTERS_MAX);
    wish->leavers[wish->leavers_len++] = name;
}

static void take_arguments(struct order *order, int argc, char **argv)
{
    const char *verb = optind < argc ? argv[optind++] : NULL;
    int len = argc - optind;

    if (verb == NULL) {
        order->shows = true;
        if (order->is_dry || order->wish.allows_even)
            cli_usage_error(order->cli, "--dry-run and --even are for add, remove and replace");
        return;
    }
    if (strcmp(verb, "replace") == 0) {
        cli_need_arguments(order->cli, argc, argv, 2, "replace NAME URI");
        take_leaver(order, argv[optind]);
        take_joiner(order, argv[optind + 1]);
        return;
    }
    order->rescues = strcmp(verb, "rescue") == 0;
    if (strcmp(verb, "add") != 0 && strcmp(verb, "remove") != 0 && !order->rescues) {
        char shown[CLI_NAMES_SHOWN_MAX];

        cli_usage_error(order->cli, "'%s' is none of add, remove, replace and rescue",
                        cli_show_argument(verb, shown));
    }
    if (len == 0)
        cli_usage_error(order->cli, "arguments are missing; needed: %s %s", verb,
                        strcmp(verb, "remove") == 0 ? "NAME..." : "URI...");
    for (; optind < argc; optind++) {
        if (strcmp(verb, "remove") == 0)
            take_each(order, argv[optind], take_leaver);
        else
            take_each(order, argv[optind], take_joiner);
    }
}

/* ---- Showing ---- */

/* If the list that was given is not that of the set, say which list to give. */
static void say_list(const struct order *order, const struct config *config)
{
    char list[LIST_MAX];

    if (order->list == NULL || config->members_len == 0 || config_is_joint(config) ||
        survey_list_is(order->list, config))
        return;
    wish_print(config, config->to, list, sizeof list);
    for (char *p = list; (p = strchr(p, ' ')) != NULL;)
        *p = ',';
    cli_say(MSG_SET_CHANGED, "give all clients this list: --masters %s%s", list,
            strchr(order->list, '@') != NULL ? " (with users and passwords)" : "");
}

/* True: a master of the set knows it as a member, or is this master itself, removed or not. */
static bool is_known(const struct survey *found, const char *leaver)
{
    for (unsigned m = 0; m < found->masters; m++) {
        const struct survey_master *master = &found->of[m];

        if (!master->answered || master->set == 0 || master->set != found->newest.set)
            continue;
        if (wish_find(&master->config, leaver) < master->config.members_len ||
            strcmp(master->member.name, leaver) == 0 || strcmp(master->member.place, leaver) == 0)
            return true;
    }
    return false;
}

static int survey(struct order *order)
{
    const struct wish *wish = &order->wish;
    int code = survey_open(&order->survey, order->cli, order->list, order->uris,
                           wish->joiners_len + order->asked_len);

    if (code == CLI_OK && order->survey.newest.version != 0)
        set_report_versions(&order->survey);
    for (unsigned i = 0; i < wish->leavers_len && code == CLI_OK; i++)
        order->has_left[i] = order->has_left[i] || is_known(&order->survey, wish->leavers[i]);
    return code;
}

/* Say why no set was found. */
static int say_no_set(const struct survey *found)
{
    bool any = false;

    if (found->why[0] != '\0') {
        cli_say(MSG_WRONG_SET, "%s", found->why);
        return CLI_CHANGE;
    }
    for (unsigned m = 0; m < found->masters; m++) {
        const struct survey_master *master = &found->of[m];

        if (!master->answered)
            cli_say(reason_message(&master->why), "master %u (%s): %s", m + 1,
                    inspect_master(found->rl, m).name, survey_why(found, m).text);
        else if (master->set != 0)
            cli_say(MSG_WRONG_SET,
                    "%s is in a set, but the list does not name it: an argument chooses no set",
                    master->member.place);
        any = any || (master->answered && !survey_is_argument(found, m));
    }
    cli_say(MSG_NO_SET, "no master of the list that answers belongs to a set%s",
            any ? ": `redlock init` makes the masters of a list a set" : "");
    return any ? CLI_CHANGE : CLI_UNREACHABLE;
}

static int show(struct order *order)
{
    const struct survey *found = &order->survey;
    int code = survey(order);

    if (code != CLI_OK)
        return code;
    if (found->newest.version == 0)
        return say_no_set(found);
    if (order->cli->json)
        set_report_json(found);
    else
        set_report_text(found);
    code = cli_flush_output();
    /* No list is right for ever while a member is dead.  With it: it may be replaced, and come back
     * empty.  Without it: the others may die. */
    if (!order->cli->json && survey_all_answer(found))
        say_list(order, &found->newest);
    if (code != CLI_OK)
        return code;
    return set_report_has_majority(found) ? CLI_OK : CLI_UNREACHABLE;
}

/* ---- Telling what happens ---- */

static void print_json_list(const char *key, const struct config *list)
{
    (void)printf("\"%s\":[", key);
    for (unsigned i = 0; i < list->members_len; i++) {
        (void)printf("%s", i > 0 ? "," : "");
        cli_json_string(stdout, list->members[i].name);
    }
    (void)printf("]");
}

static int tell_plan(const struct order *order, const struct config *now, const struct config *list,
                     bool finishes)
{
    char before[LIST_MAX], after[LIST_MAX];

    if (order->cli->json) {
        (void)printf("{\"dry_run\":true,\"finishes\":%s,", finishes ? "true" : "false");
        print_json_list("before", now);
        (void)printf(",");
        print_json_list("after", list);
        (void)printf("}\n");
        return cli_flush_output();
    }
    wish_print(now, now->from, before, sizeof before);
    wish_print(list, list->from, after, sizeof after);
    if (finishes)
        (void)printf("first:  finish the change that was found\n");
    (void)printf("before: %s\nafter:  %s\n", before, after);
    for (unsigned i = 0; i < list->members_len && !order->rescues; i++)
        if (config_find(now, list->members[i].name) == now->members_len)
            (void)printf("%s is watched until it may vote, and then joins\n",
                         list->members[i].name);
    for (unsigned i = 0; i < now->members_len && !order->rescues; i++)
        if (config_find(list, now->members[i].name) == list->members_len)
            (void)printf("%s leaves\n", now->members[i].name);
    (void)printf("nothing was changed (--dry-run)\n");
    return cli_flush_output();
}

static int tell_end(const struct order *order, const struct config *list)
{
    char text[LIST_MAX];

    if (order->cli->json) {
        (void)printf("{\"version\":%llu,", (unsigned long long)list->version);
        print_json_list("members", list);
        (void)printf("}\n");
    } else {
        wish_print(list, list->from, text, sizeof text);
        (void)printf("the set has %u members, version %llu: %s\n", list->members_len,
                     (unsigned long long)list->version, text);
        say_list(order, list);
    }
    return cli_flush_output();
}

/* ---- Changing ---- */

/* Finish the change that was found.  Returns CLI_OK if the survey is to be made again. */
static int finish(struct order *order)
{
    const struct survey *found = &order->survey;
    char from[LIST_MAX], to[LIST_MAX];
    struct config list;
    int code = set_refusal_too_few(found);

    if (code != CLI_OK)
        return code;
    wish_print(&found->newest, found->newest.from, from, sizeof from);
    wish_print(&found->newest, found->newest.to, to, sizeof to);
    config_finish(&found->newest, &list);
    cli_say(MSG_SET_CHANGED, "a change is unfinished, from %s to %s: %s", from, to,
            wish_is_met(&order->wish, &list) ? "it goes on" : "finishing it first");
    code = driver_run(&order->survey, &list, true, &list);
    order->has_finished = order->has_finished || code == CLI_OK;
    return code == DRIVER_AGAIN ? CLI_OK : code;
}

/* True: a master of the set answered with an older version. */
static bool has_laggards(const struct survey *found)
{
    for (unsigned m = 0; m < found->masters; m++)
        if (survey_votes(found, m) && found->of[m].version < found->newest.version)
            return true;
    return false;
}

/* Ask the leavers that are no members, too.  One may be another address of a member, or a member
 * that was removed and does not know it.  Returns false if all leavers with an address were asked.
 */
static bool asks_leavers(struct order *order)
{
    const struct wish *wish = &order->wish;
    struct survey_uri *asked = &order->uris[wish->joiners_len];
    struct config_member member;

    if (order->asked_len > 0)
        return false;
    for (unsigned i = 0; i < wish->leavers_len; i++) {
        const char *name = wish->leavers[i];

        if (order->survey.masters + order->asked_len == REDLOCK_MASTERS_MAX)
            break;
        if (uri_parse(name, strlen(name), &asked->uri) != REDLOCK_OK)
            continue;
        if (!inspect_place(&asked->uri, &member) || strcmp(member.place, name) != 0) {
            uri_done(&asked->uri);
            continue;
        }
        asked->text = cli_copy(name);
        asked++;
        order->asked_len++;
    }
    return order->asked_len > 0;
}

/* Name each argument, because one may be mistaken. */
static void say_nothing_to_do(const struct wish *wish)
{
    for (unsigned i = 0; i < wish->leavers_len; i++)
        cli_hint("nothing to do: %s is no member", wish->leavers[i]);
    for (unsigned i = 0; i < wish->joiners_len; i++)
        cli_hint("nothing to do: %s is a member already", wish->joiners[i].name);
}

/* Refuse leavers that no master knows: they may be mistyped, and the set keeps no record of removed
 * members.  Accept them if the joiners show that the same command was run before. */
static int refuse_strangers(const struct order *order, const struct config *now)
{
    const struct wish *wish = &order->wish;
    char members[LIST_MAX];
    int code = CLI_OK;

    for (unsigned i = 0; i < wish->leavers_len && wish->joiners_len == 0; i++) {
        if (order->has_left[i])
            continue;
        cli_say(MSG_CHANGE_REFUSED, "no member is called %s", wish->leavers[i]);
        code = CLI_CHANGE;
    }
    if (code == CLI_OK)
        return CLI_OK;
    wish_print(now, now->from, members, sizeof members);
    cli_hint("nothing was changed; the members are %s", members);
    return code;
}

/* The set is as wanted: the same command was run before.  Masters that do not know it yet learn
 * it now. */
static int end_met(struct order *order, const struct config *now)
{
    struct config list = *now;
    bool is_joint = config_is_joint(&order->survey.newest);
    bool has_more = is_joint || has_laggards(&order->survey);
    int code = set_refusal_too_few(&order->survey);

    if (code == CLI_OK && !is_joint && asks_leavers(order))
        return DRIVER_AGAIN;
    if (code == CLI_OK)
        code = refuse_strangers(order, now);
    if (code != CLI_OK)
        return code;
    if (!order->has_finished && !has_more)
        say_nothing_to_do(&order->wish);
    if (order->is_dry)
        return tell_plan(order, now, now, has_more);
    if (has_more)
        cli_say(MSG_SET_CHANGED, "the last change is not finished: it goes on");
    if (has_more)
        code = driver_run(&order->survey, &list, true, &list);
    return code == CLI_OK ? tell_end(order, &list) : code;
}

/* True: clients with a list of the members send a password to this address.  As these clients do,
 * this compares hosts as texts (masters/links.h). */
static bool is_known_host(const struct config *now, const struct uri *to)
{
    bool is_known_one = false;

    for (unsigned i = 0; i < now->members_len && !is_known_one; i++) {
        const char *place = now->members[i].place;
        struct uri uri;

        if (uri_parse(place, strlen(place), &uri) != REDLOCK_OK)
            continue;
        is_known_one = uri.host != NULL &&
                       text_same_letters(uri.host, to->host, strlen(to->host) + 1) &&
                       (to->tls || !uri.tls);
        uri_done(&uri);
    }
    return is_known_one;
}

/* Running clients follow the set, but send passwords only to the hosts of their lists. */
static void warn_of_passwords(struct order *order, const struct config *now)
{
    const struct survey *found = &order->survey;

    for (unsigned i = 0; i < order->wish.joiners_len && !order->has_warned; i++) {
        unsigned m = survey_find(found, &order->wish.joiners[i]);
        const struct uri *uri = m < found->masters ? inspect_master(found->rl, m).uri : NULL;

        if (uri != NULL && uri->password != NULL && uri->host != NULL && !is_known_host(now, uri))
            cli_say(MSG_PASSWORD_NOT_SENT,
                    "%s asks for a password, and running clients send one only to hosts of their "
                    "list%s: it has no vote for them until they are restarted with a list that "
                    "names it (%s://USER:PASSWORD@HOST)",
                    order->wish.joiners[i].place,
                    uri->tls ? ", unless they were given its CA (--tls-ca, REDLOCK_TLS_CA)" : "",
                    uri->tls ? "rediss" : "redis");
    }
    order->has_warned = true;
}

/* Warn of loopback addresses, unless all members have one: such a set is meant for one machine. */
static void warn_of_loopback(const struct wish *wish, const struct config *list)
{
    bool is_local = true;

    for (unsigned i = 0; i < list->members_len; i++)
        is_local = is_local && uri_loopback_len(list->members[i].place) > 0;
    for (unsigned i = 0; i < wish->joiners_len && !is_local; i++)
        cli_warn_of_loopback(wish->joiners[i].place, false);
}

/* Try once.  DRIVER_AGAIN: the set was changed meanwhile, or an unfinished change was finished. */
static int change(struct order *order)
{
    const struct survey *found = &order->survey;
    struct config now, list;
    char why[LIST_MAX + REASON_TEXT_MAX];
    int code = survey(order);

    if (code == CLI_OK)
        code = set_refusal_two_names(found); /* First: either link to the server may be down. */
    if (code != CLI_OK)
        return code;
    if (found->newest.version == 0)
        return say_no_set(found);
    if (config_is_closed(&found->newest)) {
        cli_say(MSG_SET_CLOSED, "the set is closed: it needs `redlock members rescue`");
        return CLI_CHANGE;
    }
    now = found->newest;
    if (config_is_joint(&now) && !order->is_dry) {
        code = finish(order);
        return code == CLI_OK ? DRIVER_AGAIN : code;
    }
    if (config_is_joint(&now))
        config_finish(&found->newest, &now);
    set_refusal_hint(found, &order->wish);
    if (!wish_make(&order->wish, &now, &list, why, sizeof why)) {
        if (wish_is_met(&order->wish, &now))
            return end_met(order, &now);
        cli_say(MSG_CHANGE_REFUSED, "%s", why);
        return CLI_CHANGE;
    }
    code = set_refusal_too_few(found);
    if (code == CLI_OK)
        code = set_refusal_login(found, &list);
    if (code == CLI_OK)
        code = set_refusal_list(found, &order->wish, &list);
    if (code != CLI_OK)
        return code;
    if (!order->has_warned)
        warn_of_loopback(&order->wish, &list);
    warn_of_passwords(order, &now);
    if (order->is_dry)
        return tell_plan(order, &now, &list, config_is_joint(&found->newest));
    code = driver_run(&order->survey, &list, order->wish.allows_even, &list);
    return code == CLI_OK ? tell_end(order, &list) : code;
}

static int rescue(struct order *order)
{
    struct config list;
    int code = survey(order);

    if (code != CLI_OK)
        return code;
    if (order->survey.newest.version == 0)
        return say_no_set(&order->survey);
    if (cli_rescue_is_met(&order->survey, &order->wish) && survey_has_quorum(&order->survey))
        return end_met(order, &order->survey.newest);
    code = cli_rescue(&order->survey, &order->wish, order->lost, order->is_dry, &list);
    if (code != CLI_OK)
        return code;
    return order->is_dry ? tell_plan(order, &order->survey.newest, &list, false)
                         : tell_end(order, &list);
}

static int run(struct order *order)
{
    int code = DRIVER_AGAIN;

    for (unsigned i = 0; i < TRIES_MAX && code == DRIVER_AGAIN; i++) {
        code = order->shows ? show(order) : order->rescues ? rescue(order) : change(order);
        survey_close(&order->survey);
    }
    if (code == DRIVER_AGAIN) {
        cli_say(MSG_CHANGE_OVERTAKEN, "others change the set again and again");
        code = CLI_CHANGE;
    }
    return code;
}

static int members_main(struct cli *cli, int argc, char **argv)
{
    static struct order orders; /* Too large for a small stack. */
    struct order *order = &orders;
    int option, code;

    order->cli = cli;
    while ((option = cli_getopt(cli, argc, argv, false)) != -1) {
        order->is_dry = order->is_dry || option == OPTION_DRY_RUN;
        order->wish.allows_even = order->wish.allows_even || option == OPTION_EVEN;
        order->lost = option == OPTION_LOST ? optarg : order->lost;
    }
    take_arguments(order, argc, argv);
    if (order->rescues != (order->lost != NULL))
        cli_usage_error(cli, "rescue and --i-know-what-is-lost need each other");
    if (!cli_is_guarded(cli))
        cli_usage_error(cli, "the restart guard is off, and without it masters are no set");
    order->list = survey_copy_list(cli);
    code = run(order);
    survey_forget_list(order->list);
    for (unsigned i = 0; i < order->wish.joiners_len + order->asked_len; i++) {
        survey_forget_list(order->uris[i].text);
        uri_done(&order->uris[i].uri);
    }
    return code;
}

const struct cli_command cli_members = {
    .name = "members",
    .options = OPTIONS_MEMBERS,
    .run = members_main,
    .usage = "members [--dry-run] [--even] [add URI... | remove NAME... | replace NAME URI |\n"
             "       --i-know-what-is-lost NAME,... rescue URI...]",
    .help =
        "Without arguments, show the set of masters: its version, whether it changes, and for\n"
        "each member whether it votes, or why not, and which version it has.  The list may have\n"
        "any members of the set.\n"
        "\n"
        "add, remove and replace change the set while clients run.  New members are watched\n"
        "until they may vote, which takes somewhat longer than the longest lease (--max-ttl).\n"
        "All earlier leases must then end, which takes as long again.  The command may be\n"
        "interrupted at any time: run it again, and it goes on.  A change that is done already\n"
        "may be run again, too; but remove refuses a name that no master knows, for it may be\n"
        "mistyped.  If two are run at once, one of them changes the set, and the other says so,\n"
        "or goes on from there.\n"
        "\n"
        "rescue founds the set anew, with the masters of the URIs alone, when a majority of the\n"
        "members is gone for good.  First stop the lost masters, so that they never answer again.\n"
        "It says what it cannot promise, and waits until all earlier leases have ended.\n",
    .more = "Example: redlock members replace 10.0.0.5:6379 10.0.0.6:6379\n"
            "Exit: 0 done or a majority votes, 64 usage, 69 too few masters answer, 78 refused or\n"
            "overtaken.\n",
};
