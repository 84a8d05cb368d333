/*
 * test-queue.c - what a link keeps of the memory that it needed to send many commands at once, and
 * of a password in it.
 */
#include "redlock/link/queue.h"

#include <string.h>

#include "test/lib/check.h"

static struct queue queue;

/* Append so many commands of 100 bytes, send them, and take their asks out. */
static void exchange(unsigned len)
{
    static const struct ask ask = {.slot = 1};
    static const char command[100] = "command";

    for (unsigned i = 0; i < len; i++)
        CHECK(queue_append_ask(&queue, &ask, command, sizeof command));
    CHECK_UINT(queue_unsent_len(&queue), len * sizeof command);
    queue.out_sent = queue.out_len;
    queue_drop_sent(&queue, false);
    for (unsigned i = 0; i < len; i++)
        CHECK_UINT(queue_take_ask(&queue).slot, 1);
}

TEST(what_a_few_hundred_commands_need_is_kept)
{
    queue = (struct queue){0};
    exchange(600);
    CHECK_UINT(queue.out_room, 64 * 1024);
    CHECK_UINT(queue.asks_room, 1024);
    queue_done(&queue);
}

TEST(what_a_thousand_commands_need_is_given_back)
{
    queue = (struct queue){0};
    for (unsigned i = 0; i < 2; i++) {
        exchange(1025);
        CHECK_UINT(queue.out_room, 0);
        CHECK_UINT(queue.asks_room, 0);
    }
    exchange(1);
    CHECK(queue.out_room > 0 && queue.asks_room > 0);
    queue_done(&queue);
}

#define GREETING_LEN 3000

/* All bytes that were ever written are searched, not only those that are unsent. */
static void check_wiped(const char *secret)
{
    CHECK(memmem(queue.out, GREETING_LEN, secret, strlen(secret)) == NULL);
}

static void append_greeting(const char *secret)
{
    char bytes[GREETING_LEN];

    memset(bytes, 'x', sizeof bytes);
    memcpy(bytes + 10, secret, strlen(secret));
    CHECK(queue_append(&queue, bytes, sizeof bytes));
}

TEST(a_password_that_was_sent_is_wiped)
{
    static const char secret[] = "S3cr3t";

    queue = (struct queue){0};
    append_greeting(secret);
    queue.out_sent =
        GREETING_LEN - 5; /* The rest is moved to the front, and ends before the secret. */
    queue_drop_sent(&queue, true);
    CHECK_UINT(queue_unsent_len(&queue), 5);
    check_wiped(secret);
    queue.out_sent = queue.out_len;
    queue_drop_sent(&queue, true);
    append_greeting(secret);
    queue.out_sent = queue.out_len;
    queue_drop_sent(&queue, true);
    check_wiped(secret);
    queue_done(&queue);
}

TEST(a_password_that_was_not_sent_is_wiped)
{
    static const char secret[] = "S3cr3t";

    queue = (struct queue){0};
    append_greeting(secret);
    queue_wipe(&queue);
    CHECK_UINT(queue_unsent_len(&queue), 0);
    check_wiped(secret);
    queue_done(&queue);
}

CHECK_MAIN(RUN(what_a_few_hundred_commands_need_is_kept),
           RUN(what_a_thousand_commands_need_is_given_back), RUN(a_password_that_was_sent_is_wiped),
           RUN(a_password_that_was_not_sent_is_wiped))
