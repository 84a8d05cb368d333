/*
 * fields.c - random commands about sets, and the fields that they change.
 */
#include "fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "real.h"
#include "store.h"

/* Few of each, so that commands meet. */
#define SETS 2
#define CLAIMS 3
#define SET_FIRST UINT64_C(0xfedcba9876543210)
static const char *const lists[] = {"10.0.0.1:6379 10.0.0.2:6379",
                                    "10.0.0.2:6379 10.0.0.3:6379#berlin"};
static const char *const names[] = {"10.0.0.1:6379", "berlin"};

static uint64_t members, claims, neither, promises, accepted, raised; /* Markers compared. */

#define PICK(array) ((array)[dice_below(sizeof(array) / sizeof((array)[0]))])

static uint64_t draw_set(void)
{
    return SET_FIRST + dice_below(SETS);
}

/* ---- Commands ---- */

/* An operator that knows what the marker says, or an earlier state of it. */
size_t fields_draw_ballot(char *buf, const struct marker *marker)
{
    static const enum change_request requests[] = {CHANGE_ASK_PREPARE, CHANGE_ASK_ACCEPT,
                                                   CHANGE_ASK_WRITE, CHANGE_ASK_COUNT};
    const char *text = dice_chance(900) ? PICK(lists) : "";
    struct config config = {.version = marker->ver + dice_below(3)};
    struct ballot_args args = {
        .epoch = dice_chance(950) && marker->epoch != 0 ? marker->epoch : dice_range(1, 3),
        .version = marker->ver + dice_chance(50),
        .set = dice_chance(950) && marker->set != 0 ? marker->set : draw_set(),
        .ballot = UINT64_C(0x0000000100000000) * dice_range(1, 3) + dice_below(2),
        .config = &config,
        .name = dice_chance(500) ? PICK(names) : NULL,
        .number = dice_chance(800)   ? marker->floor + dice_below(1000)
                  : dice_chance(800) ? dice_below(100)
                                     : UINT64_C(1) << 52,
    };

    if (!config_parse(text, strlen(text), &config))
        real_die("not a configuration: %s", text);
    return ballot_write(buf, PICK(requests), &args);
}

size_t fields_draw(char *buf, const struct marker *marker)
{
    static const enum script_id scripts[] = {SCRIPT_CLAIM, SCRIPT_FOUND, SCRIPT_WITHDRAW};
    const enum script_id script = PICK(scripts);
    const bool is_same = marker->claim != 0 && dice_chance(700);
    const char *list = is_same ? marker->claim_list : PICK(lists);
    const struct wire_founding founding = {
        .number = script == SCRIPT_CLAIM && dice_chance(300) ? 0
                  : is_same && dice_chance(700)              ? marker->claim
                                                             : dice_range(1, CLAIMS),
        .list = list,
        .list_len = strlen(list),
        .set = draw_set(),
        .name = PICK(names),
    };

    return wire_founding(buf, script, &founding);
}

void fields_draw_known(struct wire_look *look)
{
    if (dice_chance(400))
        return;
    look->set = draw_set();
    look->version = dice_range(1, 4);
    if (dice_chance(look->nonce[0] != '\0' ? 100 : 850))
        return;
    look->config = dice_chance(900) ? PICK(lists) : "";
    if (look->nonce[0] == '\0' || dice_chance(500))
        look->name = PICK(names);
}

/* ---- Disturbances ---- */

/* Write the version behind the epoch, as all scripts do that write a version. */
static void write_epoch(const struct marker *marker)
{
    char state[SETS_STATE_ROOM];

    if (marker->epoch != 0)
        real_run("HSET " WIRE_MARKER " epoch %s", sets_state(marker, state));
}

static void leave_set(struct marker *marker)
{
    real_run("HDEL " WIRE_MARKER " set ver config name of");
    marker->set = marker->ver = 0;
    marker->config = marker->name = NULL;
    write_epoch(marker);
}

/* As prepare.lua and accept.lua. */
static void promise(struct marker *marker)
{
    const char *config = PICK(lists);
    char value[160];

    marker->ballot = marker->accepted_in = dice_range(1, 3);
    marker->accepted = sets_text(config, strlen(config));
    (void)snprintf(value, sizeof value, "%016" PRIx64 " %s", marker->accepted_in, config);
    real_run("HSET " WIRE_MARKER " ballot %016llx accepted %s", (unsigned long long)marker->ballot,
             value);
}

