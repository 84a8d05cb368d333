/*
 * test-wire.c - commands have the same bytes as those of hiredis' formatter.
 */
#include <hiredis/hiredis.h>

#include "redlock/wire/wire.h"

#include "test/lib/check.h"

#define TTL_MAX "4294967295"
#define EPOCH "0123456789abcdef"
#define WAITER "0123456789abcdef0123456789abcdef01234567"
#define ID EPOCH EPOCH "01234567"

static char long_name[REDLOCK_NAME_MAX], long_token[REDLOCK_TOKEN_MAX];

static const struct row {
    const char *name;
    size_t name_len;
    const char *token;
    size_t token_len;
    uint32_t ttl_ms;
    const char *ttl_text;
} rows[] = {
    {"a", 1, "t", 1, 1, "1"},
    {"jobs/7", 6, "0123456789abcdef0123456789abcdef01234567", 40, 9, "9"},
    {"two words\r\n", 11, "tok\r\nen", 7, 10, "10"},
    {"\xff\x00\x01", 3, "*1\r\n$1\r\n", 8, 99, "99"},
    {"123456789", 9, "t", 1, 100, "100"},
    {"1234567890", 10, "t", 1, 10000, "10000"},
    {long_name, 99, long_token, 99, 86400000, "86400000"},
    {long_name, 100, long_token, 100, 999999999, "999999999"},
    {long_name, 101, long_token, 101, 1000000000, "1000000000"},
    {long_name, REDLOCK_NAME_MAX, long_token, REDLOCK_TOKEN_MAX, UINT32_MAX, TTL_MAX},
};

#define ROWS_LEN (sizeof rows / sizeof rows[0])

static struct wire_args args_of(const struct row *row)
{
    memset(long_name, 'n', sizeof long_name);
    memset(long_token, 't', sizeof long_token);
    return (struct wire_args){.name = row->name,
                              .name_len = row->name_len,
                              .token = row->token,
                              .token_len = row->token_len,
                              .ttl_ms = row->ttl_ms};
}

static void check_same(const char *buf, size_t len, int argc, const char **argv, const size_t *lens)
{
    char *want;
    int want_len = (int)redisFormatCommandArgv(&want, argc, argv, lens);

    CHECK(want_len > 0);
    CHECK_UINT(len, (size_t)want_len);
    CHECK(memcmp(buf, want, len) == 0);
    CHECK_INT(buf[len], '#'); /* No byte past the end is written. */
    redisFreeCommand(want);
}

TEST(set_is_formatted)
{
    for (size_t i = 0; i < ROWS_LEN; i++) {
        struct wire_args args = args_of(&rows[i]);
        const char *argv[] = {"SET", args.name, args.token, "NX", "PX", rows[i].ttl_text};
        size_t lens[] = {3, args.name_len, args.token_len, 2, 2, strlen(rows[i].ttl_text)};
        char buf[WIRE_MAX + 1];

        memset(buf, '#', sizeof buf);
        check_same(buf, wire_set(buf, &args), 6, argv, lens);
    }
}

static void check_script(const struct row *row, enum script_id script, bool in_full)
{
    struct wire_args args = args_of(row);
    const struct script *s = &script_all[script];
    const char *argv[] = {in_full ? "EVAL" : "EVALSHA",
                          in_full ? s->text : s->sha1,
                          "1",
                          args.name,
                          args.token,
                          row->ttl_text};
    size_t lens[] = {strlen(argv[0]), strlen(argv[1]), 1,
                     args.name_len,   args.token_len,  strlen(row->ttl_text)};
    bool releases = script == SCRIPT_RELEASE || script == SCRIPT_RELEASE_PERMIT ||
                    script == SCRIPT_RELEASE_SHARED;
    char buf[WIRE_MAX + 1];

    if (releases)
        args.ttl_ms = 0; /* A release has none. */
    memset(buf, '#', sizeof buf);
    check_same(buf, wire_script(buf, script, in_full, &args), releases ? 5 : 6, argv, lens);
}

/* HINCRBY, the marker, the counter, 1. */
static void check_count(const struct row *row)
{
    struct wire_args args = args_of(row);
    char counter[8], buf[WIRE_MAX + 1];
    const char *argv[] = {"HINCRBY", "redlock:master", counter, "1"};
    size_t lens[] = {7, 14, 0, 1};

    lens[2] =
        (size_t)snprintf(counter, sizeof counter, "%u", wire_counter(args.name, args.name_len));
    memset(buf, '#', sizeof buf);
    check_same(buf, wire_count(buf, &args), 4, argv, lens);
}

