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

/* ---- Findings ---- */

void exam_find(struct exam *exam, const char *name, const char *change, const char *format, ...)
{
    struct exam_finding *finding = &exam->findings[exam->findings_len];
    va_list args;

    if (exam->findings_len == EXAM_FINDINGS_MAX)
        return;
    finding->name = name;
    va_start(args, format);
    (void)vsnprintf(finding->text, sizeof finding->text, format, args);
    va_end(args);
    (void)text_end_error(finding->text);
    (void)snprintf(finding->change, sizeof finding->change, "%s", change != NULL ? change : "");
    for (unsigned i = 0; i < exam->findings_len; i++) /* Note equal texts once. */
        if (strcmp(exam->findings[i].text, finding->text) == 0)
            return;
    exam->findings_len++;
}

void exam_find_closed(struct exam *exam)
{
    exam_find(
        exam, "closed", "see redlock members rescue in redlock(1)",
        "its set is closed: a rescue is running, was interrupted, or left this master behind");
}

unsigned exam_changes(const struct exam *exam)
{
    unsigned changes = 0;

    for (unsigned i = 0; i < exam->findings_len; i++)
        changes += exam->findings[i].change[0] != 0;
    return changes;
}

bool exam_has(const struct exam *exam, const char *name)
{
    for (unsigned i = 0; i < exam->findings_len; i++)
        if (strcmp(exam->findings[i].name, name) == 0)
            return true;
    return false;
}

bool exam_lacks_rights(const struct exam *exam)
{
    for (unsigned i = 0; i < exam->findings_len; i++)
        if (strncmp(exam->findings[i].change, "allow ", 6) == 0)
            return true;
    return false;
}

/* Findings whose text tells more than their name are not here. */
static const struct {
    const char *name;
    enum msg kind;
} kinds[] = {
    {"acl", MSG_NO_RIGHT},
    {"acl_client", MSG_NO_RIGHT},
    {"acl_keys", MSG_NO_RIGHT},
    {"acl_marker", MSG_NO_RIGHT},
    {"acl_next", MSG_NO_RIGHT},
    {"acl_queue", MSG_NO_RIGHT},
    {"acl_wait", MSG_NO_RIGHT},
    {"acl_witness", MSG_NO_RIGHT},
    {"auth", MSG_WRONG_PASSWORD},
    {"behind", MSG_SET_CHANGED},
    {"busy", MSG_BUSY},
    {"clock", MSG_CLOCK},
    {"closed", MSG_SET_CLOSED},
    {"cluster", MSG_CLUSTER},
    {"config", MSG_NOT_KNOWN},
    {"counters", MSG_COUNTERS},
    {"eviction", MSG_EVICTION},
    {"foreign_key", MSG_FOREIGN_KEY},
    {"foreign_permit", MSG_FOREIGN_KEY},
    {"foreign_queue", MSG_FOREIGN_KEY},
    {"forgotten", MSG_SET_FORGOTTEN},
    {"fsync", MSG_PERSISTENCE},
    {"info", MSG_NOT_KNOWN},
    {"later_version", MSG_LATER_VERSION},
    {"loading", MSG_LOADING},
    {"marker", MSG_BAD_MARKER},
    {"max_ttl", MSG_MAX_TTL},
    {"number", MSG_FEW_MASTERS},
    {"other_address", MSG_WRONG_SET},
    {"other_database", MSG_WRONG_SET},
    {"other_list", MSG_WRONG_SET},
    {"other_set", MSG_WRONG_SET},
    {"password", MSG_KNOWN_PASSWORD},
    {"persistence", MSG_PERSISTENCE},
    {"protected_mode", MSG_PROTECTED_MODE},
    {"replica", MSG_REPLICA},
    {"same_epoch", MSG_SAME_EPOCH},
    {"same_server", MSG_SAME_SERVER},
    {"script", MSG_NOT_REDIS},
    {"select", MSG_NO_DATABASE},
    {"sentinel", MSG_SENTINEL},
    {"silent", MSG_NO_ANSWER},
    {"slow", MSG_SLOW},
    {"too_many", MSG_TOO_MANY},
    {"unfinished", MSG_SET_CHANGED},
    {"version", MSG_REDIS_VERSION},
    {"versions", MSG_VERSIONS},
    {"warming", MSG_WARMING},
    {"was_replica", MSG_WAS_REPLICA},
};

