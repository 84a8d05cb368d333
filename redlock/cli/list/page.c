/*
 * page.c - prints the locks as a table, for a terminal that is watched, or as JSON.
 */
#include "redlock/cli/list/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redlock/base/error.h"
#include "redlock/base/mask.h"
#include "redlock/base/note.h"
#include "redlock/base/text.h"
#include "redlock/cli/common/cli.h"
#include "redlock/wire/keys.h"

#define QUOTED_MAX (4 * REDLOCK_NAME_MAX + 1) /* No text has more columns. */
#define TOKEN_DIGITS_SHOWN 8

#define WIDTH_MIN 7 /* Of a name or a holder.  All then takes 40 columns. */

/* VOTES, LEFT and WAITING, and the spaces before them. */
#define OTHER_COLUMNS 26

/* What there is to print. */
struct view {
    struct page *page;
    struct redlock *rl;
    struct members lists;
    quorum_mask up;    /* Masters that may vote. */
    quorum_mask tells; /* The same, and those that would if they took writes, and had the time. */
    bool is_known;     /* A majority tells, and was scanned. */
    bool founds_none;  /* They are no set, and clients cannot make them one now. */
    size_t name_width, holder_width;
    char said[QUOTED_MAX]; /* The last message about a master, without its place. */
};

/* True: with the votes of these masters a lock is granted. */
static bool may_grant(const struct view *view, quorum_mask masters)
{
    return !view->founds_none && members_decide(&view->lists, masters);
}

static void forget(struct page_scan *scan)
{
    locks_clear(&scan->locks);
    free(scan->rows);
    *scan = (struct page_scan){.locks = scan->locks};
}

void page_turn(struct page *page)
{
    struct page_scan oldest = page->before;

    page->before = page->now;
    page->now = oldest;
    forget(&page->now);
    page->failed = 0;
    memset(page->errors, 0, sizeof page->errors);
}

void page_done(struct page *page)
{
    forget(&page->now);
    forget(&page->before);
    locks_free(&page->now.locks);
    locks_free(&page->before.locks);
}

static bool is_holder(const struct locks_row *row)
{
    return row->is_held && row->entry->shape < LOCKS_GUESS;
}

/* How many locks are held in one scan by a holder that another one has not found. */
static size_t count_new(const struct page_scan *scan, const struct page_scan *other)
{
    size_t len = 0;

    for (size_t i = 0; i < scan->rows_len; i++)
        len += is_holder(&scan->rows[i]) && !locks_have(&other->locks, scan->rows[i].entry);
    return len;
}

/* Without --all, drop guesses, and holders that no majority stores. */
static void drop(struct page *page)
{
    struct page_scan *now = &page->now;
    size_t len = 0;

    for (size_t i = 0; i < now->rows_len; i++)
        if (page->all || (now->rows[i].entry->shape != LOCKS_GUESS && now->rows[i].is_held))
            now->rows[len++] = now->rows[i];
    now->rows_len = len;
}

/* ---- A table ---- */

static const char *show_name(const struct locks_row *row, char buf[QUOTED_MAX])
{
    return text_quote_as(TEXT_NAME, row->entry->name, row->entry->name_len, buf, QUOTED_MAX);
}

/* The note, or the first digits of the token. */
static const char *show_holder(const struct locks_row *row, char buf[QUOTED_MAX])
{
    const struct locks_entry *entry = row->entry;
    size_t len = strlen(entry->token);
    const char *note = note_find(entry->token, len, &len);
    bool is_revoked = strncmp(entry->token, WIRE_REVOKED, WIRE_REVOKED_LEN) == 0;
    char text[REDLOCK_TOKEN_MAX + 32], permit[REDLOCK_TOKEN_MAX + 64];

    if (entry->shape >= LOCKS_QUEUE)
        (void)snprintf(text, sizeof text, "- (free)");
    else if (entry->shape == LOCKS_FOREIGN)
        (void)snprintf(text, sizeof text, "- (no lock: a foreign key)");
    else if (entry->shape == LOCKS_READERS)
        (void)snprintf(text, sizeof text, "%lld reader%s", row->count, row->count == 1 ? "" : "s");
    else if (entry->shape == LOCKS_GUESS)
        (void)snprintf(text, sizeof text, "? %s", entry->token);
    else if (is_revoked) /* The text says by whom. */
        (void)snprintf(text, sizeof text, "%s", entry->token);
    else if (note != NULL && len > 0)
        (void)snprintf(text, sizeof text, "%.*s", (int)len, note);
    else
        (void)snprintf(text, sizeof text, "%.*s...", TOKEN_DIGITS_SHOWN, entry->token);
    if (entry->shape != LOCKS_PERMIT)
        return text_quote(text, strlen(text), buf, QUOTED_MAX);
    /* The number comes first, since a long note is cut. */
    (void)snprintf(permit, sizeof permit, "permit %u: %s", entry->number, text);
    return text_quote(permit, strlen(permit), buf, QUOTED_MAX);
}

