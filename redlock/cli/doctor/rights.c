/*
 * rights.c - the table of rights, and the options that choose from it.
 */
#include "redlock/cli/doctor/rights.h"

#include <stdio.h>
#include <string.h>

#include "redlock/wire/wire.h"

#define EVAL_TEXT "return 1"
#define EVAL_SHA1 "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"

/* Redis checks rights before it finds that an argument is no number, and finds that before it
 * writes anything. */
#define NO_NUMBER "no-number"
#define NOBODY "redlock-doctor"

/* `redlock members` needs no rows of its own: its scripts call HMGET, HSET, HDEL and TIME.
 *
 * The rows are tried in this order.  DEL deletes what SET stored.  If DEL is forbidden, the key
 * expires.  SUBSCRIBE is last, because only another SUBSCRIBE can follow it. */
const struct right rights_all[] = {
    {"+select", RIGHTS_PLAIN, {NULL}, {NULL}},
    {"+info", RIGHTS_PLAIN, {NULL}, {NULL}},
    {"+config|get", RIGHTS_PLAIN, {NULL}, {NULL}},
    {"+time", RIGHTS_PLAIN, {NULL}, {NULL}},
    {"+script|load", RIGHTS_PLAIN, {NULL}, {NULL}},
    {"+eval", RIGHTS_PLAIN, {"EVAL", EVAL_TEXT, "0"}, {NULL}},
    {"+evalsha", RIGHTS_PLAIN, {"EVALSHA", EVAL_SHA1, "0"}, {NULL}},

    {"+set",
     RIGHTS_PLAIN,
     {"SET", RIGHTS_NAME, "probe", "NX", "PX", "10000"},
     {"SET", RIGHTS_NAME, "probe", "NX", "PX", NO_NUMBER}},
    {"+get", RIGHTS_PLAIN, {"GET", RIGHTS_NAME}, {NULL}},
    {"+pttl", RIGHTS_PLAIN, {"PTTL", RIGHTS_NAME}, {NULL}},
    {"+pexpire",
     RIGHTS_PLAIN,
     {"PEXPIRE", RIGHTS_NAME, "10000"},
     {"PEXPIRE", RIGHTS_NAME, NO_NUMBER}},
    {"+type", RIGHTS_PLAIN, {"TYPE", RIGHTS_NAME}, {NULL}},
    {"+exists", RIGHTS_PLAIN, {"EXISTS", RIGHTS_NAME}, {NULL}},
    {"+mget", RIGHTS_PLAIN, {"MGET", RIGHTS_NAME}, {NULL}},
    {"+del", RIGHTS_PLAIN, {"DEL", RIGHTS_NAME}, {"DEL", RIGHTS_OWN}},

    {"+hget", RIGHTS_GUARD, {"HGET", WIRE_MARKER, "epoch"}, {NULL}},
    {"+hmget", RIGHTS_GUARD, {"HMGET", WIRE_MARKER, "epoch", "nonce"}, {NULL}},
    /* Redis checks rights before HSET finds a field without a value. */
    {"+hset", RIGHTS_GUARD, {"HSET", WIRE_MARKER, "epoch", "nonce", "max"}, {NULL}},
    {"+hdel", RIGHTS_GUARD, {"HDEL", WIRE_MARKER, NOBODY}, {NULL}},
    {"+hlen", RIGHTS_GUARD, {"HLEN", WIRE_WITNESS}, {NULL}},
    {"+hincrby", RIGHTS_FENCE, {"HINCRBY", WIRE_MARKER, NOBODY, NO_NUMBER}, {NULL}},

    {"+zadd", RIGHTS_FAIR, {"ZADD", RIGHTS_QUEUE, NO_NUMBER, NOBODY}, {NULL}},
    {"+zrem", RIGHTS_FAIR, {"ZREM", RIGHTS_QUEUE, NOBODY}, {NULL}},
    {"+zscore", RIGHTS_FAIR, {"ZSCORE", RIGHTS_QUEUE, NOBODY}, {NULL}},
    {"+zcount", RIGHTS_FAIR, {"ZCOUNT", RIGHTS_QUEUE, "0", "0"}, {NULL}},
    {"+zcard", RIGHTS_FAIR, {"ZCARD", RIGHTS_QUEUE}, {NULL}},
    {"+zrevrange", RIGHTS_FAIR, {"ZREVRANGE", RIGHTS_QUEUE, "0", "0"}, {NULL}},
    {"+zrangebyscore", RIGHTS_FAIR, {"ZRANGEBYSCORE", RIGHTS_QUEUE, "0", "0"}, {NULL}},
    {"+hget", RIGHTS_FAIR, {"HGET", RIGHTS_TOKENS, NOBODY}, {NULL}},
    {"+hset", RIGHTS_FAIR, {"HSET", RIGHTS_TOKENS, NOBODY, "", "no value"}, {NULL}},
    {"+hdel", RIGHTS_FAIR, {"HDEL", RIGHTS_TOKENS, NOBODY}, {NULL}},

    {"+zadd", RIGHTS_SHARED, {"ZADD", RIGHTS_NAME, NO_NUMBER, NOBODY}, {NULL}},
    {"+zrem", RIGHTS_SHARED, {"ZREM", RIGHTS_NAME, NOBODY}, {NULL}},
    {"+zscore", RIGHTS_SHARED, {"ZSCORE", RIGHTS_NAME, NOBODY}, {NULL}},
    {"+zcount", RIGHTS_SHARED, {"ZCOUNT", RIGHTS_NAME, "0", "0"}, {NULL}},
    {"+zrange", RIGHTS_SHARED, {"ZRANGE", RIGHTS_NAME, "0", "0"}, {NULL}},
    {"+zremrangebyscore",
     RIGHTS_SHARED,
     {"ZREMRANGEBYSCORE", RIGHTS_NAME, NO_NUMBER, NO_NUMBER},
     {NULL}},

    /* Masters store no key of this name, but the scripts of waiters get it as a key. */
    {"+get", RIGHTS_PERMITS, {"GET", RIGHTS_PERMIT}, {NULL}},
    {"+set", RIGHTS_PERMITS, {"SET", RIGHTS_SLOT, "probe", "NX", "PX", NO_NUMBER}, {NULL}},
    {"+set", RIGHTS_PERMITS, {"SET", RIGHTS_PERMIT_MARK, "1", "NX", "PX", NO_NUMBER}, {NULL}},

    {"+set", RIGHTS_PLAIN, {"SET", RIGHTS_MARK, "1", "NX", "PX", NO_NUMBER}, {NULL}},
    {"+publish", RIGHTS_PLAIN, {"PUBLISH", RIGHTS_MARK, NOBODY}, {"PUBLISH", RIGHTS_OWN, NOBODY}},
    {"+publish", RIGHTS_FAIR, {"PUBLISH", RIGHTS_CLIENT, NOBODY}, {NULL}},
    {"+pubsub|numsub", RIGHTS_PLAIN, {"PUBSUB", "NUMSUB", RIGHTS_MARK}, {NULL}},
    {"+unsubscribe", RIGHTS_PLAIN, {"UNSUBSCRIBE", RIGHTS_MARK}, {NULL}},
    {"+subscribe", RIGHTS_PLAIN, {"SUBSCRIBE", RIGHTS_MARK}, {NULL}},
    {"+subscribe", RIGHTS_PLAIN, {"SUBSCRIBE", RIGHTS_GROUP}, {NULL}},
    {"+subscribe", RIGHTS_PERMITS, {"SUBSCRIBE", RIGHTS_PERMIT_MARK}, {NULL}},
    {"+subscribe", RIGHTS_PERMITS, {"SUBSCRIBE", RIGHTS_PERMIT_GROUP}, {NULL}},
    {"+subscribe", RIGHTS_FAIR, {"SUBSCRIBE", RIGHTS_CLIENT}, {NULL}},
};
const size_t rights_len = sizeof rights_all / sizeof rights_all[0];

