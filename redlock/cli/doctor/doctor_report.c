/*
 * doctor_report.c - prints what `redlock doctor` has found, as text and as JSON.
 */
#include "redlock/cli/doctor/doctor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "redlock/base/error.h"
#include "redlock/base/text.h"
#include "redlock/link/uri.h"

#define QUOTED_MAX (4 * EXAM_TEXT_MAX + 1)
#define COLUMNS 80 /* Of a terminal.  Chosen. */
#define INDENT 4
#define WHO_MAX (URI_HOST_MAX + 128)
#define LINE_LEN_MAX (2 * QUOTED_MAX + WHO_MAX + 64)
#define NUMBERS_MAX (8 * REDLOCK_MASTERS_MAX)

/* ---- What was not checked ---- */

struct unchecked {
    const char *texts[4];
    size_t len;
    char rights[EXAM_TEXT_MAX]; /* The last of the texts. */
};

/* List the options that were not given.  "": all were given. */
static void name_options_left(const struct doctor *doctor, char options[64])
{
    size_t len = 0;

    options[0] = '\0';
    for (size_t i = 0; i < RIGHTS_KINDS_LEN; i++)
        if (!(doctor->wanted.kinds & rights_kinds[i].kind))
            len += (size_t)snprintf(options + len, 64 - len, "%s%s", len > 0 ? ", " : "",
                                    options_name(rights_kinds[i].option));
}

static void find_unchecked(const struct doctor *doctor, struct unchecked *found)
{
    bool may_be_open = false, may_drop_scripts = false;
    char options[64];

    for (unsigned m = 0; m < doctor->masters; m++) {
        const struct exam *exam = &doctor->exams[m];

        if (exam->uri->user == NULL) /* The connection is that of the user default itself. */
            continue;
        /* An open user default makes the rules of any other user useless. */
        may_be_open = may_be_open || !exam->is_default_known;
        /* A master reads an append-only file when it starts, with the rights of its user default.
         * If these are missing, Redis 7 refuses what scripts wrote. */
        may_drop_scripts = may_drop_scripts || exam->info.keeps == '1';
    }
    found->len = 0;
    found->texts[found->len++] = "whether all clients have the restart guard on";
    if (may_be_open)
        found->texts[found->len++] = "whether the user default has a password, or is off";
    if (may_drop_scripts)
        found->texts[found->len++] =
            "whether the user default has all rights, which a restart needs (ACL GETUSER default)";
    name_options_left(doctor, options);
    if (options[0] == '\0')
        return;
    (void)snprintf(found->rights, sizeof found->rights, "the rights for %s", options);
    found->texts[found->len++] = found->rights;
}

/* ---- Printing text ---- */

/* Name the masters whose user default needs no password, so that anybody may use them. */
static unsigned count_open(const struct doctor *doctor)
{
    unsigned open = 0;

    for (unsigned m = 0; m < doctor->masters; m++)
        open += doctor->exams[m].is_open;
    return open;
}

static void print_unchecked(const struct doctor *doctor)
{
    unsigned open = count_open(doctor);
    struct unchecked unchecked;

    if (open > 0)
        (void)printf("note: the user default needs no password on %u of %u masters\n", open,
                     doctor->masters);
    find_unchecked(doctor, &unchecked);
    for (size_t i = 0; i < unchecked.len; i++)
        (void)printf("not checked: %s\n", unchecked.texts[i]);
}

/* Print a line.  A terminal gets it in pieces that end at a blank. */
static void print_line(const char *line)
{
    size_t room = isatty(STDOUT_FILENO) != 0 ? COLUMNS : SIZE_MAX;

    while (strlen(line) > room) {
        size_t len = room;

        while (len > 0 && line[len] != ' ')
            len--;
        if (len == 0)
            len = strcspn(line, " ");
        if (line[len] == '\0')
            break;
        (void)printf("%.*s\n%*s", (int)len, line, INDENT, "");
        line += len + 1;
        room = COLUMNS - INDENT;
    }
    (void)printf("%s\n", line);
}

