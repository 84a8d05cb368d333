/*
 * examine.c - connects, greets as the library does, and reads settings, clock and marker.
 */
#include "redlock/cli/doctor/examine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sodium.h>

#include "redlock/cli/doctor/exam.h"
#include "redlock/cli/common/question.h"
#include "redlock/cli/common/shown.h"
#include "redlock/cli/doctor/other_set.h"
#include "redlock/cli/doctor/probe.h"
#include "redlock/cli/doctor/rights.h"
#include "redlock/cli/doctor/talk.h"
#include "redlock/client/inspect.h"
#include "redlock/core/quorum.h"
#include "redlock/wire/answer.h"
#include "redlock/wire/redis_error.h"
#include "redlock/wire/reply.h"
#include "redlock/link/uri.h"

#define SET_ALWAYS "set always (CONFIG SET appendfsync always, and in redis.conf)"
#define KEY_MAX (REDLOCK_NAME_MAX + 64) /* Enough for a name with a prefix. */
#define ANSWERS_MIN 5                   /* The exam waits for more answers than these.  Chosen. */
#define CERTIFICATE_DAYS 30             /* A certificate that ends earlier is reported.  Chosen. */
#define LOOKS_AT_CLOCK 5                /* The quickest answer counts.  Chosen. */

/* ---- Greeting ---- */

/* Note why the library would reject the master.  The library stops at the first reason. */
static void find_refusal(struct exam *exam, const struct reason *why)
{
    if (exam_has(exam, FIND_CLUSTER))
        return; /* It has one database. */
    exam->votes = false;
    exam_find_refusal(exam, why);
}

static void take_greetings(struct exam *exam, struct talk *talk, struct handshake *handshake)
{
    const struct reply *reply;
    struct reason why;

    while (handshake->steps_done < handshake->steps_len && (reply = talk_reply(talk)) != NULL) {
        if (handshake_on_reply(handshake, reply, &exam->info, &why) != HANDSHAKE_FAILED)
            continue;
        find_refusal(exam, &why);
        if (exam_has(exam, FIND_AUTH) || exam_has(exam, FIND_SENTINEL) || why.at == AT_SELECT)
            return; /* Of another user, server or database, the other replies mean nothing. */
    }
    exam->answers = handshake->steps_done == handshake->steps_len;
    if (!exam->answers && handshake->complains)
        find_refusal(exam, &why); /* It has closed the connection for that. */
}

/* A vote that comes too late is none. */
static void find_slow(struct exam *exam, const char *what, int64_t took_us)
{
    if (!question_is_late((drift_span)took_us * 1000, exam->reply_timeout_ms))
        return;
    exam->votes = false;
    if (!exam_has(exam, FIND_SLOW))
        exam_find(exam, FIND_SLOW, "make reply_timeout_ms or --reply-timeout longer than that",
                  "%s %.1f ms, but the reply timeout is %u ms", what, (double)took_us / 1e3,
                  exam->reply_timeout_ms);
}

static void greet(struct exam *exam, struct talk *talk)
{
    struct handshake handshake;
    char *bytes;
    size_t len = handshake_begin(&handshake, exam->uri, exam_is_guarded(exam), &bytes);
    uint32_t left_ms = talk_left_ms(talk);

    if (len == 0) {
        reason_set(&talk->broken, WHY_NO_MEMORY);
        return;
    }
    exam->votes = true;
    talk_send(talk, bytes, len);
    take_greetings(exam, talk, &handshake);
    exam->greeting_ms = left_ms - talk_left_ms(talk);
    sodium_memzero(bytes, len);
    free(bytes);
}

/* ---- What is set ---- */

static void look_at_version(struct exam *exam)
{
    unsigned major = 0, minor = 0, patch = 0;

    if (sscanf(exam->info.version, "%u.%u.%u", &major, &minor, &patch) < 2)
        return;
    if (major < 2 || (major == 2 && (minor < 6 || (minor == 6 && patch < 12))))
        exam_find(exam, FIND_VERSION, "install Redis 6 or later",
                  "version %s has no SET with NX and PX", exam->info.version);
    else if (major < 6)
        exam_find(exam, FIND_VERSION, NULL,
                  "version %s has not been tested with redlock, 6 and later have",
                  exam->info.version);
}

