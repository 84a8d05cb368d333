/*
 * test-reader.c - replies of every type, in pieces of every size, through the reader.
 */
#include <hiredis/hiredis.h>

#include "redlock/link/reader.h"

#include "test/lib/check.h"
#include "test/lib/heap.h"

#define ELEMENTS(array) (sizeof(array) / sizeof(array)[0])

static const struct {
    const char *wire;
    enum reply_type type;
    long long integer;
    const char *text;
} rows[] = {
    {"+OK\r\n", REPLY_STATUS, 0, "OK"},
    {"+\r\n", REPLY_STATUS, 0, ""},
    {"-ERR no\r\n", REPLY_ERROR, 0, "ERR no"},
    {"$5\r\nhello\r\n", REPLY_TEXT, 0, "hello"},
    {"$0\r\n\r\n", REPLY_TEXT, 0, ""},
    {"$4\r\n\r\n\r\n\r\n", REPLY_TEXT, 0, "\r\n\r\n"},
    {":0\r\n", REPLY_INTEGER, 0, NULL},
    {":-7\r\n", REPLY_INTEGER, -7, NULL},
    {":9223372036854775807\r\n", REPLY_INTEGER, INT64_MAX, NULL},
    {"$-1\r\n", REPLY_NIL, 0, NULL},
    {"*-1\r\n", REPLY_NIL, 0, NULL},
    {"*0\r\n", REPLY_ARRAY, 0, ""},
    {"*3\r\n:1\r\n$2\r\nhi\r\n+OK\r\n", REPLY_ARRAY, 0, "OK"},
    {"*2\r\n*1\r\n:5\r\n-ERR\r\n", REPLY_ARRAY, 0, "ERR"},
    {"*2\r\n*0\r\n$-1\r\n", REPLY_ARRAY, 0, ""},
#if HIREDIS_MAJOR >= 1
    {"_\r\n", REPLY_NIL, 0, NULL},
    {"#t\r\n", REPLY_OTHER, 0, NULL},
    {",1.5\r\n", REPLY_OTHER, 0, NULL},
    {"%1\r\n+a\r\n:1\r\n", REPLY_OTHER, 0, NULL},
    {"~1\r\n+a\r\n", REPLY_OTHER, 0, NULL},
    {"=5\r\ntxt:a\r\n", REPLY_OTHER, 0, NULL},
    {"*2\r\n,1.5\r\n#f\r\n", REPLY_ARRAY, 0, NULL},
#endif
};

/* The next whole reply; NULL if there is none yet. */
static struct reply *next(redisReader *reader)
{
    void *got = NULL;

    CHECK_INT(redisReaderGetReply(reader, &got), REDIS_OK);
    return got;
}

static void feed(redisReader *reader, const char *bytes, size_t len)
{
    CHECK_INT(redisReaderFeed(reader, bytes, len), REDIS_OK);
}

static void check_row_is(size_t i, const struct reply *reply)
{
    CHECK_INT(reply->type, rows[i].type);
    if (rows[i].type == REPLY_INTEGER)
        CHECK_INT(reply->integer, rows[i].integer);
    if (rows[i].text != NULL) {
        CHECK_STR(reply->text, rows[i].text);
        CHECK_UINT(reply->text_len, strlen(rows[i].text));
    }
}

TEST(replies_are_decoded)
{
    struct reply reply = {.text = NULL};
    redisReader *reader = reader_new(&reply);

    CHECK(reader != NULL);
    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        check_row = rows[i].wire;
        feed(reader, rows[i].wire, strlen(rows[i].wire));
        CHECK(next(reader) == &reply);
        check_row_is(i, &reply);
        CHECK(next(reader) == NULL);
        CHECK(!reader_overflows(reader));
    }
    redisReaderFree(reader);
    reader_forget(&reply);
    CHECK(reply.text == NULL && reply.text_room == 0);
}

/* All replies come in one stream, byte by byte.  An incomplete reply is none. */
TEST(replies_come_in_pieces)
{
    struct reply reply = {.text = NULL};
    redisReader *reader = reader_new(&reply);

    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        size_t len = strlen(rows[i].wire);

        check_row = rows[i].wire;
        for (size_t j = 0; j < len; j++) {
            CHECK(next(reader) == NULL);
            feed(reader, rows[i].wire + j, 1);
        }
        CHECK(next(reader) == &reply);
        check_row_is(i, &reply);
    }
    redisReaderFree(reader);
    reader_forget(&reply);
}

TEST(replies_come_together)
{
    struct reply reply = {.text = NULL};
    redisReader *reader = reader_new(&reply);

    for (size_t i = 0; i < ELEMENTS(rows); i++)
        feed(reader, rows[i].wire, strlen(rows[i].wire));
    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        check_row = rows[i].wire;
        CHECK(next(reader) == &reply);
        check_row_is(i, &reply);
    }
    CHECK(next(reader) == NULL);
    redisReaderFree(reader);
    reader_forget(&reply);
}

