/*
 * founding.c - sends what the founder decides, and passes answers and silence on.
 */
#include "redlock/masters/founding.h"

#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "redlock/masters/peers.h"
#include "redlock/masters/set.h"
#include "redlock/wire/answer.h"
#include "redlock/wire/redis_error.h"
#include "redlock/wire/reply.h"

/* Limits of the pause between two attempts, and the shortest pause when another list or another set
 * is in the way.  Chosen: an attempt takes milliseconds, so clients that began together get out of
 * step. */
#define PAUSE_MIN (20 * DRIFT_MS)
#define PAUSE_MAX (2 * DRIFT_S)
#define REFUSED_PAUSE DRIFT_S

int founding_init(struct founding *founding, struct peers *peers, struct set *set,
                  drift_span reply_timeout, const struct founding_events *events, void *cookie)
{
    founding->peers = peers;
    founding->set = set;
    founding->events = events;
    founding->cookie = cookie;
    founding->reply_timeout = reply_timeout;
    founding->founder.phase = FOUNDER_STOPPED;
    founding->alarm.pos = ALARM_OFF;
    return alarm_reserve(&peers->env->alarms, 1);
}

/* Never 0. */
static uint64_t draw(struct env *env)
{
    uint64_t number = (uint64_t)env_random(env) << 32 | env_random(env);

    return number == 0 ? 1 : number;
}

/* Founders of one list agree on this number, also after all masters have lost the set.  Never 0. */
static uint64_t number_of(const char *list, size_t len)
{
    unsigned char hash[crypto_generichash_BYTES];
    uint64_t number = 0;

    (void)crypto_generichash(hash, sizeof hash, (const unsigned char *)list, len, NULL, 0);
    for (unsigned i = 0; i < sizeof number; i++)
        number = number << 8 | hash[i];
    return number == 0 ? 1 : number;
}

/* ---- Sending ---- */

static enum script_id script_of(enum founder_command command)
{
    if (command == FOUNDER_CMD_WRITE)
        return SCRIPT_FOUND;
    return command == FOUNDER_CMD_WITHDRAW ? SCRIPT_WITHDRAW : SCRIPT_CLAIM;
}

static void send(struct founding *founding, unsigned master, enum founder_command command)
{
    struct peers *peers = founding->peers;
    const struct set *set = founding->set;
    const struct config *config = set_is_known(set) ? &set->seats.now : &set->list;
    const struct wire_founding args = {
        .number = command == FOUNDER_CMD_LOOK ? 0 : founding->founder.number,
        .list = founding->list,
        .list_len = strlen(founding->list),
        .set = founding->founder.set,
        .name = config->members[set_member(set, master)].name,
    };
    const struct ask ask = {.what = WHAT_FOUND, .number = ++founding->asks};

    founding->ask[master] = ask.number;
    founding->due[master] = drift_add(env_now(peers->env), founding->reply_timeout);
    link_send(peers->links[master], &ask, peers->scratch,
              wire_founding(peers->scratch, script_of(command), &args));
}

static void send_all(struct founding *founding, quorum_mask masters, enum founder_command command)
{
    for (unsigned m = 0; m < founding->peers->len; m++)
        if (masters & mask_of(m))
            send(founding, m, command);
}

/* ---- One step ---- */

/* The list is that of the set, if it is known: another client may have founded it with other names
 * of the same masters. */
static void begin(struct founding *founding, drift_time now)
{
    const struct set *set = founding->set;
    size_t len = config_print(set_is_known(set) ? &set->seats.now : &set->list, founding->list);
    const struct founder_config config = {
        .masters = founding->peers->len,
        .list = founding->list,
        .list_len = len,
        .set = number_of(founding->list, len),
        .pause_min = PAUSE_MIN,
        .pause_max = PAUSE_MAX,
    };

    founding->refused = false;
    founder_init(&founding->founder, &config);
    for (unsigned m = 0; m < founding->peers->len; m++)
        founder_on_link(&founding->founder, m, (founding->linked & mask_of(m)) != 0);
    founder_begin(&founding->founder, now);
}