static void look_at_info(struct exam *exam)
{
    if (!handshake_is_informed(&exam->info)) {
        exam_find_no_info(exam);
        exam->votes = exam->votes && !exam_is_guarded(exam);
        return;
    }
    look_at_version(exam);
    if (handshake_evicts(&exam->info))
        exam_find(exam, FIND_EVICTION,
                  "set noeviction (CONFIG SET maxmemory-policy noeviction, and in redis.conf)",
                  "maxmemory-policy is %s, so it drops locks when its memory is full",
                  exam->info.policy);
    if (handshake_forgets(&exam->info))
        exam_find(exam, FIND_PERSISTENCE,
                  "run CONFIG SET appendonly yes and CONFIG SET appendfsync always, wait until "
                  "INFO says aof_rewrite_in_progress:0, and run CONFIG REWRITE; see redlock(1), "
                  "MASTERS THAT FORGET",
                  "appendonly is no, so it forgets");
}

/* Read the value of a setting.  False: it is not known. */
static bool read_setting(struct exam *exam, struct talk *talk, const char *setting, char *value,
                         size_t size)
{
    const char *const words[TALK_WORDS_MAX] = {"CONFIG", "GET", setting};
    const struct reply *reply = talk_ask(talk, words);
    bool known = reply != NULL && reply->type == REPLY_ARRAY && reply->before_len > 0 &&
                 strcmp(reply->before, setting) == 0;

    (void)snprintf(value, size, "%s", known ? reply->text : "?");
    if (!known && reply != NULL)
        exam_find_no_config(exam, reply->text);
    return known;
}

static void look_at_settings(struct exam *exam, struct talk *talk)
{
    char lax[8];

    if (handshake_forgets(&exam->info))
        return; /* It writes nothing, so these settings do not matter. */
    if (!read_setting(exam, talk, "appendfsync", exam->fsync, sizeof exam->fsync))
        return;
    if (strcmp(exam->fsync, "always") != 0)
        exam_find(exam, FIND_FSYNC, SET_ALWAYS,
                  "appendfsync is %s, so it forgets its latest locks when its power fails",
                  exam->fsync);
    else if (read_setting(exam, talk, "no-appendfsync-on-rewrite", lax, sizeof lax) &&
             strcmp(lax, "yes") == 0)
        exam_find(exam, FIND_FSYNC,
                  "set no (CONFIG SET no-appendfsync-on-rewrite no, and in redis.conf)",
                  "no-appendfsync-on-rewrite is yes, so appendfsync is not always in force");
}

/* ---- Its certificate ---- */

static void look_at_certificate(struct exam *exam, const struct talk *talk)
{
    int64_t left_s;

    if (talk_certificate_left_s(talk, &left_s) && left_s < CERTIFICATE_DAYS * INT64_C(86400))
        exam_find(exam, FIND_CERTIFICATE,
                  "give it a new one, of a CA that does not end either (CONFIG SET "
                  "tls-cert-file, and in redis.conf)",
                  "its certificate %s %lld days%s, and without a valid one clients refuse it",
                  left_s < 0 ? "ended" : "ends in less than",
                  (long long)(left_s < 0 ? -left_s / 86400 : (left_s + 86399) / 86400),
                  left_s < 0 ? " ago" : "");
}

/* ---- Its clock ---- */

static int64_t read_wall_clock_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now); /* Cannot fail with this clock. */
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

/* A number that is small enough to calculate with.  -1: the text is none. */
static int64_t read_count(const char *text)
{
    int64_t count = text != NULL && text[0] != 0 ? strtoll(text, NULL, 10) : -1;

    return count < INT64_C(1000000000000) ? count : -1; /* In s: the year 33658. */
}

