/*
 * exam.c - collects the findings about a master.
 */
#include "redlock/cli/doctor/exam.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "redlock/base/text.h"
#include "redlock/cli/common/writes.h"
#include "redlock/cli/doctor/rights.h"
#include "redlock/link/uri.h"
#include "redlock/wire/redis_error.h"

#define WANTS_OURS                                                                         \
    "give a certificate of a CA that the master knows (--tls-cert and --tls-key), or set " \
    "tls-auth-clients no there"

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

/* Equal texts are noted once. */
static void add(struct exam *exam, enum finding name, enum msg message, bool takes_each,
                const char *change, const char *text)
{
    struct exam_finding *finding = &exam->findings[exam->findings_len];

    if (exam->findings_len == EXAM_FINDINGS_MAX)
        return;
    *finding = (struct exam_finding){.name = name, .message = message, .takes_each = takes_each};
    (void)snprintf(finding->text, sizeof finding->text, "%s", text);
    (void)text_end_error(finding->text);
    (void)snprintf(finding->change, sizeof finding->change, "%s", change != NULL ? change : "");
    for (unsigned i = 0; i < exam->findings_len; i++)
        if (strcmp(exam->findings[i].text, finding->text) == 0)
            return;
    exam->findings_len++;
}

void exam_find(struct exam *exam, enum finding name, const char *change, const char *format, ...)
{
    char text[EXAM_TEXT_MAX];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    add(exam, name, findings[name].message, findings[name].takes_each, change, text);
}

void exam_find_reason(struct exam *exam, enum finding name, const char *change,
                      const struct reason *why)
{
    const enum msg message = findings[name].message;
    char text[REASON_TEXT_MAX];

    (void)reason_write(why, 0, text, sizeof text);
    add(exam, name, message != MSG_NONE ? message : reason_message(why), reason_takes_each(why),
        change, text);
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

bool exam_lacks_rights(const struct exam *exam)
{
    for (unsigned i = 0; i < exam->findings_len; i++)
        if (exam->findings[i].message == MSG_NO_RIGHT)
            return true;
    return exam_has(exam, FIND_INFO_FORBIDDEN) || exam_has(exam, FIND_CONFIG_FORBIDDEN);
}

/* ---- Errors, and what to do about them ---- */

const char *exam_cure(const struct reason *why, bool is_listed)
{
    static const struct {
        enum why why; /* NONE: all reasons with this message. */
        enum msg message;
        const char *change;
    } rows[] = {
        {WHY_OWN_SYSTEM, MSG_NONE, "see the limits, the rights and the routes of this machine"},
        {WHY_NONE, MSG_NO_ANSWER, "see whether it hangs, and what its log says"},
        {WHY_TLS_EXPIRED, MSG_NONE,
         "give it a certificate that is valid (tls-cert-file), and restart it"},
        {WHY_TLS_EARLY, MSG_NONE,
         "set the clock of this machine right, or give the master another certificate"},
        {WHY_TLS_NAME, MSG_NONE,
         "write a name of its certificate into the URI, or give --tls-server-name, or make a "
         "certificate with this name"},
        {WHY_NONE, MSG_TLS_CERTIFICATE,
         "give the CA that has signed it (--tls-ca, REDLOCK_TLS_CA), or give the master a "
         "certificate of your CA"},
        {WHY_TLS_UNKNOWN_US, MSG_NONE, WANTS_OURS},
        {WHY_TLS_BAD_US, MSG_NONE, WANTS_OURS},
        {WHY_TLS_PLAIN, MSG_NONE, "write redis:// in its URI, or give the port that has TLS"},
        {WHY_NONE, MSG_TLS_FAILED, "see its log: it needs TLS 1.2 or later (tls-protocols)"},
        {WHY_NONE, MSG_NO_ADDRESS,
         "correct the name in its URI, or the name server of this machine"},
    };

    if (why->at == AT_GREETING)
        return "write rediss:// in its URI, or give the server behind a proxy, or see its log";
    if (why->at == AT_AFTER_TLS)
        return WANTS_OURS;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].why != WHY_NONE ? rows[i].why == why->why
                                    : rows[i].message == reason_message(why))
            return rows[i].change;
    return is_listed
               ? "start it, let this machine reach it, or correct its URI; if it is gone for "
                 "good, replace it, or rescue the set if a majority is (redlock members "
                 "--help)"
               : "start it, or let this machine reach it; if it is gone for good, replace it, "
                 "or rescue the set if a majority is (redlock members --help)";
}

bool exam_is_guarded(const struct exam *exam)
{
    return (exam->kinds & RIGHTS_GUARD) != 0;
}

const char *exam_user(const struct exam *exam)
{
    return exam->uri->user != NULL ? exam->uri->user : "default";
}

bool exam_has_code(const char *error, const char *code)
{
    size_t len = strlen(code);

    return strncmp(error, code, len) == 0 && (error[len] == ' ' || error[len] == 0);
}

/* What to change after an error that is not about rights. */
static const char *advice_on(const char *error)
{
    const enum why why = redis_error_kind(error);
    const char *cure = writes_cure(why);

    if (cure != NULL)
        return cure;
    if (why == WHY_ERROR_CLIENTS)
        return "raise maxclients (CONFIG SET maxclients, and in redis.conf), or close connections";
    if (why == WHY_ERROR_COMMAND)
        return "make this command available: no rename-command, and Redis 6 or later";
    return "find out what this error means";
}

/* What users notice of a right that is missing, where it is more than a lock that fails. */
static const char *effect_of(const char *rule)
{
    if (strcmp(rule, "+hget") == 0)
        return ", so no vote counts, and a lock that fails may leave its key until the ttl is over";
    if (strcmp(rule, "+get") == 0 || strcmp(rule, "+del") == 0)
        return ", so no lock is released: its key stays until the ttl is over";
    return "";
}

void exam_find_busy(struct exam *exam)
{
    exam_find(exam, FIND_BUSY,
              "wait until this script ends, or end it (SCRIPT KILL, or FUNCTION KILL)",
              "is busy with a script of another program");
}

void exam_find_error(struct exam *exam, const char *command, const char *rule, const char *error)
{
    char change[EXAM_TEXT_MAX], text[EXAM_TEXT_MAX];
    struct reason why;

    if (redis_error_kind(error) == WHY_ERROR_BUSY) {
        exam_find_busy(exam);
        return;
    }
    if (!exam_has_code(error, "NOPERM")) {
        redis_error_reason(&why, error);
        (void)snprintf(text, sizeof text, "%s: %s", command, error);
        add(exam, FIND_ERROR, reason_message(&why), false, advice_on(error), text);
        return;
    }
    (void)snprintf(change, sizeof change, "allow it (ACL SETUSER %s %s, and in its ACL file)",
                   exam_user(exam), rule);
    exam_find(exam, FIND_ACL, change, "%s is forbidden by its ACL%s", command, effect_of(rule));
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
