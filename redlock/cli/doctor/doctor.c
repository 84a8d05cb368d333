/*
 * doctor.c - `redlock doctor`: what to change about the masters.
 *
 * Each master is examined in a thread of its own, so that several hung masters take no longer than
 * one.  Then the masters are compared with each other.
 */
#include "redlock/cli/common/cli.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <ev.h>
#include <sodium.h>

#include "redlock/cli/doctor/doctor.h"
#include "redlock/cli/doctor/examine.h"
#include "redlock/cli/common/loop.h"
#include "redlock/cli/set/marker.h"
#include "redlock/cli/doctor/rights.h"
#include "redlock/client/inspect.h"
#include "redlock/core/recall.h"
#include "redlock/wire/name.h"
#include "redlock/base/error.h"
#include "redlock/link/uri.h"

#define CLOCK_MAX_US 500000 /* Chosen: NTP keeps clocks far closer. */
#define ROUNDS_MAX 4        /* Chosen: a configuration names all its members. */

/* ---- Examining ---- */

static void *run_exam(void *arg)
{
    examine_master(arg);
    return NULL;
}

static void prepare(struct doctor *doctor, unsigned m)
{
    struct exam *exam = &doctor->exams[m];

    exam->is_listed = m < doctor->listed;
    exam->tls = inspect_tls(doctor->rl);
    exam->limit_ms = doctor->cli->connect_timeout_ms + doctor->cli->reply_timeout_ms;
    exam->reply_timeout_ms = doctor->cli->reply_timeout_ms;
    exam->kinds = doctor->wanted.kinds;
    exam->max_ttl_ms = doctor->cli->max_ttl_ms;
    exam->has_clock_guard = inspect_client(doctor->rl).clock_guard != REDLOCK_CLOCK_GUARD_OFF;
    exam->own = doctor->own;
    exam->is_any_name = doctor->wanted.names_len == 0 && doctor->start[0] == '\0';
    exam->targets = doctor->targets;
    exam->targets_len = doctor->targets_len;
}

/* Examine the masters from this number on. */
static void examine_from(struct doctor *doctor, unsigned first)
{
    pthread_t threads[REDLOCK_MASTERS_MAX];
    bool started[REDLOCK_MASTERS_MAX];

    for (unsigned m = first; m < doctor->masters; m++) {
        struct exam *exam = &doctor->exams[m];

        prepare(doctor, m);
        started[m] = pthread_create(&threads[m], NULL, run_exam, exam) == 0;
        if (!started[m])
            examine_master(exam); /* Without a thread, do it here. */
    }
    for (unsigned m = first; m < doctor->masters; m++)
        if (started[m])
            (void)pthread_join(threads[m], NULL);
}

/* First the masters of the list, then the members that these name. */
static void examine_all(struct doctor *doctor)
{
    unsigned first = 0;

    doctor->masters = doctor->listed = inspect_client(doctor->rl).masters;
    for (unsigned m = 0; m < doctor->listed; m++)
        doctor->exams[m].uri = inspect_master(doctor->rl, m).uri;
    for (unsigned round = 0; round < ROUNDS_MAX && first < doctor->masters; round++) {
        examine_from(doctor, first);
        first = doctor->masters;
        doctor_set_choose(doctor);
        if (round + 1 < ROUNDS_MAX)
            doctor_set_add(doctor);
    }
    doctor_set_judge(doctor);
}

/* ---- The names to try ---- */

/* Draw a random name, which no lock and no other doctor has. */
static void draw_own(struct doctor *doctor)
{
    unsigned char random[8];
    char hex[2 * sizeof random + 1];

    randombytes_buf(random, sizeof random);
    (void)sodium_bin2hex(hex, sizeof hex, random, sizeof random);
    (void)snprintf(doctor->own, sizeof doctor->own, "redlock-doctor:%s", hex);
}

/* Any name, or the one that the user gave. */
static void choose_by_start(struct doctor *doctor)
{
    bool has_start = doctor->start[0] != '\0';

    (void)snprintf(doctor->names[0], sizeof doctor->names[0], "%s",
                   has_start ? doctor->start : doctor->own);
    doctor->targets[doctor->targets_len++] = (struct exam_target){
        .name = doctor->names[0],
        .is_in_use = has_start,
        .names = has_start ? rights_pattern(NULL, doctor->start, doctor->pattern) : "*",
        .lock = has_start ? doctor->start : NULL,
    };
}