/* ---- Keys and channels ---- */

/* The channel of a group of a crowd ends in two more bytes. */
#define GROUPS "??"
_Static_assert(sizeof GROUPS == WIRE_GROUP_LEN + 1, "as many bytes");

static const struct {
    enum rights_about about;
    unsigned kind;
    const char *before, *after; /* The names stand in between, unless after is NULL. */
} places[RIGHTS_PLACES_LEN] = {
    {RIGHTS_ABOUT_NAME, RIGHTS_PLAIN, "~", ""},
    {RIGHTS_ABOUT_MARKER, RIGHTS_GUARD, "~" WIRE_MARKER, NULL},
    {RIGHTS_ABOUT_WITNESS, RIGHTS_GUARD, "~" WIRE_WITNESS, NULL},
    {RIGHTS_ABOUT_MARK, RIGHTS_PLAIN, "~" WIRE_MARK, ""},
    {RIGHTS_ABOUT_QUEUE, RIGHTS_FAIR, "~" WIRE_QUEUE, ""},
    {RIGHTS_ABOUT_TOKENS, RIGHTS_FAIR, "~" WIRE_NEXT, ""},
    {RIGHTS_ABOUT_PERMIT, RIGHTS_PERMITS, "~" WIRE_PERMIT, ""},
    {RIGHTS_ABOUT_PERMIT, RIGHTS_PERMITS, "~" WIRE_PERMIT, ":*"},
    {RIGHTS_ABOUT_PERMIT, RIGHTS_PERMITS, "~" WIRE_MARK WIRE_PERMIT, ""},
    {RIGHTS_ABOUT_MARK, RIGHTS_PLAIN, "&" WIRE_MARK, ""},
    {RIGHTS_ABOUT_MARK, RIGHTS_PLAIN, "&" WIRE_MARK, GROUPS},
    {RIGHTS_ABOUT_PERMIT, RIGHTS_PERMITS, "&" WIRE_MARK WIRE_PERMIT, ""},
    {RIGHTS_ABOUT_PERMIT, RIGHTS_PERMITS, "&" WIRE_MARK WIRE_PERMIT, GROUPS},
    {RIGHTS_ABOUT_CLIENT, RIGHTS_FAIR, "&" WIRE_CLIENT "*", NULL},
};

