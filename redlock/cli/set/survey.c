/*
 * survey.c - asks masters for their markers, and finds the newest configuration.
 */
#include "redlock/cli/set/survey.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <sodium.h>

#include "redlock/base/list_file.h"
#include "redlock/cli/common/remark.h"
#include "redlock/cli/set/marker.h"
#include "redlock/link/uri.h"
#include "redlock/wire/answer.h"
#include "redlock/wire/reply.h"

#define ROUNDS_MAX 4 /* Chosen: a configuration names all its members. */
#define STOPS ", \t\r\n\v\f"

/* ---- The list ---- */

static void *need(void *memory)
{
    if (memory == NULL) {
        cli_say(MSG_NO_MEMORY, "out of memory");
        exit(CLI_INTERNAL);
    }
    return memory;
}

void survey_forget_list(char *list)
{
    if (list != NULL)
        sodium_memzero(list, strlen(list));
    free(list);
}

char *survey_copy_list(const struct cli *cli)
{
    const char *list = cli->masters != NULL ? cli->masters : getenv("REDLOCK_MASTERS");
    char *read = NULL, *copy;

    if (list == NULL)
        return NULL;
    if (cli->masters == NULL && list[0] == '@') {
        if (list_file_read(list + 1, &read) != REDLOCK_OK)
            return NULL;
        list = read;
    }
    copy = cli_copy(list);
    list_file_free(read);
    return copy;
}

static bool is_same(const struct uri *a, const struct uri *b)
{
    struct config_member one, other;

    return uri_same_place(a, b) || (inspect_place(a, &one) && inspect_place(b, &other) &&
                                    strcmp(one.place, other.place) == 0);
}

/* True: the list has a URI of this place. */
static bool has(const char *list, const struct uri *wanted)
{
    for (const char *p = list + strspn(list, STOPS); *p != '\0'; p += strspn(p, STOPS)) {
        size_t len = strcspn(p, STOPS);
        struct uri uri;
        bool is_it = false;

        if (uri_parse(p, len, &uri) == REDLOCK_OK) {
            is_it = is_same(&uri, wanted);
            uri_done(&uri);
        }
        if (is_it)
            return true;
        p += len;
    }
    return false;
}

struct remark survey_why(const struct survey *survey, unsigned m)
{
    return remark_of("", &survey->of[m].why);
}

bool survey_list_is(const char *list, const struct config *config)
{
    unsigned members = 0, len = 0;

    for (const char *p = list + strspn(list, STOPS); *p != '\0'; p += strspn(p, STOPS)) {
        struct config_member one;
        struct uri uri;

        if (uri_parse(p, strcspn(p, STOPS), &uri) == REDLOCK_OK) {
            bool is_place = inspect_place(&uri, &one);

            for (unsigned i = 0; i < config->members_len && is_place; i++)
                members += strcmp(one.name, config->members[i].name) == 0 ||
                           strcmp(one.place, config->members[i].place) == 0;
            uri_done(&uri);
        }
        len++;
        p += strcspn(p, STOPS);
    }
    return len == config->members_len && members == len;
}

bool survey_all_answer(const struct survey *survey)
{
    for (unsigned i = 0; i < survey->newest.members_len; i++) {
        unsigned m = survey_find(survey, &survey->newest.members[i]);

        if (m == survey->masters || !survey->of[m].answered)
            return false;
    }
    return true;
}

static void append(char **list, const char *text)
{
    size_t len = strlen(*list) + strlen(text) + 2;
    char *longer = need(malloc(len));

    (void)snprintf(longer, len, "%s,%s", *list, text);
    survey_forget_list(*list);
    *list = longer;
}

/* The user and password in this master of the list, with what stands before them.  "": none. */
static size_t find_login(const char *list, unsigned number, const char **ret_login)
{
    const char *at;

    for (list += strspn(list, STOPS); number > 0 && *list != '\0'; number--) {
        list += strcspn(list, STOPS);
        list += strspn(list, STOPS);
    }
    at = memrchr(list, '@', strcspn(list, STOPS)); /* As uri.c: the last one. */
    *ret_login = list;
    return at != NULL ? (size_t)(at + 1 - list) : 0;
}

/* The length of the scheme, or 0. */
static size_t scheme_len(const char *text)
{
    if (strncasecmp(text, "rediss://", 9) == 0)
        return 9;
    if (strncasecmp(text, "unix://", 7) == 0)
        return 7;
    return strncasecmp(text, "redis://", 8) == 0 ? 8 : 0;
}

/* Add a place that a configuration names, with the user and password that other commands, which
 * follow the set, would send there.  Those of arguments are for the arguments. */
