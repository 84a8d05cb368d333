/*
 * exam.c - collects the findings about a master.
 */
#include "redlock/cli/doctor/exam.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "redlock/base/text.h"
#include "redlock/cli/doctor/rights.h"
#include "redlock/link/uri.h"
#include "redlock/wire/redis_error.h"

/* ---- Findings ---- */

static const struct {
    const char *word;
    enum msg message;
    bool takes_each;
} findings[FINDINGS_LEN] = {
#define FINDING_ROW(name, word, message, takes_each) \
    [FIND_##name] = {word, MSG_##message, takes_each},
    FINDINGS(FINDING_ROW)
#undef FINDING_ROW
};

const char *exam_word(enum finding name)
{
    return findings[name].word;
}

static bool is_same(const struct exam_finding *a, const struct exam_finding *b)
{
    return strcmp(a->text, b->text) == 0 || (a->why == b->why && reason_is_of_server(a->why));
}

/* One fault is noted once, also if several commands meet it. */
static void add(struct exam *exam, const struct exam_finding *kind, const char *change,
                const char *text)
{
    struct exam_finding *finding = &exam->findings[exam->findings_len];

    if (exam->findings_len == EXAM_FINDINGS_MAX)
        return;
    *finding = *kind;
    (void)snprintf(finding->text, sizeof finding->text, "%s", text);
    (void)text_end_error(finding->text);
    (void)snprintf(finding->change, sizeof finding->change, "%s", change != NULL ? change : "");
    for (unsigned i = 0; i < exam->findings_len; i++)
        if (is_same(&exam->findings[i], finding))
            return;
    exam->findings_len++;
}

void exam_find(struct exam *exam, enum finding name, const char *change, const char *format, ...)
{
    const struct exam_finding kind = {
        .name = name, .message = findings[name].message, .takes_each = findings[name].takes_each};
    char text[EXAM_TEXT_MAX];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    add(exam, &kind, change, text);
}

/* What to do about it. */
static const char *cure_of(const struct exam *exam, const struct reason *why)
{
    const char *cure = reason_cure(why);

    if (!exam->is_listed && (why->why == WHY_NO_LOGIN || why->why == WHY_NO_LOGIN_TLS))
        return "put it into the list, with a password: the list has none for this host";
    if (cure != NULL)
        return cure;
    if (redis_error_is(why->why))
        return "find out what this error means";
    return exam->is_listed
               ? "start it, let this machine reach it, or correct its URI; if it is gone for "
                 "good, replace it, or rescue the set if a majority is (redlock members "
                 "--help)"
               : "start it, or let this machine reach it; if it is gone for good, replace it, "
                 "or rescue the set if a majority is (redlock members --help)";
}

/* command: what met it, if it is not about the master itself.  NULL: nothing. */
static void add_reason(struct exam *exam, enum finding name, const struct reason *why,
                       const char *command)
{
    const enum msg message = findings[name].message;
    const struct exam_finding kind = {.name = name,
                                      .why = why->why,
                                      .message =
                                          message != MSG_NONE ? message : reason_message(why),
                                      .takes_each = command == NULL && reason_takes_each(why)};
    char sentence[REASON_TEXT_MAX], text[EXAM_TEXT_MAX];

    (void)reason_write_bare(why, sentence, sizeof sentence);
    (void)snprintf(text, sizeof text, "%s%s%s", command != NULL ? command : "",
                   command != NULL ? ": " : "", sentence);
    add(exam, &kind, cure_of(exam, why), text);
}

void exam_find_reason(struct exam *exam, enum finding name, const struct reason *why)
{
    add_reason(exam, name, why, NULL);
}

void exam_find_closed(struct exam *exam)
{
    exam_find(
        exam, FIND_CLOSED, "see redlock members rescue in redlock(1)",
        "its set is closed: a rescue is running, was interrupted, or left this master behind");
}

unsigned exam_changes(const struct exam *exam)
{
    unsigned changes = 0;

    for (unsigned i = 0; i < exam->findings_len; i++)
        changes += exam->findings[i].change[0] != 0;
    return changes;
}

bool exam_has(const struct exam *exam, enum finding name)
{
    for (unsigned i = 0; i < exam->findings_len; i++)
        if (exam->findings[i].name == name)
            return true;
    return false;
}

bool exam_has_reason(const struct exam *exam, enum why why)
{
    for (unsigned i = 0; i < exam->findings_len; i++)
        if (exam->findings[i].why == why)
            return true;
    return false;
}

void exam_add_cure(struct exam *exam, enum why why, const char *cure)
{
    for (unsigned i = 0; i < exam->findings_len; i++) {
        char *change = exam->findings[i].change;
        const size_t len = strlen(change), size = sizeof exam->findings[i].change;

        if (exam->findings[i].why == why)
            (void)snprintf(change + len, size - len, ", or %s", cure);
    }
}

void exam_advise(struct exam *exam, enum finding name, const char *change)
{
    for (unsigned i = 0; i < exam->findings_len; i++)
        if (exam->findings[i].name == name)
            (void)snprintf(exam->findings[i].change, sizeof exam->findings[i].change, "%s", change);
}

bool exam_keep_only(struct exam *exam, enum finding name, const char *change)
{
    for (unsigned i = 0; i < exam->findings_len; i++) {
        if (exam->findings[i].name != name)
            continue;
        exam->findings[0] = exam->findings[i];
        exam->findings_len = 1;
        (void)snprintf(exam->findings[0].change, sizeof exam->findings[0].change, "%s", change);
        return true;
    }
    return false;
}

bool exam_lacks_rights(const struct exam *exam)
{
    for (unsigned i = 0; i < exam->findings_len; i++)
        if (exam->findings[i].message == MSG_NO_RIGHT)
            return true;
    return exam_has(exam, FIND_CONFIG_FORBIDDEN);
}

/* ---- Errors ---- */

bool exam_is_guarded(const struct exam *exam)
{
    return (exam->kinds & RIGHTS_GUARD) != 0;
}

const char *exam_user(const struct exam *exam)
{
    return exam->uri->user != NULL ? exam->uri->user : "default";
}

/* What users notice of a right that is missing, where it is more than a lock that fails. */
static const char *effect_of(const char *rule)
{
    static const struct {
        const char *rule, *effect;
    } effects[] = {
        {"+hget",
         ", so no vote counts, and a lock that fails may leave its key until the ttl is over"},
        {"+hset", ", so it does not vote after a restart, or if a longer lease is announced"},
        {"+hdel", ", so it does not vote again after it has lost its data"},
        {"+evalsha",
         ", so no lock can be renewed, and none is released: its key stays until the ttl "
         "is over"},
        {"+get",
         ", so no lock can be renewed, and none is released: its key stays until the ttl is "
         "over"},
        {"+pttl", ", so no lock can be renewed"},
        {"+pexpire", ", so no lock can be renewed"},
        {"+del", ", so no lock is released: its key stays until the ttl is over"},
    };

    for (size_t i = 0; i < sizeof effects / sizeof effects[0]; i++)
        if (strcmp(rule, effects[i].rule) == 0)
            return effects[i].effect;
    return "";
}

/* The first finding with this message.  ERROR: there is none. */
static enum finding finding_of(const struct reason *why)
{
    unsigned name = 0;

    while (name < FIND_ERROR && findings[name].message != reason_message(why))
        name++;
    return (enum finding)name;
}

void exam_find_error(struct exam *exam, const char *command, const char *rule,
                     const struct reason *why)
{
    char change[EXAM_TEXT_MAX];

    if (why->words[0] == '\0') { /* It is about the master, whatever it was asked. */
        exam_find_reason(exam, finding_of(why), why);
        return;
    }
    if (why->why != WHY_ERROR_RIGHT) {
        add_reason(exam, FIND_ERROR, why, command);
        return;
    }
    (void)snprintf(change, sizeof change, "allow it (ACL SETUSER %s %s, and in its ACL file)",
                   exam_user(exam), rule);
    exam_find(exam, FIND_ACL, change, "%s is forbidden by its ACL%s", command, effect_of(rule));
}

void exam_find_refusal(struct exam *exam, const struct reason *why)
{
    static const struct {
        const char *command, *rule;
    } asked[REASON_ATS_LEN] = {
        [AT_LOGIN] = {"AUTH", "+auth"},
        [AT_SELECT] = {"SELECT", "+select"},
        [AT_SCRIPT] = {"SCRIPT LOAD", "+script|load"},
    };
    const enum finding name = finding_of(why);
    const char *command = asked[why->at].command, *rule = asked[why->at].rule;
    struct reason answer = *why;

    if (why->why == WHY_NO_LOGIN || why->why == WHY_NO_LOGIN_TLS)
        exam_find(exam, name, cure_of(exam, why), "%s", why->words);
    else if (name != FIND_ERROR && name != FIND_ACL)
        exam_find_reason(exam, name, why);
    else {
        reason_answers(&answer, AT_ANYTHING); /* The command stands before it. */
        exam_find_error(exam, command != NULL ? command : "INFO", rule != NULL ? rule : "+info",
                        &answer);
    }
}

/* ---- What it does not tell ---- */

void exam_find_no_info(struct exam *exam)
{
    const bool is_forbidden = exam->info.forbids;
    char change[EXAM_TEXT_MAX] = "make it available: no rename-command INFO";

    if (is_forbidden)
        (void)snprintf(change, sizeof change, "allow it (ACL SETUSER %s +info)", exam_user(exam));
    exam_find(
        exam, is_forbidden ? FIND_INFO_FORBIDDEN : FIND_INFO, change,
        "INFO is %s, so its role, its identity, and whether it keeps its data are not known%s",
        is_forbidden ? "forbidden" : "not available",
        exam_is_guarded(exam) ? ", and with the restart guard it may not vote" : "");
}

void exam_find_no_config(struct exam *exam, const char *error)
{
    const bool is_forbidden = redis_error_kind(error) != WHY_ERROR_COMMAND;
    char change[EXAM_TEXT_MAX] = "make it available: no rename-command CONFIG";

    if (is_forbidden)
        (void)snprintf(change, sizeof change,
                       exam_is_guarded(exam)
                           ? "allow CONFIG GET (ACL SETUSER %s +config|get)"
                           : "allow CONFIG GET for doctor (ACL SETUSER %s +config|get), or see "
                             "yourself that it is always",
                       exam_user(exam));
    exam_find(exam, is_forbidden ? FIND_CONFIG_FORBIDDEN : FIND_CONFIG, change,
              "appendfsync is not known, because CONFIG GET is %s%s",
              is_forbidden ? "forbidden" : "not available",
              exam_is_guarded(exam) ? ", so it warms up after each restart" : "");
}
