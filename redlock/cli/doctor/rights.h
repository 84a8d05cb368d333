/*
 * rights.h - what the user of a master must be allowed to do.
 *
 * `redlock acl` prints the table as rules of an ACL, and `redlock doctor` tries it.  Each command
 * of the library or a script needs a row.  test-acl finds rows that are missing or not needed.
 */
#ifndef REDLOCK_RIGHTS_H
#define REDLOCK_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>

#include <getopt.h>

#include "redlock/cli/common/cli.h"
#include "redlock/cli/doctor/talk.h"
#include "redlock/wire/keys.h"

/* Kinds of locks.  Plain locks have one name or several.  A row has the kinds that need it. */
enum {
    RIGHTS_PLAIN = 1 << 0,
    RIGHTS_GUARD = 1 << 1, /* The restart guard. */
    RIGHTS_FAIR = 1 << 2,
    RIGHTS_FENCE = 1 << 3,
    RIGHTS_PERMITS = 1 << 4,
    RIGHTS_SHARED = 1 << 5
};

/* These words of a row stand for a key or a channel.  The last one is a channel itself. */
#define RIGHTS_NAME "<name>"               /* The name of a lock. */
#define RIGHTS_OWN "<own>"                 /* A random name, which no lock has. */
#define RIGHTS_MARK "<mark>"               /* The wait flag of the lock, and its channel. */
#define RIGHTS_GROUP "<group>"             /* The channel of a group of its waiters. */
#define RIGHTS_QUEUE "<queue>"             /* The queue of the lock. */
#define RIGHTS_TOKENS "<tokens>"           /* The tokens that wait in the queue. */
#define RIGHTS_PERMIT "<permit>"           /* A semaphore of this name, as masters know it. */
#define RIGHTS_SLOT "<slot>"               /* The key of the semaphore's first permit. */
#define RIGHTS_PERMIT_MARK "<slot-mark>"   /* The semaphore's wait flag, and its channel. */
#define RIGHTS_PERMIT_GROUP "<slot-group>" /* The channel of a group of its waiters. */
#define RIGHTS_CLIENT WIRE_CLIENT "doctor" /* A channel, which no client has. */

/* The keys or channels that a row is about, for messages if they are forbidden. */
enum rights_about {
    RIGHTS_ABOUT_NAME,
    RIGHTS_ABOUT_MARKER,
    RIGHTS_ABOUT_WITNESS,
    RIGHTS_ABOUT_MARK,
    RIGHTS_ABOUT_QUEUE,
    RIGHTS_ABOUT_TOKENS,
    RIGHTS_ABOUT_PERMIT,
    RIGHTS_ABOUT_CLIENT
};

struct right {
    const char *rule; /* The rule of an ACL: "+set".  Several rows may have it. */
    unsigned kinds;
    /* How to try it.  No words: other queries of an exam try it.  words may write to <name> and to
     * keys made of it.  If a lock may have this name, dry replaces words, and writes nothing. */
    const char *words[TALK_WORDS_MAX];
    const char *dry[TALK_WORDS_MAX];
};

extern const struct right rights_all[];
extern const size_t rights_len;

/* The keys and channels of locks, as rules. */
enum { RIGHTS_PLACES_LEN = 14, RIGHTS_RULE_MAX = REDLOCK_NAME_MAX + 64 };

/* Write the rule of a place, "~redlock:wait:a*" for the names "a*".  False: locks of these
 * kinds do not need it, or another rule for these names includes it. */
bool rights_place(size_t place, const char *names, unsigned kinds, char rule[RIGHTS_RULE_MAX]);

/* Write the rules that allow what a row is about, with a blank between two. */
void rights_rules(enum rights_about about, bool is_key, const char *names, char *buf, size_t size);

enum { RIGHTS_KINDS_LEN = 4 };

/* The options that add a kind of lock. */
extern const struct rights_kind {
    enum option_value option;
    unsigned kind;
} rights_kinds[RIGHTS_KINDS_LEN];

/* The values of these options. */
enum { RIGHTS_NAMES_MAX = 16 }; /* Chosen: as many as one lock may have names. */

struct rights_wanted {
    unsigned kinds;
    const char *names[RIGHTS_NAMES_MAX]; /* Patterns, all different. */
    size_t names_len;                    /* 0: not given. */
};

/* Take one of these options, with optarg set. */
void rights_take_option(const struct cli *cli, int option, struct rights_wanted *wanted);

/* Call this after all options are read.  It ends the program if they do not go together. */
void rights_check(const struct cli *cli, struct rights_wanted *wanted);

/*
 * Make a name that the pattern matches.  own replaces its first *, x replaces each ?, and each
 * other * is left out.  *ret_is_in_use: the pattern has no *, so a lock may have this name.  False:
 * the pattern has a [, which is not supported.
 */
bool rights_stand_in(const char *pattern, const char *own, char *name, size_t size,
                     bool *ret_is_in_use);

/* The pattern of names, for rules.  start: the name if names is NULL.  "PATTERN": this is not
 * known, or cannot be written in a rule. */
const char *rights_pattern(const char *names, const char *start, char buf[RIGHTS_RULE_MAX]);

/* Print the call of `redlock acl` that prints the rules for these rights, to standard output.
 * start: as for rights_pattern(). */
void rights_print_command(const struct cli *cli, const struct rights_wanted *wanted,
                          const char *start, const char *user);

#endif /* REDLOCK_RIGHTS_H */