static size_t all_columns(const char *text)
{
    return text_columns(text, strlen(text));
}

/* Cut a quoted text, or fill it up with blanks.  buf has QUOTED_MAX bytes, and the text is there.
 */
static const char *pad(char *buf, size_t width)
{
    size_t len, columns;

    (void)text_cut(buf, width);
    len = strlen(buf);
    columns = all_columns(buf);
    if (columns < width && len + width - columns < QUOTED_MAX) {
        memset(buf + len, ' ', width - columns);
        buf[len + width - columns] = '\0';
    }
    return buf;
}

/* As wide as the longest text.  On a page: as wide as fits. */
static void measure(struct view *view)
{
    const struct page *page = view->page;
    size_t columns = page->screen.columns > OTHER_COLUMNS + 2 * WIDTH_MIN
                         ? page->screen.columns - OTHER_COLUMNS
                         : 2 * WIDTH_MIN;
    char text[QUOTED_MAX];

    view->name_width = view->holder_width = WIDTH_MIN;
    for (size_t i = 0; i < page->now.rows_len; i++) {
        size_t name = all_columns(show_name(&page->now.rows[i], text));
        size_t holder = all_columns(show_holder(&page->now.rows[i], text));

        view->name_width = name > view->name_width ? name : view->name_width;
        view->holder_width = holder > view->holder_width ? holder : view->holder_width;
    }
    if (!page->screen.is_page || view->name_width + view->holder_width <= columns)
        return;
    if (view->holder_width > columns / 2)
        view->holder_width = columns / 2;
    if (view->name_width > columns - view->holder_width)
        view->name_width = columns - view->holder_width;
    view->holder_width = columns - view->name_width;
}

static void print_row(const struct view *view, const struct locks_row *row)
{
    char name[QUOTED_MAX], holder[QUOTED_MAX], votes[16], left[32] = "", waiting[24] = "";

    (void)show_name(row, name);
    (void)show_holder(row, holder);
    (void)snprintf(votes, sizeof votes, "%s%u/%u", row->is_bare ? "*" : "", row->votes,
                   mask_count(members_all(&view->lists)));
    if (row->entry->shape < LOCKS_FOREIGN)
        (void)snprintf(left, sizeof left, "%.*f s", row->ttl_ms < 100000 ? 1 : 0,
                       (double)row->ttl_ms / 1e3);
    if (row->waiting > 0)
        (void)snprintf(waiting, sizeof waiting, "%lld", row->waiting);
    else if (row->is_waited)
        (void)snprintf(waiting, sizeof waiting, "perhaps");
    screen_line(&view->page->screen, row->is_bare ? SCREEN_YELLOW : SCREEN_PLAIN,
                "%s  %s  %5s  %6s  %7s", pad(name, view->name_width),
                pad(holder, view->holder_width), votes, left, waiting);
}

/* Write how many wait.  Only queues are counted; a wait flag stays a while when its waiter has
 * gone. */
static void write_waiting(const struct page_scan *now, char *text, size_t size)
{
    size_t waiting = 0, flagged = 0;

    for (size_t i = 0; i < now->rows_len; i++) {
        const struct locks_row *row = &now->rows[i], *last = i == 0 ? NULL : row - 1;
        bool is_same = last != NULL && strcmp(last->entry->name, row->entry->name) == 0;

        if (!is_same || last->waiting != row->waiting)
            waiting += (size_t)row->waiting;
        flagged += row->waiting == 0 && row->is_waited && !(is_same && last->is_waited);
    }
    if (flagged == 0)
        (void)snprintf(text, size, "%zu waiting", waiting);
    else
        (void)snprintf(text, size, "%zu in queues, %zu perhaps waited for", waiting, flagged);
}

/* No row is shown, and a majority stores what --all would show: a lock of that name is refused. */
static bool hides_others(const struct view *view)
{
    const struct page_scan *now = &view->page->now;

    return now->rows_len == 0 && members_reach(&view->lists, now->locks.others) > 0;
}