static void print_finding(const char *who, const struct exam_finding *finding)
{
    char line[LINE_LEN_MAX], text[QUOTED_MAX], change[QUOTED_MAX];

    (void)snprintf(line, sizeof line, "%s%s%s%s [%s]", who,
                   text_quote(finding->text, strlen(finding->text), text, sizeof text),
                   finding->change[0] != 0 ? ": " : " (nothing to change)",
                   text_quote(finding->change, strlen(finding->change), change, sizeof change),
                   message_id(finding->message));
    print_line(line);
}

static bool has_same(const struct exam *exam, const struct exam_finding *finding)
{
    for (unsigned i = 0; i < exam->findings_len; i++)
        if (strcmp(exam->findings[i].text, finding->text) == 0 &&
            strcmp(exam->findings[i].change, finding->change) == 0)
            return true;
    return false;
}

/* "master 1 (10.0.0.1:6379): ", or "masters 1, 2, 3: each " of those that have this finding.
 * Returns how many there are. */
static unsigned name_them(const struct doctor *doctor, unsigned first,
                          const struct exam_finding *finding, char who[WHO_MAX])
{
    size_t len = (size_t)snprintf(who, WHO_MAX, "masters %u", first + 1);
    unsigned masters = 1;

    for (unsigned m = first + 1; m < doctor->masters; m++) {
        if (!has_same(&doctor->exams[m], finding))
            continue;
        len += (size_t)snprintf(who + len, WHO_MAX - len, ", %u", m + 1);
        masters++;
    }
    if (masters == 1)
        (void)snprintf(who, WHO_MAX, "master %u (%s): ", first + 1, doctor->exams[first].uri->name);
    else
        (void)snprintf(who + len, WHO_MAX - len, finding->takes_each ? ": each " : ", each: ");
    return masters;
}

static void print_places(const struct doctor *doctor, unsigned first,
                         const struct exam_finding *finding)
{
    char line[LINE_LEN_MAX];
    size_t len =
        (size_t)snprintf(line, sizeof line, "%*s(%s", INDENT, "", doctor->exams[first].uri->name);

    for (unsigned m = first + 1; m < doctor->masters && len < sizeof line; m++)
        if (has_same(&doctor->exams[m], finding))
            len +=
                (size_t)snprintf(line + len, sizeof line - len, ", %s", doctor->exams[m].uri->name);
    if (len < sizeof line)
        (void)snprintf(line + len, sizeof line - len, ")");
    print_line(line);
}

/* Print a finding of several masters once, at the first of them. */
static void print_findings(const struct doctor *doctor, unsigned m)
{
    const struct exam *exam = &doctor->exams[m];

    for (unsigned i = 0; i < exam->findings_len; i++) {
        unsigned first = 0, masters;
        char who[WHO_MAX];

        while (!has_same(&doctor->exams[first], &exam->findings[i]))
            first++;
        if (first < m)
            continue;
        masters = name_them(doctor, m, &exam->findings[i], who);
        print_finding(who, &exam->findings[i]);
        if (masters > 1)
            print_places(doctor, m, &exam->findings[i]);
    }
}

/* Write a time in the greatest unit of which there are at least two. */
static const char *show_uptime(uint64_t s, char buf[32])
{
    if (s < 120)
        (void)snprintf(buf, 32, "%" PRIu64 " s", s);
    else if (s < 120 * 60)
        (void)snprintf(buf, 32, "%" PRIu64 " min", s / 60);
    else if (s < 48 * 3600)
        (void)snprintf(buf, 32, "%" PRIu64 " h", s / 3600);
    else
        (void)snprintf(buf, 32, "%" PRIu64 " days", s / 86400);
    return buf;
}

/* The offset, rounded to a power of ten of at least half the round trip: more is not known. */
static void print_clock(const struct exam *exam)
{
    int64_t step_us = 100, rounded;

    while (step_us < exam->error_us)
        step_us *= 10;
    rounded = (llabs(exam->offset_us) + step_us / 2) / step_us * step_us;
    (void)printf("clock %c%.*f ms", exam->offset_us < 0 && rounded != 0 ? '-' : '+',
                 step_us < 1000 ? 1 : 0, (double)rounded / 1e3);
}

