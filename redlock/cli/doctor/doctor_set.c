/*
 * doctor_set.c - finds the set to which the masters of the list belong, its other members, and the
 * masters of the list that are no members.
 *
 * As clients do (core/seats.h), doctor takes the newest configuration that a master reports.
 */
#include "redlock/cli/doctor/doctor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "redlock/cli/set/wish.h"
#include "redlock/link/uri.h"

/* ---- Which set ---- */

static void take_answer(struct doctor *doctor, unsigned m)
{
    const struct exam *exam = &doctor->exams[m];
    struct survey_master *master = &doctor->survey.of[m];

    memset(master, 0, sizeof *master);
    master->is_named = exam->uri->member != NULL;
    master->answered = exam->marker.known;
    master->look.ready = exam->marker.ready;
    master->set = master->config.set = exam->marker.set;
    master->version = master->config.version = exam->marker.version;
    (void)config_parse(exam->marker.config, strlen(exam->marker.config), &master->config);
    (void)inspect_place(exam->uri, &master->member); /* The library has checked it. */
}

bool doctor_set_is_known(const struct doctor *doctor)
{
    return doctor->survey.newest.version != 0 && !config_is_closed(&doctor->survey.newest);
}

void doctor_set_choose(struct doctor *doctor)
{
    doctor->survey.masters = doctor->masters;
    for (unsigned m = 0; m < doctor->masters; m++)
        take_answer(doctor, m);
    survey_choose_set(&doctor->survey);
}

void doctor_set_add(struct doctor *doctor)
{
    const struct config *newest = &doctor->survey.newest;

    for (unsigned i = 0; i < newest->members_len; i++) {
        unsigned m = doctor->masters;

        if (survey_find(&doctor->survey, &newest->members[i]) < doctor->survey.masters)
            continue;
        if (m == REDLOCK_MASTERS_MAX) {
            if (!exam_has(&doctor->all, FIND_TOO_MANY))
                exam_find(&doctor->all, FIND_TOO_MANY, "give a shorter list",
                          "the list and its set are more than %d masters, and not all are examined",
                          REDLOCK_MASTERS_MAX);
            continue;
        }
        if (!inspect_uri(doctor->rl, newest->members[i].place, &doctor->made[m]))
            continue;
        doctor->exams[m].uri = &doctor->made[m];
        doctor->masters++;
    }
}

/* ---- Masters of the list that are no members ---- */

#define LEAVES "take it off the list"
#define REFUSED ", so clients refuse this list"

static const char *place_of(const struct doctor *doctor, unsigned m)
{
    return doctor->survey.of[m].member.place;
}

/* The member whose server this is.  Returns doctor->masters if there is none. */
static unsigned find_server(const struct doctor *doctor, unsigned m)
{
    unsigned k = 0;

    while (k < doctor->masters &&
           !(doctor->exams[k].is_member &&
             handshake_is_same(&doctor->exams[k].info, &doctor->exams[m].info)))
        k++;
    return k;
}

/* Two places, two names, and the words between them.  A finding may be cut later. */
enum { CHANGE_MAX = 4 * (CONFIG_PLACE_MAX + 1) + 16 };

static void find_address(struct doctor *doctor, unsigned m, const struct config_member *member)
{
    char change[CHANGE_MAX];

    if (strcmp(member->name, member->place) != 0)
        (void)snprintf(change, sizeof change, "write %s#%s, or %s#%s", member->place, member->name,
                       place_of(doctor, m), member->name);
    else
        (void)snprintf(change, sizeof change, "write %s, or %s#%s", member->place,
                       place_of(doctor, m), member->name);
    exam_find(&doctor->exams[m], FIND_OTHER_ADDRESS, change,
              "is the member %s under another address", member->name);
}

/* The master has other data than the member, so a #NAME behind its own place would not help. */
static void find_database(struct doctor *doctor, unsigned m, const struct config_member *member)
{
    char change[CHANGE_MAX];

    if (strcmp(member->name, member->place) != 0)
        (void)snprintf(change, sizeof change, "write %s#%s", member->place, member->name);
    else
        (void)snprintf(change, sizeof change, "write %s", member->place);
    exam_find(&doctor->exams[m], FIND_OTHER_DATABASE, change,
              "is another database of the server of member %s", member->name);
}