static void print_sums(const struct view *view)
{
    struct page *page = view->page;
    const struct page_scan *now = &page->now, *before = &page->before;
    double seconds = (double)(now->at - before->at) / 1e9;
    quorum_mask members = members_all(&view->lists); /* A closed set has none. */
    quorum_mask all = members != 0 ? members : members_first(page->question->masters).to;
    char held[160] = "it is not known which locks are held", rates[64] = "";

    if (view->is_known) {
        /* No scan has no locks: all are new. */
        size_t len = count_new(now, &(struct page_scan){.at = 0});
        char waiting[80];

        write_waiting(now, waiting, sizeof waiting);
        (void)snprintf(held, sizeof held, "%zu lock%s held, %s%s", len, len == 1 ? "" : "s",
                       waiting, hides_others(view) ? ", keys of other programs (--all)" : "");
    }
    if (page->watch && now->at != 0 && before->at != 0 && seconds > 0)
        (void)snprintf(rates, sizeof rates, "; %.1f taken/s, %.1f released/s",
                       (double)count_new(now, before) / seconds,
                       (double)count_new(before, now) / seconds);
    screen_line(&page->screen, view->is_known ? SCREEN_PLAIN : SCREEN_RED,
                "%s; %u of %u masters up%s%s", held, mask_count(view->up & all), mask_count(all),
                may_grant(view, view->up) ? "" : ": NO MAJORITY", rates);
}

/* Why a master that was scanned may not vote. */
static struct remark why_not_up(const struct view *view, unsigned m)
{
    const struct remark why = question_no_vote(view->page->question, m);

    if (view->page->errors[m].message != MSG_NONE || (view->up & mask_of(m)) != 0)
        return (struct remark){MSG_NONE, ""};
    return why.message != MSG_NONE ? why : inspect_master(view->rl, m).remark;
}

/* On a page, a message is a line of the page.  It does not say again what the one before says. */
static void say(struct view *view, unsigned m, enum msg message, const char *what,
                const struct remark *why)
{
    struct screen *screen = &view->page->screen;
    bool lacks_right = message == MSG_NOT_SCANNED && why->message == MSG_NO_RIGHT;
    char quoted[QUOTED_MAX], place[REDLOCK_ADDRESS_MAX + 64], text[QUOTED_MAX];

    (void)snprintf(place, sizeof place, "master %u (%s)", m + 1, inspect_master(view->rl, m).name);
    (void)snprintf(text, sizeof text, "%s: %s%s", what,
                   text_quote(why->text, strlen(why->text), quoted, sizeof quoted),
                   lacks_right ? "; this user needs +scan +strlen" : "");
    if (!screen->is_page)
        cli_say_reason(message, why->message, "%s %s", place, text);
    else if (strcmp(text, view->said) == 0)
        screen_line(screen, SCREEN_RED, "%s: the same", place);
    else
        screen_line(screen, SCREEN_RED, "%s %s [%s]", place, text, message_id(why->message));
    (void)snprintf(view->said, sizeof view->said, "%s", text);
}

static void print_errors(struct view *view)
{
    const char *decides;

    for (unsigned m = 0; m < view->page->question->masters; m++) {
        const struct remark why = why_not_up(view, m);

        if (inspect_master(view->rl, m).is_elsewhere)
            continue; /* It is a member under another address, with another number. */
        if (why.message != MSG_NONE)
            say(view, m, MSG_NONE, "may not vote", &why);
        if (view->page->errors[m].message != MSG_NONE)
            say(view, m, MSG_NOT_SCANNED, "is not scanned", &view->page->errors[m]);
    }
    if (may_grant(view, view->up))
        return;
    decides = message_id(question_decides(view->page->question));
    if (view->page->screen.is_page)
        screen_line(&view->page->screen, SCREEN_RED, "see `redlock help %s`", decides);
    else
        cli_hint("see `redlock help %s`", decides);
}

static void print_rows(struct view *view)
{
    struct screen *screen = &view->page->screen;
    const struct page_scan *now = &view->page->now;
    size_t others = 1, len = now->rows_len; /* The title, and what is below the rows. */
    bool has_bare = false;

    for (size_t i = 0; i < now->rows_len; i++)
        has_bare |= now->rows[i].is_bare;
    others += has_bare;
    if (screen->is_page && screen->used + others + len > screen->lines) {
        others++;
        len = screen->lines > screen->used + others ? screen->lines - screen->used - others : 0;
    }
    measure(view);
    screen_line(screen, SCREEN_PLAIN, "%-*s  %-*s  %5s  %6s  %7s", (int)view->name_width, "NAME",
                (int)view->holder_width, "HOLDER", "VOTES", "LEFT", "WAITING");
    for (size_t i = 0; i < len; i++)
        print_row(view, &now->rows[i]);
    if (len < now->rows_len)
        screen_line(screen, SCREEN_PLAIN, "... and %zu more: choose by a PATTERN",
                    now->rows_len - len);
    if (has_bare)
        screen_line(screen, SCREEN_YELLOW,
                    "* bare majority: if any of these masters goes away, the lock is lost");
}

static void print_table(struct view *view)
{
    struct screen *screen = &view->page->screen;

    screen_begin(screen, view->page->watch);
    print_sums(view);
    if (screen->is_page)
        print_errors(view);
    if (view->page->now.rows_len > 0)
        print_rows(view);
    screen_end(screen);
    if (view->page->watch && !screen->is_page)
        (void)printf("\n");
    if (!screen->is_page)
        print_errors(view);
}