/* Only a durable master has nothing to change. */
static void print_good(const struct exam *exam, const char *who)
{
    char uptime[32];

    (void)printf("%s: good: %s, durable, ", who, exam->info.version);
    print_clock(exam);
    (void)printf(", up %s\n", show_uptime(exam->info.uptime_s, uptime));
}

/* Name the command that prints all missing rules at once.  Each finding has only one of them. */
static void print_advice(const struct doctor *doctor)
{
    for (unsigned m = 0; m < doctor->masters; m++) {
        if (!exam_lacks_rights(&doctor->exams[m]))
            continue;
        (void)printf(", or paste what `");
        rights_print_command(doctor->cli, &doctor->wanted, doctor->start,
                             exam_user(&doctor->exams[m]));
        (void)printf("` prints (its first line takes away all other rights of this user)");
        return;
    }
}

static bool is_kind(const struct doctor *doctor, unsigned m, bool is_listed, bool is_member)
{
    return m < doctor->masters && doctor->exams[m].is_listed == is_listed &&
           doctor->exams[m].is_member == is_member;
}

/* "1 to 3, 5": the numbers of the masters with these two answers.  Returns how many there are. */
static unsigned name_numbers(const struct doctor *doctor, bool is_listed, bool is_member,
                             char text[NUMBERS_MAX])
{
    unsigned count = 0, last;
    size_t len = 0;

    text[0] = '\0';
    for (unsigned m = 0; m < doctor->masters; m = last + 1) {
        last = m;
        if (!is_kind(doctor, m, is_listed, is_member))
            continue;
        while (is_kind(doctor, last + 1, is_listed, is_member))
            last++;
        len += (size_t)snprintf(text + len, NUMBERS_MAX - len, "%s%u", len > 0 ? ", " : "", m + 1);
        if (last > m)
            len += (size_t)snprintf(text + len, NUMBERS_MAX - len, "%s%u",
                                    last > m + 1 ? " to " : " and ", last + 1);
        count += last - m + 1;
    }
    return count;
}

static void print_numbers(const struct doctor *doctor, bool is_listed, const char *before,
                          const char *from)
{
    char numbers[NUMBERS_MAX];
    unsigned count = name_numbers(doctor, is_listed, true, numbers);

    if (count > 0)
        (void)printf("%smaster%s %s from the %s", before, count == 1 ? "" : "s", numbers, from);
}

/* A client with another database number would find no set either, and found a second one. */
static const char *name_no_set(const struct doctor *doctor)
{
    bool any = false;

    for (unsigned m = 0; m < doctor->masters; m++) {
        if (doctor->survey.of[m].answered)
            return "no set in this database: redlock init founds one, or the first lock\n"
                   "    (the same servers with another database number are another set)";
        any = any || doctor->exams[m].answers;
    }
    return any ? "no master reports its set, so the set is not known"
               : "no master answers, so the set is not known";
}

/* Which masters are judged, and how doctor knows them. */
static void print_set(const struct doctor *doctor)
{
    const struct config *newest = &doctor->survey.newest;
    char others[NUMBERS_MAX];

    if (!doctor_set_is_known(doctor)) {
        (void)printf("%s\n", newest->version != 0 ? "the set is closed, and grants no locks"
                             : doctor->survey.why[0] != '\0' ? "the masters are of several sets"
                                                             : name_no_set(doctor));
        return;
    }
    (void)printf("set of %u, version %" PRIu64, newest->members_len, newest->version);
    print_numbers(doctor, true, ": ", "list");
    print_numbers(doctor, false, ", ", "set");
    if (name_numbers(doctor, true, false, others) > 0)
        (void)printf("; no member: %s", others);
    (void)printf("\n");
}

