/*
 * sets.c - the set that a master belongs to, and the scripts that found one.
 *
 * What must always be true (the property "sets"): of two lists with common masters, at most one
 * is ever founded.  A client that obeys a set that was never founded holds no lease.
 */
#include "oracle.h"
#include "store.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include <sodium.h>

/* ---- Texts ---- */

struct text {
    struct text *next;
    size_t len;
    char bytes[];
};

const char *sets_text(const char *bytes, size_t len)
{
    struct text *text = world.texts;

    while (text != NULL && (text->len != len || memcmp(text->bytes, bytes, len) != 0))
        text = text->next;
    if (text == NULL) {
        text = memory_take(sizeof *text + len + 1);
        *text = (struct text){.next = world.texts, .len = len};
        memcpy(text->bytes, bytes, len);
        world.texts = text;
    }
    return text->bytes;
}

static const char *text_arg(const struct command *command, unsigned i)
{
    return sets_text(command->argv[i], command->lens[i]);
}

const char *sets_state(const struct marker *marker, char text[SETS_STATE_ROOM])
{
    int len = snprintf(text, SETS_STATE_ROOM, "%016llx.%llu", (unsigned long long)marker->epoch,
                       (unsigned long long)marker->ver);

    if (marker->told_floor != 0)
        (void)snprintf(text + len, SETS_STATE_ROOM - (size_t)len, ".%llu",
                       (unsigned long long)marker->told_floor);
    return text;
}

/* ---- Lists ---- */

const char *sets_name(unsigned server)
{
    char text[32];
    int len = snprintf(text, sizeof text, "%s10.0.0.%u:6379", world.plan.tls ? "rediss://" : "",
                       server + 1);

    return sets_text(text, (size_t)len);
}

/* Canonical, because the names are in order. */
const char *sets_list(const struct list *list)
{
    char text[32 * SIM_SERVERS_MAX];
    size_t len = 0;

    for (unsigned i = 0; i < list->len; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", i > 0 ? " " : "",
                                sets_name(list->first + i));
    return sets_text(text, len);
}

/* As founders number the set of a list. */
static uint64_t number_of(const char *list)
{
    uint8_t hash[crypto_generichash_BYTES];
    uint64_t number = 0;

    (void)crypto_generichash(hash, sizeof hash, (const uint8_t *)list, strlen(list), NULL, 0);
    for (unsigned i = 0; i < sizeof number; i++)
        number = number << 8 | hash[i];
    return number;
}

uint64_t sets_number(const struct list *list)
{
    return number_of(sets_list(list));
}

void sets_join(struct server *server)
{
    const struct list *list = &world.plan.lists[0];

    if (server->number - list->first >= list->len)
        return;
    server->marker.ver = 1;
    server->marker.config = sets_list(list);
    server->marker.set = number_of(server->marker.config);
    server->marker.name = sets_name(server->number);
    moves_on_version(server);
    sets_on_member();
}

bool sets_are_founded(const struct list *list)
{
    const char *text = sets_list(list);
    unsigned members = 0;

    for (unsigned i = 0; i < list->len; i++)
        members += world.servers[list->first + i].marker.config == text;
    return members > list->len / 2;
}

void sets_on_member(void)
{
    for (unsigned i = 0; i < 1u + world.plan.two_lists; i++)
        world.was_founded[i] = world.was_founded[i] || sets_are_founded(&world.plan.lists[i]);
    if (world.was_founded[0] && world.was_founded[1])
        world_fail("sets", "the sets of two lists with common masters are founded");
}

bool sets_were_founded(const struct list *list)
{
    return world.was_founded[list != &world.plan.lists[0]];
}

void sets_on_belief(const struct ev_loop *process)
{
    if (world.plan.guarded && !sets_were_founded(process_list(process)))
        world_fail("sets", "client %u holds a lease, and the set that it obeys was never founded",
                   process->number);
}

/* Note if the answer shows the list of other clients. */
void sets_on_answer(const struct ev_loop *process, const struct answer *answer)
{
    const struct list *other = &world.plan.lists[process_own_list(process) == &world.plan.lists[0]];

    if (!world.plan.two_lists || strstr(answer->text, sets_list(other)) == NULL)
        return;
    if (strncmp(answer->text, "claim ", 6) == 0)
        world_outcome(OUTCOME_SET_CLAIMED);
    else
        world_outcome(OUTCOME_SET_REFUSED);
}

/* ---- Scripts ---- */

static void check_args(const struct command *command, unsigned argc)
{
    if (command->argc != argc || !args_is(command, 2, "1") || !args_is(command, 3, WIRE_MARKER))
        world_fail("wire", "a founding with other arguments");
}

/* "claim NUMBER LIST", or "member SET VER CONFIG" */
static struct answer describe(const struct marker *marker)
{
    const char *rest = marker->set != 0 ? marker->config : marker->claim_list;
    const size_t room = strlen(rest) + 64;
    char *text = memory_take(room);

    if (marker->set != 0)
        (void)snprintf(text, room, "member %016llx %llu %s", (unsigned long long)marker->set,
                       (unsigned long long)marker->ver, rest);
    else
        (void)snprintf(text, room, "claim %016llx %s", (unsigned long long)marker->claim, rest);
    return (struct answer){REPLY_TEXT, 0, text};
}

/* EVAL, script, 1, marker, number or "", list */
struct answer sets_claim(struct server *server, const struct command *command)
{
    struct marker *marker = &server->marker;
    const bool reads = command->lens[4] == 0;
    const struct answer answer = {REPLY_TEXT, 0, marker->claim != 0 ? "took" : "new"};
    const struct answer *refusal;

    check_args(command, 6);
    if (marker->set != 0)
        return describe(marker);
    if (marker->claim != 0 && (reads || marker->claim_list != text_arg(command, 5)))
        return describe(marker);
    if (reads)
        return (struct answer){REPLY_TEXT, 0, "nothing"};
    refusal = store_mood(server, true, true);
    if (refusal != NULL)
        return *refusal;
    marker->claim = args_hex(command, 4);
    marker->claim_list = text_arg(command, 5);
    return answer;
}

static bool has_claim(const struct marker *marker, const struct command *command)
{
    return marker->claim != 0 && marker->claim == args_hex(command, 4) &&
           marker->claim_list == text_arg(command, 5);
}

/* EVAL, script, 1, marker, number, list, set, name */
struct answer sets_found(struct server *server, const struct command *command)
{
    struct marker *marker = &server->marker;
    const struct answer *refusal;

    check_args(command, 8);
    if (marker->set != 0 || !has_claim(marker, command))
        return marker->set == args_hex(command, 6) ? answer_one : answer_zero;
    refusal = store_mood(server, true, true);
    if (refusal != NULL)
        return *refusal;
    marker->set = args_hex(command, 6);
    marker->ver = 1;
    marker->told_floor = 0;
    marker->config = marker->claim_list;
    marker->name = text_arg(command, 7);
    marker->claim = 0;
    marker->claim_list = NULL;
    world_outcome(OUTCOME_SET_FOUNDED);
    world_say("    master %u is founded, set %llx", server->number,
              (unsigned long long)marker->set);
    moves_on_version(server);
    sets_on_member();
    return answer_one;
}

/* EVAL, script, 1, marker, number, list */
struct answer sets_withdraw(struct server *server, const struct command *command)
{
    const struct answer *refusal;

    check_args(command, 6);
    if (!has_claim(&server->marker, command))
        return answer_zero;
    refusal = store_mood(server, true, false);
    if (refusal != NULL)
        return *refusal;
    server->marker.claim = 0;
    server->marker.claim_list = NULL;
    return answer_one;
}
