/*
 * probe.c - tries all commands at once, and reads from the replies what is forbidden.
 */
#include "redlock/cli/doctor/probe.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "redlock/cli/doctor/exam.h"
#include "redlock/cli/doctor/rights.h"
#include "redlock/cli/doctor/talk.h"
#include "redlock/wire/redis_error.h"
#include "redlock/wire/reply.h"

#define COMMAND_MAX 32
#define KEY_MAX (WIRE_MARK_LEN + WIRE_PERMIT_LEN + REDLOCK_NAME_MAX + 64)

/* ---- Rows ---- */

/* For an ACL these two bytes are as good as the NUL and the digit of a group. */
#define GROUP ".r"
_Static_assert(sizeof GROUP == WIRE_GROUP_LEN + 1, "as many bytes");

/* The key for each word of a row: before, the name, after. */
static const struct place {
    enum rights_about about;
    const char *word, *before, *after;
} places[] = {
    {RIGHTS_ABOUT_NAME, RIGHTS_NAME, "", ""},
    {RIGHTS_ABOUT_MARK, RIGHTS_MARK, WIRE_MARK, ""},
    {RIGHTS_ABOUT_MARK, RIGHTS_GROUP, WIRE_MARK, GROUP},
    {RIGHTS_ABOUT_QUEUE, RIGHTS_QUEUE, WIRE_QUEUE, ""},
    {RIGHTS_ABOUT_TOKENS, RIGHTS_TOKENS, WIRE_NEXT, ""},
    {RIGHTS_ABOUT_PERMIT, RIGHTS_PERMIT, WIRE_PERMIT, ""},
    {RIGHTS_ABOUT_PERMIT, RIGHTS_SLOT, WIRE_PERMIT, ":0"},
    {RIGHTS_ABOUT_PERMIT, RIGHTS_PERMIT_MARK, WIRE_MARK WIRE_PERMIT, ""},
    {RIGHTS_ABOUT_PERMIT, RIGHTS_PERMIT_GROUP, WIRE_MARK WIRE_PERMIT, GROUP},
};

static const struct place *find_place(const char *word)
{
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (strcmp(word, places[i].word) == 0)
            return &places[i];
    return NULL;
}

static enum rights_about about_of(const struct right *right)
{
    for (unsigned i = 0; i < TALK_WORDS_MAX && right->words[i] != NULL; i++) {
        const struct place *place = find_place(right->words[i]);

        if (place != NULL)
            return place->about;
        if (strcmp(right->words[i], WIRE_MARKER) == 0)
            return RIGHTS_ABOUT_MARKER;
        if (strcmp(right->words[i], WIRE_WITNESS) == 0)
            return RIGHTS_ABOUT_WITNESS;
        if (strcmp(right->words[i], RIGHTS_CLIENT) == 0)
            return RIGHTS_ABOUT_CLIENT;
    }
    return RIGHTS_ABOUT_NAME;
}

/* The command of a row: "PUBSUB NUMSUB" of "+pubsub|numsub". */
static const char *command_of(const struct right *right, char buf[COMMAND_MAX])
{
    (void)snprintf(buf, COMMAND_MAX, "%s", right->rule + 1);
    for (char *p = buf; *p != 0; p++)
        *p = *p == '|' ? ' ' : (char)toupper(*p);
    return buf;
}

/* The key that the word stands for, in buf, or the word itself. */
static const char *fill_in(const struct exam *exam, const char *word, char buf[KEY_MAX])
{
    const struct place *place = find_place(word);

    if (strcmp(word, RIGHTS_OWN) == 0)
        return exam->own;
    if (place == NULL)
        return word;
    (void)snprintf(buf, KEY_MAX, "%s%s%s", place->before, exam->target->name, place->after);
    return buf;
}

/* The words to try.  NULL: the row is not tried. */
static const char *const *words_of(const struct exam *exam, const struct right *right)
{
    if ((right->kinds & exam->kinds) == 0 || right->words[0] == NULL)
        return NULL;
    return exam->target->is_in_use && right->dry[0] != NULL ? right->dry : right->words;
}

static void say(const struct exam *exam, struct talk *talk, const char *const *pattern)
{
    const char *words[TALK_WORDS_MAX] = {NULL};
    char key[KEY_MAX]; /* A pattern has at most one such word. */

    for (unsigned i = 0; i < TALK_WORDS_MAX && pattern[i] != NULL; i++)
        words[i] = fill_in(exam, pattern[i], key);
    talk_say(talk, words);
}

/* ---- Errors ---- */

/* Advise the rules that `redlock acl` prints for these names. */
static void advise(const struct exam *exam, enum rights_about about, bool is_key,
                   char change[EXAM_TEXT_MAX])
{
    char rules[EXAM_TEXT_MAX];
    bool is_one;

    rights_rules(about, is_key, exam->target->names, rules, sizeof rules);
    is_one = about == RIGHTS_ABOUT_NAME && strchr(rules, ' ') == NULL;
    if (snprintf(change, EXAM_TEXT_MAX, "allow %s (ACL SETUSER %s %s)", is_one ? "it" : "them",
                 exam_user(exam), rules) >= EXAM_TEXT_MAX)
        (void)snprintf(change, EXAM_TEXT_MAX, "allow them, as redlock acl prints");
}