TEST(a_text_may_have_nuls)
{
    struct reply reply = {.text = NULL};
    redisReader *reader = reader_new(&reply);

    feed(reader, "$3\r\na\0b\r\n", 9);
    CHECK(next(reader) == &reply);
    CHECK_UINT(reply.text_len, 3);
    CHECK(memcmp(reply.text, "a\0b", 4) == 0);
    redisReaderFree(reader);
    reader_forget(&reply);
}

/* Feed "<head><len>\r\n" and len bytes, and return the status of the reader. */
static int feed_long(redisReader *reader, const char *head, size_t len)
{
    static char bytes[REPLY_TEXT_MAX + 16];
    char text[64];
    void *got = NULL;

    CHECK(len + 2 <= sizeof bytes);
    feed(reader, text, (size_t)snprintf(text, sizeof text, "%s%zu\r\n", head, len));
    memset(bytes, 'x', len);
    memcpy(bytes + len, "\r\n", 2);
    feed(reader, bytes, len + 2);
    return redisReaderGetReply(reader, &got);
}

TEST(texts_have_a_longest_length)
{
    static const char *const heads[] = {"$", "*2\r\n:1\r\n$"};

    for (size_t i = 0; i < ELEMENTS(heads); i++) {
        struct reply reply = {.text = NULL};
        redisReader *reader = reader_new(&reply);
        struct reason why;

        CHECK_INT(feed_long(reader, heads[i], REPLY_TEXT_MAX), REDIS_OK);
        CHECK(!reader_overflows(reader));
        if (i == 0) {
            CHECK_UINT(reply.text_len, REPLY_TEXT_MAX);
            CHECK_UINT(reply.text_room, REPLY_TEXT_MAX + 1); /* One more for the NUL. */
        }
        CHECK(reply.text_room <= REPLY_TEXT_MAX + 1);
        CHECK_INT(feed_long(reader, heads[i], REPLY_TEXT_MAX + 1), REDIS_ERR);
        CHECK_INT(reader->err, REDIS_ERR_OOM);
        reader_explain(reader, &why);
        CHECK_INT(why.why, WHY_TOO_LONG);
        CHECK(reply.text_room <= REPLY_TEXT_MAX + 1);
        redisReaderFree(reader);
        reader = reader_new(&reply);
        reader_explain(reader, &why);
        CHECK(why.why != WHY_TOO_LONG);
        redisReaderFree(reader);
        reader_forget(&reply);
    }
}

TEST(arrays_have_a_most)
{
    static const struct {
        const char *wire;
        int status;
        bool is_too_long; /* Otherwise the reader says what is wrong. */
    } sizes[] = {
        {"*1024\r\n", REDIS_OK, false},
        {"*1025\r\n", REDIS_ERR, true},
        {"*1\r\n*1025\r\n", REDIS_ERR, true},
        {"*2147483647\r\n", REDIS_ERR, true},
        {"*-2\r\n", REDIS_ERR, false},
        {"*99999999999999999999\r\n", REDIS_ERR, false},
        {"*1\r\n*1\r\n*1\r\n*1\r\n", REDIS_OK, false},
        {"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", REDIS_ERR, true},
        {"?\r\n", REDIS_ERR, false},
    };

    for (size_t i = 0; i < ELEMENTS(sizes); i++) {
        struct reply reply = {.text = NULL};
        redisReader *reader = reader_new(&reply);
        struct reason why;
        void *got = NULL;

        check_row = sizes[i].wire;
        feed(reader, sizes[i].wire, strlen(sizes[i].wire));
        CHECK_INT(redisReaderGetReply(reader, &got), sizes[i].status);
        reader_explain(reader, &why);
        CHECK((why.why == WHY_TOO_LONG) == sizes[i].is_too_long);
        redisReaderFree(reader);
        reader_forget(&reply);
    }
}

/* Feed len bytes that never become a reply.  Returns whether the reader overflows. */
static bool overflows_after(const char *head, size_t len)
{
    struct reply reply = {.text = NULL};
    redisReader *reader = reader_new(&reply);
    bool overflows;

    feed(reader, head, strlen(head));
    for (size_t i = strlen(head); i < len; i += 16)
        feed(reader, "xxxxxxxxxxxxxxxx", len - i < 16 ? len - i : 16);
    CHECK(next(reader) == NULL);
    overflows = reader_overflows(reader);
    redisReaderFree(reader);
    reader_forget(&reply);
    return overflows;
}

TEST(what_is_too_long_is_known_before_it_is_whole)
{
    CHECK(!overflows_after("$536870912\r\n", REPLY_TEXT_MAX));
    CHECK(overflows_after("$536870912\r\n", REPLY_TEXT_MAX + 1024));
    CHECK(!overflows_after("+", REPLY_TEXT_MAX));
    CHECK(overflows_after("+", REPLY_TEXT_MAX + 1024));
    CHECK(!overflows_after("*2\r\n:1\r\n$536870912\r\n", REPLY_TEXT_MAX));
    CHECK(overflows_after("*2\r\n:1\r\n$536870912\r\n", REPLY_TEXT_MAX + 1024));
}