/* False: there is no usable answer. */
static bool read_time(struct exam *exam, struct talk *talk, int64_t *ret_us)
{
    const char *const words[TALK_WORDS_MAX] = {"TIME"};
    const struct reply *reply = talk_ask(talk, words);
    int64_t s = -1, us = -1;
    struct reason why;

    if (reply == NULL)
        return false;
    if (reply->type == REPLY_ARRAY) {
        s = read_count(reply->before);
        us = read_count(reply->text);
    }
    if (s >= 0 && us >= 0) {
        *ret_us = s * 1000000 + us;
        return true;
    }
    exam->votes = exam->votes && !exam->has_clock_guard;
    if (reply->type == REPLY_ERROR)
        reply_reason(reply, &why);
    else
        reason_quote(&why, WHY_ERROR, "no time of day", NULL);
    exam_find_error(exam, "TIME", "+time", &why);
    return false;
}

static bool is_late(const struct exam *exam, const struct talk *talk)
{
    return talk_left_ms(talk) < exam->limit_ms / 2;
}

/* The master reads its clock between our two readings.  So the offset is known to within half the
 * time between them. */
static void look_at_clock(struct exam *exam, struct talk *talk)
{
    /* A master that is far away needs the time for other queries. */
    for (unsigned i = 0; i < LOOKS_AT_CLOCK && (i == 0 || !is_late(exam, talk)); i++) {
        int64_t sent_us = read_wall_clock_us(), got_us, there_us = 0;

        if (!read_time(exam, talk, &there_us))
            return;
        got_us = read_wall_clock_us();
        if (got_us < sent_us)
            continue; /* Our clock was set back in between. */
        if (exam->has_clock && (got_us - sent_us + 1) / 2 >= exam->error_us)
            continue;
        exam->has_clock = true;
        exam->offset_us = there_us - sent_us - (got_us - sent_us) / 2;
        exam->error_us = (got_us - sent_us + 1) / 2;
    }
    if (exam->has_clock)
        find_slow(exam, "an answer takes", 2 * exam->error_us);
}

/* ---- Its marker ---- */

static const char *const marker_fields[] = {"id",    "epoch", "nonce", "max", "fresh", "since",
                                            "floor", "high",  "set",   "ver", "name",  "of"};
enum { ID, EPOCH, NONCE, MAX, FRESH, SINCE, FLOOR, HIGH, SET, VER, NAME, OF, FIELDS };

/* A field of the marker.  A text that is too long for redlock is cut off, but len is its length.
 * A field that is not there has the text "". */
struct field {
    bool is_there;
    size_t len;
    char text[CONFIG_PLACE_MAX + 1];
};

static bool is_number(const struct field *field)
{
    return field->len == WIRE_NUMBER && strspn(field->text, "0123456789abcdef") == WIRE_NUMBER &&
           strspn(field->text, "0") < WIRE_NUMBER;
}

/* True: only decimal digits, up to max. */
static bool is_count(const struct field *field, double max)
{
    return field->len > 0 && strspn(field->text, "0123456789") == field->len &&
           strtod(field->text, NULL) <= max;
}

/* The fields of a set: redlock writes all of them, or none, but for the name. */
static bool is_set(const struct field *fields)
{
    const struct field *set = &fields[SET], *ver = &fields[VER], *name = &fields[NAME];
    size_t seen = strlen(name->text);

    if (!set->is_there)
        return !ver->is_there && !name->is_there;
    for (size_t i = 0; i < seen; i++)
        if (name->text[i] <= ' ' || name->text[i] > '~')
            return false;
    return is_number(set) && is_count(ver, (double)CONFIG_VERSION_MAX) &&
           strtod(ver->text, NULL) > 0 &&
           (!name->is_there || (seen > 0 && name->len <= CONFIG_PLACE_MAX));
}

/* True: redlock did not write this marker, and would reject what look.lua prints of it. */
static bool is_spoilt(const struct field *fields, bool has_epoch, bool has_nonce)
{
    const struct field *epoch = &fields[EPOCH];
    struct answer_state state;

    /* No counter is greater. */
    if ((fields[HIGH].is_there && !is_count(&fields[HIGH], (double)INT64_MAX)) || !is_set(fields))
        return true;
    if (has_epoch)
        return !(is_number(epoch) || answer_state(epoch->text, epoch->len, &state)) ||
               !is_count(&fields[FLOOR], (double)QUORUM_FENCE_MAX);
    return has_nonce && !is_number(&fields[NONCE]);
}

