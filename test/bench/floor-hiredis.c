/*
 * floor-hiredis.c - the exchange of floor-raw.c on unchanged hiredis and libev.  This is the least
 * that the library could cost with these two, if its decisions were free.
 *
 * Plain: redisAsyncCommand() with format strings, and replies that hiredis allocates.
 * --tuned: commands are encoded once and sent by redisAsyncFormattedCommand(), and replies are
 * objects of this program that allocate nothing.
 *
 * Names, phases and figures are those of floor-raw.c; read its head first.
 */
#include "test/bench/figures.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <ev.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
/* The adapter defines several static functions; this program calls only one. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <hiredis/adapters/libev.h>
#pragma GCC diagnostic pop

enum {
    SHA_LEN = 40,   /* Hexadecimal digits of a SHA-1. */
    SLOT_BITS = 12, /* FIGURES_IN_FLIGHT_MAX slots. */
    SILENCE_MAX_S = 5
};

static const char script[] = "if redis.call(\"get\",KEYS[1]) == ARGV[1] then "
                             "return redis.call(\"del\",KEYS[1]) else return 0 end";

/* The phase of a slot.  It is also the lowest bit of its step. */
enum phase { ACQUIRE, RELEASE, PHASES };

struct slot {
    uint64_t began_ns; /* When the step under way began. */
    uint32_t step;     /* Counts phases: even ones acquire, odd ones release. */
    uint16_t yes;      /* Expected answers to this step. */
    uint16_t no;       /* Other answers to this step. */
    char name[32];
    char token[SHA_LEN + 1];
    char *command[PHASES]; /* The encoded commands, for --tuned. */
    size_t command_len[PHASES];
};

static struct figures_options options;
static struct figures figures;
static unsigned majority;

static struct ev_loop *loop;
static redisAsyncContext *links[FIGURES_MASTERS_MAX];
static struct slot slots[FIGURES_IN_FLIGHT_MAX];
static char sha[SHA_LEN + 1];

static unsigned started;        /* Cycles begun. */
static unsigned finished;       /* Cycles finished. */
static unsigned connected;      /* Masters connected. */
static uint64_t sent_len;       /* Commands sent to all masters together. */
static uint64_t answered;       /* Commands answered by all masters together. */
static uint64_t answered_check; /* The value of `answered` at the last silence_check(). */

/*
 * All replies share one redisReply, so none is allocated.  The callback reads it before hiredis
 * parses the next reply.  The text of strings is dropped, because this exchange needs only their
 * type.
 */
static redisReply reply_object;

static void *reply_string(const redisReadTask *task, char *text, size_t len)
{
    (void)text;
    (void)len;
    reply_object.type = task->type;
    return &reply_object;
}

#if HIREDIS_MAJOR < 1
typedef int reply_count;
#else
typedef size_t reply_count;
#endif

static void *reply_array(const redisReadTask *task, reply_count len)
{
    (void)len;
    reply_object.type = task->type;
    return &reply_object;
}

static void *reply_integer(const redisReadTask *task, long long value)
{
    reply_object.type = task->type;
    reply_object.integer = value;
    return &reply_object;
}

static void *reply_nil(const redisReadTask *task)
{
    reply_object.type = task->type;
    return &reply_object;
}

static void reply_free(void *object)
{
    (void)object; /* The object is static. */
}

/* The members for RESP 3 stay NULL, because this program does not switch to it. */
static redisReplyObjectFunctions reply_functions = {
    .createString = reply_string,
    .createArray = reply_array,
    .createInteger = reply_integer,
    .createNil = reply_nil,
    .freeObject = reply_free,
};

static void start(struct slot *slot, uint64_t now_ns);
static void ask(struct slot *slot, uint64_t now_ns);

