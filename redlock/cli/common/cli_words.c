/*
 * cli_words.c - messages, JSON and exit codes.
 */
#include "redlock/cli/common/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "redlock/base/error.h"
#include "redlock/base/note.h"
#include "redlock/base/text.h"
#include "redlock/client/inspect.h"
#include "redlock/link/uri.h"

/* A message waits this long for a pipe that is full.  Chosen: the reader of the pipe may be slow,
 * but a process that waits for it does not hear of signals. */
#define SAY_WAIT_MS 1000

/* Chosen: several times ERROR_MESSAGE_MAX, because quoting makes names longer. */
#define LINE_MAX_LEN 2048

#define IDS_MAX 64 /* Two identifiers. */

static bool never_waits;
static atomic_uint dropped; /* Any thread of the library may log. */

void cli_never_wait(void)
{
    never_waits = true;
}

/* A pipe that is ready takes a page, and a line is shorter. */
static bool takes_a_line(int fd, int within_ms)
{
    struct pollfd writable = {.fd = fd, .events = POLLOUT};

    return poll(&writable, 1, within_ms) == 1 && (writable.revents & POLLOUT) != 0;
}

/* Print a line.  ids: what stands in the brackets at its end, or "". */
static void __attribute__((format(printf, 2, 0)))
say(const char *ids, const char *format, va_list args)
{
    char line[LINE_MAX_LEN];
    int len;

    if (!takes_a_line(STDERR_FILENO, never_waits ? 0 : SAY_WAIT_MS))
        return;
    if (!never_waits)
        (void)fflush(stdout);
    len = vsnprintf(line, sizeof line, format, args);
    if (len < 0)
        return;
    /* Unbuffered: one write. */
    (void)fprintf(stderr, "redlock: %s%s%s%s\n", text_clean(line), ids[0] != '\0' ? " [" : "", ids,
                  ids[0] != '\0' ? "]" : "");
}

void cli_say(enum msg kind, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(message_id(kind), format, args);
    va_end(args);
}

void cli_hint(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say("", format, args);
    va_end(args);
}

/* Write "ONE, OTHER", or one of both if they are equal, or if there is no other. */
static void join_ids(enum msg one, enum msg other, char ids[IDS_MAX])
{
    bool both = one != MSG_NONE && other != MSG_NONE && one != other;

    (void)snprintf(ids, IDS_MAX, "%s%s%s", both || other == MSG_NONE ? message_id(one) : "",
                   both ? ", " : "", message_id(other));
}

void cli_say_reason(enum msg kind, enum msg reason, const char *format, ...)
{
    char ids[IDS_MAX];
    va_list args;

    join_ids(kind, reason, ids);
    va_start(args, format);
    say(ids, format, args);
    va_end(args);
}

void cli_say_status(int status)
{
    cli_say(message_of_status(status), "%s", redlock_errmsg(NULL));
}

void cli_say_unopened(const struct cli *cli, int status)
{
    const char *from = cli->masters_from;
    char shown[CLI_NAMES_SHOWN_MAX];

    cli_say(message_of_status(status), "%s%s%s", from != NULL ? cli_show_text(from, shown) : "",
            from != NULL ? ": " : "", redlock_errmsg(NULL));
}

/* The line has its identifier already. */
void cli_log(const char *message)
{
    if (takes_a_line(STDERR_FILENO, 0))
        cli_hint("%s", message);
    else
        dropped++;
}

void cli_tell_dropped(void)
{
    if (dropped > 0)
        cli_say(MSG_NO_OUTPUT,
                "%u messages of --verbose were dropped, because standard error was full", dropped);
}

/* The first line has the identifier of the failure.  Each line has that of its masters. */
void cli_say_why(enum msg kind, const char *before, const char *message,
                 const struct error_parts *parts)
{
    const struct error_part *part = parts->list, *end = part + parts->len;
    enum msg cause = parts->len > 0 ? (enum msg)part->message : MSG_NONE;
    const char *at = message;

    for (part++; part < end && part->at < strlen(message); part++) {
        const char *next = message + part->at;

        cli_say_reason(kind, cause, "%s%.*s", before, (int)(next - strlen("; ") - at), at);
        kind = MSG_NONE;
        cause = (enum msg)part->message;
        before = "    ";
        at = next;
    }
    cli_say_reason(kind, cause, "%s%s", before, at);
}