/* True: the text is a configuration, with places as redlock writes them. */
static bool is_config(const char *text)
{
    struct config config = {.version = 1};
    bool is_good = config_parse(text, strlen(text), &config);

    for (unsigned i = 0; i < config.members_len && is_good; i++) {
        const char *place = config.members[i].place;
        struct config_member member;
        struct uri uri;

        is_good = uri_parse(place, strlen(place), &uri) == REDLOCK_OK;
        if (!is_good)
            break;
        is_good = inspect_place(&uri, &member) && strcmp(member.place, place) == 0;
        uri_done(&uri);
    }
    return is_good;
}

/* Judge the marker as look.lua does, but change nothing. */
static void read_marker(struct exam *exam, const struct field *fields)
{
    struct exam_marker *marker = &exam->marker;
    bool keeps = handshake_keeps(&exam->info), is_void, has_epoch, has_nonce;
    int64_t max_ttl_ms, since_ms, now_ms;

    now_ms = (read_wall_clock_us() + (exam->has_clock ? exam->offset_us : 0)) / 1000;
    is_void = fields[ID].is_there && !keeps && strcmp(fields[ID].text, exam->info.run_id) != 0;
    has_epoch =
        fields[EPOCH].is_there && !is_void && fields[FLOOR].is_there && fields[HIGH].is_there;
    has_nonce = fields[NONCE].is_there && !is_void;
    if (is_spoilt(fields, has_epoch, has_nonce) || !is_config(marker->config)) {
        exam->votes = false;
        exam_find(exam, FIND_MARKER, "delete this key, and run redlock init",
                  "the key " WIRE_MARKER
                  ", its marker, contains something that redlock did not write");
        return;
    }
    marker->known = true;
    marker->ready = has_epoch;
    marker->is_found = has_nonce;
    marker->ahead_us = has_epoch ? strtoll(fields[HIGH].text, NULL, 10) - now_ms * 1000 : 0;
    if (has_epoch)
        (void)snprintf(marker->epoch, sizeof marker->epoch, "%.*s", WIRE_NUMBER,
                       fields[EPOCH].text);
    else if (has_nonce)
        marker->fresh = strcmp(fields[FRESH].text, "1") == 0;
    else
        marker->fresh = keeps && !fields[ID].is_there;
    if (!has_epoch && has_nonce) {
        since_ms = strtoll(fields[SINCE].text, NULL, 10);
        if (since_ms > 0 && since_ms < now_ms)
            marker->age_ms = (uint64_t)(now_ms - since_ms);
    }
    marker->set = strtoull(fields[SET].text, NULL, 16);
    marker->version = strtoull(fields[VER].text, NULL, 10);
    (void)snprintf(marker->name, sizeof marker->name, "%s", fields[NAME].text);
    if (marker->version != 0 && marker->config[0] == '\0') {
        exam->votes = false;
        exam_find_closed(exam);
    }
    max_ttl_ms = read_count(fields[MAX].text);
    if (max_ttl_ms >= 0 && max_ttl_ms <= UINT32_MAX)
        marker->max_ttl_ms = (uint32_t)max_ttl_ms;
    marker->is_settled = has_epoch && marker->set != 0 &&
                         strcmp(fields[ID].text, exam->info.run_id) == 0 &&
                         marker->max_ttl_ms >= exam->max_ttl_ms;
}

/* As look.lua does.  Builds without sets wrote a number. */
static bool is_later(const struct field *of)
{
    return of->is_there && strcmp(of->text, "set") != 0 &&
           (of->len == 0 || strspn(of->text, "0123456789") != of->len);
}