static void choose_by_pattern(struct doctor *doctor, const char *pattern)
{
    char shown[CLI_NAMES_SHOWN_MAX], *name = doctor->names[doctor->targets_len];
    struct exam_target *target = &doctor->targets[doctor->targets_len++];

    *target = (struct exam_target){
        .name = name,
        .names = rights_pattern(pattern, NULL, doctor->pattern),
    };
    if (!rights_stand_in(pattern, doctor->own, name, DOCTOR_KEY_MAX, &target->is_in_use))
        cli_usage_error(doctor->cli, "--names is '%s', but doctor supports only * and ?, not [",
                        cli_show_text(pattern, shown));
    target->lock = target->is_in_use ? name : NULL;
}

static void choose_names(struct doctor *doctor)
{
    draw_own(doctor);
    for (size_t i = 0; i < doctor->wanted.names_len; i++)
        choose_by_pattern(doctor, doctor->wanted.names[i]);
    if (doctor->wanted.names_len == 0)
        choose_by_start(doctor);
}

/* ---- Comparing ---- */

static void look_at_number(struct doctor *doctor)
{
    unsigned n = doctor->members;

    if (exam_has(&doctor->all, FIND_UNFINISHED))
        return; /* The list may name the members of both lists. */
    if (n < 3)
        exam_find(&doctor->all, FIND_NUMBER, "use 3, or better 5",
                  "%u of them, and no lock survives the loss of one", n);
    else if (n % 2 == 0)
        exam_find(&doctor->all, FIND_NUMBER, "remove one, or add one",
                  "%u, an even number, survive no more losses than %u do", n, n - 1);
}

/* If masters are one server, only the first of them votes. */
static void look_for_twins(struct doctor *doctor)
{
    for (unsigned m = 1; m < doctor->masters; m++) {
        struct exam *exam = &doctor->exams[m];

        for (unsigned k = 0; k < m && exam->is_member; k++) {
            if (!doctor->exams[k].is_member ||
                !handshake_is_same(&exam->info, &doctor->exams[k].info))
                continue;
            exam->votes = false;
            exam_find(exam, FIND_SAME_SERVER,
                      "give the address of another server, or remove it from the list",
                      "is the same server as master %u (%s)", k + 1, doctor->exams[k].uri->name);
            break;
        }
    }
}

/* The least possible offset of the master's clock from ours.  Above 0: its clock is ahead. */
static int64_t least_offset_us(const struct exam *exam)
{
    int64_t size_us = llabs(exam->offset_us) - exam->error_us;

    if (!exam->is_member || !exam->has_clock || size_us <= 0)
        return 0;
    return exam->offset_us > 0 ? size_us : -size_us;
}

static struct drift_range offset_of(const struct exam *exam)
{
    return (struct drift_range){.lo = (exam->offset_us - exam->error_us) * 1000,
                                .hi = (exam->offset_us + exam->error_us) * 1000};
}

#define SET_ITS_CLOCK "set its clock, and keep it set (chronyd, ntpd)"

static void look_at_clock(struct exam *exam)
{
    if (llabs(least_offset_us(exam)) > CLOCK_MAX_US)
        exam_find(exam, FIND_CLOCK, SET_ITS_CLOCK, "its clock is %.1f s %s ours",
                  (double)llabs(exam->offset_us) / 1e6,
                  exam->offset_us > 0 ? "ahead of" : "behind");
}

/* As the clock guard of a client does when it connects (clocks.c), whatever our clock is. */
static void bar_outliers(struct doctor *doctor)
{
    struct drift_range offsets[REDLOCK_MASTERS_MAX], median;
    unsigned len = 0;

    for (unsigned m = 0; m < doctor->masters; m++)
        if (doctor->exams[m].is_member && doctor->exams[m].has_clock)
            offsets[len++] = offset_of(&doctor->exams[m]);
    if (len < 3 || 2 * len <= doctor->members)
        return;
    drift_node_median(offsets, len, &median);
    for (unsigned m = 0; m < doctor->masters; m++) {
        struct exam *exam = &doctor->exams[m];
        struct drift_range own = offset_of(exam);

        if (!exam->is_member || !exam->has_clock || !exam->has_clock_guard ||
            drift_node_place(&own, &median) != DRIFT_PLACE_OUTLIER)
            continue;
        exam->votes = false;
        if (!exam_has(exam, FIND_CLOCK))
            exam_find(exam, FIND_CLOCK, SET_ITS_CLOCK,
                      "its clock is %.1f s off those of the others, so its votes do not count",
                      (double)(exam->offset_us - median.lo / 1000) / 1e6);
    }
}