enum msg exam_kind(const struct exam_finding *finding)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, finding->name) == 0)
            return kinds[i].kind;
    return message_of_reason(finding->text); /* "error", "unreachable" */
}

/* ---- Errors, and what to do about them ---- */

const char *exam_cure(const char *error, bool is_listed)
{
    static const struct {
        const char *words, *change;
    } rows[] = {
        {"an error of this host", "see the limits, the rights and the routes of this machine"},
        {"does not answer", "see whether it hangs, and what its log says"},
        {"before it answered",
         "write rediss:// in its URI, or give the server behind a proxy, or see its log"},
        {"certificate has expired",
         "give it a certificate that is valid (tls-cert-file), and restart it"},
        {"certificate is not yet valid",
         "set the clock of this machine right, or give the master another certificate"},
        {"it is not for ", "write a name of its certificate into the URI, or give "
                           "--tls-server-name, or make a certificate with this name"},
        {"certificate is refused", "give the CA that has signed it (--tls-ca, REDLOCK_TLS_CA), or "
                                   "give the master a certificate of your CA"},
        {"ertificate",
         "give a certificate of a CA that the master knows (--tls-cert and --tls-key), or set "
         "tls-auth-clients no there"},
        {"does not speak TLS", "write redis:// in its URI, or give the port that has TLS"},
        {"TLS", "see its log: it needs TLS 1.2 or later (tls-protocols)"},
        {"resolv", "correct the name in its URI, or the name server of this machine"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strstr(error, rows[i].words) != NULL)
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

/* What to change after an error that is not about rights, by its code. */
static const char *advice_on(const char *error)
{
    const char *cure = writes_cure(error);

    if (cure != NULL)
        return cure;
    if (strstr(error, "max number of clients") != NULL)
        return "raise maxclients (CONFIG SET maxclients, and in redis.conf), or close connections";
    if (strstr(error, "unknown command") != NULL)
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
    exam_find(exam, "busy",
              "wait until this script ends, or end it (SCRIPT KILL, or FUNCTION KILL)",
              "is busy with a script of another program");
}

void exam_find_error(struct exam *exam, const char *command, const char *rule, const char *error)
{
    char change[EXAM_TEXT_MAX];

    if (exam_has_code(error, "BUSY")) {
        exam_find_busy(exam);
        return;
    }
    if (!exam_has_code(error, "NOPERM")) {
        exam_find(exam, "error", advice_on(error), "%s: %s", command, error);
        return;
    }
    (void)snprintf(change, sizeof change, "allow it (ACL SETUSER %s %s, and in its ACL file)",
                   exam_user(exam), rule);
    exam_find(exam, "acl", change, "%s is forbidden by its ACL%s", command, effect_of(rule));
}

/* ---- What it does not tell ---- */

void exam_find_no_info(struct exam *exam)
{
    const bool is_forbidden = exam->info.forbids;
    char change[EXAM_TEXT_MAX] = "make it available: no rename-command INFO";

    if (is_forbidden)
        (void)snprintf(change, sizeof change, "allow it (ACL SETUSER %s +info)", exam_user(exam));
    exam_find(
        exam, "info", change,
        "INFO is %s, so its role, its identity, and whether it keeps its data are not known%s",
        is_forbidden ? "forbidden" : "not available",
        exam_is_guarded(exam) ? ", and with the restart guard it may not vote" : "");
}

void exam_find_no_config(struct exam *exam, const char *error)
{
    const bool is_forbidden = strstr(error, "unknown command") == NULL;
    char change[EXAM_TEXT_MAX] = "make it available: no rename-command CONFIG";

    if (is_forbidden)
        (void)snprintf(change, sizeof change,
                       exam_is_guarded(exam)
                           ? "allow CONFIG GET (ACL SETUSER %s +config|get)"
                           : "allow CONFIG GET for doctor (ACL SETUSER %s +config|get), or see "
                             "yourself that it is always",
                       exam_user(exam));
    exam_find(exam, "config", change, "appendfsync is not known, because CONFIG GET is %s%s",
              is_forbidden ? "forbidden" : "not available",
              exam_is_guarded(exam) ? ", so it warms up after each restart" : "");
}
