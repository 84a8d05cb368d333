/*
 * test-note.c - the note beside a lock.
 */
#include <string.h>

#include "redlock/base/note.h"
#include "test/lib/check.h"

#define TOKEN "0123456789abcdef0123456789abcdef01234567"

TEST(what_a_note_may_have)
{
    char longest[REDLOCK_NOTE_MAX + 2];

    memset(longest, 'x', sizeof longest);
    longest[REDLOCK_NOTE_MAX] = '\0';
    CHECK(note_is_valid("") && note_is_valid("db1/4711") && note_is_valid("nightly: run 7"));
    CHECK(note_is_valid("gr\xc3\xbc\xc3\x9f"
                        "e"));
    CHECK(note_is_valid(longest));
    longest[REDLOCK_NOTE_MAX] = 'x';
    longest[REDLOCK_NOTE_MAX + 1] = '\0';
    CHECK(!note_is_valid(longest));
    CHECK(!note_is_valid("\n") && !note_is_valid("a\tb") && !note_is_valid("a\x7f"));
    CHECK(!note_is_valid("\x1b[2J"));
}

static const char *find(const char *stored)
{
    static char found[REDLOCK_TOKEN_MAX + 1];
    size_t len = 0;
    const char *note = note_find(stored, strlen(stored), &len);

    if (note == NULL)
        return "none";
    memcpy(found, note, len);
    found[len] = '\0';
    return found;
}

TEST(a_note_is_found_behind_a_token_of_ours)
{
    CHECK_STR(find(TOKEN ":db1/4711"), "db1/4711");
    CHECK_STR(find(TOKEN "::"), ":");
    CHECK_STR(find(TOKEN), "none");
    CHECK_STR(find(TOKEN ":"), "none");
    CHECK_STR(find(TOKEN "0:db1"), "none");
    CHECK_STR(find("0123456789ABCDEF0123456789abcdef01234567:db1"), "none");
    CHECK_STR(find("of another program:db1"), "none");
    CHECK_STR(find(""), "none");
}

CHECK_MAIN(RUN(what_a_note_may_have), RUN(a_note_is_found_behind_a_token_of_ours))