/* Read one field of the marker.  False: the master did not answer with it. */
static bool take_field(struct talk *talk, struct field *ret_field)
{
    const struct reply *reply = talk_reply(talk);

    if (reply == NULL || (reply->type != REPLY_TEXT && reply->type != REPLY_NIL))
        return false;
    ret_field->is_there = reply->type == REPLY_TEXT;
    ret_field->len = ret_field->is_there ? reply->text_len : 0;
    (void)snprintf(ret_field->text, sizeof ret_field->text, "%s",
                   ret_field->is_there ? reply->text : "");
    return true;
}

/* A longer text is no configuration. */
static void take_config(struct exam *exam, struct talk *talk)
{
    const struct reply *reply = talk_reply(talk);

    if (reply != NULL && reply->type == REPLY_TEXT && reply->text_len <= WIRE_CONFIG_MAX)
        memcpy(exam->marker.config, reply->text, reply->text_len + 1);
}

/* All queries are sent at once, so that the master answers them at once. */
static void look_at_marker(struct exam *exam, struct talk *talk)
{
    const char *const config[TALK_WORDS_MAX] = {"HGET", WIRE_MARKER, "config"};
    struct field fields[FIELDS];
    bool is_marker = true; /* False: the key is forbidden, or no hash. */

    for (unsigned i = 0; i < FIELDS; i++) {
        const char *const words[TALK_WORDS_MAX] = {"HGET", WIRE_MARKER, marker_fields[i]};

        talk_say(talk, words);
    }
    talk_say(talk, config);
    for (unsigned i = 0; i < FIELDS; i++)
        is_marker = take_field(talk, &fields[i]) && is_marker;
    take_config(exam, talk);
    if (is_marker && is_later(&fields[OF])) {
        exam->votes = false;
        exam_find(exam, FIND_LATER_VERSION, "upgrade Redlock on this host",
                  "a later version of Redlock uses it: the key " WIRE_MARKER
                  ", its marker, has a field that is not of this version");
    } else if (is_marker && handshake_refuses(&exam->info) == WHY_NONE)
        read_marker(exam, fields);
    other_set_look(exam, talk);
}

/* ---- The keys of the lock ---- */

static void find_foreign(struct exam *exam, enum finding name, const char *prefix,
                         const struct shown_row *row)
{
    char key[KEY_MAX], number[12] = "", buf[SHOWN_FOREIGN_MAX];
    const char *type = shown_foreign(row, buf);

    if (type == NULL)
        return;
    if (row->number > 0)
        (void)snprintf(number, sizeof number, ":%u", row->number - 1);
    (void)snprintf(key, sizeof key, "%s%s%s", prefix, exam->target->lock, number);
    exam_find(exam, name, "delete it, or use another name",
              "the key %.120s is %s, which redlock did not write", key, type);
}

/* Masters do not store how many permits there are, so all possible permits are looked at. */
static void look_at_keys(struct exam *exam, struct talk *talk)
{
    const char *permits = (exam->kinds & RIGHTS_PERMITS) != 0 ? "256" : "0";
    const char *const words[TALK_WORDS_MAX] =
        SHOWN_WORDS(exam->target->lock, permits, (exam->kinds & RIGHTS_FAIR) != 0);
    const struct reply *reply = talk_ask(talk, words);
    struct shown shown;
    const struct shown_row *permit = NULL;
    char buf[SHOWN_FOREIGN_MAX];

    if (reply == NULL || !shown_read(&shown, reply))
        return;
    find_foreign(exam, FIND_FOREIGN_KEY, "", shown_find(&shown, SHOWN_NAME, 0));
    find_foreign(exam, FIND_FOREIGN_QUEUE, WIRE_QUEUE, shown_find(&shown, SHOWN_QUEUE, 0));
    for (unsigned n = 1; n <= REDLOCK_PERMITS_MAX && shown_foreign(permit, buf) == NULL; n++)
        permit = shown_find(&shown, SHOWN_PERMIT, n);
    find_foreign(exam, FIND_FOREIGN_PERMIT, WIRE_PERMIT, permit);
    shown_free(&shown);
}

/* ---- Its users ---- */