enum msg cli_cause(int status)
{
    const struct error_parts *parts = error_parts();

    return parts->len > 0 ? (enum msg)parts->list[0].message : message_of_status(status);
}

void cli_usage_error(const struct cli *cli, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)fputs("redlock: ", stderr);
    if (cli->command != NULL)
        (void)fprintf(stderr, "%s: ", cli->command->name);
    (void)vfprintf(stderr, format, args);
    (void)fprintf(stderr, " [%s]\nredlock: see `redlock%s%s --help`\n",
                  message_id(MSG_WRONG_ARGUMENT), cli->command != NULL ? " " : "",
                  cli->command != NULL ? cli->command->name : "");
    va_end(args);
    exit(CLI_USAGE);
}

void cli_refuse_option(const struct cli *cli, const char *problem, const char *argument)
{
    char shown[CLI_NAMES_SHOWN_MAX];
    char name[64];

    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(argument, "="), argument);
    cli_usage_error(cli, "%s %s", problem, cli_show_argument(name, shown));
}

void cli_unknown_option(const struct cli *cli, const char *argument)
{
    const char *later = options_find(argument, strcspn(argument, "="));

    if (later != NULL && cli->command == NULL)
        cli_usage_error(cli, "unknown option %s here: give %s after the command", later, later);
    cli_refuse_option(cli, "unknown or ambiguous option", argument);
}

const char *cli_show_name(const char *name, char *buf)
{
    return text_quote_as(TEXT_NAME, name, strlen(name), buf, CLI_NAMES_SHOWN_MAX);
}

const char *cli_show_masters(struct redlock *rl, quorum_mask masters,
                             char buf[CLI_MASTERS_SHOWN_MAX])
{
    unsigned left = mask_count(masters);
    size_t len;
    char places[CLI_MASTERS_SHOWN_MAX / 2] = "";
    size_t places_len = 0;

    len = (size_t)snprintf(buf, CLI_MASTERS_SHOWN_MAX, "master%s", left == 1 ? "" : "s");
    for (unsigned m = 0; masters >> m != 0; m++) {
        const char *name = inspect_master(rl, m).name;
        bool is_first = left == mask_count(masters), fits;

        if (!(masters & mask_of(m)))
            continue;
        len += (size_t)snprintf(buf + len, CLI_MASTERS_SHOWN_MAX - len, "%s%u",
                                is_first    ? " "
                                : left == 1 ? " and "
                                            : ", ",
                                m + 1);
        fits = places_len + strlen(name) + sizeof ", , ..." < sizeof places;
        if (places_len < sizeof places - sizeof ", ...")
            places_len += (size_t)snprintf(places + places_len, sizeof places - places_len, "%s%s",
                                           is_first ? "" : ", ", fits ? name : "...");
        left--;
    }
    (void)snprintf(buf + len, CLI_MASTERS_SHOWN_MAX - len, " (%s)", places);
    return buf;
}

const char *cli_show_names(const struct cli_names *names, char *buf)
{
    return text_quote_as(TEXT_NAMES, names->text, names->text_len, buf, CLI_NAMES_SHOWN_MAX);
}

const char *cli_show_text(const char *text, char *buf)
{
    return text_quote(text, strlen(text), buf, CLI_NAMES_SHOWN_MAX);
}

void cli_warn_of_blanks(const char *name)
{
    static const char blanks[] = " \t\r\n";
    const size_t len = strlen(name);
    char shown[CLI_NAMES_SHOWN_MAX];

    if (len > 0 && (strchr(blanks, name[0]) != NULL || strchr(blanks, name[len - 1]) != NULL))
        cli_say(MSG_BLANK_IN_NAME,
                "the name '%s' begins or ends with a blank: without it, it is another lock",
                cli_show_name(name, shown));
}

const char *cli_show_argument(const char *argument, char *buf)
{
    if (strchr(argument, '@') != NULL || strstr(argument, "://") != NULL)
        return "(not shown: it may hold a password)";
    return cli_show_text(argument, buf);
}

