/*
 * test-options.c - the options of a client: defaults, both sides of every limit, and
 * structs of other versions.
 *
 * test-lock-options.c has the options of a lock.
 */
#include <stdlib.h>
#include <unistd.h>

#include "redlock/base/error.h"
#include "redlock/client/options.h"
#include "redlock/wire/name.h"

#include "test/lib/check.h"
#include "test/lib/heap.h"

#define ELEMENTS(array) (sizeof(array) / sizeof(array)[0])

/* The sizes of each release.  Rows are added, and never changed. */
static const struct {
    const char *version;
    size_t options, lock_options;
} shipped[] = {
    {"0.2.0 without pollable", offsetof(struct redlock_options, tls_server_name) + sizeof(void *),
     offsetof(struct redlock_lock_options, note) + sizeof(void *)},
    {"0.2.0", offsetof(struct redlock_options, pollable) + sizeof(void *), /* With padding. */
     offsetof(struct redlock_lock_options, note) + sizeof(void *)},
    {"0.3.0", offsetof(struct redlock_options, pollable) + sizeof(void *),
     offsetof(struct redlock_lock_options, note) + sizeof(void *)},
};

static struct redlock_options default_opts(const char *masters)
{
    struct redlock_options opts;

    redlock_options_init(&opts);
    opts.masters = masters;
    return opts;
}

static struct redlock_lock_options default_lock(void)
{
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    return opts;
}

/* The test fails if the options cannot be copied. */
static struct options copied(const struct redlock_options *opts)
{
    struct options options;

    if (options_copy(opts, NULL, &options) != REDLOCK_OK) {
        printf("%s\n", error_message());
        CHECK(!"is copied");
    }
    return options;
}

static void check_refused(const struct redlock_options *opts, int status, const char *message)
{
    struct options options, before;

    memset(&options, 0x5a, sizeof options);
    memset(&before, 0x5a, sizeof before);
    error_clear();
    CHECK_INT(options_copy(opts, NULL, &options), status);
    CHECK_HAS(error_message(), message);
    CHECK(memcmp(&options, &before, sizeof options) == 0);
}

static void check_masters_refused(const char *masters, const char *message)
{
    struct redlock_options opts = default_opts(masters);

    check_row = masters;
    check_refused(&opts, REDLOCK_E_INVAL, message);
}

TEST(defaults_are_those_of_the_header)
{
    struct redlock_options opts = default_opts(NULL);
    struct redlock_lock_options lock = default_lock();

    CHECK_UINT(opts.size, sizeof opts);
    CHECK(opts.masters == NULL && opts.loop == NULL && opts.log == NULL && opts.log_arg == NULL);
    CHECK(opts.note == NULL && lock.note == NULL);
    CHECK_UINT(opts.connect_timeout_ms, 1000);
    CHECK_UINT(opts.reply_timeout_ms, 50);
    CHECK_UINT(opts.drift_ppm, 10000);
    CHECK_UINT(opts.drift_fixed_ms, 2);
    CHECK_UINT(opts.max_ttl_ms, 60000);
    CHECK(opts.restart_guard && !opts.pollable);
    CHECK_INT(opts.clock_guard, REDLOCK_CLOCK_GUARD_PERIODIC);
    CHECK_UINT(lock.size, sizeof lock);
    CHECK_UINT(lock.ttl_ms, 10000);
    CHECK_UINT(lock.wait_ms, 0);
    CHECK_UINT(lock.retry_delay_min_ms, 50);
    CHECK_UINT(lock.retry_delay_max_ms, 200);
    CHECK(!lock.no_renew);
    CHECK_UINT(lock.max_hold_ms, 0);
    CHECK_UINT(lock.lost_margin_ms, 0);
    CHECK(lock.lost == NULL && lock.lost_arg == NULL);
    CHECK(!lock.reentrant && lock.owner == NULL && !lock.fair);
}

static void log_nothing(void *log_arg, enum redlock_level level, const char *message)
{
    (void)log_arg, (void)level, (void)message;
}

