/*
 * operators.c - processes that change the set of masters as `redlock members` does.
 *
 * Each computes a wish from what some masters store, opens a client that obeys no set, and drives
 * the machine of a change with the command's own code (redlock/cli/set/operate.c).  It dies at
 * random.  Two of them meet now and then.
 *
 * What must always be true (the property "change"): no operator finds that a sound master told what
 * cannot be.
 */
#include "store.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "redlock/cli/set/operate.h"
#include "redlock/client/client.h"
#include "redlock/core/config.h"

/* As in redlock/cli/set/driver.c. */
#define LOOK_EVERY (200 * DRIFT_MS)
#define PAUSE_MIN (50 * DRIFT_MS)
#define PAUSE_MAX (2 * DRIFT_S)

static struct operator
{
    struct survey survey;
    struct operate op;
    sim_time dies_at, steps_at;
    bool is_wanted;          /* It is to begin although the faults are over. */
    enum change_phase phase; /* At the end of its latest turn. */
    unsigned waited;         /* When it began to look again (M5): the servers that had stored the
                              * version for long enough. */
    uint64_t ended;          /* The latest joint version that it found to be over. */
}
operators[SIM_OPERATORS_MAX];

static struct operator* operator_of(const struct ev_loop *process)
{
    return &operators[process->number - world.plan.processes];
}

void operators_begin(void)
{
    for (unsigned i = 0; i < world.plan.operators; i++) {
        operators[i].dies_at = operators[i].steps_at = SIM_NEVER;
        operators[i].is_wanted = false;
    }
}

void operators_on_probe(void)
{
    for (unsigned i = 0; i < world.plan.operators; i++) {
        struct ev_loop *process = &world.processes[world.plan.processes + i];

        if (process->rl != NULL || world.plan.far != 0 || dice_chance(300))
            continue; /* With other members, other clocks may outvote the rest. */
        operators[i].is_wanted = true;
        process->act_at = world.now;
        process_poke(process, world.now);
    }
}

bool operators_are_busy(void)
{
    for (unsigned i = 0; i < world.plan.operators; i++)
        if (operators[i].is_wanted || world.processes[world.plan.processes + i].rl != NULL)
            return true;
    return false;
}

bool operators_is_accepting(const struct ev_loop *process)
{
    return process->rl != NULL && operator_of(process)->op.change.ballot != 0 &&
           operator_of(process)->op.change.accepting;
}

/* ---- What masters store ---- */

/* Some masters answer the survey; one that has an epoch tells the truth. */
static bool find_newest(struct config *ret_newest)
{
    const struct marker *newest = NULL;

    for (unsigned i = 0; i < world.plan.servers; i++) {
        const struct server *server = &world.servers[i];

        if (!server->alive || !moves_remembers(server) || server->marker.set == 0 ||
            dice_chance(150))
            continue;
        if (newest == NULL || server->marker.ver > newest->ver)
            newest = &server->marker;
    }
    if (newest == NULL)
        return false;
    *ret_newest = (struct config){.set = newest->set, .version = newest->ver};
    return config_parse(newest->config, strlen(newest->config), ret_newest);
}

/* ---- Wishes ---- */

static bool is_member(const struct config *list, unsigned server)
{
    return config_find(list, sets_name(server)) < list->members_len;
}

/* Add a server that is no member, or remove a member, if there is any. */
static void change_one(struct config *list, bool adds)
{
    unsigned first = (unsigned)dice_below(world.plan.servers);

    for (unsigned i = 0; i < world.plan.servers; i++) {
        unsigned server = (first + i) % world.plan.servers;

        if (is_member(list, server) == adds)
            continue;
        if (adds)
            (void)config_add(list, "", sets_name(server));
        else
            (void)config_remove(list, sets_name(server));
        return;
    }
}

/* Each server is a member or not. */
static void change_all(struct config *list)
{
    for (unsigned i = 0; i < world.plan.servers; i++) {
        bool wants = dice_chance(500);

        if (wants && !is_member(list, i))
            (void)config_add(list, "", sets_name(i));
        else if (!wants && is_member(list, i) && list->members_len > 2)
            (void)config_remove(list, sets_name(i));
    }
}