/* Bytes that are parsed and not yet discarded do not count. */
TEST(many_short_replies_do_not_overflow)
{
    struct reply reply = {.text = NULL};
    redisReader *reader = reader_new(&reply);

    for (unsigned i = 0; i < 2 * REPLY_TEXT_MAX / 5; i++)
        feed(reader, "+OK\r\n", 5);
    CHECK(reader_overflows(reader));
    while (next(reader) != NULL)
        CHECK_STR(reply.text, "OK");
    CHECK(!reader_overflows(reader));
    redisReaderFree(reader);
    reader_forget(&reply);
}

/* Once the buffers exist, a reply needs no allocation. */
TEST(no_allocation_for_a_reply)
{
    static const char five[] = "+OK\r\n:1\r\n$-1\r\n$5\r\nhello\r\n*1\r\n+OK\r\n";
    struct reply reply = {.text = NULL};
    redisReader *reader = reader_new(&reply);

    heap_reset();
    for (unsigned i = 0; i < 1000; i++) {
        feed(reader, five, sizeof five - 1);
        for (unsigned j = 0; j < 5; j++)
            CHECK(next(reader) == &reply);
    }
    CHECK_UINT(heap_allocations(), 2); /* One for each buffer of a text. */
    redisReaderFree(reader);
    reader_forget(&reply);
}

TEST(every_allocation_may_fail)
{
    struct reply reply = {.text = NULL};

    for (unsigned n = 0; n < 2; n++) {
        redisReader *reader = reader_new(&reply);

        heap_fail_after(0);
        /* At first there is no buffer for a text; then one that must grow. */
        CHECK_INT(feed_long(reader, "$", n == 0 ? 1 : 1000), REDIS_ERR);
        CHECK_INT(reader->err, REDIS_ERR_OOM);
        CHECK(heap_has_failed());
        redisReaderFree(reader);
        heap_reset();

        reader = reader_new(&reply);
        feed(reader, "+OK\r\n", 5);
        CHECK(next(reader) == &reply);
        CHECK_STR(reply.text, "OK");
        redisReaderFree(reader);
    }
    reader_forget(&reply);
}

/* Whoever answers may repeat what it was told.  What decides stays: the code, and other replies. */
TEST(passwords_are_hidden_in_errors)
{
    static const struct {
        const char *wire, *password, *text;
    } hides[] = {
        {"-ERR you said geheim\r\n", "geheim", "ERR you said ******"},
        {"-geheim\r\n", "geheim", "******"},
        {"-GEHEIM too\r\n", "GEHEIM", "****** too"},
        {"-NOSCRIPT No matching script\r\n", "SCRIPT", "NOSCRIPT No matching script"},
        {"-ERR\r\n", "ERR", "ERR"},
        {"-ERR ERR\r\n", "ERR", "ERR ***"},
        {"-WRONGPASS invalid username-password pair or user is disabled.\r\n", "password",
         "WRONGPASS invalid username-password pair or user is disabled."},
        {"-WRONGPASS invalid username-password pair\r\n", "invalid username",
         "WRONGPASS invalid username-password pair"},
        {"-WRONGPASS invalid password\r\n", "password", "WRONGPASS invalid ********"},
        {"-OOM command not allowed\r\n", "OOM", "OOM command not allowed"},
        {"-DENIED Redis is in protected mode\r\n", "DENIED", "DENIED Redis is in protected mode"},
        {"-ERR max number of clients reached\r\n", "clients", "ERR max number of clients reached"},
        {"-ERR you said geheim\r\n", NULL, "ERR you said geheim"},
        {"+geheim\r\n", "geheim", "geheim"},
        {"$6\r\ngeheim\r\n", "geheim", "geheim"},
    };
    struct reply reply = {.text = NULL};

    for (size_t i = 0; i < ELEMENTS(hides); i++) {
        redisReader *reader = reader_new(&reply);

        check_row = hides[i].wire;
        feed(reader, hides[i].wire, strlen(hides[i].wire));
        CHECK(next(reader) == &reply);
        reader_hide(&reply, hides[i].password);
        CHECK_STR(reply.text, hides[i].text);
        redisReaderFree(reader);
    }
    reader_forget(&reply);
}

CHECK_MAIN(RUN(replies_are_decoded), RUN(replies_come_in_pieces), RUN(replies_come_together),
           RUN(a_text_may_have_nuls), RUN(texts_have_a_longest_length), RUN(arrays_have_a_most),
           RUN(what_is_too_long_is_known_before_it_is_whole),
           RUN(many_short_replies_do_not_overflow), RUN(no_allocation_for_a_reply),
           RUN(every_allocation_may_fail), RUN(passwords_are_hidden_in_errors))