/* The ACL forbids keys or channels that only locks with an option need. */
static void find_forbidden(struct exam *exam, const struct right *right, bool is_key)
{
    bool is_queue = about_of(right) == RIGHTS_ABOUT_QUEUE;
    const char *keys = is_queue ? WIRE_QUEUE : is_key ? WIRE_PERMIT : WIRE_MARK WIRE_PERMIT;
    char change[EXAM_TEXT_MAX];

    advise(exam, about_of(right), is_key, change);
    exam_find(exam, is_queue ? FIND_ACL_QUEUE : FIND_ACL_PERMITS, change,
              "%s %s* are forbidden by its ACL: no locks with --%s", is_key ? "keys" : "channels",
              keys, is_queue ? "fair" : "permits");
}

static void find_forbidden_mark(struct exam *exam, bool is_key)
{
    char change[EXAM_TEXT_MAX];

    advise(exam, RIGHTS_ABOUT_MARK, is_key, change);
    exam_find(exam, FIND_ACL_WAIT, change,
              "%s " WIRE_MARK "*, by which waiters learn of releases, are forbidden by its ACL: "
              "waiters have to poll",
              is_key ? "keys" : "channels");
}

static void find_forbidden_name(struct exam *exam)
{
    char change[EXAM_TEXT_MAX];

    advise(exam, RIGHTS_ABOUT_NAME, true, change);
    if (exam->is_any_name)
        (void)snprintf(
            change, sizeof change,
            "allow the names of your locks (ACL SETUSER %s ~NAMES), or give one: redlock "
            "doctor NAME",
            exam_user(exam));
    exam_find(exam, FIND_ACL_KEYS, change,
              exam->target->is_in_use ? "the name %s is forbidden by its ACL"
                                      : "names such as %s are forbidden by its ACL",
              exam->target->name);
}

static void find_forbidden_client(struct exam *exam)
{
    char change[EXAM_TEXT_MAX];

    advise(exam, RIGHTS_ABOUT_CLIENT, false, change);
    exam_find(exam, FIND_ACL_CLIENT, change,
              "channels " WIRE_CLIENT "*, by which waiters with --fair learn of their turns, are "
              "forbidden by its ACL: these waiters have to poll");
}

static void find_forbidden_tokens(struct exam *exam)
{
    char change[EXAM_TEXT_MAX];

    advise(exam, RIGHTS_ABOUT_TOKENS, true, change);
    exam_find(exam, FIND_ACL_NEXT, change,
              "keys " WIRE_NEXT
              "*, by which a release with --fair passes the lock on, are forbidden "
              "by its ACL: the next waiter has to ask for it");
}

static void find_forbidden_marker(struct exam *exam)
{
    char change[EXAM_TEXT_MAX];

    (void)snprintf(change, sizeof change, "allow it (ACL SETUSER %s ~" WIRE_MARKER ")",
                   exam_user(exam));
    exam_find(exam, FIND_ACL_MARKER, change,
              "the key " WIRE_MARKER ", its marker, is forbidden by its ACL");
}

static void find_forbidden_witness(struct exam *exam)
{
    char change[EXAM_TEXT_MAX];

    (void)snprintf(change, sizeof change, "allow it (ACL SETUSER %s ~" WIRE_WITNESS ")",
                   exam_user(exam));
    exam_find(exam, FIND_ACL_WITNESS, change,
              "the key " WIRE_WITNESS " is forbidden by its ACL: it cannot report how long "
              "other masters have been warming");
}

/* If the name is forbidden, the keys and channels that are made of it are not reported. */
static void find_forbidden_place(struct exam *exam, const struct right *right, bool is_key)
{
    switch (about_of(right)) {
    case RIGHTS_ABOUT_NAME:
        find_forbidden_name(exam);
        return;
    case RIGHTS_ABOUT_MARKER:
        find_forbidden_marker(exam);
        return;
    case RIGHTS_ABOUT_WITNESS:
        find_forbidden_witness(exam);
        return;
    case RIGHTS_ABOUT_MARK:
        if (!exam_has(exam, FIND_ACL_KEYS))
            find_forbidden_mark(exam, is_key);
        return;
    case RIGHTS_ABOUT_CLIENT:
        find_forbidden_client(exam);
        return;
    case RIGHTS_ABOUT_TOKENS:
        if (!exam_has(exam, FIND_ACL_KEYS))
            find_forbidden_tokens(exam);
        return;
    case RIGHTS_ABOUT_QUEUE:
    case RIGHTS_ABOUT_PERMIT:
        if (!exam_has(exam, FIND_ACL_KEYS))
            find_forbidden(exam, right, is_key);
        return;
    }
}