static void tell_refusal(struct founding *founding)
{
    const struct founder_other *other = &founding->founder.other;
    bool is_claim = other->word == FOUNDER_SAYS_CLAIM;
    char advice[120];

    (void)snprintf(advice, sizeof advice,
                   is_claim ? "wait until it is founded, or HDEL %s claim there if no client has "
                              "that list"
                            : "give all clients the list of one set (redlock status, redlock(1) "
                              "MASTERS)",
                   WIRE_MARKER);
    set_refuse(founding->set, other->master, is_claim ? WHY_CLAIMED : WHY_OTHER_SET,
               founding->other, advice, &founding->why);
    founding->events->on_refused(founding->cookie, other->master);
}

static void end(struct founding *founding, drift_time now)
{
    if (founding->founder.phase == FOUNDER_FOUNDED) {
        struct seats_change change;

        set_on_founding(founding->set, founding->founder.set, &change);
        founding->events->on_founded(founding->cookie, &change);
    } else if (founding->founder.phase == FOUNDER_REFUSED) {
        founding->refused = true;
        founding->begin_at =
            drift_add(now, REFUSED_PAUSE + draw(founding->peers->env) % REFUSED_PAUSE);
        tell_refusal(founding);
    }
}

static void set_alarm(struct founding *founding, drift_time at)
{
    for (unsigned m = 0; m < founding->peers->len; m++)
        if (founding->ask[m] != 0 && founding->due[m] < at)
            at = founding->due[m];
    if (set_wants_founding(founding->set) && founder_has_ended(&founding->founder) &&
        founding->begin_at < at)
        at = founding->begin_at;
    alarm_set(&founding->peers->env->alarms, &founding->alarm, at);
}

/* Do what is due.  A founder that only waits is stopped when another client was faster. */
static void step(struct founding *founding)
{
    struct founder *founder = &founding->founder;
    drift_time now = env_now(founding->peers->env);
    bool wants = set_wants_founding(founding->set), was_over = founder_has_ended(founder);
    struct founder_actions actions;

    if (now == DRIFT_NEVER || founding->peers->env->deaf)
        return;
    if (wants && was_over && now >= founding->begin_at)
        begin(founding, now);
    else if (!wants && founder->phase == FOUNDER_WAITING)
        founder_stop(founder);
    was_over = founder_has_ended(founder);
    founder_next(founder, now, draw(founding->peers->env), &actions);
    send_all(founding, actions.claim, FOUNDER_CMD_CLAIM);
    send_all(founding, actions.look, FOUNDER_CMD_LOOK);
    send_all(founding, actions.write, FOUNDER_CMD_WRITE);
    send_all(founding, actions.withdraw, FOUNDER_CMD_WITHDRAW);
    if (!was_over && founder_has_ended(founder))
        end(founding, now);
    set_alarm(founding, actions.wake_at);
}

/* ---- Events ---- */

/* Members that the client hears of meanwhile are not masters of the founder. */
static void on_link(struct founding *founding, unsigned master, bool up)
{
    struct founder *founder = &founding->founder;

    if (!founder_has_ended(founder) && master < founder->config.masters)
        founder_on_link(founder, master, up);
}

void founding_on_look(struct founding *founding, unsigned master)
{
    if (!(founding->linked & mask_of(master))) {
        founding->linked |= mask_of(master);
        on_link(founding, master, true);
    }
    step(founding);
}

void founding_on_break(struct founding *founding, unsigned master)
{
    if (!(founding->linked & mask_of(master)))
        return;
    founding->linked = mask_without(founding->linked, master);
    founding->ask[master] = 0;
    on_link(founding, master, false);
    step(founding);
}

void founding_on_answer(struct founding *founding, unsigned master, const struct ask *ask,
                        const struct reply *reply)
{
    struct founder *founder = &founding->founder;
    struct founder_answer answer;
    struct reason why;
    bool is_read;

    if (ask->number != founding->ask[master])
        return; /* It comes too late. */
    founding->ask[master] = 0;
    is_read = answer_claim(reply, &answer) || answer_done(reply, &answer);
    if (!is_read) {
        founder_on_silence(founder, master);
        reply_reason(reply, &why);
        link_note(founding->peers->links[master], &why);
    } else if (founder_on_answer(founder, master, &answer)) {
        (void)snprintf(founding->other, sizeof founding->other, "%s", answer.text);
    }
    step(founding);
}

void founding_on_alarm(struct founding *founding)
{
    drift_time now = env_now(founding->peers->env);

    for (unsigned m = 0; m < founding->peers->len; m++) {
        if (founding->ask[m] == 0 || now < founding->due[m])
            continue;
        founding->ask[m] = 0;
        founder_on_silence(&founding->founder, m);
    }
    step(founding);
}