/* Name and marker, token, number, counter, epoch. */
static void check_raise(const struct row *row, bool in_full)
{
    struct wire_args args = args_of(row);
    const struct script *s = &script_all[SCRIPT_RAISE];
    char counter[8];
    const char *number = "9007199254740991";
    const char *argv[] = {in_full ? "EVAL" : "EVALSHA",
                          in_full ? s->text : s->sha1,
                          "2",
                          args.name,
                          "redlock:master",
                          args.token,
                          number,
                          counter,
                          EPOCH};
    size_t lens[] = {strlen(argv[0]),
                     strlen(argv[1]),
                     1,
                     args.name_len,
                     14,
                     args.token_len,
                     strlen(number),
                     0,
                     16};
    char buf[WIRE_MAX + 1];

    lens[7] =
        (size_t)snprintf(counter, sizeof counter, "%u", wire_counter(args.name, args.name_len));
    args.epoch = EPOCH;
    args.counter = UINT64_C(9007199254740991);
    memset(buf, '#', sizeof buf);
    check_same(buf, wire_script(buf, SCRIPT_RAISE, in_full, &args), 9, argv, lens);
}

/* The test vectors of FNV-1a by its authors (also in RFC 9923), folded.  The counter of a name
 * must never change. */
TEST(a_name_has_its_counter)
{
    CHECK_UINT(wire_counter("", 0), 0x811c ^ 0x9dc5);
    CHECK_UINT(wire_counter("a", 1), 0xe40c ^ 0x292c);
    CHECK_UINT(wire_counter("foobar", 6), 0xbf9c ^ 0xf968);
    CHECK_UINT(wire_counter("foobarx", 6), 0xbf9c ^ 0xf968);
}

TEST(scripts_are_formatted)
{
    for (size_t i = 0; i < ROWS_LEN; i++) {
        check_script(&rows[i], SCRIPT_RELEASE, false);
        check_script(&rows[i], SCRIPT_RELEASE, true);
        check_script(&rows[i], SCRIPT_EXTEND, false);
        check_script(&rows[i], SCRIPT_EXTEND, true);
        check_script(&rows[i], SCRIPT_ACQUIRE_SHARED, true);
        check_script(&rows[i], SCRIPT_EXTEND_SHARED, false);
        check_script(&rows[i], SCRIPT_RELEASE_SHARED, false);
        check_count(&rows[i]);
        check_raise(&rows[i], false);
        check_raise(&rows[i], true);
    }
}

/* The longest command, with the most and longest names; and a short one with two. */
static void check_many(enum script_id script, bool in_full, unsigned names, size_t name_len)
{
    static char text[WIRE_NAMES_MAX];
    const struct script *s = &script_all[script];
    bool has_ttl = script != SCRIPT_RELEASE_MANY;
    char count[4], buf[WIRE_MAX + 1];
    const char *argv[5 + REDLOCK_NAMES_MAX] = {in_full ? "EVAL" : "EVALSHA",
                                               in_full ? s->text : s->sha1, count};
    size_t lens[5 + REDLOCK_NAMES_MAX] = {strlen(argv[0]), strlen(argv[1])};
    struct wire_args args = args_of(&rows[ROWS_LEN - 1]);

    lens[2] = (size_t)snprintf(count, sizeof count, "%u", names);
    args.name = text;
    args.name_len = names * (name_len + 1) - 1;
    for (unsigned i = 0; i < names; i++) {
        char *name = text + i * (name_len + 1);

        memset(name, 'a' + (int)i, name_len);
        if (i + 1 < names)
            name[name_len] = '\0';
        argv[3 + i] = name;
        lens[3 + i] = name_len;
    }
    argv[3 + names] = args.token;
    lens[3 + names] = args.token_len;
    argv[4 + names] = TTL_MAX;
    lens[4 + names] = strlen(TTL_MAX);
    CHECK_UINT(wire_count_names(text, args.name_len), names);
    memset(buf, '#', sizeof buf);
    check_same(buf, wire_many(buf, script, in_full, &args), (int)(4 + names + has_ttl), argv, lens);
}