static void append_place(struct survey *survey, const struct config_member *member)
{
    char place[2 * CONFIG_PLACE_MAX + 4], *text;
    const char *login = "", *scheme;
    size_t login_len = 0, len;
    struct uri uri;
    unsigned number;

    (void)snprintf(place, sizeof place, "%s%s%s", member->place,
                   strcmp(member->name, member->place) != 0 ? "#" : "",
                   strcmp(member->name, member->place) != 0 ? member->name : "");
    if (uri_parse(place, strlen(place), &uri) != REDLOCK_OK)
        return;
    number = inspect_login(survey->rl, &uri);
    if (number < survey->listed)
        login_len = find_login(survey->list, number, &login);
    if (login_len > 0) { /* It may be that of a master with another scheme. */
        login_len -= scheme_len(login);
        login += scheme_len(login);
    }
    scheme = uri.tls ? "rediss://" : login_len > 0 ? "redis://" : "";
    len = strlen(scheme) + 1 + login_len + strlen(place);
    text = need(malloc(len));
    (void)snprintf(text, len, "%s%.*s%s", scheme, (int)login_len, login, place + scheme_len(place));
    if (!has(survey->list, &uri))
        append(&survey->list, text);
    survey_forget_list(text);
    uri_done(&uri);
}

/* ---- Asking ---- */

/* "BALLOT CONFIG" */
static bool take_accepted(const struct answer_set *set, struct config *ret_next)
{
    struct config next = {.set = set->set, .version = set->version + 1};

    if (!config_parse(set->accepted + WIRE_NUMBER + 1, set->accepted_len - WIRE_NUMBER - 1, &next))
        return false;
    *ret_next = next;
    return true;
}

static bool read_look(struct survey_master *master, const struct reply *reply)
{
    struct answer_set set;
    struct marker marker;

    if (!answer_look(reply, &master->look, &set) || !marker_parse(reply, &marker))
        return false;
    master->age_ms = marker.age_ms;
    master->set = set.set;
    master->version = set.version;
    (void)snprintf(master->name, sizeof master->name, "%.*s", (int)set.name_len, set.name);
    master->config = (struct config){.set = set.set, .version = set.version};
    if (set.set != 0 &&
        (set.config == NULL || !config_parse(set.config, set.config_len, &master->config)))
        return false;
    master->next = (struct config){.version = 0};
    return set.accepted == NULL || take_accepted(&set, &master->next);
}

static void take(void *asker, unsigned m, uint32_t query, const struct reply *reply)
{
    struct survey *survey = asker;
    struct survey_master *master = &survey->of[m];

    (void)query;
    master->answered = reply->type != REPLY_ERROR && read_look(master, reply);
    if (reply->type == REPLY_ERROR)
        redis_error_reason(&master->why, reply->text);
    else if (!master->answered)
        answer_look_fault(reply, &master->why);
}

/* A survey takes no lease, so it announces none.  A change that follows does. */
static void ask(void *asker, unsigned m)
{
    struct survey *survey = asker;
    const struct inspect_master seen = inspect_master(survey->rl, m);
    char look[WIRE_MAX];

    question_write(&survey->question, m, 0, look, marker_look(look, &seen.info, 0, 0, 0));
}

static void ask_all(struct survey *survey)
{
    survey->question = (struct question){
        .rl = survey->rl,
        .loop = survey->session.loop,
        .cli = survey->session.cli,
        .signal = &survey->session.signal,
        .tries = true,
        .asker = survey,
        .send = ask,
        .take = take,
    };
    question_ask(&survey->question);
    for (unsigned m = 0; m < survey->masters; m++) {
        struct survey_master *master = &survey->of[m];

        master->no_vote = question_no_vote(&survey->question, m);
        if (!master->answered && master->why.why == WHY_NONE)
            master->why = survey->question.of[m].why;
    }
}

/* False: it is known of each warming master how much longer it is, or a signal came. */
static bool is_timing(void *arg)
{
    struct survey *survey = arg;
    bool is_over = true;

    for (unsigned m = 0; m < survey->masters; m++) {
        struct survey_master *master = &survey->of[m];
        struct marker_wait wait;

        if (!master->answered || master->look.ready || master->is_timed)
            continue;
        master->is_timed = marker_wait(survey->rl, m, master->age_ms, &wait);
        is_over = is_over && master->is_timed;
        master->is_witnessed = master->is_timed && wait.is_witnessed;
        master->left = master->is_witnessed ? wait.left : 0;
    }
    return !is_over && survey->session.signal == 0;
}

/* The masters with these members of the newest configuration.  0: some have no link. */
static quorum_mask masters_of(const struct survey *survey, quorum_mask members)
{
    quorum_mask masters = 0;

    for (unsigned i = 0; i < survey->newest.members_len; i++) {
        unsigned m = survey_find(survey, &survey->newest.members[i]);

        if (m == survey->masters)
            return 0;
        masters |= (members & mask_of(i)) != 0 ? mask_of(m) : 0;
    }
    return masters;
}

/* The other members know for how long a master has been warming.  The client asks them as soon as
 * it knows who they are. */