TEST(a_client_has_one_loop)
{
    struct redlock_options opts = default_opts("h");
    struct options options;

    opts.pollable = true;
    options = copied(&opts);
    CHECK(options.pollable && options.loop == NULL);
    options_done(&options);
    opts.loop = (struct ev_loop *)&opts;
    check_refused(&opts, REDLOCK_E_INVAL, "pollable is set, and loop is, too");
}

TEST(all_fields_are_copied)
{
    char masters[] = "a:1 b:2";
    struct redlock_options opts = default_opts(masters);
    struct options options;

    opts.loop = (struct ev_loop *)&opts;
    opts.connect_timeout_ms = 3600000;
    opts.reply_timeout_ms = 7;
    opts.drift_ppm = 9;
    opts.drift_fixed_ms = 60000;
    opts.max_ttl_ms = 86400000;
    opts.log = log_nothing;
    opts.log_arg = &options;
    opts.note = "of the client";
    options = copied(&opts);
    memset(masters, '#', sizeof masters - 1); /* The client has copies. */
    CHECK_UINT(options.masters_len, 2);
    CHECK_STR(options.masters[0].name, "a:1");
    CHECK_STR(options.masters[1].name, "b:2");
    CHECK(options.loop == opts.loop && !options.pollable);
    CHECK_UINT(options.connect_timeout, 3600 * DRIFT_S);
    CHECK_UINT(options.reply_timeout, 7 * DRIFT_MS);
    CHECK_UINT(options.drift.ppm, 9);
    CHECK_UINT(options.drift.fixed, 60 * DRIFT_S);
    CHECK_UINT(options.max_ttl_ms, 86400000);
    CHECK(options.log == log_nothing && options.log_arg == &options);
    CHECK_STR(options.note, "of the client");
    options_done(&options);
    CHECK_UINT(options.masters_len, 0);
    options_done(&options);
}

TEST(masters_may_come_from_the_environment)
{
    struct redlock_options opts = default_opts(NULL);
    struct options options;

    unsetenv("REDLOCK_MASTERS");
    check_refused(&opts, REDLOCK_E_INVAL, "REDLOCK_MASTERS");
    check_refused(NULL, REDLOCK_E_INVAL, "REDLOCK_MASTERS");
    setenv("REDLOCK_MASTERS", " ", 1);
    check_refused(NULL, REDLOCK_E_INVAL, "REDLOCK_MASTERS: the list of masters is empty");
    setenv("REDLOCK_MASTERS", "e:1,e:x", 1);
    check_refused(NULL, REDLOCK_E_INVAL, "REDLOCK_MASTERS: master 2: the port");
    setenv("REDLOCK_MASTERS", "e:1", 1);
    options = copied(NULL);
    CHECK_STR(options.masters[0].name, "e:1");
    CHECK_UINT(options.reply_timeout, 50 * DRIFT_MS);
    options_done(&options);
    opts.masters = "f:1"; /* The option comes first, even if it is wrong. */
    options = copied(&opts);
    CHECK_STR(options.masters[0].name, "f:1");
    options_done(&options);
    check_masters_refused("", "the list of masters is empty");
    unsetenv("REDLOCK_MASTERS");
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK_INT(fclose(file), 0);
}

/* The file may have lines and comments, as for `redlock`.  Messages name the file. */
TEST(the_environment_may_name_a_file)
{
    char path[] = "/tmp/redlock-test-options-XXXXXX", value[64];
    int fd = mkstemp(path);
    struct options options;

    CHECK(fd >= 0);
    CHECK_INT(close(fd), 0);
    (void)snprintf(value, sizeof value, "@%s", path);
    setenv("REDLOCK_MASTERS", value, 1);
    write_file(path, "# three,of:them\na:1\n  # and\n\tredis://u:p@b:2, c:3\n\n");
    options = copied(NULL);
    CHECK_UINT(options.masters_len, 3);
    CHECK_STR(options.masters[0].name, "a:1");
    CHECK_STR(options.masters[1].name, "b:2");
    CHECK_STR(options.masters[2].name, "c:3");
    options_done(&options);
    heap_fail_after(0);
    check_refused(NULL, REDLOCK_E_NOMEM, "out of memory");
    heap_reset();
    write_file(path, "a:1\nb:x\n");
    check_refused(NULL, REDLOCK_E_INVAL, path);
    check_refused(NULL, REDLOCK_E_INVAL, ": master 2: the port");
    write_file(path, "# nothing\n");
    check_refused(NULL, REDLOCK_E_INVAL, ": the list of masters is empty");
    CHECK_INT(unlink(path), 0);
    check_refused(NULL, REDLOCK_E_INVAL, "REDLOCK_MASTERS: the masters' file /tmp/redlock-test-");
    check_refused(NULL, REDLOCK_E_INVAL, ": No such file or directory");
    setenv("REDLOCK_MASTERS", "@/dev/zero", 1);
    check_refused(NULL, REDLOCK_E_INVAL, "/dev/zero: longer than any list");
    unsetenv("REDLOCK_MASTERS");
}

