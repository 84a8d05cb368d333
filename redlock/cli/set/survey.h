/*
 * survey.h - what the masters of a list, and those that they name, say of their set.
 *
 * The client of a survey obeys no set (inspect.h): its list may have masters that are not yet, or
 * no longer, members.  A configuration names members that the list lacks.  Then the survey begins
 * anew with a longer list.
 */
#ifndef REDLOCK_SURVEY_H
#define REDLOCK_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/cli/common/question.h"
#include "redlock/cli/common/session.h"
#include "redlock/client/inspect.h"
#include "redlock/core/config.h"
#include "redlock/link/uri.h"

/* A master, as it answered. */
struct survey_master {
    struct config_member member; /* Its place, and the name that the list gives it, or the place. */
    bool is_named;               /* The list gives it a name. */
    bool answered;
    struct guard_look look;
    uint64_t age_ms;   /* Warming: for how long, by its clock. */
    bool is_timed;     /* The client knows how much longer, as far as it can. */
    bool is_witnessed; /* The other members told it: then left is valid. */
    drift_span left;
    uint64_t set, version;           /* 0: it belongs to none. */
    char name[CONFIG_PLACE_MAX + 1]; /* Its own name.  "": it is no member. */
    struct config config;            /* The configuration that it reported, if it is in a set. */
    struct config next;    /* What it has accepted for the next version.  Version 0: nothing. */
    struct reason why;     /* Why it did not answer. */
    struct remark no_vote; /* As question_no_vote(). */
};

struct survey {
    struct session session;
    struct redlock *rl;
    struct question question;
    char *list; /* The URIs.  May have passwords. */
    unsigned masters;
    unsigned listed;    /* How many of the first masters come from the list. */
    unsigned arguments; /* How many of the next are arguments that the list does not name. */
    struct survey_master of[REDLOCK_MASTERS_MAX];
    struct config newest; /* The newest configuration.  Version 0: none is known. */
    /* Why no set was chosen, if masters belong to several.  "": a set was chosen, or none is known.
     */
    char why[2 * REASON_TEXT_MAX];
};

/* A copy of the list of the command line, or of the environment.  NULL: there is none, or it cannot
 * be read.  survey_forget_list() wipes and frees it. */
char *survey_copy_list(const struct cli *cli);
void survey_forget_list(char *list);

/* Why a master did not answer. */
struct remark survey_why(const struct survey *survey, unsigned master);

/* True: the list has each member of the configuration, and no other master. */
bool survey_list_is(const char *list, const struct config *config);

/* A master that is an argument of the subcommand. */
struct survey_uri {
    char *text;
    struct uri uri;
};

/* Ask all masters of the list, and these.  A list of NULL is that of the environment, which the
 * library reports as wrong.  A signal ends it (session.signal).  Returns CLI_OK, or another exit
 * code after a message.  survey_close() is due in both cases. */
int survey_open(struct survey *survey, struct cli *cli, const char *list,
                const struct survey_uri *uris, size_t len);
void survey_close(struct survey *survey);

/* Choose the set of masters from the answers.  If there are several, choose one with a quorum.
 * Arguments choose no set: a mistyped one would have the command change a set of others. */
void survey_choose_set(struct survey *survey);

/* The master is an argument that the list does not name. */
bool survey_is_argument(const struct survey *survey, unsigned master);

/* The master that is this member.  Returns survey->masters if there is none. */
unsigned survey_find(const struct survey *survey, const struct config_member *member);

/* The member of survey->newest that this master is.  NULL: it is none. */
const struct config_member *survey_member_of(const struct survey *survey, unsigned master);

/* All members of the newest configuration have answered. */
bool survey_all_answer(const struct survey *survey);

/* The master that is the same server, and has its link and its vote.  Returns survey->masters if
 * there is none. */
unsigned survey_twin(const struct survey *survey, unsigned master);

/* The master that has the same epoch: the data of one are a copy.  Returns survey->masters if there
 * is none. */
unsigned survey_copy(const struct survey *survey, unsigned master);

/* It answered, belongs to the set of survey->newest, which is not closed, and has an epoch. */
bool survey_votes(const struct survey *survey, unsigned master);

/* Of a list of survey->newest: members that vote.  A majority of each list is a quorum. */
unsigned survey_count(const struct survey *survey, quorum_mask list);
bool survey_has_quorum(const struct survey *survey);

/* Too few members that answer remember the set (core/recall.h). */
bool survey_has_forgotten(const struct survey *survey);

#endif /* REDLOCK_SURVEY_H */
