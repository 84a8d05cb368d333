/*
 * test-timeline.c - whole stories of a lock, compared as text.
 *
 *   test-timeline FILE...     play each story, and compare it with its file
 *   test-timeline --tell FILE print the file with what really happens
 *
 * A story is a text file (timelines/).  It has prose for people, a sentence of settings,
 *
 *   Given 5 masters, lease 9000ms, wait 1000ms, m4 m5 down.
 *
 * and lines with a time, an event, and the actions of the machine:
 *
 *        +1ms  m3 yes          -> OK, held until +8908ms, wake +3000ms
 *
 * The text after an event must be exactly what the machine does.  An event without
 * such a text must cause no action.
 *
 * Events: acquire, adopt, extend, extend 500ms, release, cancel, detach, timer.
 * "m1 yes", "m1 no" and "m1 error" answer the oldest open command to m1; "m1 yes to
 * release" also checks which command that is.  "m1 up" and "m1 down" change the link of
 * m1, "m1 full" and "m1 drained" its queue.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/lib/story.h"

#define LINE_MAX_LEN 256

/* One file being played. */
struct play {
    const char *path;
    unsigned line;
    struct story story;
    struct quorum_config config;
    unsigned masters;
    quorum_mask down, coming;
    bool is_begun; /* After the first event, settings come too late. */
    unsigned events;
};

__attribute__((noreturn)) static void stop(const struct play *play, const char *what,
                                           const char *text)
{
    printf("%s:%u: %s: %s\n", play->path, play->line, what, text);
    exit(1);
}

/* ---- Words ---- */

/* If text goes on with this word, skip the word and the blanks after it, and return true. */
static bool take(const char **text, const char *word)
{
    size_t len = strlen(word);

    if (strncmp(*text, word, len) != 0 || isalnum((unsigned char)(*text)[len]))
        return false;
    *text += len;
    while (**text == ' ')
        ++*text;
    return true;
}

/* "9000ms", or with nanoseconds "8907.999999ms". */
static drift_span take_span(const struct play *play, const char **text)
{
    const char *p = *text;
    char *end;
    drift_span ns;

    if (!isdigit((unsigned char)*p))
        stop(play, "not a time", p);
    ns = strtoull(p, &end, 10) * DRIFT_MS;
    p = end;
    if (*p == '.') {
        drift_span unit = DRIFT_MS;

        for (p++; isdigit((unsigned char)*p); p++) {
            unit /= 10;
            ns += (drift_span)(*p - '0') * unit;
        }
    }
    *text = p;
    if (!take(text, "ms"))
        stop(play, "not a time", p);
    return ns;
}

static bool take_master(const struct play *play, const char **text, unsigned *ret_m)
{
    char *end;
    unsigned long number;

    if ((*text)[0] != 'm' || !isdigit((unsigned char)(*text)[1]))
        return false;
    number = strtoul(*text + 1, &end, 10);
    if (number < 1 || number > play->masters)
        stop(play, "no such master", *text);
    *text = end + strspn(end, " ");
    *ret_m = (unsigned)number - 1;
    return true;
}

/* ---- Settings ---- */

static void set_masters(struct play *play, const char *text)
{
    quorum_mask mask = 0;
    unsigned m;

    while (take_master(play, &text, &m))
        mask |= (quorum_mask)(1u << m);
    if (strcmp(text, "down") == 0)
        play->down |= mask;
    else if (strcmp(text, "coming") == 0)
        play->coming |= mask;
    else
        stop(play, "neither down nor coming", text);
}