TEST(lists_are_split)
{
    static const char *const lists[] = {
        "a:1,b:2,c:3",
        "a:1 b:2 c:3",
        "a:1, b:2, c:3",
        "a:1 , b:2 ,c:3",
        "\n a:1\n\tb:2\r\n c:3\v\f",
        "redis://a:1,u:p@b:2 c:3/0",
    };

    for (size_t i = 0; i < ELEMENTS(lists); i++) {
        struct redlock_options opts = default_opts(lists[i]);
        struct options options = copied(&opts);

        check_row = lists[i];
        CHECK_UINT(options.masters_len, 3);
        CHECK_STR(options.masters[0].name, "a:1");
        CHECK_STR(options.masters[1].name, "b:2");
        CHECK_STR(options.masters[2].name, "c:3");
        options_done(&options);
    }
}

TEST(bad_lists_are_refused)
{
    check_masters_refused("", "empty");
    check_masters_refused(" \t\n", "empty");
    check_masters_refused(",", "master 1: empty");
    check_masters_refused(",a", "master 1: empty");
    check_masters_refused("a,", "master 2: empty");
    check_masters_refused("a, ", "master 2: empty");
    check_masters_refused("a,,b", "master 2: empty");
    check_masters_refused("a , , b", "master 2: empty");
    check_masters_refused("a b,c:0", "master 3: the port");
    check_masters_refused("a;b", "master 1: ");
}

TEST(there_may_be_fifteen_masters)
{
    char list[256] = "";
    struct redlock_options opts = default_opts(list);
    struct options options;

    for (unsigned i = 1; i <= 15; i++)
        sprintf(list + strlen(list), "h:%u ", i);
    options = copied(&opts);
    CHECK_UINT(options.masters_len, 15);
    options_done(&options);
    strcat(list, "h:16");
    check_refused(&opts, REDLOCK_E_INVAL, "more than 15 masters");
}

TEST(duplicates_are_refused)
{
    check_masters_refused("127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7001",
                          "master 3 and master 1 are both 127.0.0.1:7001");
    check_masters_refused("h:1 H:1", "master 2 and master 1 are both H:1");
    check_masters_refused("h:1/1,h:1/2", "master 2 and master 1 are both h:1");
    check_masters_refused("a h redis://u:S3cr3t@h", "master 3 and master 2 are both h:6379");
    check_masters_refused("[::1] [0::1]", "master 2 and master 1 are both [::1]:6379");
    check_masters_refused("unix:///r unix:/r?db=1", "master 2 and master 1 are both unix:/r");
}