/* Make a printable text one word for a shell.  Returns other if that is not possible. */
static const char *shell_word(const char *text, char buf[CLI_NAMES_SHOWN_MAX], const char *other)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.,:/";
    const char *quote = text[strspn(text, plain)] == '\0' ? "" : "'";

    if (text[0] == '\0' || text[0] == '-' || strlen(text) + 3 > CLI_NAMES_SHOWN_MAX ||
        strchr(text, '\'') != NULL)
        return other;
    (void)snprintf(buf, CLI_NAMES_SHOWN_MAX, "%s%s%s", quote, text, quote);
    return buf;
}

const char *cli_quote_name(const char *name, char buf[CLI_NAMES_SHOWN_MAX], const char *other)
{
    char shown[4 * REDLOCK_NAME_MAX + 8];

    if (strlen(name) > REDLOCK_NAME_MAX)
        return other;
    (void)text_quote_as(TEXT_NAME, name, strlen(name), shown, sizeof shown);
    return shell_word(shown, buf, other);
}

/* A file whose name is not printable is not shown either. */
void cli_note_masters(struct cli *cli, const char *option, const char *value)
{
    char shown[CLI_NAMES_SHOWN_MAX], buf[CLI_NAMES_SHOWN_MAX];
    bool is_secret = strcmp(option, "--masters") == 0 && strchr(value, '@') != NULL;
    bool is_shown = !is_secret && strcmp(cli_show_text(value, shown), value) == 0;
    const char *word = is_shown ? shell_word(value, buf, "") : "";

    cli->has_dots = word[0] == '\0';
    (void)snprintf(cli->masters_option, sizeof cli->masters_option, " %s %s", option,
                   cli->has_dots ? "..." : word);
}

void cli_json_string(FILE *file, const char *text)
{
    (void)fputc('"', file);
    while (*text != 0) {
        size_t len = text_utf8_len(text);

        if (len == 0)
            (void)fprintf(file, "\\udc%02x", (unsigned char)*text++);
        else if (text_is_control(text, len))
            (void)fprintf(file, "\\u%04x", (unsigned)text_number(text, len));
        else if (*text == '"' || *text == '\\')
            (void)fprintf(file, "\\%c", *text);
        else
            (void)fwrite(text, 1, len, file);
        text += len;
    }
    (void)fputc('"', file);
}

void cli_json_member(const char *key, const char *text)
{
    (void)printf(",\"%s\":", key);
    if (text != NULL)
        cli_json_string(stdout, text);
    else
        (void)printf("null");
}

void cli_json_error(const char *error, enum msg kind)
{
    bool is_well = error[0] == '\0';

    cli_json_member("error", is_well ? NULL : error);
    cli_json_member("id", is_well ? NULL : message_id(kind));
}

void cli_json_holder(const char *token, size_t len)
{
    cli_json_member("holder", token);
    if (token != NULL)
        cli_json_member("note", note_find(token, len, &len));
}

const char *cli_take_note(const struct cli *cli, const char *note)
{
    if (!note_is_valid(note))
        cli_usage_error(cli, "--note has more than %d bytes, or a control character",
                        REDLOCK_NOTE_MAX);
    return note;
}

struct redlock_lease_info cli_lease_info(const struct redlock_lease *lease)
{
    const struct redlock_lease_info none = {.resource = "", .token = ""};
    struct redlock_lease_info info = {.size = sizeof info};

    /* It cannot fail: the client is open. */
    return redlock_lease_info(lease, &info) == REDLOCK_OK ? info : none;
}

/* Begin an object about a lock, or a lock of several names. */
static void begin_json(const struct cli_names *names)
{
    (void)fputs(names->len == 1 ? "{\"resource\":" : "{\"resources\":[", stdout);
    for (size_t i = 0; i < names->len; i++) {
        (void)fputs(i > 0 ? "," : "", stdout);
        cli_json_string(stdout, names->list[i]);
    }
    (void)fputs(names->len == 1 ? "" : "]", stdout);
}

