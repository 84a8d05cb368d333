/*
 * link-peer.c - the masters of fuzz-link: they read commands, and have a good answer to each.
 *
 * The library must write complete, known commands.  The masters store no keys: a good
 * answer grants the request.  They remember only channels, waiters and one counter.
 */
#include "link.h"

#include <inttypes.h>
#include <string.h>

#include "redlock/wire/script.h"

enum verb {
    AUTH,
    SELECT,
    SCRIPT,
    INFO,
    CONFIG,
    SET,
    EVAL,
    EVALSHA,
    HGET,
    HMGET,
    HINCRBY,
    TIME,
    ZREM,
    SUBSCRIBE,
    UNSUBSCRIBE,
    VERBS
};

static const char *const verbs[VERBS] = {
    "AUTH", "SELECT", "SCRIPT",  "INFO", "CONFIG", "SET",       "EVAL",        "EVALSHA",
    "HGET", "HMGET",  "HINCRBY", "TIME", "ZREM",   "SUBSCRIBE", "UNSUBSCRIBE",
};

#define CHANNELS_MAX 16
#define CHANNEL_MAX 600
#define WAITERS_MAX 4
#define WAITER_LEN 40
#define ARGS_MAX 40
#define ARG_MAX (16u << 10)
#define BASE_US UINT64_C(1700000000000000) /* The masters' clocks at the start. */
#define FLOOR UINT64_C(1600000000000000)   /* The floor of the fencing counters. */

static char channels[CHANNELS_MAX][CHANNEL_MAX];
static unsigned channels_len;
static char waiters[WAITERS_MAX][WAITER_LEN + 1];
static unsigned waiters_len;
static unsigned counter;

void peer_reset_all(void)
{
    channels_len = waiters_len = counter = 0;
}

void peer_begin(struct peer *peer, unsigned master)
{
    peer->master = master;
    peer->first = peer->len = 0;
    peer->overflows = false;
    peer->partial_len = 0;
}

/* ---- Reading ---- */

struct text {
    const char *p;
    size_t len;
};

static bool is_text(struct text text, const char *other)
{
    return text.len == strlen(other) && memcmp(text.p, other, text.len) == 0;
}

/* Read the number of "*3\r\n".  Returns what follows, or NULL if it is incomplete. */
static const char *read_header(const char *p, const char *end, char sign, size_t max,
                               size_t *ret_number)
{
    const char *stop = memchr(p, '\n', (size_t)(end - p));

    MUST(p == end || *p == sign);
    MUST(stop != NULL || end - p < 16);
    if (stop == NULL)
        return NULL;
    MUST(stop - p >= 3 && stop[-1] == '\r');
    *ret_number = strtoull(p + 1, NULL, 10);
    MUST(*ret_number <= max);
    return stop + 1;
}

/* Read the arguments of a command.  Returns what follows, or NULL if it is incomplete. */
static const char *read_command(const char *p, const char *end, struct text args[ARGS_MAX],
                                size_t *ret_len)
{
    p = read_header(p, end, '*', ARGS_MAX, ret_len);
    for (size_t i = 0; p != NULL && i < *ret_len; i++) {
        p = read_header(p, end, '$', ARG_MAX, &args[i].len);
        if (p == NULL || (size_t)(end - p) < args[i].len + 2)
            return NULL;
        args[i].p = p;
        p += args[i].len;
        MUST(p[0] == '\r' && p[1] == '\n');
        p += 2;
    }
    return p;
}

static uint8_t find_verb(struct text text)
{
    uint8_t verb = 0;

    while (!is_text(text, verbs[verb]))
        MUST(++verb < VERBS);
    return verb;
}

static uint8_t find_script(struct text text)
{
    uint8_t script = 0;

    while (!is_text(text, script_all[script].text) && !is_text(text, script_all[script].sha1))
        MUST(++script < SCRIPT_LEN);
    return script;
}

static uint8_t find_channel(struct text text)
{
    unsigned channel = 0;

    MUST(text.len < CHANNEL_MAX);
    while (channel < channels_len && !is_text(text, channels[channel]))
        channel++;
    if (channel == CHANNELS_MAX)
        return 0;
    if (channel == channels_len)
        (void)snprintf(channels[channels_len++], CHANNEL_MAX, "%.*s", (int)text.len, text.p);
    return (uint8_t)channel;
}