TEST(numbers_have_limits)
{
    static const struct {
        const char *name;
        size_t offset;
        uint32_t min, max;
    } fields[] = {
        {"connect_timeout_ms", offsetof(struct redlock_options, connect_timeout_ms), 1, 3600000},
        {"reply_timeout_ms", offsetof(struct redlock_options, reply_timeout_ms), 1, 3600000},
        {"drift_ppm", offsetof(struct redlock_options, drift_ppm), 0, 500000},
        {"drift_fixed_ms", offsetof(struct redlock_options, drift_fixed_ms), 0, 60000},
        {"max_ttl_ms", offsetof(struct redlock_options, max_ttl_ms), 1, 86400000},
        {"clock_guard", offsetof(struct redlock_options, clock_guard), 0, 2},
    };

    for (size_t i = 0; i < ELEMENTS(fields); i++) {
        struct redlock_options opts = default_opts("h");
        uint32_t *field = (uint32_t *)(void *)((char *)&opts + fields[i].offset);
        struct options options;

        check_row = fields[i].name;
        *field = fields[i].min;
        options = copied(&opts);
        options_done(&options);
        *field = fields[i].max;
        options = copied(&opts);
        options_done(&options);
        *field = fields[i].max + 1;
        check_refused(&opts, REDLOCK_E_INVAL, fields[i].name);
        *field = UINT32_MAX;
        check_refused(&opts, REDLOCK_E_INVAL, fields[i].name);
        if (fields[i].min > 0) {
            *field = 0;
            check_refused(&opts, REDLOCK_E_INVAL, fields[i].name);
        }
    }
}

/* A caller of any release gets the options that it set, and the defaults of newer ones. */
TEST(notes)
{
    struct redlock_options opts = default_opts("h");
    struct redlock_lock_options lock = default_lock(), full;
    struct quorum_config config;
    struct options options = copied(&opts);
    char want[REDLOCK_NOTE_MAX + 1] = "";

    CHECK_INT(gethostname(want, sizeof want - 1), 0);
    (void)snprintf(want + strlen(want), sizeof want - strlen(want), "/%ld", (long)getpid());
    CHECK_STR(options.note, want);
    lock.note = "of this lock";
    CHECK_INT(options_lock(&options, &lock, &full, &config), REDLOCK_OK);
    CHECK_STR(full.note, "of this lock");
    lock.note = "two\nlines";
    CHECK_INT(options_lock(&options, &lock, &full, &config), REDLOCK_E_INVAL);
    CHECK_HAS(error_message(), "a control character");
    options_done(&options);
    opts.note = lock.note;
    check_refused(&opts, REDLOCK_E_INVAL, "note: more than 80 bytes, or a control character");
    opts.note = "";
    options = copied(&opts);
    CHECK_STR(options.note, "");
    options_done(&options);
}

static void check_tls(const char *masters, bool has_tls, bool trusts_all)
{
    struct redlock_options opts = default_opts(masters);
    struct options options;

    opts.tls_verify = !trusts_all;
    options = copied(&opts);
    CHECK_UINT(options.tls != NULL, has_tls);
    CHECK_UINT(options.trusts_all, trusts_all);
    options_done(&options);
    CHECK(options.tls == NULL);
}

/* A client without TLS loads nothing for it. */
TEST(tls_is_loaded_if_it_is_asked_for)
{
    struct redlock_options opts = default_opts("h");

    CHECK(opts.tls_verify);
    check_tls("h1,h2", false, false);
    if (!HAS_TLS) {
        opts.masters = "h1,rediss://h2";
        check_refused(&opts, REDLOCK_E_INVAL, "this build has no TLS");
        return;
    }
    check_tls("h1,rediss://h2", true, false);
    check_tls("h1,h2", true, true);
    opts.tls_ca = "/nowhere";
    check_refused(&opts, REDLOCK_E_INVAL, "tls_ca: /nowhere: No such file or directory");
    opts = default_opts("h");
    opts.tls_cert = "/nowhere";
    check_refused(&opts, REDLOCK_E_INVAL, "tls_cert is set, and tls_key is not");
}

static void set_tls_files(const char *ca, const char *cert, const char *key)
{
    setenv("REDLOCK_TLS_CA", ca, 1);
    setenv("REDLOCK_TLS_CERT", cert, 1);
    setenv("REDLOCK_TLS_KEY", key, 1);
}