TEST(many_are_formatted)
{
    for (unsigned script = SCRIPT_ACQUIRE_MANY; script <= SCRIPT_RELEASE_MANY; script++) {
        check_many((enum script_id)script, true, REDLOCK_NAMES_MAX, REDLOCK_NAME_MAX);
        check_many((enum script_id)script, false, 2, 1);
    }
}

/* Two names, of which one has the counter of docs/protocol.md. */
TEST(counts_of_many_are_formatted)
{
    const struct script *count = &script_all[SCRIPT_COUNT_MANY];
    const struct script *raise = &script_all[SCRIPT_RAISE_MANY];
    struct wire_args args = {.name = "a\0stock", .name_len = 7, .token = "t", .token_len = 1};
    char a[8], buf[WIRE_MAX + 1];
    size_t a_len = (size_t)snprintf(a, sizeof a, "%u", wire_counter("a", 1));
    const char *counts[] = {"EVAL", count->text, "1", WIRE_MARKER, a, "16793"};
    const size_t counts_lens[] = {4, count->text_len, 1, 14, a_len, 5};
    const char *raises[] = {"EVALSHA", raise->sha1, "3",   "a", "stock", WIRE_MARKER,
                            "t",       "77",        EPOCH, a,   "16793"};
    const size_t raises_lens[] = {7, 40, 1, 1, 5, 14, 1, 2, 16, a_len, 5};

    args.epoch = EPOCH;
    args.counter = 77;
    memset(buf, '#', sizeof buf);
    check_same(buf, wire_count_many(buf, &args), 6, counts, counts_lens);
    memset(buf, '#', sizeof buf);
    check_same(buf, wire_many(buf, SCRIPT_RAISE_MANY, false, &args), 11, raises, raises_lens);
}

/* The longest name, in the last slot. */
static void check_permit(bool in_full)
{
    static char name[WIRE_KEY_MAX + 1];
    const struct script *s = &script_all[SCRIPT_ACQUIRE_PERMIT];
    struct wire_args args = args_of(&rows[ROWS_LEN - 1]);
    const char *argv[] = {in_full ? "EVAL" : "EVALSHA",
                          in_full ? s->text : s->sha1,
                          "1",
                          name,
                          args.token,
                          TTL_MAX,
                          "255",
                          "256"};
    size_t lens[] = {strlen(argv[0]), strlen(argv[1]), 1, WIRE_KEY_MAX,
                     args.token_len,  strlen(TTL_MAX), 3, 3};
    char buf[WIRE_MAX + 1];

    memset(name, 'n', WIRE_KEY_MAX);
    args.name = name;
    args.name_len = WIRE_KEY_MAX;
    args.slot = REDLOCK_PERMITS_MAX - 1;
    args.slots = REDLOCK_PERMITS_MAX;
    memset(buf, '#', sizeof buf);
    check_same(buf, wire_permit(buf, in_full, &args), 8, argv, lens);
}

TEST(permits_are_formatted)
{
    const struct script *s = &script_all[SCRIPT_WAIT_PERMIT];
    const char *argv[] = {
        "EVAL",  s->text, "2",   "redlock:permit:s", "redlock:wait:redlock:permit:s",
        "60000", "3",     "held"};
    const struct wire_wait wait = {.mark = argv[4], .mark_len = strlen(argv[4]), .slots = 3};
    char buf[WIRE_MAX + 1];

    check_permit(true);
    check_permit(false);
    memset(buf, '#', sizeof buf);
    check_same(buf, wire_wait(buf, true, &wait), 8, argv, NULL);
    for (size_t i = 0; i < ROWS_LEN; i++) {
        check_script(&rows[i], SCRIPT_RELEASE_PERMIT, false);
        check_script(&rows[i], SCRIPT_RELEASE_PERMIT, true);
    }
}