/* Note the name of a waiter, for announcements of "next". */
static void note_waiter(struct text text)
{
    MUST(text.len == WAITER_LEN);
    (void)snprintf(waiters[waiters_len++ % WAITERS_MAX], WAITER_LEN + 1, "%.*s", WAITER_LEN,
                   text.p);
}

static void take_command(struct peer *peer, const struct text *args, size_t len)
{
    struct command command = {.verb = find_verb(args[0])};

    if (command.verb == EVAL || command.verb == EVALSHA)
        command.script = find_script(args[1]);
    else if (command.verb == SCRIPT)
        command.script = find_script(args[2]);
    peer->listens |= command.verb == SUBSCRIBE;
    if (command.verb == SUBSCRIBE || command.verb == UNSUBSCRIBE)
        command.channel = find_channel(args[1]);
    if (len > 6 && command.script == SCRIPT_RAISE)
        command.number = strtoull(args[6].p, NULL, 10);
    if (len > 7 && command.script == SCRIPT_RAISE_MANY) /* Behind the keys is the token. */
        command.number = strtoull(args[4 + strtoul(args[2].p, NULL, 10)].p, NULL, 10);
    if (len > 6 && command.script == SCRIPT_ACQUIRE_FAIR)
        note_waiter(args[6]);
    if (peer->len == COMMANDS_MAX)
        peer->overflows = true;
    if (!peer->overflows)
        peer->commands[(peer->first + peer->len++) % COMMANDS_MAX] = command;
    tell("  master %u: %s %u", peer->master + 1, verbs[command.verb], command.script);
}

static void take_commands(struct peer *peer)
{
    const char *p = peer->partial, *end = p + peer->partial_len, *next;
    struct text args[ARGS_MAX];
    size_t len;

    while (p < end && (next = read_command(p, end, args, &len)) != NULL) {
        MUST(len > 0);
        take_command(peer, args, len);
        p = next;
    }
    peer->partial_len = (size_t)(end - p);
    memmove(peer->partial, p, peer->partial_len);
}

void peer_on_bytes(struct peer *peer, const char *bytes, size_t len)
{
    while (len > 0) {
        size_t room = PARTIAL_MAX - peer->partial_len;
        size_t piece = len < room ? len : room;

        MUST(piece > 0);
        memcpy(peer->partial + peer->partial_len, bytes, piece);
        peer->partial_len += piece;
        bytes += piece;
        len -= piece;
        take_commands(peer);
    }
}

/* ---- Answers ---- */

static size_t write_bulk(char *buf, const char *text)
{
    return (size_t)sprintf(buf, "$%zu\r\n%s\r\n", strlen(text), text);
}

static size_t write_pair(char *buf, const char *first, const char *second)
{
    size_t len = (size_t)sprintf(buf, "*2\r\n");

    len += write_bulk(buf + len, first);
    return len + write_bulk(buf + len, second);
}

static uint64_t clock_us(void)
{
    return BASE_US + net_now() / 1000;
}

/* what: 0 is a good answer; each other number is odd in its own way. */
static size_t write_info(char *buf, unsigned master, unsigned what)
{
    char text[ANSWER_MAX - 32];

    (void)snprintf(text, sizeof text,
                   "# Server\r\nredis_version:7.0.15\r\nredis_mode:%s\r\nrun_id:%s%039x\r\n"
                   "uptime_in_seconds:%u\r\nmaxmemory:%u\r\nmaxmemory_policy:%s\r\nloading:%d\r\n"
                   "aof_enabled:%d\r\nrole:%s\r\nmaster_replid2:%040d\r\n",
                   what == 1 ? "cluster" : "standalone", what == 2 ? "x" : "a",
                   what == 3 ? 0 : master, what == 4 ? 1 : 1000000, what == 5, //
                   what == 5 ? "allkeys-lru" : "noeviction", what == 6, what != 7,
                   what == 8 ? "slave" : "master", what == 9);
    return write_bulk(buf, text);
}

const char *peer_config = "";
bool peer_told_another_set;

