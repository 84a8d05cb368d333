/*
 * test-granted.c - the message of a master that has passed a lock on.
 */
#include "redlock/wire/granted.h"

#include "test/lib/check.h"

#define WAITER "0123456789abcdef0123456789abcdef01234567"
#define TOKEN "fedcba9876543210fedcba9876543210fedcba98:host name/1"
#define STATE "00000000000000ab.3.17"

static struct granted granted;

TEST(a_message_is_read)
{
    CHECK(granted_parse("granted " WAITER " 1234567890123456789 " STATE " " TOKEN, &granted));
    CHECK_STR(granted.waiter, WAITER);
    CHECK_UINT(granted.sent, UINT64_C(1234567890123456789));
    CHECK_STR(granted.state, STATE);
    CHECK_STR(granted.token, TOKEN);
    CHECK(granted_parse("granted " WAITER " 5 - " TOKEN, &granted));
    CHECK_STR(granted.state, "-");
}

TEST(others_are_none)
{
    static const char *const texts[] = {
        "",
        "granted",
        "next " WAITER,
        "granted " WAITER,
        "granted " WAITER " 5",
        "granted " WAITER " 5 " STATE,
        "granted " WAITER " five " STATE " " TOKEN,
        "granted " WAITER "0 5 " STATE " " TOKEN,
        "granted " WAITER " 5 " STATE STATE STATE " " TOKEN,
        "granted GGG 5 " STATE " " TOKEN,
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        check_row = texts[i];
        CHECK(!granted_parse(texts[i], &granted));
    }
    check_row = NULL;
}

static void read_one(void)
{
    CHECK(granted_parse("granted " WAITER " 1000 " STATE " " TOKEN, &granted));
}

TEST(a_vote_is_for_the_token_that_waits)
{
    read_one();
    CHECK(granted_is_good(&granted, TOKEN, STATE, 1001));
    CHECK(!granted_is_good(&granted, TOKEN "2", STATE, 1001));
    CHECK(!granted_is_good(&granted, "", STATE, 1001));
}

TEST(a_vote_of_a_master_that_lost_its_data_is_none)
{
    read_one();
    CHECK(!granted_is_good(&granted, TOKEN, "00000000000000ac.3.17", 1001));
    CHECK(!granted_is_good(&granted, TOKEN, "", 1001));
    CHECK(granted_is_good(&granted, TOKEN, NULL, 1001)); /* Without the restart guard. */
}

TEST(a_time_to_come_is_not_true)
{
    read_one();
    CHECK(granted_is_good(&granted, TOKEN, STATE, 1000));
    CHECK(!granted_is_good(&granted, TOKEN, STATE, 999));
}

CHECK_MAIN(RUN(a_message_is_read), RUN(others_are_none), RUN(a_vote_is_for_the_token_that_waits),
           RUN(a_vote_of_a_master_that_lost_its_data_is_none), RUN(a_time_to_come_is_not_true))
