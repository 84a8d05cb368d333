/*
 * reason.c - the meaning of a reason, and its words.
 */
#include "redlock/base/reason.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "redlock/base/text.h"
#include "redlock/redlock.h"

enum form { FORM_TEXT, FORM_VERB, FORM_ITS };

/* What a kind means.  All but the first three may be missing. */
static const struct {
    enum msg message;
    enum form form;
    const char *sentence;
    const char *unquoted; /* Stands for %w if the words are gone: a lease keeps the kind alone. */
    const char *hint;     /* What to do, in a few words: stands behind the sentence as it is. */
    const char *cure;     /* The same at length. */
    bool refuses_user, is_of_server;
} kinds[WHYS_LEN] = {[WHY_NONE] = {.sentence = ""},
#define REASON_ROW(name, message_name, form_name, ...) \
    [WHY_##name] = {                                   \
        .message = MSG_##message_name, .form = FORM_##form_name, .sentence = __VA_ARGS__},
                     REASONS(REASON_ROW)
#undef REASON_ROW
};

static const struct {
    const char *before, *behind;
    const char *cure; /* For kinds without their own.  NULL: there is none. */
} ats[REASON_ATS_LEN] = {
    [AT_ANYTHING] = {"", "", NULL},
    [AT_LOGIN] = {"AUTH: ", "", .cure = "correct user and password in the URI, or on the master"},
    [AT_SELECT] = {"SELECT: ", "", .cure = "correct the number of the database in the URI"},
    [AT_SCRIPT] = {"SCRIPT LOAD: ", "", NULL},
    [AT_MARKER] = {"restart guard: ", "", NULL},
    [AT_TIME] = {"clock guard: ", "", NULL},
    [AT_GREETING] = {"",
                     " before it answered (if this port has TLS, write rediss://; if it is a "
                     "proxy, give the server itself)",
                     .cure = "correct the address or port in its URI, or write rediss://, or give "
                             "the server behind a "
                             "proxy, or see its log"},
    [AT_TLS] = {"TLS handshake: ", "", .cure = CURE_TLS},
    [AT_AFTER_TLS] = {"after the TLS handshake (is a client certificate wanted?): ", "",
                      .cure = CURE_OUR_CERTIFICATE},
};

/* ---- Making ---- */

void reason_set(struct reason *ret_reason, enum why why)
{
    ret_reason->why = why;
    ret_reason->at = AT_ANYTHING;
    ret_reason->other = 0;
    ret_reason->number = 0;
    ret_reason->over_at = DRIFT_NEVER;
    ret_reason->amount = 0;
    ret_reason->words[0] = '\0';
}

void reason_quote(struct reason *ret_reason, enum why why, const char *words, const char *second)
{
    size_t len;

    reason_set(ret_reason, why);
    if (strstr(kinds[why].sentence, "%w") == NULL)
        return; /* Ours tells it better, and is the same for each version of Redis. */
    (void)snprintf(ret_reason->words, sizeof ret_reason->words, "%s", words);
    (void)text_clean(ret_reason->words);
    if (second == NULL)
        return;
    len = strlen(ret_reason->words);
    (void)snprintf(ret_reason->words + len, sizeof ret_reason->words - len, "\n%s", second);
    if (ret_reason->words[len] != '\0')
        (void)text_clean(ret_reason->words + len + 1);
}

void reason_answers(struct reason *reason, enum reason_at at)
{
    if (kinds[reason->why].form != FORM_VERB)
        reason->at = at;
}

/* Whether the error is about the way to the master.  Others are about this host: no descriptor, no
 * memory, no right to a socket, no free port (connect(2), socket(2), ip(7)). */
static bool is_way(int error)
{
    switch (error) {
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
    case ENETRESET:
    case ENOENT: /* Of a unix socket. */
    case EPROTO:
    case ENOTDIR:     /* Of a unix socket. */
    case EAGAIN:      /* Of a unix socket: its queue is full. */
    case ENOPROTOOPT: /* ICMP: protocol unreachable. */
        return true;
    default:
        return false;
    }
}

void reason_of_errno(struct reason *ret_reason, int error)
{
    reason_set(ret_reason, is_way(error) ? WHY_UNREACHED : WHY_OWN_SYSTEM);
    ret_reason->number = error;
}

/* ---- Meaning ---- */

/* An error of this host says nothing of the master, at whatever moment it comes. */
static enum reason_at at_of(const struct reason *reason)
{
    return reason->why == WHY_OWN_SYSTEM ? AT_ANYTHING : reason->at;
}

enum msg reason_message(const struct reason *reason)
{
    bool is_tls = at_of(reason) == AT_TLS || at_of(reason) == AT_AFTER_TLS;

    return is_tls ? MSG_TLS_FAILED : kinds[reason->why].message;
}

bool reason_refuses_user(enum why why)
{
    return kinds[why].refuses_user;
}

bool reason_is_of_server(enum why why)
{
    return kinds[why].is_of_server;
}

const char *reason_cure(const struct reason *reason)
{
    const char *cure = kinds[reason->why].cure;

    return cure != NULL ? cure : ats[at_of(reason)].cure;
}

bool reason_is_same(const struct reason *a, const struct reason *b)
{
    return a->why == b->why && a->at == b->at && a->other == b->other && a->number == b->number &&
           a->amount == b->amount && strcmp(a->words, b->words) == 0;
}

static enum form form_of(const struct reason *reason)
{
    return ats[at_of(reason)].before[0] != '\0' ? FORM_TEXT : kinds[reason->why].form;
}

bool reason_takes_each(const struct reason *reason)
{
    return form_of(reason) == FORM_VERB;
}

const char *reason_joint(const struct reason *reason)
{
    switch (form_of(reason)) {
    case FORM_VERB:
        return ": each ";
    case FORM_ITS:
        return ", each: ";
    case FORM_TEXT:
        break;
    }
    return ": ";
}

/* ---- Words ---- */

/* A buffer that may be too small: len goes on, as snprintf() counts. */
struct sheet {
    char *buf;
    size_t size, len;
};

static void put(struct sheet *sheet, const char *text, size_t len)
{
    if (sheet->len + 1 < sheet->size) {
        size_t room = sheet->size - 1 - sheet->len, n = len < room ? len : room;

        memcpy(sheet->buf + sheet->len, text, n);
        sheet->buf[sheet->len + n] = '\0';
    }
    sheet->len += len;
}

static void put_text(struct sheet *sheet, const char *text)
{
    put(sheet, text, strlen(text));
}

/* By hand, because printf() writes the decimal point of the program's locale.  digits: 1 or 3. */
static void put_seconds(struct sheet *sheet, int64_t ms, unsigned digits, bool has_sign)
{
    const uint64_t scale = digits == 1 ? 10 : 1000, unit = 1000 / scale;
    const uint64_t units = ((ms < 0 ? (uint64_t)-ms : (uint64_t)ms) + unit / 2) / unit;
    const char *sign = ms < 0 ? "-" : has_sign ? "+" : "";
    char text[40];

    put(sheet, text,
        (size_t)snprintf(text, sizeof text, "%s%" PRIu64 ".%0*" PRIu64, sign, units / scale,
                         (int)digits, units % scale));
}

static void put_number(struct sheet *sheet, unsigned number)
{
    char text[16];

    put(sheet, text, (size_t)snprintf(text, sizeof text, "%u", number));
}

/* What stands for this letter of a sentence: see REASONS. */
static void fill_in(struct sheet *sheet, const struct reason *reason, drift_time now, char letter)
{
    const char *words = reason->words;
    size_t first = strcspn(words, "\n");

    switch (letter) {
    case 'w':
        if (words[0] == '\0' && kinds[reason->why].unquoted != NULL) {
            words = kinds[reason->why].unquoted;
            first = strlen(words);
        }
        put(sheet, words, first);
        break;
    case 'v':
        words += words[first] != '\0' ? first + 1 : first;
        put_text(sheet, words);
        break;
    case 'm':
        put_number(sheet, reason->other + 1u);
        break;
    case 'd':
        put_number(sheet, (unsigned)reason->number);
        break;
    case 'e':
        put_text(sheet, text_of_errno(reason->number));
        break;
    case 'a':
        put_seconds(sheet, reason->amount, 3, true);
        break;
    case 't':
        put_seconds(sheet, (int64_t)(drift_until(now, reason->over_at) / DRIFT_MS), 1, false);
        break;
    default:
        assert(!"a letter of REASONS");
    }
}

static size_t write_sentence(const struct reason *reason, drift_time now, const char *hint,
                             char *buf, size_t size)
{
    struct sheet sheet = {.buf = buf, .size = size};
    const char *at = kinds[reason->why].sentence;

    assert(size > 0);
    buf[0] = '\0';
    if (reason->why == WHY_NONE)
        return 0;
    put_text(&sheet, ats[at_of(reason)].before);
    while (*at != '\0') {
        size_t len = strcspn(at, "%");

        put(&sheet, at, len);
        at += len;
        if (*at == '%') {
            fill_in(&sheet, reason, now, at[1]);
            at += 2;
        }
    }
    put_text(&sheet, hint != NULL ? hint : "");
    put_text(&sheet, ats[at_of(reason)].behind);
    return sheet.len;
}

size_t reason_write(const struct reason *reason, drift_time now, char *buf, size_t size)
{
    return write_sentence(reason, now, kinds[reason->why].hint, buf, size);
}

size_t reason_write_bare(const struct reason *reason, char *buf, size_t size)
{
    return write_sentence(reason, 0, NULL, buf, size);
}