/* On a connection without AUTH every program is the user default. */
static void look_at_default(struct exam *exam, uint32_t limit_ms)
{
    const char *const words[TALK_WORDS_MAX] = {"PING"};
    const struct reply *reply;
    struct talk talk;

    talk_open(&talk, exam->uri, exam->tls, limit_ms);
    reply = talk.broken.why == WHY_NONE ? talk_ask(&talk, words) : NULL;
    exam->is_default_known = reply != NULL;
    exam->is_open = reply != NULL && reply->type != REPLY_ERROR;
    talk_close(&talk);
}

/* `redlock acl` prints rules with this word in place of a password. */
static void look_at_password(struct exam *exam)
{
    char change[EXAM_TEXT_MAX];

    if (exam->uri->password == NULL || strcmp(exam->uri->password, "PASSWORD") != 0)
        return;
    (void)snprintf(change, sizeof change,
                   "choose another (ACL SETUSER %.100s resetpass and > with the password, or "
                   "requirepass), and write it into the list",
                   exam_user(exam));
    exam_find(exam, FIND_PASSWORD, change,
              "its password is the word PASSWORD, which redlock acl prints in place of one");
}

static void look_at_users(struct exam *exam, struct talk *talk)
{
    look_at_password(exam);
    exam->is_default_known = exam->uri->user == NULL;
    exam->is_open = exam->uri->user == NULL && exam->uri->password == NULL;
    if (!exam->is_default_known && talk->broken.why == WHY_NONE)
        look_at_default(exam, talk_left_ms(talk));
}

/* ---- All of it ---- */

static void ask_all(struct exam *exam, struct talk *talk)
{
    bool stores = !exam_has(exam, FIND_REPLICA) && !exam_has(exam, FIND_CLUSTER) &&
                  !exam_has(exam, FIND_LOADING);

    if (exam_has(exam, FIND_BUSY))
        return; /* It refuses all other questions, too, so they tell nothing about it. */
    look_at_info(exam);
    look_at_certificate(exam, talk);
    look_at_settings(exam, talk);
    look_at_clock(exam, talk);
    if (stores && exam_is_guarded(exam))
        look_at_marker(exam, talk);
    for (size_t i = 0; i < exam->targets_len && stores; i++) {
        exam->target = &exam->targets[i];
        if (exam->target->lock != NULL)
            look_at_keys(exam, talk);
    }
    if (stores)
        probe_all(exam, talk); /* The last: it subscribes. */
    if (exam_has_reason(exam, WHY_ERROR_DISK) && strcmp(exam->fsync, "always") != 0)
        exam_advise(exam, FIND_FSYNC, "when it can write again (it would end now), " SET_ALWAYS);
}

static void find_broken(struct exam *exam, const struct reason *broken)
{
    bool is_slow = exam->answers && ANSWERS_MIN * exam->greeting_ms > exam->limit_ms;
    const char *change = "give it more time (--connect-timeout), or find out why it is slow";
    char text[REASON_TEXT_MAX];

    if (!exam->answers && exam->findings_len == 0)
        exam_find_reason(exam, FIND_UNREACHABLE, broken);
    if (!exam->answers)
        return;
    if (is_slow)
        find_slow(exam, "its first answers take", exam->greeting_ms * INT64_C(1000));
    (void)reason_write(broken, 0, text, sizeof text);
    exam_find(exam, FIND_SILENT, is_slow ? change : CURE_SILENCE, "broke off: %s", text);
}

void examine_master(struct exam *exam)
{
    struct talk talk;

    (void)snprintf(exam->fsync, sizeof exam->fsync, "?");
    talk_open(&talk, exam->uri, exam->tls, exam->limit_ms);
    if (talk.broken.why == WHY_NONE)
        greet(exam, &talk);
    talk.greeted = exam->answers;
    if (exam->answers) {
        ask_all(exam, &talk);
        look_at_users(exam, &talk);
    }
    if (talk.broken.why != WHY_NONE)
        find_broken(exam, &talk.broken);
    talk_close(&talk);
}
