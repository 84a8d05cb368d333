/*
 * witness.c - the marks of warming masters, and the script on them: redlock/lua/witness.lua.
 */
#include "net.h"
#include "process.h"
#include "store.h"
#include "world.h"

#include "redlock/client/state.h"

#include <string.h>

/* Two marks with one hash (FNV-1a of 64 bits) would be taken for one.  No run has that many. */
static uint64_t hash_of(const char *text, size_t len)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
    return hash;
}

struct mark *witness_find(struct marks *marks, const char *name, size_t len)
{
    for (unsigned i = 0; i < marks->len; i++)
        if (marks->all[i].name == hash_of(name, len))
            return &marks->all[i];
    return NULL;
}

static void put(struct marks *marks, struct mark *mark, const struct mark *now)
{
    if (mark == NULL && marks->len == WIRE_WITNESS_MAX)
        marks->len = 0;
    if (mark == NULL)
        mark = &marks->all[marks->len++];
    *mark = *now;
}

static bool is_valid(const struct mark *mark, uint64_t text, uint64_t up_ms)
{
    return mark->text == text && mark->at_ms <= up_ms && mark->at_ms + WIRE_WITNESS_MS >= up_ms;
}

/* EVAL, script, 1, marks, name, mark, mode */
struct answer witness_execute(struct server *server, const struct command *command)
{
    struct marks *marks = &server->marks;
    uint64_t now = clock_at(&server->clock, world.now) / SIM_US;
    uint64_t now_ms = now / 1000, up_ms = (now + 999) / 1000;
    bool anew = args_is(command, 6, "anew"), reads = args_is(command, 6, "read");
    struct mark *mark = witness_find(marks, command->argv[4], command->lens[4]);
    const struct mark new = {hash_of(command->argv[4], command->lens[4]),
                             hash_of(command->argv[5], command->lens[5]), up_ms};
    const struct answer *refusal;

    if (command->argc != 7 || !args_is(command, 2, "1") || !args_is(command, 3, WIRE_WITNESS) ||
        (!anew && !reads && !args_is(command, 6, "mark")))
        world_fail("wire", "a mark with other arguments");
    if (mark != NULL && is_valid(mark, new.text, up_ms) && !anew)
        return (struct answer){REPLY_INTEGER,
                               now_ms > mark->at_ms ? (long long)(now_ms - mark->at_ms) : 0, ""};
    if (reads)
        return (struct answer){REPLY_INTEGER, -1, ""};
    refusal = store_mood(server, true, mark != NULL || marks->len < WIRE_WITNESS_MAX);
    if (refusal != NULL)
        return *refusal;
    put(marks, mark, &new);
    return answer_zero;
}

/* A client has given the master an epoch.  It was told by witnesses if it has not watched the
 * master for so long itself. */
void witness_on_install(const struct conn *conn)
{
    const struct ev_loop *process = conn->process;
    const struct guard *guard;
    const struct guard_master *master;

    if (process == NULL || process->rl == NULL)
        return;
    guard = &process->rl->masters.standing.guard;
    master = &guard->masters[conn->master];
    if (master->look.number != 0 && !master->look.ready && !master->look.fresh &&
        drift_add(master->since, guard_quarantine(guard)) > process_clock(process))
        world_outcome(OUTCOME_WITNESSED);
}