static void ask_witnesses(struct survey *survey)
{
    quorum_mask from = masters_of(survey, survey->newest.from);
    quorum_mask to = masters_of(survey, survey->newest.to);
    const struct cli *cli = survey->session.cli;
    bool is_any = false;

    for (unsigned m = 0; m < survey->masters; m++)
        is_any = is_any || (survey->of[m].answered && !survey->of[m].look.ready);
    if (!is_any || from == 0 || to == 0)
        return;
    inspect_watch(survey->rl, &survey->newest, from, to, 0);
    cli_linger(survey->session.loop, is_timing, survey,
               cli->connect_timeout_ms + cli->reply_timeout_ms);
}

/* True: of two names of one server, the answer is shown with the first.  It is a member, or stands
 * earlier in the list. */
static bool comes_first(const struct survey *survey, unsigned m, unsigned twin)
{
    bool is_member = survey_member_of(survey, m) != NULL;

    return is_member != (survey_member_of(survey, twin) != NULL) ? is_member : m < twin;
}

/* Which of two links to one server answers depends on which was up first.  What is shown must not
 * depend on it. */
static void sort_twins(struct survey *survey)
{
    for (unsigned m = 0; m < survey->masters; m++) {
        struct survey_master *one = &survey->of[m], *other, answer;
        unsigned twin = survey_twin(survey, m);

        if (twin == survey->masters || !survey->of[twin].answered || !comes_first(survey, m, twin))
            continue;
        other = &survey->of[twin];
        answer = *other;
        answer.member = one->member;
        answer.is_named = one->is_named;
        *one = answer;
        *other = (struct survey_master){.member = other->member, .is_named = other->is_named};
        reason_quote(&other->why, WHY_TWIN, inspect_master(survey->rl, m).name, NULL);
        other->why.other = (uint8_t)m;
    }
}

/* ---- One survey ---- */

/* A client has no room for so many masters.  Name a master whose configuration has them. */
static int refuse_too_many(const struct survey *survey, unsigned masters)
{
    unsigned m = 0;

    while (survey->of[m].set != survey->newest.set ||
           survey->of[m].version != survey->newest.version)
        m++;
    cli_say(MSG_WRONG_SET,
            "%s says that its set has %u members: together with the list these are %u masters, "
            "more than "
            "%d: give a shorter list; if this set is not yours, take the master off the list, or "
            "delete "
            "its key " WIRE_MARKER,
            survey->of[m].member.place, survey->newest.members_len, masters, REDLOCK_MASTERS_MAX);
    return CLI_CHANGE;
}

/* Add the members that have no link.  *ret_any: there are any. */
static int find_more(struct survey *survey, bool *ret_any)
{
    size_t len = survey->list != NULL ? strlen(survey->list) : 0;
    unsigned masters = survey->masters;

    for (unsigned i = 0; i < survey->newest.members_len; i++) {
        if (survey_find(survey, &survey->newest.members[i]) < survey->masters)
            continue;
        append_place(survey, &survey->newest.members[i]);
        masters++;
    }
    *ret_any = strlen(survey->list) > len;
    return masters > REDLOCK_MASTERS_MAX ? refuse_too_many(survey, masters) : CLI_OK;
}

static int ask_list(struct survey *survey, struct cli *cli)
{
    int code;

    cli_forget_masters(cli);
    cli->masters = survey->list != NULL ? cli_copy(survey->list) : NULL;
    cli->obeys_none = true;
    code = session_open(&survey->session, cli);
    if (code != CLI_OK)
        return code;
    survey->rl = survey->session.rl;
    survey->masters = inspect_client(survey->rl).masters;
    if (survey->listed == 0)
        survey->listed = survey->masters - survey->arguments;
    memset(survey->of, 0, sizeof survey->of);
    for (unsigned m = 0; m < survey->masters; m++) {
        const struct uri *uri = inspect_master(survey->rl, m).uri;

        (void)inspect_place(uri, &survey->of[m].member); /* The library has checked it. */
        survey->of[m].is_named = uri->member != NULL;
    }
    ask_all(survey);
    survey_choose_set(survey);
    ask_witnesses(survey);
    sort_twins(survey);
    return session_signal_exit(&survey->session);
}

int survey_open(struct survey *survey, struct cli *cli, const char *list,
                const struct survey_uri *uris, size_t len)
{
    bool has_more = false;
    int code = CLI_OK;

    memset(survey, 0, sizeof *survey);
    survey->session.cli = cli;
    survey->list = list != NULL ? cli_copy(list) : NULL;
    for (size_t i = 0; i < len && survey->list != NULL; i++)
        if (!has(survey->list, &uris[i].uri)) {
            append(&survey->list, uris[i].text);
            survey->arguments++;
        }
    for (unsigned round = 0; round < ROUNDS_MAX; round++) {
        if (round > 0)
            session_close(&survey->session);
        survey->rl = NULL;
        code = ask_list(survey, cli);
        if (code == CLI_OK)
            code = find_more(survey, &has_more);
        if (code != CLI_OK || !has_more)
            break;
    }
    return code;
}

void survey_close(struct survey *survey)
{
    if (survey->rl != NULL)
        session_close(&survey->session);
    survey->rl = NULL;
    survey_forget_list(survey->list);
    survey->list = NULL;
}