static void set(struct play *play, const char *text)
{
    struct quorum_config *config = &play->config;

    if (isdigit((unsigned char)text[0])) {
        play->masters = (unsigned)strtoul(text, NULL, 10);
        return;
    }
    if (take(&text, "lease"))
        config->lease = take_span(play, &text);
    else if (take(&text, "wait"))
        config->wait = take(&text, "for ever") ? DRIFT_NEVER : take_span(play, &text);
    else if (take(&text, "pause"))
        config->pause_min = config->pause_max = take_span(play, &text);
    else if (take(&text, "margin"))
        config->lost_margin = take_span(play, &text);
    else if (take(&text, "hold"))
        config->hold_max = take_span(play, &text);
    else if (take(&text, "fence"))
        config->fence = true;
    else if (take(&text, "no renewal"))
        config->renew = false;
    else if (text[0] == 'm')
        set_masters(play, text);
    else
        stop(play, "not a setting", text);
}

/* "Given 5 masters, lease 9000ms." */
static void read_settings(struct play *play, const char *line)
{
    char text[LINE_MAX_LEN], *save, *dot;

    (void)snprintf(text, sizeof text, "%s", line);
    dot = strrchr(text, '.');
    if (play->is_begun)
        stop(play, "settings after the first event", line);
    if (dot == NULL || dot[1] != '\0')
        stop(play, "settings without a full stop", line);
    *dot = '\0';
    for (char *item = strtok_r(text, ",", &save); item; item = strtok_r(NULL, ",", &save))
        set(play, item + strspn(item, " "));
}

/* ---- Events ---- */

static void begin(struct play *play)
{
    if (play->is_begun)
        return;
    play->is_begun = true;
    story_begin(&play->story, &play->config, play->masters);
    play->story.up &= (quorum_mask) ~(play->down | play->coming);
    play->story.coming = play->coming;
}

static void check_answered(const struct play *play, unsigned m, const char *text)
{
    const struct story_link *link = &play->story.links[m];
    enum quorum_command command;

    if (link->asks_len == 0)
        stop(play, "nothing was asked of this master", text);
    command = link->asks[0].command;
    if (text[0] == '\0')
        return;
    if ((take(&text, "to set") && command == QUORUM_CMD_SET) ||
        (take(&text, "to extend") && command == QUORUM_CMD_EXTEND) ||
        (take(&text, "to release") && command == QUORUM_CMD_RELEASE) ||
        (take(&text, "to give") && command == QUORUM_CMD_GIVE) ||
        (take(&text, "to fence") && command == QUORUM_CMD_FENCE) ||
        (take(&text, "to raise") && command == QUORUM_CMD_RAISE))
        return;
    stop(play, "another command is answered next", text);
}

static void answer(struct play *play, unsigned m, enum quorum_vote vote, const char *text)
{
    check_answered(play, m, text);
    story_reply(&play->story, m, vote);
}

/* "m1 counts 7" */
static void count(struct play *play, unsigned m, const char *text)
{
    char *end;
    uint64_t counter = strtoull(text, &end, 10);

    if (end == text || counter == 0)
        stop(play, "not a number to count to", text);
    check_answered(play, m, end + strspn(end, " "));
    story_count(&play->story, m, counter);
}

/* Returns false if the event does not step the machine. */
static bool do_master(struct play *play, unsigned m, const char *text)
{
    quorum_mask on = (quorum_mask)(1u << m);

    if (take(&text, "yes")) {
        answer(play, m, QUORUM_VOTE_YES, text);
    } else if (take(&text, "no")) {
        answer(play, m, QUORUM_VOTE_NO, text);
    } else if (take(&text, "error")) {
        answer(play, m, QUORUM_VOTE_NONE, text);
    } else if (take(&text, "counts")) {
        count(play, m, text);
    } else if (take(&text, "up")) {
        story_link(&play->story, m, true);
    } else if (take(&text, "down")) {
        story_link(&play->story, m, false);
    } else if (take(&text, "full")) {
        play->story.up &= (quorum_mask)~on;
        return false;
    } else if (take(&text, "drained")) {
        play->story.up |= on;
        return false;
    } else {
        stop(play, "not an event of a master", text);
    }
    return true;
}