/* The members leave, and all others join, so that two majorities share no master. */
static void move_all(struct config *list)
{
    struct config before = *list;

    for (unsigned i = 0; i < world.plan.servers; i++)
        if (!is_member(&before, i))
            (void)config_add(list, "", sets_name(i));
    if (list->members_len < before.members_len + 2)
        return;
    for (unsigned i = 0; i < before.members_len; i++)
        (void)config_remove(list, before.members[i].name);
}

static void draw_list(const struct config *newest, struct config *ret_list)
{
    unsigned dice = (unsigned)dice_below(100);

    *ret_list = *newest;
    if (config_is_joint(newest) && dice < 60)
        config_finish(newest, ret_list);
    else if (config_is_joint(newest))
        config_give_up(newest, ret_list);
    if (config_is_joint(newest) && dice < 80)
        return;
    dice = (unsigned)dice_below(100);
    if (dice < 20) {
        change_one(ret_list, true);
    } else if (dice < 40) {
        change_one(ret_list, false);
    } else if (dice < 55) {
        move_all(ret_list);
    } else if (dice < 75) {
        change_one(ret_list, false);
        change_one(ret_list, true);
    } else {
        change_all(ret_list);
    }
}

/* ---- One operator ---- */

static void on_log(void *arg, enum redlock_level level, const char *message)
{
    (void)arg, (void)level;
    world_say("    log of an operator: %s", message);
}

/* The list has all servers, as if each had been given to the command. */
static void open_client(struct ev_loop *process)
{
    char masters[24 * SIM_SERVERS_MAX] = "";
    const struct plan *plan = &world.plan;
    struct redlock_options opts;
    struct redlock *rl = NULL;

    for (unsigned i = 0; i < plan->servers; i++)
        (void)snprintf(masters + strlen(masters), sizeof masters - strlen(masters), "%s%s",
                       i > 0 ? "," : "", sets_name(i));
    redlock_options_init(&opts);
    opts.masters = masters;
    opts.loop = process;
    opts.connect_timeout_ms = plan->connect_timeout_ms;
    opts.reply_timeout_ms = plan->reply_timeout_ms;
    opts.drift_ppm = plan->drift_ppm;
    opts.drift_fixed_ms = plan->drift_fixed_ms;
    opts.max_ttl_ms = plan->ttl_max_ms;
    opts.restart_guard = true;
    opts.log = world.verbose ? on_log : NULL;
    process->client++;
    if (redlock_open(&opts, &rl) != REDLOCK_OK)
        world_fail("api", "an operator cannot open a client: %s", redlock_errmsg(NULL));
    inspect_obey_none(rl);
    rl->env.asks_max = plan->asks_max + 3;
}

static void fill_survey(struct survey *survey, struct redlock *rl, const struct config *newest)
{
    survey->rl = rl;
    survey->masters = world.plan.servers;
    survey->newest = *newest;
    for (unsigned m = 0; m < survey->masters; m++) {
        (void)snprintf(survey->of[m].member.name, sizeof survey->of[m].member.name, "%s",
                       sets_name(m));
        (void)snprintf(survey->of[m].member.place, sizeof survey->of[m].member.place, "%s",
                       sets_name(m));
        survey->of[m].is_named = false;
    }
}

/* Another operator begins at the same time. */
static void challenge(const struct ev_loop *process)
{
    for (unsigned i = world.plan.processes; i < world_all_processes(); i++) {
        struct ev_loop *other = &world.processes[i];

        if (other == process || other->rl != NULL || world.phase != PHASE_CHAOS)
            continue;
        other->act_at = process_now(process) + dice_magnitude(1, world.plan.hop * 8);
        process_poke(other, other->act_at);
    }
}

static void begin(struct ev_loop *process)
{
    struct operator* operator= operator_of(process);
    const struct plan *plan = &world.plan;
    struct config newest, list;
    struct change_config config = {
        .max_ttl_ms = plan->ttl_max_ms,
        .gives_up = dice_chance(300),
        .allows_even = dice_chance(800),
        .timeout = (plan->connect_timeout_ms + plan->reply_timeout_ms) * DRIFT_MS,
        .look_every = LOOK_EVERY,
        .pause_min = PAUSE_MIN,
        .pause_max = PAUSE_MAX,
        .drift = {plan->drift_ppm, plan->drift_fixed_ms * DRIFT_MS},
    };

    if (!find_newest(&newest))
        return;
    draw_list(&newest, &list);
    config.set = newest.set;
    open_client(process);
    fill_survey(&operator->survey, process->rl, &newest);
    if (!operate_begin(&operator->op, &operator->survey, &list, &config))
        world_fail("simulator", "an operator has no room for all masters");
    world_note("operator begins: process, version", process->number, newest.version, 0);
    if (dice_chance(500))
        challenge(process);
    operator->phase = CHANGE_LEARNING;
    operator->ended = 0;
    operator->dies_at = SIM_NEVER;
    if (world.phase == PHASE_CHAOS && dice_chance(500))
        operator->dies_at = world.now + dice_magnitude(plan->hop, 6 * plan->ttl_max_ms * DRIFT_MS);
}