/* True: the master is a member, but the list gives it another address or database than the set. */
static bool is_elsewhere(struct doctor *doctor, unsigned m)
{
    const struct config *newest = &doctor->survey.newest;
    const struct exam_marker *marker = &doctor->exams[m].marker;
    unsigned server = find_server(doctor, m), told = config_find(newest, marker->name);

    for (unsigned i = 0; i < newest->members_len; i++) {
        unsigned k = survey_find(&doctor->survey, &newest->members[i]);
        bool is_told = i == told && marker->set == newest->set && k < doctor->masters &&
                       !doctor->exams[k].answers;

        if ((server == doctor->masters || k != server) && !is_told)
            continue;
        if (k == server && doctor->exams[m].uri->db != doctor->exams[k].uri->db)
            find_database(doctor, m, &newest->members[i]);
        else
            find_address(doctor, m, &newest->members[i]);
        return true;
    }
    return false;
}

static void find_other_set(struct doctor *doctor, unsigned m, const char *change)
{
    const struct config *config = &doctor->survey.of[m].config;
    char list[EXAM_TEXT_MAX / 2];

    wish_print(config, config->to, list, sizeof list);
    exam_find(&doctor->exams[m], FIND_OTHER_LIST, change, "is a member of another set (%s)" REFUSED,
              list);
}

/* What else is wrong with it does not matter. */
static void judge_other(struct doctor *doctor, unsigned m)
{
    struct exam *exam = &doctor->exams[m];
    const struct config *newest = &doctor->survey.newest;
    const bool is_other =
        exam_keep_only(exam, FIND_SENTINEL, LEAVES) || exam_keep_only(exam, FIND_CLUSTER, LEAVES);

    if (is_other)
        return;
    if (!exam->answers || exam->marker.known)
        exam->findings_len = 0;
    if ((exam->answers && is_elsewhere(doctor, m)) || exam_keep_only(exam, FIND_REPLICA, LEAVES))
        return;
    if (!exam->answers)
        exam_find(exam, FIND_OTHER_LIST, "correct it, or " LEAVES,
                  "does not answer, and the set has no member at this address");
    else if (!exam->marker.known)
        exam_find(exam, FIND_OTHER_LIST, LEAVES, "is no member of the set");
    else if (exam->marker.set == 0)
        exam_find(exam, FIND_OTHER_LIST,
                  "take it off the list, or add it to the set: redlock members",
                  "is in no set" REFUSED);
    else if (exam->marker.set != newest->set)
        find_other_set(doctor, m, LEAVES);
    else if (config_find(newest, exam->marker.name) < newest->members_len)
        exam_find(exam, FIND_OTHER_LIST, "take it off the list, or empty it (FLUSHALL)",
                  "is another server than the member %s, and has a copy of its data",
                  exam->marker.name);
    else
        exam_find(exam, FIND_OTHER_LIST, LEAVES, "was removed from the set");
}

/* ---- Members ---- */

/* The list has another address of a member, and the master there does not report that it is this
 * member. */
static bool is_denied(const struct doctor *doctor, unsigned m, const struct config_member *member)
{
    const struct exam_marker *marker = &doctor->exams[m].marker;

    return marker->ready && strcmp(place_of(doctor, m), member->place) != 0 &&
           (marker->version < doctor->survey.newest.version ||
            strcmp(marker->name, member->name) != 0);
}

static void judge_member(struct doctor *doctor, unsigned m, const struct config_member *member)
{
    const struct config *newest = &doctor->survey.newest;
    const struct exam_marker *marker = &doctor->exams[m].marker;
    struct exam *exam = &doctor->exams[m];

    if (!marker->known)
        return;
    if (marker->set != 0 && marker->set != newest->set) {
        exam->votes = false;
        find_other_set(doctor, m, "replace this member: redlock members");
    } else if (marker->set == 0 && marker->ready) {
        exam->votes = false;
        exam_find(exam, FIND_OTHER_LIST, "run redlock init", "does not know that it is in the set");
    } else if (is_denied(doctor, m, member)) {
        exam->votes = false;
        exam_find(exam, FIND_OTHER_LIST, "correct its URI, or run redlock members",
                  "does not say that it is the member %s", member->name);
    } else if (marker->version == newest->version &&
               !config_same_lists(&doctor->survey.of[m].config, newest)) {
        exam_find(exam, FIND_OTHER_LIST, "empty it (FLUSHALL), and run redlock init",
                  "has another list of members with the version of the others");
    } else if (marker->set != 0 && marker->version < newest->version) {
        exam_find(exam, FIND_BEHIND, NULL,
                  "has version %" PRIu64 " of the set, which is at %" PRIu64, marker->version,
                  newest->version);
    }
}

/* The list has masters of two sets, and nothing shows which set is meant.  Clients refuse it. */
static void judge_two_sets(struct doctor *doctor)
{
    for (unsigned m = 0; m < doctor->masters; m++) {
        doctor->exams[m].votes = false;
        if (doctor->exams[m].marker.set != 0)
            find_other_set(doctor, m, "give the masters of one set");
    }
}