/* The name of a member: its place, which is a word of the configuration. */
static void copy_name(char name[100], unsigned master)
{
    const char *word = peer_config;

    for (unsigned m = 0; m < master && strchr(word, ' ') != NULL; m++)
        word = strchr(word, ' ') + 1;
    (void)snprintf(name, 100, "%.*s", (int)strcspn(word, " "), word);
}

static size_t write_look(char *buf, unsigned master, unsigned what)
{
    char text[500], of[300], name[100];
    bool none = what == 4 || what == 8;

    peer_told_another_set |= what == 11;
    copy_name(name, master);
    (void)snprintf(of, sizeof of, "%016x %u %s %s", 7, what == 10 ? 2 : 1, what == 9 ? "-" : name,
                   what == 11 ? "a b" : peer_config);
    if (none)
        (void)snprintf(of, sizeof of, "-");
    if (what == 1)
        (void)snprintf(text, sizeof text, "other 5");
    else if (what <= 4 && what != 0)
        (void)snprintf(text, sizeof text, "warming %016x 60000 %u %u %" PRIu64 " %" PRIu64 " %s",
                       master + what, what == 2, what == 3 ? 600000 : 0, FLOOR, clock_us(), of);
    else
        (void)snprintf(text, sizeof text,
                       "ready %016x.%u %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %s",
                       what == 5 ? 1 : master + 1 + what,
                       none         ? 0
                       : what == 10 ? 2
                                    : 1,
                       what == 6 ? 86400000 : 60000, FLOOR, what == 7 ? UINT64_MAX : FLOOR + 16384,
                       clock_us(), of);
    return write_bulk(buf, text);
}

static size_t write_time(char *buf, unsigned what)
{
    uint64_t us = clock_us() + (what == 1 ? 3600000000 : what == 2 ? -3600000000u : 0);
    char s[24], rest[24];

    (void)sprintf(s, "%" PRIu64, us / 1000000);
    (void)sprintf(rest, "%06" PRIu64, us % 1000000);
    return write_pair(buf, s, rest);
}

static size_t write_script(char *buf, unsigned master, const struct command *command)
{
    switch ((enum script_id)command->script) {
    case SCRIPT_RELEASE:
    case SCRIPT_EXTEND:
    case SCRIPT_EXTEND_FAIR:
    case SCRIPT_EXTEND_MANY:
    case SCRIPT_RELEASE_MANY:
    case SCRIPT_RELEASE_PERMIT:
    case SCRIPT_RELEASE_FAIR:
    case SCRIPT_EXTEND_SHARED:
    case SCRIPT_RELEASE_SHARED:
        return (size_t)sprintf(buf, ":1\r\n");
    case SCRIPT_ACQUIRE_MANY:
    case SCRIPT_ACQUIRE_PERMIT:
    case SCRIPT_ACQUIRE_FAIR:
    case SCRIPT_ACQUIRE_SHARED:
        return (size_t)sprintf(buf, "+OK\r\n");
    case SCRIPT_COUNT_MANY:
        return (size_t)sprintf(buf, ":1\r\n");
    case SCRIPT_RAISE:
    case SCRIPT_RAISE_MANY:
        return (size_t)sprintf(buf, ":%" PRIu64 "\r\n", command->number);
    case SCRIPT_LOOK:
        return write_look(buf, master, 0);
    case SCRIPT_WITNESS:
        return (size_t)sprintf(buf, ":%u\r\n", master == 0 ? 0 : 60000);
    case SCRIPT_WAIT:
    case SCRIPT_WAIT_PERMIT:
        return (size_t)sprintf(buf, ":-2\r\n");
    case SCRIPT_CLAIM:
        return write_bulk(buf, "new");
    case SCRIPT_FOUND:
    case SCRIPT_WITHDRAW:
        return (size_t)sprintf(buf, ":1\r\n");
    case SCRIPT_REVOKE: /* Only the command sends these. */
    case SCRIPT_SHOW:
    case SCRIPT_SCAN:
    case SCRIPT_PREPARE:
    case SCRIPT_ACCEPT:
    case SCRIPT_WRITE:
    case SCRIPT_COUNT_ON:
    case SCRIPT_LEN:
        break;
    }
    abort();
}