void cli_print_failure_json(const struct cli_names *names, struct redlock *rl, enum msg kind,
                            const char *message)
{
    struct redlock_reason why = {.size = sizeof why};

    begin_json(names);
    cli_json_error(message, kind);
    (void)printf(",\"reasons\":[");
    for (unsigned i = 0; redlock_reason(rl, i, &why) == REDLOCK_OK; i++) {
        (void)printf("%s{\"master\":%u", i > 0 ? "," : "", why.master);
        cli_json_member("address", why.address);
        cli_json_member("id", why.id);
        cli_json_member("words", why.words);
        (void)printf(",\"decides\":%s,\"over_ms\":", why.decides ? "true" : "false");
        (void)(why.over_ms == UINT32_MAX ? printf("null}") : printf("%u}", why.over_ms));
    }
    (void)printf("]}\n");
    (void)cli_flush_output(); /* The failure itself gives the exit code. */
}

void cli_print_lease_json(const struct cli_names *names, const struct redlock_lease *lease,
                          uint32_t ttl_ms)
{
    const struct redlock_lease_info info = cli_lease_info(lease);

    begin_json(names);
    cli_json_member("token", info.token);
    if (info.fence != 0)
        (void)printf(",\"fence\":%" PRIu64, info.fence);
    if (info.permit != 0)
        (void)printf(",\"permit\":%u", info.permit);
    (void)printf(",\"requested_ttl_ms\":%u,\"validity_ms\":%u}\n", ttl_ms, info.remaining_ms);
}

void cli_print_clock_guard(struct redlock *rl)
{
    const struct inspect_client client = inspect_client(rl);

    if (client.clock_guard == REDLOCK_CLOCK_GUARD_PER_VOTE)
        (void)printf("with --clock-guard per_vote each new client must itself watch the clocks for "
                     "%.1f s before votes count; init and other clients do not shorten that\n",
                     (double)client.clock_window / (double)DRIFT_S);
}

void cli_warn_of_loopback(const char *place, bool are_many)
{
    const size_t len = uri_loopback_len(place);

    if (len > 0)
        cli_say(MSG_LOOPBACK, "%.*s is this machine only: other hosts cannot reach %s", (int)len,
                place, are_many ? "these members" : "this member");
}

enum { MEMBERS_MAX = 2000 }; /* The longest list of names.  Longer ones are cut. */

void cli_tell_founded(struct redlock *rl)
{
    const struct inspect_client client = inspect_client(rl);
    char members[MEMBERS_MAX], why[2];

    inspect_set(rl, members, sizeof members, why, sizeof why);
    if (!client.has_founded || members[0] == '\0')
        return;
    cli_say(MSG_SET_FOUNDED, "the masters are a set now: %s", members);
    if (mask_count(members_all(&client.lists)) == 1)
        cli_say(MSG_FEW_MASTERS,
                "the set has one master now: no client gets a lock while it is down, and if it "
                "loses its data, no other master can report how long it has been warming up; "
                "see `redlock members add`");
}

bool cli_takes_output(void)
{
    struct pollfd writable = {.fd = STDOUT_FILENO, .events = POLLOUT};

    return poll(&writable, 1, 0) != 0; /* A write to a broken output fails at once. */
}

int cli_flush_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return CLI_OK;
    cli_say(MSG_NO_OUTPUT, "cannot write to standard output: %s", strerror(errno));
    return CLI_INTERNAL;
}

int cli_exit_of(int status)
{
    switch (status) {
    case REDLOCK_OK:
        return CLI_OK;
    case REDLOCK_CONTENDED:
        return CLI_HELD;
    case REDLOCK_UNREACHABLE:
    case REDLOCK_TOO_LATE:
    case REDLOCK_NOT_READY: /* Not 75: then scripts would take it that another client has it. */
        return CLI_UNREACHABLE;
    case REDLOCK_LOST:
        return CLI_LOST;
    case REDLOCK_E_INVAL:
        return CLI_USAGE;
    case REDLOCK_E_FORBIDDEN:
        return CLI_FORBIDDEN;
    case REDLOCK_E_WRONG_SET:
        return CLI_CHANGE;
    default:
        return CLI_INTERNAL;
    }
}

bool cli_lacks_votes(int status)
{
    return status == REDLOCK_UNREACHABLE || status == REDLOCK_NOT_READY ||
           status == REDLOCK_E_FORBIDDEN || status == REDLOCK_E_WRONG_SET;
}