/* True: the error is reported.  Rows provoke errors by words that are not valid.  Other errors,
 * such as a full memory, are reported for the rows of plain locks only. */
static bool is_told(const struct exam *exam, const struct right *right, const char *error)
{
    if (redis_error_kind(error) == WHY_ERROR_COMMAND)
        return true;
    return about_of(right) == RIGHTS_ABOUT_NAME && right->kinds == RIGHTS_PLAIN &&
           !exam_has_code(error, "NOSCRIPT") &&
           !(exam->target->is_in_use &&
             (exam_has_code(error, "ERR") || exam_has_code(error, "WRONGTYPE")));
}

/* True: the row was tried on exam->own, which the user need not be allowed to lock. */
static bool is_elsewhere(const struct exam *exam, const struct right *right)
{
    return exam->target->is_in_use && right->dry[0] != NULL &&
           strcmp(right->dry[1], RIGHTS_OWN) == 0;
}

/* False: the error asks for no change. */
static bool find(struct exam *exam, const struct right *right, const char *error)
{
    const enum redis_right what = redis_error_right(error);
    bool is_forbidden = exam_has_code(error, "NOPERM");
    char command[COMMAND_MAX];

    if (about_of(right) == RIGHTS_ABOUT_MARKER && exam_has_code(error, "WRONGTYPE")) {
        exam_find(exam, FIND_MARKER, "delete this key, which redlock did not write",
                  "the key " WIRE_MARKER ", its marker, is no hash: WRONGTYPE");
        return true;
    }
    if (is_forbidden && what != RIGHT_TO_COMMAND) {
        if (is_elsewhere(exam, right))
            return false; /* The command is allowed, only not for exam->own. */
        find_forbidden_place(exam, right, what == RIGHT_TO_KEY);
        return true;
    }
    if (!is_forbidden && !is_told(exam, right, error))
        return false;
    exam_find_error(exam, command_of(right, command), right->rule, error);
    return true;
}

/* True: the restart guard needs it of this master, as it is now. */
static bool is_guard_stuck(const struct exam *exam, const struct right *right)
{
    if (strcmp(right->rule, "+hset") == 0)
        return !exam->marker.is_settled;
    if (strcmp(right->rule, "+hdel") == 0)
        return !exam->marker.ready;
    return right->kinds == RIGHTS_GUARD;
}

/* True: a master that answers with this error can grant no lock at all.  The restart guard needs
 * EVAL.  If the caller named no locks, those with other names may be allowed. */
static bool is_fatal(const struct exam *exam, const struct right *right, const char *error)
{
    if (about_of(right) == RIGHTS_ABOUT_MARKER)
        return is_guard_stuck(exam, right);
    if (about_of(right) != RIGHTS_ABOUT_NAME || right->kinds != RIGHTS_PLAIN)
        return false;
    if (strcmp(right->rule, "+eval") == 0)
        return (exam->kinds & RIGHTS_GUARD) != 0;
    return strcmp(right->rule, "+set") == 0 &&
           !(exam->is_any_name && exam_has_code(error, "NOPERM") &&
             redis_error_right(error) == RIGHT_TO_KEY);
}

/* ---- All ---- */

/* True: the row is tried with the present names.  If it names no key of a lock, once is enough. */
static bool is_tried(const struct exam *exam, const struct right *right)
{
    const char *const *words = words_of(exam, right);

    if (words == NULL || exam->target == exam->targets)
        return words != NULL;
    for (unsigned i = 0; i < TALK_WORDS_MAX && words[i] != NULL; i++)
        if (find_place(words[i]) != NULL)
            return true;
    return false;
}

/* Call a function for each try: each row with all names, before the next row (rights.c).  It stops
 * if the function returns false. */
static void for_each_try(struct exam *exam, struct talk *talk,
                         bool (*try)(struct exam *exam, struct talk *talk,
                                     const struct right *right))
{
    for (size_t i = 0; i < rights_len; i++) {
        for (size_t k = 0; k < exam->targets_len; k++) {
            exam->target = &exam->targets[k];
            if (is_tried(exam, &rights_all[i]) && !try(exam, talk, &rights_all[i]))
                return;
        }
    }
}

static bool ask(struct exam *exam, struct talk *talk, const struct right *right)
{
    say(exam, talk, words_of(exam, right));
    return true;
}

static bool hear(struct exam *exam, struct talk *talk, const struct right *right)
{
    const struct reply *reply = talk_reply(talk);

    if (reply != NULL && reply->type == REPLY_ERROR && find(exam, right, reply->text) &&
        is_fatal(exam, right, reply->text))
        exam->votes = false;
    return reply != NULL;
}

void probe_all(struct exam *exam, struct talk *talk)
{
    for_each_try(exam, talk, ask);
    for_each_try(exam, talk, hear);
}