/* The masters whose clocks are off ours as that of master m is, so that the clock guard would let
 * them vote with it. */
static unsigned count_agreeing(const struct doctor *doctor, unsigned m)
{
    const struct drift_range of = offset_of(&doctor->exams[m]);
    const int64_t off_us = least_offset_us(&doctor->exams[m]);
    unsigned agreeing = 0;

    for (unsigned k = 0; k < doctor->masters && llabs(off_us) > CLOCK_MAX_US; k++) {
        const struct drift_range own = offset_of(&doctor->exams[k]);
        const int64_t own_us = least_offset_us(&doctor->exams[k]);

        agreeing += llabs(own_us) > CLOCK_MAX_US && (own_us > 0) == (off_us > 0) &&
                    drift_node_place(&own, &of) != DRIFT_PLACE_OUTLIER;
    }
    return agreeing;
}

/* If most masters have another time than we, and the same, ours is wrong.  Masters that are wrong
 * each in its own way tell nothing of ours. */
static void look_at_clocks(struct doctor *doctor)
{
    unsigned most = 0, with = 0;

    for (unsigned m = 0; m < doctor->masters; m++) {
        const unsigned agreeing = count_agreeing(doctor, m);

        with = agreeing > most ? m : with;
        most = agreeing > most ? agreeing : most;
    }
    if (most >= doctor_majority(doctor) && most > 1) {
        exam_find(&doctor->all, FIND_CLOCK,
                  CURE_OUR_CLOCK ", or all of theirs, and keep them set (chronyd, ntpd)",
                  "the clocks of %u masters are %s ours by more than %d ms", most,
                  doctor->exams[with].offset_us > 0 ? "ahead of" : "behind", CLOCK_MAX_US / 1000);
        return;
    }
    for (unsigned m = 0; m < doctor->masters; m++)
        look_at_clock(&doctor->exams[m]);
}

/* A certificate that has ended by our clock may be valid. */
static void doubt_our_clock(struct doctor *doctor)
{
    bool is_doubtful = true;

    for (unsigned m = 0; m < doctor->masters; m++)
        is_doubtful = is_doubtful && exam_has_reason(&doctor->exams[m], WHY_TLS_EXPIRED);
    if (is_doubtful || exam_has(&doctor->all, FIND_CLOCK))
        for (unsigned m = 0; m < doctor->masters; m++)
            exam_add_cure(&doctor->exams[m], WHY_TLS_EXPIRED, CURE_OUR_CLOCK);
}

/* Masters that are all new and durable may vote at once. */
static bool are_all_new(const struct doctor *doctor)
{
    for (unsigned m = 0; m < doctor->masters; m++) {
        const struct exam_marker *marker = &doctor->exams[m].marker;

        if (doctor->exams[m].is_member && (!marker->known || marker->ready || !marker->fresh))
            return false;
    }
    return true;
}

static uint32_t longest_lease_ms(const struct doctor *doctor)
{
    uint32_t max_ttl_ms = doctor->cli->max_ttl_ms;

    for (unsigned m = 0; m < doctor->masters; m++)
        if (doctor->exams[m].is_member && doctor->exams[m].marker.max_ttl_ms > max_ttl_ms)
            max_ttl_ms = doctor->exams[m].marker.max_ttl_ms;
    return max_ttl_ms;
}

static const char *why_warming(const struct master_info *info)
{
    if (!handshake_is_durable(info))
        return "it is volatile, and was restarted or is new";
    if (info->promoted)
        return "it was a replica, and may lack the last writes of its master";
    return "it was emptied, or is new";
}

/* True: enough other masters report how long one has been warming, so no client has to watch it. */
static bool has_witnesses(const struct doctor *doctor)
{
    unsigned others = 0;

    for (unsigned m = 0; m < doctor->masters; m++)
        others += doctor->exams[m].is_member && doctor->exams[m].answers;
    return others > doctor_majority(doctor) &&
           inspect_client(doctor->rl).clock_guard != REDLOCK_CLOCK_GUARD_PER_VOTE;
}

/* Doctor does not know whether other masters keep the time: `redlock status` also reads the marker,
 * and does not begin it. */