/* True: the pattern ends with a * that is not escaped. */
static bool is_open(const char *names)
{
    size_t len = strlen(names), escapes = 0;

    while (escapes + 1 < len && names[len - 2 - escapes] == '\\')
        escapes++;
    return names[len - 1] == '*' && escapes % 2 == 0;
}

/* "~*" includes all keys, and "&redlock:wait:*" all channels. */
static bool is_all(const char *names)
{
    return strcmp(names, "*") == 0;
}

bool rights_place(size_t place, const char *names, unsigned kinds, char rule[RIGHTS_RULE_MAX])
{
    const char *before = places[place].before, *after = places[place].after;

    if ((places[place].kind & kinds) == 0)
        return false;
    if (is_all(names) && strcmp(before, "~") != 0 && strcmp(before, "&" WIRE_MARK) != 0 &&
        places[place].about != RIGHTS_ABOUT_CLIENT)
        return false;
    if (after != NULL && after[0] != '\0' && is_open(names))
        return false;
    (void)snprintf(rule, RIGHTS_RULE_MAX, "%s%s%s", before, after != NULL ? names : "",
                   after != NULL ? after : "");
    return true;
}

void rights_rules(enum rights_about about, bool is_key, const char *names, char *buf, size_t size)
{
    char rule[RIGHTS_RULE_MAX];
    size_t len = 0;

    if (is_all(names) && about != RIGHTS_ABOUT_CLIENT)
        about = is_key ? RIGHTS_ABOUT_NAME : RIGHTS_ABOUT_MARK;
    buf[0] = '\0';
    for (size_t i = 0; i < RIGHTS_PLACES_LEN && len < size; i++)
        if (places[i].about == about && (places[i].before[0] == '~') == is_key &&
            rights_place(i, names, ~0U, rule))
            len += (size_t)snprintf(buf + len, size - len, "%s%s", len > 0 ? " " : "", rule);
}

/* ---- Options ---- */

const struct rights_kind rights_kinds[RIGHTS_KINDS_LEN] = {
    {OPTION_FAIR, RIGHTS_FAIR},
    {OPTION_FENCE, RIGHTS_FENCE},
    {OPTION_PERMITS, RIGHTS_PERMITS},
    {OPTION_SHARED, RIGHTS_SHARED},
};

/* An ACL, and a line that is pasted into redis-cli, must be able to contain the pattern. */
static void check_pattern(const struct cli *cli, const char *pattern)
{
    char shown[CLI_NAMES_SHOWN_MAX];
    size_t len = strlen(pattern);

    if (len == 0 || len > REDLOCK_NAME_MAX)
        cli_usage_error(cli, "--names must have 1 to %d bytes", REDLOCK_NAME_MAX);
    for (size_t i = 0; i < len; i++) {
        if (pattern[i] == '\\' && pattern[i + 1] == ',')
            i++;
        else if (pattern[i] == ',')
            cli_usage_error(cli,
                            "--names is one pattern: give --names again for another one, and write "
                            "\\, for a comma in a name");
        if ((unsigned char)pattern[i] <= ' ' || pattern[i] == 127 || strchr("\"'", pattern[i]))
            cli_usage_error(cli,
                            "--names is '%s', but an ACL can hold no blanks, quotes or control "
                            "characters: write ? in their place",
                            cli_show_text(pattern, shown));
    }
}