/* ---- JSON ---- */

static void print_json_row(const struct locks_row *row)
{
    static const char *const kinds[] = {"lock",    "readers", "permit", "guess",
                                        "foreign", "free",    "free"};
    const struct locks_entry *entry = row->entry;

    (void)printf("{\"kind\":\"%s\"", kinds[entry->shape]);
    cli_json_member("resource", entry->name);
    cli_json_holder(entry->token[0] != '\0' ? entry->token : NULL, strlen(entry->token));
    if (entry->shape == LOCKS_PERMIT)
        (void)printf(",\"permit\":%u", entry->number);
    if (entry->shape == LOCKS_READERS)
        (void)printf(",\"readers\":%lld", row->count);
    if (entry->shape == LOCKS_FOREIGN)
        (void)printf(",\"agreeing\":%u,\"held\":false,\"bare\":false,\"ttl_ms\":-1", row->votes);
    else if (entry->shape < LOCKS_QUEUE)
        (void)printf(",\"agreeing\":%u,\"held\":%s,\"bare\":%s,\"ttl_ms\":%lld", row->votes,
                     row->is_held ? "true" : "false", row->is_bare ? "true" : "false", row->ttl_ms);
    (void)printf(",\"waiting\":%lld,\"waited_for\":%s}", row->waiting,
                 row->is_waited ? "true" : "false");
}

/* A majority may vote, and was scanned. */
static bool has_majority(const struct view *view)
{
    return may_grant(view, view->up & (quorum_mask)~view->page->failed);
}

static void print_json(const struct view *view)
{
    (void)printf("{\"locks\":[");
    for (size_t i = 0; i < view->page->now.rows_len; i++) {
        (void)printf("%s", i > 0 ? "," : "");
        print_json_row(&view->page->now.rows[i]);
    }
    (void)printf("],\"masters\":[");
    for (unsigned m = 0, shown = 0; m < view->page->question->masters; m++) {
        const struct inspect_master master = inspect_master(view->rl, m);
        struct remark why = why_not_up(view, m);

        if (master.is_elsewhere)
            continue;
        (void)printf("%s{\"number\":%u", shown++ > 0 ? "," : "", m + 1);
        cli_json_member("endpoint", master.name);
        (void)printf(",\"up\":%s", (view->up & mask_of(m)) != 0 ? "true" : "false");
        why = why.message != MSG_NONE ? why : view->page->errors[m];
        cli_json_error(why.text, why.message);
        (void)printf("}");
    }
    (void)printf("],\"majority\":%s}\n", has_majority(view) ? "true" : "false");
}

/* Masters that may vote if they take writes, as far as each of them says.  Those that are all new
 * and durable may vote at once.  A client counts none before it knows a majority. */
static quorum_mask find_telling(const struct question *question,
                                const struct inspect_client *client)
{
    quorum_mask up = client->up | client->coming;

    if (client->is_closed) /* Those that were members count as up, for releases. */
        return 0;
    for (unsigned m = 0; m < client->masters; m++)
        if ((client->linked & mask_of(m)) != 0 && inspect_master(question->rl, m).look.ready &&
            !inspect_master(question->rl, m).is_copy)
            up |= mask_of(m);
    return question_finds_new(question) ? client->linked : up;
}

int page_print(struct page *page)
{
    struct redlock *rl = page->question->rl;
    const struct inspect_client client = inspect_client(rl);
    struct view view = {.page = page, .rl = rl, .lists = client.lists};
    int code;

    view.tells = view.up = find_telling(page->question, &client);
    for (unsigned m = 0; m < client.masters; m++)
        if (question_no_vote(page->question, m).message != MSG_NONE)
            view.up = mask_without(view.up, m);
    view.founds_none = question_founds_none(page->question);
    view.is_known = members_decide(&view.lists, view.tells & (quorum_mask)~page->failed);
    page->now.at = view.is_known ? client.now : 0;
    page->now.rows_len = locks_agree(&page->now.locks, &view.lists, view.tells, &page->now.rows);
    if (page->now.rows == NULL) {
        cli_say(MSG_NO_MEMORY, "out of memory");
        return CLI_INTERNAL;
    }
    drop(page);
    if (page->json)
        print_json(&view);
    else
        print_table(&view);
    code = cli_flush_output();
    if (code != CLI_OK)
        return code;
    if (redlock_ready(rl, NULL) == REDLOCK_E_WRONG_SET) {
        cli_say(MSG_WRONG_SET, "%s", redlock_errmsg(rl));
        return CLI_CHANGE;
    }
    return has_majority(&view) ? CLI_OK : CLI_UNREACHABLE;
}