static void print_wait(const struct doctor *doctor, const struct exam_marker *marker, char *wait,
                       size_t size)
{
    drift_span whole = inspect_quarantine(doctor->rl, longest_lease_ms(doctor));
    double all_s = (double)whole / (double)DRIFT_S;
    double left_s = (double)marker_left(whole, marker->age_ms) / (double)DRIFT_S;

    if (!has_witnesses(doctor))
        (void)snprintf(wait, size, "when one client has watched it for %.1f s", left_s);
    else if (!marker->is_found)
        (void)snprintf(wait, size, "%.1f s after a client finds that", all_s);
    else if (left_s + 1 < all_s)
        (void)snprintf(wait, size, "in %.1f to %.1f s", left_s, all_s);
    else
        (void)snprintf(wait, size, "in %.1f s", all_s);
}

static void find_warming(const struct doctor *doctor, struct exam *exam, bool has_epochs)
{
    const char *change = has_epochs || doctor_set_is_known(doctor)
                             ? "run redlock init"
                             : "run redlock init, or redlock init --new before the very first lock";
    const struct config *newest = &doctor->survey.newest;
    struct reason why;
    char wait[80];

    exam->votes = false;
    if (newest->version != 0 && config_is_closed(newest)) {
        exam_find_closed(exam);
        return;
    }
    if (survey_has_forgotten(&doctor->survey)) {
        reason_set(&why, WHY_FORGOTTEN);
        exam_find_reason(exam, FIND_FORGOTTEN, &why);
        return;
    }
    print_wait(doctor, &exam->marker, wait, sizeof wait);
    exam_find(exam, FIND_WARMING, change, "is warming up, and may vote %s: %s", wait,
              why_warming(&exam->info));
}

/* Two masters with one epoch have the data of one of them.  Nothing shows which one has the copy,
 * so neither votes (guard.c, rule 5). */
static void look_for_copy(struct doctor *doctor, unsigned m)
{
    struct exam *exam = &doctor->exams[m];

    for (unsigned k = 0; k < doctor->masters; k++) {
        if (k == m || !doctor->exams[k].is_member || !doctor->exams[k].marker.ready ||
            handshake_is_same(&exam->info, &doctor->exams[k].info) ||
            strcmp(exam->marker.epoch, doctor->exams[k].marker.epoch) != 0)
            continue;
        exam->votes = exam->votes && !inspect_client(doctor->rl).restart_guard;
        exam_find(
            exam, FIND_SAME_EPOCH,
            "empty the one that got a copy of the other's data, or both if you do not know "
            "which (FLUSHALL), and run redlock init",
            "has the same epoch as master %u (%s): one of them has a copy of the other's data",
            k + 1, doctor->exams[k].uri->name);
        return;
    }
}

/* A replica that was promoted may have an old marker of its own, from a copy of itself.  The guard
 * cannot know this (docs/safety.md), and most promoted replicas are good. */
static void look_for_promotion(struct exam *exam)
{
    if (exam->info.promoted && !exam_has(exam, FIND_SAME_EPOCH))
        exam_find(exam, FIND_WAS_REPLICA, NULL,
                  "was a replica since its start, and may vote: if REPLICAOF and REPLICAOF NO ONE "
                  "were run while clients used it, it may lack locks: then run DEL " WIRE_MARKER
                  " on it, and redlock init");
}

#define DAY_US INT64_C(86400000000)

/* Fencing counters this far ahead were written by hand, or the clock was days ahead before. */
static void look_at_counters(struct exam *exam)
{
    if (exam->marker.ahead_us > (int64_t)GUARD_AHEAD_US)
        exam_find(
            exam, FIND_COUNTERS,
            "set its clock, or delete " WIRE_MARKER " there and run redlock init",
            "its fencing counters are %.0f days ahead of its clock, so a master that loses its "
            "data cannot vote again",
            (double)exam->marker.ahead_us / (double)DAY_US);
}

static void look_at_markers(struct doctor *doctor)
{
    bool all_new = are_all_new(doctor), has_epochs = false;

    for (unsigned m = 0; m < doctor->masters; m++)
        has_epochs = has_epochs || doctor->exams[m].marker.ready;
    for (unsigned m = 0; m < doctor->masters; m++) {
        struct exam *exam = &doctor->exams[m];

        if (!exam->is_member)
            continue;
        look_at_counters(exam);
        if (exam->marker.ready) {
            look_for_copy(doctor, m);
            look_for_promotion(exam);
        } else if (exam->marker.known && !all_new) {
            find_warming(doctor, exam, has_epochs);
        }
    }
    if (longest_lease_ms(doctor) > doctor->cli->max_ttl_ms)
        exam_find(&doctor->all, FIND_MAX_TTL, NULL,
                  "a client takes leases of up to %u ms, longer than --max-ttl, which is %u ms: a "
                  "master that loses its data warms up for this longer time",
                  longest_lease_ms(doctor), doctor->cli->max_ttl_ms);
}