static bool do_event(struct play *play, const char *text)
{
    static const struct {
        const char *word;
        enum quorum_event_type type;
    } words[] = {{"acquire", QUORUM_EV_ACQUIRE}, {"adopt", QUORUM_EV_ADOPT},
                 {"release", QUORUM_EV_RELEASE}, {"cancel", QUORUM_EV_CANCEL},
                 {"detach", QUORUM_EV_DETACH},   {"timer", QUORUM_EV_TIMER}};
    unsigned m;

    begin(play);
    if (take_master(play, &text, &m))
        return do_master(play, m, text);
    if (take(&text, "extend")) {
        story_extend(&play->story, text[0] != '\0' ? take_span(play, &text) : 0);
        return true;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(text, words[i].word) == 0) {
            story_step(&play->story, words[i].type);
            return true;
        }
    }
    stop(play, "not an event", text);
}

static void read_now(struct play *play, const char **text)
{
    drift_time now;

    ++*text; /* The plus. */
    now = STORY_START + take_span(play, text);
    if (now < play->story.now && play->is_begun)
        stop(play, "time runs backwards", *text);
    begin(play);
    play->story.now = now;
}

/* Play a line, and write it to buf as it must look. */
static void play_line(struct play *play, const char *line, char *buf, size_t size)
{
    const char *text = line + strspn(line, " ");
    const char *arrow = strstr(line, " ->");
    struct story *story = &play->story;
    char event[LINE_MAX_LEN], did[LINE_MAX_LEN], at[48];
    size_t len;

    read_now(play, &text);
    (void)snprintf(event, sizeof event, "%.*s",
                   (int)(arrow != NULL && arrow > text ? arrow - text : LINE_MAX_LEN), text);
    for (len = strlen(event); len > 0 && event[len - 1] == ' '; len--)
        event[len - 1] = '\0';
    did[0] = '\0';
    if (do_event(play, event))
        (void)story_tell(&story->before, &story->q, &story->act, story->wake_before, STORY_START,
                         did, sizeof did);
    play->events++;
    story_time(story->now, STORY_START, at, sizeof at);
    if (did[0] != '\0')
        (void)snprintf(buf, size, "%15s  %-18s -> %s", at, event, did);
    else
        (void)snprintf(buf, size, "%15s  %s", at, event);
}

/* ---- Files ---- */

/* Play the file, and return the number of wrong lines.  tell: print the lines as they must be. */
static unsigned play_file(const char *path, FILE *file, bool tell)
{
    struct play play = {.path = path, .masters = 5, .config = story_config()};
    char line[LINE_MAX_LEN], got[3 * LINE_MAX_LEN];
    unsigned wrong = 0;

    while (fgets(line, sizeof line, file) != NULL) {
        play.line++;
        line[strcspn(line, "\n")] = '\0';
        (void)snprintf(got, sizeof got, "%s", line);
        if (strncmp(line, "Given ", 6) == 0)
            read_settings(&play, line + 6);
        else if (line[strspn(line, " ")] == '+')
            play_line(&play, line, got, sizeof got);
        if (tell) {
            puts(got);
        } else if (strcmp(line, got) != 0) {
            printf("%s:%u:\nwant %s\ngot  %s\n", path, play.line, line, got);
            wrong++;
        }
    }
    if (play.events == 0)
        stop(&play, "nothing happens in this story", "(end of file)");
    return wrong;
}

static bool play_path(const char *path, bool tell)
{
    FILE *file = fopen(path, "r");
    unsigned wrong;

    if (file == NULL) {
        printf("%s: %s\n", path, strerror(errno));
        return false;
    }
    wrong = play_file(path, file, tell);
    fclose(file);
    if (wrong > 0)
        printf("FAILED %s: %u lines are wrong\n", path, wrong);
    return wrong == 0;
}

int main(int argc, char **argv)
{
    bool tell = argc > 2 && strcmp(argv[1], "--tell") == 0;
    unsigned passed = 0, failed = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = tell ? 2 : 1; i < argc; i++) {
        if (play_path(argv[i], tell))
            passed++;
        else
            failed++;
    }
    if (!tell)
        printf("%u passed, %u failed\n", passed, failed);
    return failed > 0 || passed == 0;
}
