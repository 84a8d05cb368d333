/*
 * rights.h - what the user of a master must be allowed to do.
 *
 * One table, read by `redlock acl`, which prints it as rules of an ACL, and by
 * `redlock doctor`, which tries it.  A command that the library or a script of it
 * begins to use gets a row here; test-acl notices a row that is missing, and one
 * that nobody needs.
 */
#ifndef REDLOCK_RIGHTS_H
#define REDLOCK_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>

#include <getopt.h>

#include "redlock/cli/cli.h"
#include "redlock/cli/talk.h"

/* What the user wants besides plain locks, of one name or of several.  A row is
 * needed for any of its kinds. */
enum {
    RIGHTS_PLAIN = 1 << 0,
    RIGHTS_GUARD = 1 << 1, /* The restart guard. */
    RIGHTS_FAIR = 1 << 2,
    RIGHTS_FENCE = 1 << 3,
    RIGHTS_PERMITS = 1 << 4,
    RIGHTS_SHARED = 1 << 5
};

/* In place of a key or a channel, in the words of a row. */
#define RIGHTS_NAME "<name>"             /* That of a lock. */
#define RIGHTS_OWN "<own>"               /* A random one, which no lock has. */
#define RIGHTS_MARK "<mark>"             /* Key and channel of those who wait for it. */
#define RIGHTS_QUEUE "<queue>"           /* The queue beside it. */
#define RIGHTS_PERMIT "<permit>"         /* A semaphore of this name: its name on the masters, */
#define RIGHTS_SLOT "<slot>"             /* the key of its first permit, */
#define RIGHTS_PERMIT_MARK "<slot-mark>" /* and where its clients wait. */

/* What a row is about: which keys are the matter where keys are forbidden. */
enum rights_about {
    RIGHTS_ABOUT_NAME,
    RIGHTS_ABOUT_MARKER,
    RIGHTS_ABOUT_MARK,
    RIGHTS_ABOUT_QUEUE,
    RIGHTS_ABOUT_PERMIT
};

struct right {
    const char *rule;    /* Of an ACL: "+set"; NULL: that of an earlier row. */
    const char *command; /* For people: "SET". */
    unsigned kinds;
    enum rights_about about;
    /* How to try it.  No words: the other questions of an exam try it.  They write to <name>
     * and the keys beside it at most.  If a lock may have this name, the words in dry take their
     * place, which write nothing. */
    const char *words[TALK_WORDS_MAX];
    const char *dry[TALK_WORDS_MAX];
};

extern const struct right rights_all[];
extern const size_t rights_len;

/* For the rows of own options, from value CLI_OPTION_FIRST on. */
#define RIGHTS_OPTIONS                                            \
    {"fair", no_argument, NULL, CLI_OPTION_FIRST},                \
        {"fence", no_argument, NULL, CLI_OPTION_FIRST + 1},       \
        {"names", required_argument, NULL, CLI_OPTION_FIRST + 2}, \
        {"permits", no_argument, NULL, CLI_OPTION_FIRST + 3},     \
    {                                                             \
        "shared", no_argument, NULL, CLI_OPTION_FIRST + 4         \
    }
enum { RIGHTS_OPTIONS_END = CLI_OPTION_FIRST + 5 };

/* What such options say. */
struct rights_wanted {
    unsigned kinds;
    const char *names; /* A pattern; NULL: not given. */
};

/* Take one of these options, with optarg set. */
void rights_take_option(const struct cli *cli, int option, struct rights_wanted *wanted);

/* When all options are known: end the program if they do not go together. */
void rights_check(const struct cli *cli, struct rights_wanted *wanted);

/*
 * A name that the pattern matches: own in place of its first *, nothing in place of others, and
 * an x in place of each ?.  *ret_is_in_use: there is no *, so a lock may have this name.  False:
 * the pattern has a [, which this does not support.
 */
bool rights_stand_in(const char *pattern, const char *own, char *name, size_t size,
                     bool *ret_is_in_use);

#endif /* REDLOCK_RIGHTS_H */