static void compare(struct doctor *doctor)
{
    doctor_set_look_at_versions(doctor);
    doctor_set_look_at_change(doctor);
    look_at_number(doctor);
    look_for_twins(doctor);
    look_at_clocks(doctor);
    bar_outliers(doctor);
    doubt_our_clock(doctor);
    look_at_markers(doctor);
    doctor->changes = exam_changes(&doctor->all);
    for (unsigned m = 0; m < doctor->masters; m++) {
        const struct exam *exam = &doctor->exams[m];

        doctor->answering += exam->is_member && exam->answers;
        doctor->voting += exam->is_member && exam->answers && exam->votes;
        doctor->changes += exam_changes(exam);
    }
    doctor->is_answered = doctor_set_decides(doctor, false);
    doctor->is_decided = doctor_set_decides(doctor, true);
}

/* ---- The command ---- */

static int exit_code(const struct doctor *doctor)
{
    if (!doctor->is_answered)
        return CLI_UNREACHABLE;
    return doctor->changes > 0 ? CLI_CHANGE : CLI_OK;
}

static int look_and_print(struct doctor *doctor)
{
    int code;

    examine_all(doctor);
    compare(doctor);
    if (doctor->cli->json)
        doctor_print_json(doctor);
    else
        doctor_print_text(doctor);
    code = cli_flush_output();
    return code != CLI_OK ? code : exit_code(doctor);
}

static void take_arguments(struct doctor *doctor, int argc, char **argv)
{
    struct cli *cli = doctor->cli;
    int option;

    while ((option = cli_getopt(cli, argc, argv, false)) != -1)
        rights_take_option(cli, option, &doctor->wanted);
    rights_check(cli, &doctor->wanted);
    doctor->start = cli_start(cli, optind < argc ? argv[optind] : "");
    if (optind < argc) {
        cli_need_arguments(cli, argc, argv, 1, "[NAME]");
        if (name_check(doctor->start) != REDLOCK_OK)
            cli_usage_error(cli, "%s", redlock_errmsg(NULL));
        if (doctor->wanted.names_len > 0)
            cli_usage_error(cli, "NAME and --names say the same thing: give one of them");
    }
    choose_names(doctor);
}

static int doctor_main(struct cli *cli, int argc, char **argv)
{
    static struct doctor all; /* Too large for a small stack: texts are long. */
    struct doctor *doctor = &all;
    struct ev_loop *loop = loop_new();
    int code;

    if (loop == NULL)
        return CLI_INTERNAL;
    doctor->cli = cli;
    take_arguments(doctor, argc, argv);
    code = cli_open(cli, loop, &doctor->rl);
    if (code == CLI_OK)
        code = look_and_print(doctor);
    for (unsigned m = 0; m < REDLOCK_MASTERS_MAX; m++)
        uri_done(&doctor->made[m]);
    (void)redlock_close(doctor->rl);
    ev_loop_destroy(loop);
    free(doctor->start);
    return code;
}

const struct cli_command cli_doctor = {
    .name = "doctor",
    .options = OPTIONS_DOCTOR,
    .run = doctor_main,
    .usage = "doctor [--fair] [--fence] [--permits] [--shared] [--names PATTERN | NAME]",
    .help = "Look for everything about the masters that is wrong or a risk, and about the other\n"
            "members of their set.  Say which masters of the list are no members.  Print one line\n"
            "for each finding, which says what to change.  doctor checks whether the masters\n"
            "answer, are masters, and are different servers; whether they keep their data;\n"
            "their eviction policy, version and clock; whether each command that a lock needs\n"
            "is allowed, for the lock NAME; whether another program has a key NAME\n"
            "in place of the lock; and whether the restart guard lets them vote.  It never\n"
            "writes or deletes a lock.  It says what it cannot check.\n",
    .more = "Example: redlock doctor --fair --fence\n"
            "Exit: 0 all is well, 64 usage, 69 no majority answers, 78 something has to be\n"
            "changed.\n",
};