/* As write.lua, which may remove the master from its set. */
static void change_set(struct marker *marker)
{
    const char *config = dice_chance(800) ? PICK(lists) : "";

    real_run("HSET " WIRE_MARKER " set %016llx ver %llu config %s of set",
             (unsigned long long)SET_FIRST, (unsigned long long)marker->ver + 1, config);
    real_run("HDEL " WIRE_MARKER " claim name ballot accepted");
    ballots_drop(marker);
    marker->told_floor = 0;
    marker->set = SET_FIRST;
    marker->ver++;
    marker->config = sets_text(config, strlen(config));
    marker->claim = 0;
    marker->claim_list = marker->name = NULL;
    write_epoch(marker);
}

void fields_disturb(struct marker *marker)
{
    unsigned dice = (unsigned)dice_below(1000);

    if (dice < 500)
        leave_set(marker);
    else if (dice < 700)
        promise(marker);
    else
        change_set(marker);
}

/* ---- Comparison ---- */

enum { EPOCH_TEXT, SET, VER, CONFIG, NAME, OF, CLAIM, BALLOT, ACCEPTED, FLOOR, FIELDS };

void fields_append(redisContext *redis)
{
    (void)redisAppendCommand(redis, "HMGET " WIRE_MARKER
                                    " epoch set ver config name of claim ballot accepted floor");
}

/* wanted: NULL if there is no such field. */
static void compare_field(const redisReply *field, const char *name, const char *wanted)
{
    if (wanted == NULL ? field->type != REDIS_REPLY_NIL
                       : field->type != REDIS_REPLY_STRING || strcmp(field->str, wanted) != 0)
        real_die("%s is %s, and in the model %s", name, field->str != NULL ? field->str : "missing",
                 wanted != NULL ? wanted : "missing");
}

static void compare_ballots(const redisReply *reply, const struct marker *marker)
{
    char ballot[20], value[160];

    (void)snprintf(ballot, sizeof ballot, "%016" PRIx64, marker->ballot);
    (void)snprintf(value, sizeof value, "%016" PRIx64 " %s", marker->accepted_in,
                   marker->accepted != NULL ? marker->accepted : "");
    compare_field(reply->element[BALLOT], "ballot", marker->ballot != 0 ? ballot : NULL);
    compare_field(reply->element[ACCEPTED], "accepted", marker->accepted != NULL ? value : NULL);
    promises += marker->ballot != 0;
    accepted += marker->accepted != NULL;
    raised += marker->told_floor != 0;
}

void fields_compare(const redisReply *reply, const struct marker *marker)
{
    const bool is_member = marker->set != 0, is_claimed = marker->claim != 0;
    char epoch[SETS_STATE_ROOM], set[20], ver[24], claim[160], floor[24];

    (void)snprintf(set, sizeof set, "%016" PRIx64, marker->set);
    (void)snprintf(ver, sizeof ver, "%" PRIu64, marker->ver);
    (void)snprintf(claim, sizeof claim, "%016" PRIx64 " %s", marker->claim,
                   is_claimed ? marker->claim_list : "");
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != FIELDS)
        real_die("the marker has no fields");
    compare_field(reply->element[EPOCH_TEXT], "epoch",
                  marker->epoch != 0 ? sets_state(marker, epoch) : NULL);
    compare_field(reply->element[SET], "set", is_member ? set : NULL);
    compare_field(reply->element[VER], "ver", is_member ? ver : NULL);
    compare_field(reply->element[CONFIG], "config", marker->config);
    compare_field(reply->element[NAME], "name", marker->name);
    compare_field(reply->element[OF], "of", is_member ? "set" : NULL);
    compare_field(reply->element[CLAIM], "claim", is_claimed ? claim : NULL);
    (void)snprintf(floor, sizeof floor, "%" PRIu64, marker->floor);
    compare_field(reply->element[FLOOR], "floor", marker->floor != 0 ? floor : NULL);
    compare_ballots(reply, marker);
    members += is_member;
    claims += is_claimed;
    neither += !is_member && !is_claimed;
}

void fields_report(uint64_t commands)
{
    printf("markers: %" PRIu64 " with a set, %" PRIu64 " with a claim, %" PRIu64 " with neither, "
           "%" PRIu64 " with a ballot, %" PRIu64 " with a value, %" PRIu64 " with a new floor\n",
           members, claims, neither, promises, accepted, raised);
    if (members < commands / 20 || claims < commands / 20 || neither < commands / 50 ||
        promises < commands / 50 || accepted < commands / 50 || raised < commands / 100)
        real_die("too little has happened to sets");
}
