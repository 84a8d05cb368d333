/*
 * test-links.c - which links are made and freed, in which order, and who is sent a password.
 *
 * The functions of links and of URIs are those below.
 */
#include "redlock/masters/links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redlock/core/seats.h"
#include "redlock/masters/peers.h"
#include "test/lib/check.h"

#define ROOM 200

struct link {
    unsigned number;
    const struct uri *uri;
};

static struct peers peers;
static struct seats seats;
static struct links links;
static struct uri list[3];
static char said[ROOM]; /* What was done, in order. */

static void say(const char *word, unsigned m)
{
    size_t len = strlen(said);

    (void)snprintf(said + len, ROOM - len, "%s%s %u", len > 0 ? ", " : "", word, m);
}

static void check_said(const char *want)
{
    CHECK_STR(said, want);
    said[0] = '\0';
}

/* ---- What the shell calls ---- */

struct link *link_new(const struct link_config *config, const struct link_events *events,
                      void *cookie)
{
    struct link *link = malloc(sizeof *link);

    (void)events, (void)cookie;
    CHECK(link != NULL);
    *link = (struct link){config->number, config->uri};
    say("new", config->number);
    return link;
}

void link_free(struct link *link)
{
    CHECK(link->uri->name != NULL); /* The place lives as long as the link. */
    say("free", link->number);
    free(link);
}

void link_start(struct link *link)
{
    say("start", link->number);
}

void link_relink(struct link *link, const char *reason)
{
    (void)reason;
    say("doom", link->number);
}

static char *copy(const char *text, size_t len)
{
    char *text_copy = strndup(text, len);

    CHECK(text_copy != NULL);
    return text_copy;
}

int uri_parse(const char *text, size_t text_len, struct uri *ret_uri)
{
    const char *colon = strchr(text, ':');

    if (colon == NULL)
        return REDLOCK_E_INVAL;
    *ret_uri =
        (struct uri){.host = copy(text, (size_t)(colon - text)), .name = copy(text, text_len)};
    return REDLOCK_OK;
}

void uri_done(struct uri *uri)
{
    free(uri->host);
    free(uri->name);
    free(uri->user);
    free(uri->password);
    *uri = (struct uri){.host = NULL};
}

void env_log(const struct env *env, enum redlock_level level, const char *format, ...)
{
    (void)env, (void)level, (void)format;
}

static void on_close(void *cookie, unsigned m)
{
    (void)cookie;
    CHECK(peers.uris[m] != NULL);
    say("close", m);
}

/* ---- Steps of the tests ---- */

static void begin(void)
{
    static const struct link_events events;
    static char hosts[3][2] = {"a", "b", "c"}, names[3][4] = {"a:1", "b:1", "c:1"};
    static char user[] = "me", password[] = "secret";
    const struct link_config config = {.dirty = &peers.dirty};

    memset(&peers, 0, sizeof peers);
    memset(&links, 0, sizeof links);
    memset(&seats, 0, sizeof seats);
    for (unsigned m = 0; m < 3; m++)
        list[m] = (struct uri){.host = hosts[m], .name = names[m]};
    list[1].user = user;
    list[1].password = password;
    peers.len = 3;
    CHECK_INT(links_init(&links, &peers, &config, list, 3, &events, NULL), 0);
    check_said("new 0, new 1, new 2");
}

static void end(void)
{
    links_done(&links);
    said[0] = '\0';
}

static void sit(unsigned m, const char *place)
{
    (void)snprintf(seats.seats[m].place, sizeof seats.seats[m].place, "%s", place);
}

/* ---- Tests ---- */

/* No answer of the old master may be taken for one of the new one. */
TEST(a_number_is_free_before_another_master_gets_it)
{
    begin();
    sit(2, "d:1");
    links_change(&links, 4, 4);
    check_said("doom 2");
    CHECK(links_closes(&links, 2));
    CHECK(!links_closes(&links, 1));
    links_tidy(&links, &seats, on_close);
    check_said("close 2, free 2, new 2, start 2");
    CHECK(!links_closes(&links, 2));
    CHECK_STR(peers.uris[2]->name, "d:1");
    sit(2, "e:1");
    links_change(&links, 4, 4);
    links_tidy(&links, &seats, on_close);
    check_said("doom 2, close 2, free 2, new 2, start 2");
    CHECK_STR(peers.uris[2]->name, "e:1");
    end();
}

TEST(a_master_that_leaves_at_once_gets_no_link)
{
    begin();
    sit(3, "d:1");
    links_change(&links, 0, 8);
    links_change(&links, 8, 0);
    links_tidy(&links, &seats, on_close);
    check_said("");
    CHECK(peers.links[3] == NULL);
    CHECK_UINT(peers.len, 4);
    end();
}

/* Of the list, only the second host has a password. */
TEST(a_password_goes_to_hosts_of_the_list)
{
    begin();
    sit(3, "B:2");
    sit(4, "bb:1");
    sit(5, "a:2");
    links_change(&links, 0, 0x38);
    links_tidy(&links, &seats, on_close);
    CHECK_STR(peers.uris[3]->password, "secret");
    CHECK_STR(peers.uris[3]->user, "me");
    CHECK(peers.uris[4]->password == NULL && peers.uris[4]->user == NULL);
    CHECK(peers.uris[5]->password == NULL && peers.uris[5]->user == NULL);
    end();
}

TEST(a_place_that_is_none_gets_no_link)
{
    begin();
    sit(3, "nowhere");
    links_change(&links, 0, 8);
    links_tidy(&links, &seats, on_close);
    check_said("");
    CHECK_UINT(links.to_open, 0);
    end();
}

CHECK_MAIN(RUN(a_number_is_free_before_another_master_gets_it),
           RUN(a_master_that_leaves_at_once_gets_no_link),
           RUN(a_password_goes_to_hosts_of_the_list), RUN(a_place_that_is_none_gets_no_link))