/* The step is decided.  Go on with the release, or with the next cycle. */
static void advance(struct slot *slot)
{
    uint64_t now_ns = samples_now_ns();
    enum phase phase = slot->step++ % PHASES;

    if (phase == ACQUIRE) {
        figures_acquired(&figures, now_ns - slot->began_ns);
        ask(slot, now_ns);
    } else {
        figures_unlocked(&figures, now_ns - slot->began_ns);
        finished++;
        start(slot, now_ns);
    }
}

/* The step and slot of a command in one word, which hiredis passes to the callback. */
static uint32_t command_id(const struct slot *slot)
{
    return slot->step << SLOT_BITS | (uint32_t)(slot - slots);
}

static void on_reply(redisAsyncContext *link, void *object, void *arg)
{
    uint32_t id = (uint32_t)(uintptr_t)arg;
    struct slot *slot = &slots[id % FIGURES_IN_FLIGHT_MAX];
    const redisReply *reply = object;
    bool yes;

    if (reply == NULL) {
        errno = 0;
        figures_die("%s:%d: %s", link->c.tcp.host, link->c.tcp.port, link->errstr);
    }
    yes = (id >> SLOT_BITS) % PHASES == ACQUIRE
              ? reply->type == REDIS_REPLY_STATUS
              : reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
    answered++;
    figures.errors += !yes;
    if (id == command_id(slot)) { /* Otherwise it is late: the step is decided already. */
        if (yes)
            slot->yes++;
        else
            slot->no++;
        if (slot->yes == majority || slot->no + majority > options.masters_len)
            advance(slot);
    }
    if (finished == options.cycles)
        ev_break(loop, EVBREAK_ALL);
}

static int ask_plain(redisAsyncContext *link, const struct slot *slot, void *arg)
{
    if (slot->step % PHASES == ACQUIRE)
        return redisAsyncCommand(link, on_reply, arg, "SET %s %s NX PX %d", slot->name, slot->token,
                                 10000);
    return redisAsyncCommand(link, on_reply, arg, "EVALSHA %s 1 %s %s", sha, slot->name,
                             slot->token);
}

static int ask_tuned(redisAsyncContext *link, const struct slot *slot, void *arg)
{
    enum phase phase = slot->step % PHASES;

    return redisAsyncFormattedCommand(link, on_reply, arg, slot->command[phase],
                                      slot->command_len[phase]);
}

/* Sends the command of the slot's step to every master. */
static void ask(struct slot *slot, uint64_t now_ns)
{
    void *arg = (void *)(uintptr_t)command_id(slot);

    slot->began_ns = now_ns;
    slot->yes = 0;
    slot->no = 0;
    for (unsigned i = 0; i < options.masters_len; i++) {
        int rv = options.flag ? ask_tuned(links[i], slot, arg) : ask_plain(links[i], slot, arg);

        if (rv != REDIS_OK) {
            errno = 0;
            figures_die("send to master %u: %s", i + 1, links[i]->errstr);
        }
    }
    sent_len += options.masters_len;
}

static void start(struct slot *slot, uint64_t now_ns)
{
    if (started == options.cycles)
        return;
    started++;
    ask(slot, now_ns);
}

static void encode_slot(unsigned i)
{
    struct slot *slot = &slots[i];
    int set_len;
    int eval_len;

    (void)snprintf(slot->name, sizeof slot->name, "bench/%u", i);
    (void)snprintf(slot->token, sizeof slot->token, "%032x%08x", 0x41edu, i);
    set_len = redisFormatCommand(&slot->command[ACQUIRE], "SET %s %s NX PX %d", slot->name,
                                 slot->token, 10000);
    eval_len = redisFormatCommand(&slot->command[RELEASE], "EVALSHA %s 1 %s %s", sha, slot->name,
                                  slot->token);
    if (set_len < 0 || eval_len < 0)
        figures_die("encode a command");
    slot->command_len[ACQUIRE] = (size_t)set_len;
    slot->command_len[RELEASE] = (size_t)eval_len;
}

static void free_slot(unsigned i)
{
    redisFreeCommand(slots[i].command[ACQUIRE]);
    redisFreeCommand(slots[i].command[RELEASE]);
}

