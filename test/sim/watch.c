/*
 * watch.c - shows the oracle what a client and its links exchange.
 *
 * The linker's --wrap sends calls of link_new(), link_send() and quorum_step() here.  The events of
 * a link pass through this file on their way to its owner.  So the library needs no hook, and its
 * links and machines are the real ones.
 */
#include "oracle.h"
#include "store.h"
#include "world.h"

#include "redlock/client/client.h"
#include "test/lib/words.h"

#include <stdlib.h>
#include <string.h>

struct link *__real_link_new(const struct link_config *config, const struct link_events *events,
                             void *cookie);
struct link *__wrap_link_new(const struct link_config *config, const struct link_events *events,
                             void *cookie);
void __real_link_send(struct link *link, const struct ask *ask, const char *command,
                      size_t command_len);
void __wrap_link_send(struct link *link, const struct ask *ask, const char *command,
                      size_t command_len);
void __real_quorum_step(struct quorum *q, const struct quorum_event *event,
                        struct quorum_actions *ret_actions);
void __wrap_quorum_step(struct quorum *q, const struct quorum_event *event,
                        struct quorum_actions *ret_actions);

/* What stands between a link and its owner. */
struct watch {
    struct ev_loop *process;
    const struct link_events *events; /* The owner's. */
    void *cookie;
    struct link *link;
    bool listens;
};

static void sicken(struct ev_loop *process)
{
    process_sicken(process, process_now(process));
}

static bool may_serve(void *cookie, unsigned number, struct reason *ret_why)
{
    struct watch *watch = cookie;

    return watch->events->may_serve(watch->cookie, number, ret_why);
}

static void count_fault(enum why why)
{
    if (why == WHY_CONNECT_TIMEOUT)
        world_fault(FAULT_CONNECT_TIMEOUT);
    else if (why == WHY_SILENT)
        world_fault(FAULT_GREETING_TIMEOUT);
    else if (why == WHY_HANGS)
        world_fault(FAULT_MUTE);
}

static void on_link(void *cookie, unsigned number, const struct link_fall *fall)
{
    struct watch *watch = cookie;

    world_note(fall == NULL ? "up, link: client, master" : "down, link: client, master",
               watch->process->number, number, watch->listens);
    if (watch->listens)
        waits_on_trouble(watch->process);
    else
        sicken(watch->process);
    if (fall == NULL && !watch->listens)
        watch->process->troubles[0].near |= mask_of(number);
    if (fall != NULL) {
        count_fault(link_reason(watch->link)->why);
        world_say("    because: %s", words_of(link_reason(watch->link)));
    }
    watch->events->on_link(watch->cookie, number, fall);
}

/* For how long the key is held, by an announcement; 0: it does not say. */
static sim_time left_by(const char *text)
{
    if (strncmp(text, "held ", 5) != 0 && strncmp(text, "taken ", 6) != 0)
        return 0;
    return strtoull(strchr(text, ' '), NULL, 10) * DRIFT_MS;
}

static void on_push(const struct watch *watch, unsigned number, const struct reply *reply)
{
    world_say("    client %u is notified by master %u: %s %s", watch->process->number, number,
              reply->before != NULL ? reply->before : "", reply->text);
    waits_on_heard(watch->process, left_by(reply->text));
}

/* Errors of a fault.  A script that is unknown is sent in full.  WRONGTYPE comes without a fault,
 * too: readers hold the key of a waiting writer. */
static bool is_trouble(const struct reply *reply)
{
    if (reply->type != REPLY_ERROR || strncmp(reply->text, "NOSCRIPT", 8) == 0)
        return false;
    return strncmp(reply->text, "WRONGTYPE", 9) != 0 || world.plan.enabled[FAULT_WRONG_TYPE];
}