/* A heartbeat, a release, and a farewell. */
static void check_fair(const struct row *row, bool in_full)
{
    const struct script *asks = &script_all[SCRIPT_ACQUIRE_FAIR];
    const struct script *releases = &script_all[SCRIPT_RELEASE_FAIR];
    struct wire_args args = args_of(row);
    char buf[WIRE_MAX + 1], ttl[16], queue[WIRE_QUEUE_LEN + REDLOCK_NAME_MAX];
    const char *argv[] = {in_full ? "EVAL" : "EVALSHA",
                          in_full ? asks->text : asks->sha1,
                          "1",
                          args.name,
                          args.token,
                          ttl,
                          WAITER,
                          "9007199254740991",
                          "86400000",
                          "18446744073709551615"};
    size_t lens[] = {
        strlen(argv[0]), strlen(argv[1]), 1, args.name_len, args.token_len, 0, 40, 16, 8, 20};
    const char *releasing[] = {
        argv[0], in_full ? releases->text : releases->sha1, argv[2], argv[3], argv[4], WAITER,
        "pass"};
    const struct script *extends = &script_all[SCRIPT_EXTEND_FAIR];
    const char *extending[] = {
        argv[0], in_full ? extends->text : extends->sha1, argv[2], argv[3], argv[4], ttl, WAITER};
    const char *leaving[] = {"ZREM", queue, WAITER, "-" WAITER};
    size_t releasing_lens[] = {lens[0], strlen(releasing[1]), 1, lens[3], lens[4], 40, 4};
    size_t extending_lens[] = {lens[0], strlen(extending[1]), 1, lens[3], lens[4], 0, 40};
    size_t leaving_lens[] = {4, WIRE_QUEUE_LEN + args.name_len, 40, 41};

    lens[5] = extending_lens[5] = (size_t)snprintf(ttl, sizeof ttl, "%u", args.ttl_ms);
    args.sent = UINT64_MAX;
    args.how = WIRE_RELEASE_PASS;
    args.waiter = WAITER;
    args.ticket = WIRE_TICKET_MAX;
    args.patience_ms = 86400000;
    memset(buf, '#', sizeof buf);
    check_same(buf, wire_fair(buf, SCRIPT_ACQUIRE_FAIR, in_full, &args), 10, argv, lens);
    memset(buf, '#', sizeof buf);
    args.sent = 0;
    check_same(buf, wire_fair(buf, SCRIPT_ACQUIRE_FAIR, in_full, &args), 9, argv, lens);
    memset(buf, '#', sizeof buf);
    check_same(buf, wire_fair(buf, SCRIPT_EXTEND_FAIR, in_full, &args), 7, extending,
               extending_lens);
    memset(buf, '#', sizeof buf);
    check_same(buf, wire_fair(buf, SCRIPT_RELEASE_FAIR, in_full, &args), 7, releasing,
               releasing_lens);
    memcpy(queue, WIRE_QUEUE, WIRE_QUEUE_LEN);
    memcpy(queue + WIRE_QUEUE_LEN, args.name, args.name_len);
    memset(buf, '#', sizeof buf);
    check_same(buf, wire_leave(buf, &args), 4, leaving, leaving_lens);
}

TEST(fair_ones_are_formatted)
{
    for (size_t i = 0; i < ROWS_LEN; i++) {
        check_fair(&rows[i], false);
        check_fair(&rows[i], true);
    }
}

TEST(looks_of_who_waits_are_formatted)
{
    const char *argv[] = {"EVAL",
                          script_all[SCRIPT_WAIT].text,
                          "2",
                          "jobs/7",
                          WIRE_MARK "jobs/7",
                          "60000",
                          "1700",
                          "held",
                          "3f"};
    struct wire_wait wait = {.mark = argv[4], .mark_len = WIRE_MARK_LEN + 6, .off_ms = 1700};
    char buf[WIRE_MAX + 1];

    memset(buf, '#', sizeof buf);
    check_same(buf, wire_wait(buf, true, &wait), 8, argv, NULL);
    argv[6] = "0";
    argv[7] = "taken";
    wait.off_ms = 0;
    wait.is_taken = true;
    memcpy(wait.groups, argv[8], 3);
    memset(buf, '#', sizeof buf);
    check_same(buf, wire_wait(buf, true, &wait), 9, argv, NULL);
    argv[0] = "EVALSHA";
    argv[1] = script_all[SCRIPT_WAIT].sha1;
    argv[6] = "";
    argv[7] = "held";
    wait.off_ms = WIRE_READER;
    wait.is_taken = false;
    wait.groups[0] = '\0';
    memset(buf, '#', sizeof buf);
    check_same(buf, wire_wait(buf, false, &wait), 8, argv, NULL);
}