void rights_take_option(const struct cli *cli, int option, struct rights_wanted *wanted)
{
    if (option != OPTION_NAMES) {
        for (size_t i = 0; i < RIGHTS_KINDS_LEN; i++)
            if (rights_kinds[i].option == (enum option_value)option)
                wanted->kinds |= rights_kinds[i].kind;
        return;
    }
    check_pattern(cli, optarg);
    for (size_t i = 0; i < wanted->names_len; i++)
        if (strcmp(wanted->names[i], optarg) == 0)
            return;
    if (wanted->names_len == RIGHTS_NAMES_MAX)
        cli_usage_error(cli, "--names is given more than %d times", RIGHTS_NAMES_MAX);
    wanted->names[wanted->names_len++] = optarg;
}

bool rights_stand_in(const char *pattern, const char *own, char *name, size_t size,
                     bool *ret_is_in_use)
{
    bool has_own = false;
    size_t len = 0;

    name[0] = '\0';
    for (const char *p = pattern; *p != '\0' && len < size; p++) {
        if (*p == '[')
            return false;
        if (*p == '*') {
            len += (size_t)snprintf(name + len, size - len, "%s", has_own ? "" : own);
            has_own = true;
        } else if (*p == '\\' && p[1] != '\0') {
            len += (size_t)snprintf(name + len, size - len, "%c", *++p);
        } else {
            len += (size_t)snprintf(name + len, size - len, "%c", *p == '?' ? 'x' : *p);
        }
    }
    *ret_is_in_use = !has_own;
    return true;
}

void rights_check(const struct cli *cli, struct rights_wanted *wanted)
{
    for (size_t i = 0; i < wanted->names_len; i++) {
        if (!is_all(wanted->names[i]))
            continue;
        wanted->names[0] = wanted->names[i]; /* It includes the others. */
        wanted->names_len = 1;
    }
    wanted->kinds |= RIGHTS_PLAIN;
    if (cli_is_guarded(cli))
        wanted->kinds |= RIGHTS_GUARD;
    else if (wanted->kinds & RIGHTS_FENCE)
        cli_usage_error(cli, "--fence needs the restart guard, which is off");
}

/* ---- The command that prints the rules ---- */

/* True: the text is ASCII that a shell reads unchanged between single quotes. */
static bool can_be_quoted(const char *text)
{
    for (const char *p = text; *p != '\0'; p++)
        if (*p <= ' ' || *p > '~' || *p == '\'')
            return false;
    return text[0] != '\0';
}

/* The user default is left out, because `redlock acl` refuses it. */
static void print_user(const char *user)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    const char *quote = user[strspn(user, plain)] == '\0' ? "" : "'";

    if (can_be_quoted(user) && strchr(user, '"') == NULL && strcmp(user, "default") != 0)
        (void)printf(" --user %s%s%s", quote, user, quote);
}

const char *rights_pattern(const char *names, const char *start, char buf[RIGHTS_RULE_MAX])
{
    static const char not_literal[] = "*?[]\\\"";

    if (names != NULL)
        return can_be_quoted(names) ? names : "PATTERN";
    if (!can_be_quoted(start) || strpbrk(start, not_literal) != NULL)
        return "PATTERN";
    (void)snprintf(buf, RIGHTS_RULE_MAX, "%s", start);
    return buf;
}

static void print_names(const char *names, const char *start)
{
    char buf[RIGHTS_RULE_MAX];
    const char *pattern = rights_pattern(names, start, buf);
    const char *quote = pattern == buf || pattern == names ? "'" : "";

    (void)printf(" --names %s%s%s", quote, pattern, quote);
}

void rights_print_command(const struct cli *cli, const struct rights_wanted *wanted,
                          const char *start, const char *user)
{
    (void)printf("redlock acl");
    print_user(user);
    for (size_t i = 0; i < wanted->names_len; i++)
        print_names(wanted->names[i], start);
    if (wanted->names_len == 0)
        print_names(NULL, start);
    for (size_t i = 0; i < RIGHTS_KINDS_LEN; i++)
        if (wanted->kinds & rights_kinds[i].kind)
            (void)printf(" %s", options_name(rights_kinds[i].option));
    if (cli->restart_guard != NULL)
        (void)printf(" --restart-guard %s", cli->restart_guard);
}