void doctor_set_judge(struct doctor *doctor)
{
    const struct config *newest = &doctor->survey.newest;
    bool is_known = doctor_set_is_known(doctor);

    doctor->members = is_known ? newest->members_len : doctor->listed;
    for (unsigned m = 0; m < doctor->masters; m++)
        doctor->exams[m].is_member = !is_known && m < doctor->listed;
    for (unsigned i = 0; i < newest->members_len && is_known; i++) {
        unsigned m = survey_find(&doctor->survey, &newest->members[i]);

        if (m == doctor->masters)
            continue;
        doctor->exams[m].is_member = true;
        judge_member(doctor, m, &newest->members[i]);
    }
    for (unsigned m = 0; m < doctor->masters && is_known; m++)
        if (!doctor->exams[m].is_member)
            judge_other(doctor, m);
    if (doctor->survey.why[0] != '\0')
        judge_two_sets(doctor);
}

/* ---- What the set does ---- */

#define UNFINISHED                                                                       \
    "a change of their set is not finished, and a lock needs a majority of both lists: " \
    "from %s to %s"

/* A change that has begun.  Each list gets half of the room, so that its end, "and 3 more", is not
 * cut. */
void doctor_set_look_at_change(struct doctor *doctor)
{
    const struct config *newest = &doctor->survey.newest;
    char from[(EXAM_TEXT_MAX - sizeof UNFINISHED) / 2], to[sizeof from];

    if (!config_is_joint(newest))
        return;
    wish_print(newest, newest->from, from, sizeof from);
    wish_print(newest, newest->to, to, sizeof to);
    exam_find(&doctor->all, FIND_UNFINISHED,
              "run redlock members, which tells the command that finishes it", UNFINISHED, from,
              to);
}

/* True: a majority of the list that this master stores may vote, and stores the same version. */
static bool is_kept(const struct doctor *doctor, unsigned m)
{
    const struct exam_marker *marker = &doctor->exams[m].marker;
    unsigned kept = 0;

    for (unsigned k = 0; k < doctor->masters; k++) {
        const struct exam_marker *other = &doctor->exams[k].marker;

        kept += other->ready && other->set == marker->set && other->version == marker->version;
    }
    return marker->set != 0 && 2 * kept > mask_count(doctor->survey.of[m].config.from);
}

/* Version V + 2 exists only if a majority has stored V + 1.  If masters have versions that are
 * further apart, some were emptied, and founded the set again with the same id; or the set was
 * rescued, and they came back. */
void doctor_set_look_at_versions(struct doctor *doctor)
{
    for (unsigned m = 0; m < doctor->masters; m++) {
        const struct exam_marker *old = &doctor->exams[m].marker;

        if (!is_kept(doctor, m))
            continue;
        for (unsigned k = 0; k < doctor->masters; k++) {
            const struct exam_marker *new = &doctor->exams[k].marker;

            if (new->set != old->set || new->version < old->version + 2 ||
                exam_has(&doctor->exams[k], FIND_VERSIONS))
                continue;
            exam_find(&doctor->exams[k], FIND_VERSIONS,
                      "if the set was founded again, empty this master (FLUSHALL); if it was "
                      "rescued, those of the smaller version",
                      "has version %" PRIu64 " of its set, but a majority of version %" PRIu64
                      " may vote: one of both is left over",
                      new->version, old->version);
        }
    }
}

static bool is_counted(const struct exam *exam, bool votes)
{
    return exam->answers && (exam->votes || !votes);
}

/* Without a set, a lock founds it first.  All must answer for this, and take writes. */
static bool can_found(const struct doctor *doctor)
{
    for (unsigned m = 0; m < doctor->masters && cli_is_guarded(doctor->cli); m++) {
        const struct exam *exam = &doctor->exams[m];

        if (exam->is_member && !(exam->answers && (exam->votes || !exam->marker.ready)))
            return false;
    }
    return true;
}

bool doctor_set_decides(const struct doctor *doctor, bool votes)
{
    const struct config *newest = &doctor->survey.newest;
    const quorum_mask lists[] = {newest->from, newest->to};

    if (!doctor_set_is_known(doctor) && votes && !can_found(doctor))
        return false;
    if (!doctor_set_is_known(doctor))
        return 2 * (votes ? doctor->voting : doctor->answering) > doctor->members;
    for (size_t list = 0; list < 2; list++) {
        unsigned count = 0;

        for (unsigned i = 0; i < newest->members_len; i++) {
            unsigned m = survey_find(&doctor->survey, &newest->members[i]);

            count += (lists[list] & mask_of(i)) != 0 && m < doctor->masters &&
                     is_counted(&doctor->exams[m], votes);
        }
        if (2 * count <= mask_count(lists[list]))
            return false;
    }
    return true;
}