static void end(struct ev_loop *process)
{
    struct operator* operator= operator_of(process);

    operate_end(&operator->op);
    operator->dies_at = operator->steps_at = SIM_NEVER;
    (void)redlock_close(process->rl);
    process->client++;
    run_on_operator();
}

static void plan_next(struct ev_loop *process)
{
    const struct operator* operator= operator_of(process);

    if (process->rl != NULL && world.phase == PHASE_CHAOS)
        process->act_at = sim_min(operator->dies_at, operator->steps_at);
    else if (process->rl != NULL)
        process->act_at = operator->steps_at;
    else if (world.phase == PHASE_CHAOS)
        process->act_at =
            process_now(process) + dice_magnitude(world.plan.hop, 2 * world.plan.think_max);
    else
        process->act_at = SIM_NEVER;
}

/* In chaos an operator begins, or dies. */
void operators_act(struct ev_loop *process)
{
    if (process->rl == NULL && (world.phase == PHASE_CHAOS || operator_of(process)->is_wanted)) {
        operator_of(process)->is_wanted = false;
        begin(process);
    } else if (process->rl != NULL && operator_of(process)->dies_at <= world.now &&
               world.phase == PHASE_CHAOS) {
        world_note("operator dies: process", process->number, 0, 0);
        world_outcome(OUTCOME_CHANGE_DIED);
        end(process);
    }
}

static void on_end(struct ev_loop *process, enum change_status status)
{
    world_note("operator ends: process, status", process->number, status, 0);
    world_say("    %s", change_status_text(status));
    if (status == CHANGE_IMPOSSIBLE || status == CHANGE_NO_ROOM || status == CHANGE_OTHER_SET)
        world_fail("change", "an operator ends: %s", change_status_text(status));
    if (status == CHANGE_DONE)
        world_outcome(OUTCOME_CHANGE_DONE);
    if (status == CHANGE_OVERTAKEN)
        world_outcome(OUTCOME_CHANGE_OVERTAKEN);
    end(process);
}

/* The oracle compares what operators know. */
static void watch(struct ev_loop *process)
{
    struct operator* operator= operator_of(process);
    const struct change *change = &operator->op.change;
    const struct lists lists = {operate_masters(&operator->op, change->newest.from),
                                operate_masters(&operator->op, change->newest.to)};

    stored_on_choice(change->newest.version, lists);
    if (change->phase == CHANGE_CHECKING && operator->phase != CHANGE_CHECKING)
        operator->waited = stored_for_long(change->newest.version, process_now(process));
    if (change->phase == CHANGE_WAITING && operator->phase != CHANGE_WAITING)
        nemesis_on_wait(process, operate_masters(&operator->op, change->seen));
    operator->phase = change->phase;
    if (!change->settled || operator->ended == change->newest.version)
        return;
    operator->ended = change->newest.version;
    stored_on_end(change->newest.version, lists, operator->waited);
}

void operators_on_turn(struct ev_loop *process)
{
    struct operator* operator= operator_of(process);
    drift_time wake_at = DRIFT_NEVER;

    if (process->rl != NULL) {
        enum operate_state result = operate_step(&operator->op, randombytes_random(), &wake_at);

        watch(process);
        switch (result) {
        case OPERATE_GOES_ON:
            operator->steps_at = clock_when(&process->clock, wake_at);
            break;
        case OPERATE_AGAIN:
            end(process);
            break;
        case OPERATE_ENDED:
            on_end(process, operator->op.change.status);
            break;
        case OPERATE_OVERTAKEN:
            on_end(process, CHANGE_OVERTAKEN);
            break;
        }
    }
    plan_next(process);
}

void operators_end(void)
{
    for (unsigned i = 0; i < world.plan.operators; i++)
        if (world.processes[world.plan.processes + i].rl != NULL)
            end(&world.processes[world.plan.processes + i]);
}