static void show_reply(const struct watch *watch, unsigned number, const struct ask *ask,
                       const struct reply *reply)
{
    bool has_text = reply->type != REPLY_INTEGER && reply->type != REPLY_NIL;
    const struct answer answer = {reply->type, reply->integer, has_text ? reply->text : ""};

    if (ask == NULL) {
        on_push(watch, number, reply);
        return;
    }
    if (ask->what == WHAT_LOOK || ask->what == WHAT_FOUND || is_trouble(reply))
        sicken(watch->process);
    oracle_on_answer(watch->process, watch->process->servers[number],
                     conn_of(watch->process, watch->link), ask, &answer);
}

static void on_reply(void *cookie, unsigned number, const struct ask *ask,
                     const struct reply *reply)
{
    struct watch *watch = cookie;

    if (ask != NULL ? (ask->flags & (ASK_LOOK | ASK_LIFE)) == 0 : reply->type != REPLY_ERROR)
        sim_transport_served(watch->process, watch->link);
    if (!watch->process->is_operator)
        show_reply(watch, number, ask, reply);
    const bool is_time = ask != NULL && ask->what == WHAT_TIME && ask->number != 1;

    watch->events->on_reply(watch->cookie, number, ask, reply);
    if (is_time && !watch->process->is_operator && watch->process->rl != NULL)
        outliers_on_time(watch->process, number);
}

static void on_room(void *cookie, unsigned number, bool room)
{
    struct watch *watch = cookie;

    sicken(watch->process);
    if (!room)
        world_fault(FAULT_QUEUE_FULL);
    watch->events->on_room(watch->cookie, number, room);
}

static void on_done(void *cookie)
{
    struct watch *watch = cookie;

    watch->events->on_done(watch->cookie);
}

static const struct link_events events = {
    .may_serve = may_serve,
    .on_link = on_link,
    .on_reply = on_reply,
    .on_room = on_room,
    .on_done = on_done,
};

struct link *__wrap_link_new(const struct link_config *config, const struct link_events *owners,
                             void *cookie)
{
    struct watch *watch = memory_take(sizeof *watch);

    *watch = (struct watch){.process = process_of_loop(config->env->loop),
                            .events = owners,
                            .cookie = cookie,
                            .listens = config->listens};
    watch->process->servers[config->number] =
        (unsigned)(config->uri->host[strlen(config->uri->host) - 1] - '1');
    watch->link = __real_link_new(config, &events, watch);
    sim_transport_own(watch->process, watch->link);
    return watch->link;
}

/* The process of a link that asks, and the server. */
static struct ev_loop *owner_of_link(const struct link *link, unsigned *ret_server)
{
    for (unsigned i = 0; i < world_all_processes(); i++) {
        const struct redlock *rl = world.processes[i].rl;

        for (unsigned m = 0; rl != NULL && m < rl->masters.peers.len; m++) {
            if (rl->masters.peers.links[m] != link)
                continue;
            *ret_server = world.processes[i].servers[m];
            return &world.processes[i];
        }
    }
    world_fail("simulator", "a command on a link without an owner");
}

void __wrap_link_send(struct link *link, const struct ask *ask, const char *command,
                      size_t command_len)
{
    unsigned server;
    struct ev_loop *process = owner_of_link(link, &server);

    if (!process->is_operator)
        oracle_on_send(process, server, conn_of(process, link), ask, command, command_len);
    __real_link_send(link, ask, command, command_len);
}

/* An extension that moves the deadline was won. */
void __wrap_quorum_step(struct quorum *q, const struct quorum_event *event,
                        struct quorum_actions *ret_actions)
{
    const struct redlock_lease *lease =
        (const struct redlock_lease *)(const void *)((const char *)q -
                                                     offsetof(struct redlock_lease, q));
    struct ev_loop *process = process_of_loop(lease->leases->env->loop);
    const struct quorum before = *q;

    claims_before_step(process, lease, event);
    __real_quorum_step(q, event, ret_actions);
    if (before.state == QUORUM_EXTENDING && q->state == QUORUM_HELD &&
        q->deadline > before.deadline)
        claims_on_longer(process, lease, event, ret_actions);
}