static void die_of_reply(const struct figures_master *master, const char *what)
{
    errno = 0;
    figures_die("%s:%d: %s", master->host, master->port, what);
}

/* Loads the script over a separate connection.  The answer is its SHA-1. */
static void load_script(const struct figures_master *master)
{
    const struct timeval timeout = {.tv_sec = SILENCE_MAX_S};
    redisContext *context = redisConnectWithTimeout(master->host, master->port, timeout);
    redisReply *reply;

    if (context == NULL || context->err != 0)
        die_of_reply(master, context == NULL ? "out of memory" : context->errstr);
    reply = redisCommand(context, "SCRIPT LOAD %s", script);
    if (reply == NULL || reply->type != REDIS_REPLY_STRING || reply->len != SHA_LEN)
        die_of_reply(master, "SCRIPT LOAD: unexpected answer");
    memcpy(sha, reply->str, SHA_LEN);
    freeReplyObject(reply);
    redisFree(context);
}

static void on_connect(const redisAsyncContext *link, int status)
{
    if (status != REDIS_OK) {
        errno = 0;
        figures_die("%s:%d: %s", link->c.tcp.host, link->c.tcp.port, link->errstr);
    }
    if (++connected == options.masters_len)
        ev_break(loop, EVBREAK_ALL);
}

static void connect_link(unsigned i)
{
    const struct figures_master *master = &options.masters[i];
    redisAsyncContext *link = redisAsyncConnect(master->host, master->port);

    if (link == NULL || link->err != 0)
        die_of_reply(master, link == NULL ? "out of memory" : link->errstr);
    if (redisLibevAttach(loop, link) != REDIS_OK ||
        redisAsyncSetConnectCallback(link, on_connect) != REDIS_OK)
        die_of_reply(master, "cannot attach to the loop");
    if (options.flag)
        link->c.reader->fn = &reply_functions;
    links[i] = link;
}

/* Ends the program if no answer has come for a while.  Nothing else would end it. */
static void silence_check(struct ev_loop *checked_loop, ev_timer *timer, int events)
{
    (void)checked_loop;
    (void)timer;
    (void)events;
    if (answered == answered_check) {
        errno = 0;
        figures_die("no answer for %d s", SILENCE_MAX_S);
    }
    answered_check = answered;
}

static void set_up(void)
{
    for (unsigned i = 0; i < options.masters_len; i++) {
        load_script(&options.masters[i]);
        connect_link(i);
    }
    ev_run(loop, 0);
    for (unsigned i = 0; i < options.in_flight; i++)
        encode_slot(i);
}

static void run(void)
{
    uint64_t now_ns;

    figures_begin(&figures);
    now_ns = samples_now_ns();
    for (unsigned i = 0; i < options.in_flight; i++)
        start(&slots[i], now_ns);
    ev_run(loop, 0);
    figures_end(&figures);
}

int main(int argc, char **argv)
{
    ev_timer silence;

    figures_options_parse(&options, argc, argv, "tuned");
    majority = options.masters_len / 2 + 1;
    figures_init(&figures, options.cycles);
    loop = ev_default_loop(0);
    if (loop == NULL)
        figures_die("no event loop");
    answered_check = UINT64_MAX; /* The first check must not end the program. */
    ev_timer_init(&silence, silence_check, SILENCE_MAX_S, SILENCE_MAX_S);
    ev_timer_start(loop, &silence);

    set_up();
    run();

    /* Read the late answers of the last cycles, because wrong ones count as errors. */
    while (answered < sent_len)
        ev_run(loop, EVRUN_ONCE);
    for (unsigned i = 0; i < options.masters_len; i++)
        redisAsyncFree(links[i]);
    for (unsigned i = 0; i < options.in_flight; i++)
        free_slot(i);
    ev_loop_destroy(loop);
    figures_print(&figures);
    figures_done(&figures);
    return EXIT_SUCCESS;
}