TEST(proofs_are_formatted)
{
    const char *argv[] = {"HGET", "redlock:master", "epoch"};
    size_t lens[] = {4, 14, 5};
    char buf[WIRE_MAX + 1];

    memset(buf, '#', sizeof buf);
    memcpy(buf, WIRE_PROOF, sizeof WIRE_PROOF - 1);
    check_same(buf, sizeof WIRE_PROOF - 1, 3, argv, lens);
}

TEST(proofs_with_the_longest_lease_are_formatted)
{
    const char *argv[] = {"HMGET", "redlock:master", "epoch", "max"};
    size_t lens[] = {5, 14, 5, 3};
    char buf[WIRE_MAX + 1];

    memset(buf, '#', sizeof buf);
    memcpy(buf, WIRE_PROOF_MAX, sizeof WIRE_PROOF_MAX - 1);
    check_same(buf, sizeof WIRE_PROOF_MAX - 1, 4, argv, lens);
}

TEST(looks_are_formatted)
{
    const char *text = script_all[SCRIPT_LOOK].text;
    const char *argv[] = {"EVAL",
                          text,
                          "1",
                          "redlock:master",
                          ID,
                          "1",
                          "60000",
                          EPOCH,
                          EPOCH,
                          "fedcba9876543210",
                          "1795240480123456",
                          "9007199254740991",
                          "a b",
                          "b",
                          "00000002fedcba98",
                          "00000001fedcba98 a b > b c"};
    struct wire_look look = {.id = ID,
                             .keeps = true,
                             .is_known = true,
                             .max_ttl_ms = 60000,
                             .random = EPOCH,
                             .nonce = EPOCH,
                             .floor = 1795240480123456,
                             .set = UINT64_C(0xfedcba9876543210),
                             .version = CONFIG_VERSION_MAX,
                             .config = "a b",
                             .name = "b",
                             .ballot = UINT64_C(0x2fedcba98),
                             .accepted = "00000001fedcba98 a b > b c"};
    char buf[WIRE_MAX + 1];

    memset(buf, '#', sizeof buf);
    check_same(buf, wire_look(buf, &look), 16, argv, NULL);
    look.is_known = false;
    argv[5] = "2";
    memset(buf, '#', sizeof buf);
    check_same(buf, wire_look(buf, &look), 16, argv, NULL);
    look = (struct wire_look){.id = ID, .max_ttl_ms = 60000, .random = EPOCH, .nonce = ""};
    argv[5] = argv[10] = argv[11] = "0";
    argv[8] = argv[9] = argv[12] = argv[13] = argv[14] = argv[15] = "";
    memset(buf, '#', sizeof buf);
    check_same(buf, wire_look(buf, &look), 16, argv, NULL);
    look.is_new = true;
    look.config = "a b";
    argv[9] = "new";
    argv[12] = "a b";
    memset(buf, '#', sizeof buf);
    check_same(buf, wire_look(buf, &look), 16, argv, NULL);
}

/* The longest texts that a configuration may have. */
TEST(the_longest_look_fits)
{
    static char config[WIRE_CONFIG_MAX + 1], name[WIRE_MEMBER_MAX + 1];
    static char accepted[WIRE_ACCEPTED_MAX + 1];
    const char *argv[] = {"EVAL",
                          script_all[SCRIPT_LOOK].text,
                          "1",
                          "redlock:master",
                          ID,
                          "0",
                          "86400000",
                          EPOCH,
                          EPOCH,
                          "ffffffffffffffff",
                          "9007199254740991",
                          "9007199254740991",
                          config,
                          name,
                          "ffffffffffffffff",
                          accepted};
    const struct wire_look look = {.id = ID,
                                   .max_ttl_ms = 86400000,
                                   .random = EPOCH,
                                   .nonce = EPOCH,
                                   .floor = CONFIG_VERSION_MAX,
                                   .set = UINT64_MAX,
                                   .version = CONFIG_VERSION_MAX,
                                   .config = config,
                                   .name = name,
                                   .ballot = UINT64_MAX,
                                   .accepted = accepted};
    char buf[WIRE_MAX + 1];

    memset(config, 'a', WIRE_CONFIG_MAX);
    memset(name, 'b', WIRE_MEMBER_MAX);
    memset(accepted, 'c', WIRE_ACCEPTED_MAX);
    memset(buf, '#', sizeof buf);
    check_same(buf, wire_look(buf, &look), 16, argv, NULL);
}