/* Alone they load nothing: they are kept for a member that is reached by TLS. */
TEST(tls_files_may_come_from_the_environment)
{
    struct redlock_options opts = default_opts("h");
    struct options options;

    set_tls_files("/nowhere", "/no/cert", "");
    options = copied(&opts);
    CHECK(options.tls == NULL && options.tls_later.verify && options.tls_later.key == NULL);
    CHECK_STR(options.tls_later.ca, "/nowhere");
    CHECK_STR(options.tls_later.cert, "/no/cert");
    options_done(&options);
    opts.masters = "rediss://h";
    if (HAS_TLS) {
        check_refused(&opts, REDLOCK_E_INVAL, "REDLOCK_TLS_CA: /nowhere: No such file");
        opts.tls_ca = "";
        check_refused(&opts, REDLOCK_E_INVAL, "REDLOCK_TLS_CERT is set, and tls_key is not");
        opts.tls_cert = "";
        options = copied(&opts);
        options_done(&options);
        opts.tls_ca = "/option";
        check_refused(&opts, REDLOCK_E_INVAL, "tls_ca: /option: No such file");
    }
    set_tls_files("", "", "");
    check_tls(HAS_TLS ? "rediss://h" : "h", HAS_TLS, false);
}

TEST(shipped_sizes_are_accepted)
{
    for (size_t i = 0; i < ELEMENTS(shipped); i++) {
        struct redlock_options opts;
        struct redlock_lock_options lock, full;
        struct quorum_config config;
        struct options options;

        check_row = shipped[i].version;
        memset(&opts, 0x5a, sizeof opts);
        redlock_options_init_sized(&opts, shipped[i].options);
        CHECK_UINT(opts.size, shipped[i].options);
        opts.masters = "h";
        options = copied(&opts);
        memset(&lock, 0x5a, sizeof lock);
        redlock_lock_options_init_sized(&lock, shipped[i].lock_options);
        CHECK_UINT(lock.size, shipped[i].lock_options);
        CHECK_INT(options_lock(&options, &lock, &full, &config), REDLOCK_OK);
        CHECK_UINT(full.size, sizeof full);
        options_done(&options);

        opts.size = shipped[0].options - 1;
        check_refused(&opts, REDLOCK_E_INVAL, "not initialized");
    }
    CHECK_UINT(shipped[ELEMENTS(shipped) - 1].options, sizeof(struct redlock_options));
    CHECK_UINT(shipped[ELEMENTS(shipped) - 1].lock_options, sizeof(struct redlock_lock_options));
}

/* The options of a later release. */
struct later_options {
    struct redlock_options now;
    uint64_t later[2];
};

TEST(later_sizes_are_accepted_if_unused)
{
    struct later_options opts;
    struct options options;

    memset(&opts, 0x5a, sizeof opts);
    redlock_options_init_sized(&opts.now, sizeof opts);
    CHECK_UINT(opts.now.size, sizeof opts);
    CHECK_UINT(opts.later[0], 0);
    CHECK_UINT(opts.later[1], 0);
    opts.now.masters = "h";
    options = copied(&opts.now);
    CHECK_UINT(options.masters_len, 1);
    options_done(&options);
    ((unsigned char *)&opts)[sizeof opts - 1] = 1;
    check_refused(&opts.now, REDLOCK_E_INVAL, "an option of a later version is set");
}

TEST(what_is_no_size_is_refused)
{
    static const size_t sizes[] = {0, 1, sizeof(size_t), 4097, SIZE_MAX};
    struct options options;
    struct redlock_options opts = default_opts("h");

    options = copied(&opts);
    for (size_t i = 0; i < ELEMENTS(sizes); i++) {
        struct redlock_lock_options lock = default_lock(), full;
        struct quorum_config config;

        opts.size = sizes[i];
        check_refused(&opts, REDLOCK_E_INVAL, "not initialized");
        lock.size = sizes[i];
        CHECK_INT(options_lock(&options, &lock, &full, &config), REDLOCK_E_INVAL);
        CHECK_HAS(error_message(), "not initialized");
    }
    options_done(&options);
}

/* For every size, no byte past it is written. */
TEST(init_writes_no_more_than_the_size)
{
    for (size_t size = 0; size < sizeof(struct redlock_options) + 16; size++) {
        unsigned char bytes[sizeof(struct redlock_options) + 32];

        memset(bytes, 0x5a, sizeof bytes);
        redlock_options_init_sized((struct redlock_options *)(void *)bytes, size);
        for (size_t i = size; i < sizeof bytes; i++)
            CHECK_UINT(bytes[i], 0x5a);
        memset(bytes, 0x5a, sizeof bytes);
        redlock_lock_options_init_sized((struct redlock_lock_options *)(void *)bytes, size);
        for (size_t i = size; i < sizeof bytes; i++)
            CHECK_UINT(bytes[i], 0x5a);
    }
    redlock_options_init_sized(NULL, sizeof(struct redlock_options));
    redlock_lock_options_init_sized(NULL, sizeof(struct redlock_lock_options));
}