void doctor_print_text(const struct doctor *doctor)
{
    if (doctor->wanted.kinds & RIGHTS_GUARD)
        print_set(doctor);
    for (unsigned m = 0; m < doctor->masters; m++) {
        const struct exam *exam = &doctor->exams[m];
        char who[URI_HOST_MAX + 64];

        (void)snprintf(who, sizeof who, "master %u (%s)", m + 1, exam->uri->name);
        if (exam_changes(exam) == 0)
            print_good(exam, who);
        print_findings(doctor, m);
    }
    for (unsigned i = 0; i < doctor->all.findings_len; i++)
        print_finding("masters: ", &doctor->all.findings[i]);
    print_unchecked(doctor);
    (void)printf("%u of %u %s answer, %u may vote, %s: ", doctor->answering, doctor->members,
                 doctor_set_is_known(doctor) ? "members" : "masters", doctor->voting,
                 doctor->is_decided ? "a majority" : "NO MAJORITY");
    if (doctor->changes == 0)
        (void)printf("all is well");
    else
        (void)printf("%u %s to change", doctor->changes, doctor->changes == 1 ? "thing" : "things");
    print_advice(doctor);
    (void)printf("\n");
}

/* ---- Printing JSON ---- */

static const char *known(const char *text)
{
    return text[0] != 0 && strcmp(text, "?") != 0 ? text : NULL;
}

static void print_json_findings(const struct exam *exam)
{
    (void)printf(",\"findings\":[");
    for (unsigned i = 0; i < exam->findings_len; i++) {
        const struct exam_finding *finding = &exam->findings[i];

        (void)printf("%s{\"name\":\"%s\"", i > 0 ? "," : "", exam_word(finding->name));
        cli_json_member("text", finding->text);
        cli_json_member("change", finding->change[0] != 0 ? finding->change : NULL);
        cli_json_member("id", message_id(finding->message));
        (void)printf("}");
    }
    (void)printf("]");
}

static void print_json_master(const struct exam *exam, unsigned number)
{
    (void)printf("{\"number\":%u", number);
    cli_json_member("endpoint", exam->uri->name);
    (void)printf(",\"in_list\":%s,\"member\":%s", exam->is_listed ? "true" : "false",
                 exam->is_member ? "true" : "false");
    (void)printf(",\"answers\":%s,\"votes\":%s,\"good\":%s", exam->answers ? "true" : "false",
                 exam->answers && exam->votes ? "true" : "false",
                 exam_changes(exam) == 0 ? "true" : "false");
    if (exam->answers) {
        cli_json_member("version", known(exam->info.version));
        cli_json_member("role", known(exam->info.role));
        cli_json_member("appendfsync", known(exam->fsync));
    }
    if (exam->answers && handshake_is_informed(&exam->info))
        (void)printf(",\"uptime_s\":%llu", (unsigned long long)exam->info.uptime_s);
    if (exam->has_clock)
        (void)printf(",\"clock_offset_us\":%lld,\"clock_error_us\":%lld",
                     (long long)exam->offset_us, (long long)exam->error_us);
    print_json_findings(exam);
    (void)printf("}");
}

static void print_json_unchecked(const struct doctor *doctor)
{
    struct unchecked unchecked;

    find_unchecked(doctor, &unchecked);
    (void)printf(",\"not_checked\":[");
    for (size_t i = 0; i < unchecked.len; i++) {
        (void)printf("%s", i > 0 ? "," : "");
        cli_json_string(stdout, unchecked.texts[i]);
    }
    (void)printf("]");
}

void doctor_print_json(const struct doctor *doctor)
{
    (void)printf("{\"masters\":[");
    for (unsigned m = 0; m < doctor->masters; m++) {
        (void)printf("%s", m > 0 ? "," : "");
        print_json_master(&doctor->exams[m], m + 1);
    }
    (void)printf("]");
    print_json_findings(&doctor->all);
    print_json_unchecked(doctor);
    (void)printf(",\"masters_open\":%u", count_open(doctor));
    if (doctor_set_is_known(doctor))
        (void)printf(",\"set\":\"%016" PRIx64 "\",\"set_version\":%" PRIu64,
                     doctor->survey.newest.set, doctor->survey.newest.version);
    else
        (void)printf(",\"set\":null,\"set_version\":null");
    (void)printf(",\"members\":%u,\"masters_answering\":%u,\"masters_voting\":%u,\"majority\":%s,"
                 "\"changes\":%u,\"good\":%s}\n",
                 doctor->members, doctor->answering, doctor->voting,
                 doctor->is_decided ? "true" : "false", doctor->changes,
                 doctor->changes == 0 ? "true" : "false");
}