TEST(requests_to_witnesses_are_formatted)
{
    static const char *const modes[] = {"read", "mark", "anew"};
    static char name[WIRE_MEMBER_MAX + 1];
    const char *argv[] = {
        "EVAL", script_all[SCRIPT_WITNESS].text, "1", "redlock:witness", name, EPOCH ID, NULL};
    char buf[WIRE_MAX + 1];

    memset(name, 'n', WIRE_MEMBER_MAX);
    for (unsigned mode = 0; mode < 3; mode++) {
        argv[6] = modes[mode];
        memset(buf, '#', sizeof buf);
        check_same(
            buf, wire_witness(buf, (enum wire_witness)mode, name, UINT64_C(0x123456789abcdef), ID),
            7, argv, NULL);
    }
}

static void check_founding(enum script_id script, const struct wire_founding *founding, int argc,
                           const char *number)
{
    const char *argv[] = {"EVAL",         script_all[script].text, "1", "redlock:master", number,
                          founding->list, "fedcba9876543210",      "a"};
    char buf[WIRE_MAX + 1];

    memset(buf, '#', sizeof buf);
    check_same(buf, wire_founding(buf, script, founding), argc, argv, NULL);
}

TEST(what_founds_a_set_is_formatted)
{
    static char longest[WIRE_LIST_MAX + 1];
    struct wire_founding founding = {UINT64_C(0x123456789abcdef), "a b", 3,
                                     UINT64_C(0xfedcba9876543210), "a"};

    memset(longest, 'a', WIRE_LIST_MAX);
    for (unsigned i = 0; i < 2; i++) {
        check_founding(SCRIPT_CLAIM, &founding, 6, EPOCH);
        check_founding(SCRIPT_FOUND, &founding, 8, EPOCH);
        check_founding(SCRIPT_WITHDRAW, &founding, 6, EPOCH);
        founding.list = longest;
        founding.list_len = WIRE_LIST_MAX;
    }
    founding.number = 0;
    check_founding(SCRIPT_CLAIM, &founding, 6, "");
}

/* Numbers of every length: one below each power of ten, and the power. */
TEST(every_length_of_a_ttl)
{
    for (uint64_t power = 1; power <= UINT32_MAX; power *= 10) {
        for (uint32_t ttl_ms = (uint32_t)power - (power > 1); ttl_ms <= power; ttl_ms++) {
            struct row row = rows[0];
            char text[16];
            struct wire_args args;
            const char *argv[] = {"SET", "a", "t", "NX", "PX", text};
            size_t lens[] = {3, 1, 1, 2, 2, (size_t)snprintf(text, sizeof text, "%u", ttl_ms)};
            char buf[WIRE_MAX + 1];

            row.ttl_ms = ttl_ms;
            args = args_of(&row);
            memset(buf, '#', sizeof buf);
            check_same(buf, wire_set(buf, &args), 6, argv, lens);
        }
    }
}

TEST(the_key_of_a_permit_ends_with_its_slot)
{
    static const unsigned slots[] = {0, 9, 10, 99, 100, 255};
    static const char *const keys[] = {"s:0", "s:9", "s:10", "s:99", "s:100", "s:255"};
    char buf[WIRE_KEY_MAX];

    for (unsigned i = 0; i < 6; i++) {
        size_t len = wire_permit_key(buf, "s", 1, slots[i]);

        CHECK_UINT(len, strlen(keys[i]));
        CHECK(memcmp(buf, keys[i], len) == 0);
    }
}

CHECK_MAIN(RUN(the_key_of_a_permit_ends_with_its_slot), RUN(set_is_formatted),
           RUN(scripts_are_formatted), RUN(a_name_has_its_counter), RUN(many_are_formatted),
           RUN(counts_of_many_are_formatted), RUN(permits_are_formatted),
           RUN(fair_ones_are_formatted), RUN(looks_of_who_waits_are_formatted),
           RUN(proofs_are_formatted), RUN(proofs_with_the_longest_lease_are_formatted),
           RUN(looks_are_formatted), RUN(the_longest_look_fits),
           RUN(requests_to_witnesses_are_formatted), RUN(what_founds_a_set_is_formatted),
           RUN(every_length_of_a_ttl))