TEST(names_are_any_bytes)
{
    static char longest[REDLOCK_NAME_MAX + 2];

    CHECK_INT(name_check("a"), REDLOCK_OK);
    CHECK_INT(name_check(" \n\x01\xff'\"\\"), REDLOCK_OK);
    memset(longest, 'x', REDLOCK_NAME_MAX);
    CHECK_INT(name_check(longest), REDLOCK_OK);
    longest[REDLOCK_NAME_MAX] = 'x';
    CHECK_INT(name_check(longest), REDLOCK_E_INVAL);
    CHECK_HAS(error_message(), "longer than 512 bytes");
    CHECK_INT(name_check(""), REDLOCK_E_INVAL);
    CHECK_HAS(error_message(), "empty");
    CHECK_INT(name_check(NULL), REDLOCK_E_INVAL);
    CHECK_HAS(error_message(), "NULL");
}

TEST(messages_have_no_secret)
{
    static const char *const lists[] = {
        "u:S3cr3t@h u:S3cr3t@h",
        "u:S3cr3t@h:x",
        "redisss://u:S3cr3t@h",
        "rediss:/u:S3cr3t@h",
        "S3cr3t@h",
        "u:S3cr3t@h,",
        "u:S3cr3t @h",
        "u:S3cr3t,S3cr3t@h",
        "unix://u:S3cr3t@h",
        "unix://u:S3cr3t@/r?S3cr3t",
        "unix://u:S3cr3t@/r unix://:S3cr3t@/r",
        "u:S3cr3t%@h",
        "h u:S3cr3t%00@h",
        "S3cr3t://S3cr3t:S3cr3t@S3cr3t:",
        "u:S3cr3t",
    };

    for (size_t i = 0; i < ELEMENTS(lists); i++) {
        struct redlock_options opts = default_opts(lists[i]);

        check_refused(&opts, REDLOCK_E_INVAL, "master ");
        CHECK(strstr(error_message(), "S3cr3t") == NULL);
        setenv("REDLOCK_MASTERS", lists[i], 1);
        check_refused(NULL, REDLOCK_E_INVAL, "REDLOCK_MASTERS: ");
        CHECK(strstr(error_message(), "S3cr3t") == NULL);
    }
    unsetenv("REDLOCK_MASTERS");
}

TEST(every_allocation_may_fail)
{
    struct redlock_options opts = default_opts("u:p@a,[::1],unix://:p@/r");
    struct options options;

    for (unsigned n = 0; n < 4 + 2 + 3; n++) {
        heap_fail_after(n);
        check_refused(&opts, REDLOCK_E_NOMEM, ": out of memory");
        CHECK(heap_has_failed());
    }
    heap_reset();
    options = copied(&opts);
    CHECK_UINT(heap_allocations(), 4 + 2 + 3);
    options_done(&options);
}

CHECK_MAIN(RUN(defaults_are_those_of_the_header), RUN(a_client_has_one_loop),
           RUN(all_fields_are_copied), RUN(masters_may_come_from_the_environment),
           RUN(the_environment_may_name_a_file), RUN(lists_are_split), RUN(bad_lists_are_refused),
           RUN(there_may_be_fifteen_masters), RUN(duplicates_are_refused), RUN(numbers_have_limits),
           RUN(notes), RUN(tls_is_loaded_if_it_is_asked_for),
           RUN(tls_files_may_come_from_the_environment), RUN(shipped_sizes_are_accepted),
           RUN(later_sizes_are_accepted_if_unused), RUN(what_is_no_size_is_refused),
           RUN(init_writes_no_more_than_the_size), RUN(names_are_any_bytes),
           RUN(messages_have_no_secret), RUN(every_allocation_may_fail))