static size_t write_confirmation(char *buf, const struct command *command)
{
    const char *channel = channels[command->channel];
    bool on = command->verb == SUBSCRIBE;

    return (size_t)sprintf(buf, "*3\r\n%s\r\n$%zu\r\n%s\r\n:1\r\n",
                           on ? "$9\r\nsubscribe" : "$11\r\nunsubscribe", strlen(channel), channel);
}

static size_t write_good(char *buf, unsigned master, const struct command *command)
{
    char epoch[20];

    (void)sprintf(epoch, "%016x.1", master + 1);
    switch ((enum verb)command->verb) {
    case AUTH:
    case SELECT:
    case SET:
        return (size_t)sprintf(buf, "+OK\r\n");
    case SCRIPT:
        return write_bulk(buf, script_all[command->script].sha1);
    case INFO:
        return write_info(buf, master, 0);
    case CONFIG:
        return write_pair(buf, "appendfsync", "everysec");
    case EVAL:
    case EVALSHA:
        return write_script(buf, master, command);
    case HGET:
        return write_bulk(buf, epoch);
    case HMGET:
        return write_pair(buf, epoch, "60000");
    case HINCRBY:
        return (size_t)sprintf(buf, ":%u\r\n", ++counter);
    case TIME:
        return write_time(buf, 0);
    case ZREM:
        return (size_t)sprintf(buf, ":2\r\n");
    case SUBSCRIBE:
    case UNSUBSCRIBE:
        return write_confirmation(buf, command);
    case VERBS:
        break;
    }
    abort();
}

/* An answer to some command, though perhaps not to this one. */
static size_t write_odd(char *buf, unsigned what)
{
    static const char *const odd[] = {
        ":0\r\n",
        "$-1\r\n",
        ":-2\r\n",
        ":-1\r\n",
        ":1\r\n",
        ":2\r\n",
        ":250\r\n",
        "+OK\r\n",
        "-NOSCRIPT No matching script\r\n",
        "-WRONGTYPE Operation against a key\r\n",
        "-READONLY You can't write against a read only replica.\r\n",
        "-LOADING Redis is loading the dataset in memory\r\n",
        "-NOPERM this user has no permissions\r\n",
        "-ERR unknown command 'AUTH', with args beginning with: 'u' 'p'\r\n",
        "*2\r\n$-1\r\n$-1\r\n",
        "*0\r\n",
    };

    return (size_t)sprintf(buf, "%s", odd[what % (sizeof odd / sizeof odd[0])]);
}

size_t peer_answer(struct peer *peer, unsigned variant, char buf[ANSWER_MAX])
{
    struct command command;
    unsigned what = variant % 16;

    if (peer->len == 0)
        return 0;
    command = peer->commands[peer->first];
    peer->first = (peer->first + 1) % COMMANDS_MAX;
    peer->len--;
    if (variant == 0)
        return write_good(buf, peer->master, &command);
    if (variant >= 128)
        return write_odd(buf, variant);
    if (command.verb == INFO)
        return write_info(buf, peer->master, what);
    if (command.verb == EVAL && command.script == SCRIPT_LOOK)
        return write_look(buf, peer->master, what);
    if (command.verb == TIME)
        return write_time(buf, what);
    if (command.verb == CONFIG)
        return write_pair(buf, "x", what % 2 ? "always" : "no");
    return variant < 64 ? write_good(buf, peer->master, &command) : write_odd(buf, variant);
}

size_t peer_message(unsigned channel, unsigned what, uint32_t number, char buf[ANSWER_MAX])
{
    static const char *const words[] = {"free", "held", "taken"};
    const char *name = channels_len > 0 ? channels[channel % channels_len] : "redlock:wait:a";
    char text[64];
    size_t len;

    if (what % 4 < 3)
        (void)sprintf(text, "%s %u", words[what % 4], number);
    else
        (void)sprintf(text, "next %s", waiters[number % WAITERS_MAX]);
    len = (size_t)sprintf(buf, "*3\r\n$7\r\nmessage\r\n");
    len += write_bulk(buf + len, name);
    return len + write_bulk(buf + len, text);
}
