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
#include "redlock/io/tls.h"
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
static struct env env;
static bool is_strict, tls_fails;
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

void link_relink(struct link *link, const struct reason *why)
{
    (void)why;
    say("doom", link->number);
}

void link_relink_for(struct link *link, enum why why)
{
    (void)why;
    link_relink(link, NULL);
}

static char *copy(const char *text, size_t len)
{
    char *text_copy = strndup(text, len);

    CHECK(text_copy != NULL);
    return text_copy;
}

int uri_parse(const char *text, size_t text_len, struct uri *ret_uri)
{
    const bool has_tls = strncmp(text, "rediss://", 9) == 0;
    const char *host = text + (has_tls ? 9 : 0), *colon = strchr(host, ':');

    if (colon == NULL)
        return REDLOCK_E_INVAL;
    *ret_uri = (struct uri){
        .host = copy(host, (size_t)(colon - host)), .name = copy(text, text_len), .tls = has_tls};
    return REDLOCK_OK;
}

int uri_copy_login(struct uri *to, const struct uri *from)
{
    to->user = from->user != NULL ? strdup(from->user) : NULL;
    to->password = strdup(from->password);
    return REDLOCK_OK;
}

int tls_context_new(const struct tls_settings *settings, struct tls_context **ret_context)
{
    static char context;

    CHECK(settings->verify);
    CHECK(env.tls_later == NULL ? settings->ca == NULL : settings == env.tls_later);
    say("tls", 0);
    if (tls_fails)
        return REDLOCK_E_INVAL;
    *ret_context = (void *)&context;
    return REDLOCK_OK;
}

bool tls_context_is_strict(const struct tls_context *context)
{
    return context != NULL && is_strict;
}

void uri_done(struct uri *uri)
{
    free(uri->host);
    free(uri->name);
    free(uri->user);
    free(uri->password);
    *uri = (struct uri){.host = NULL};
}

void env_log(const struct env *of, enum redlock_level level, enum msg message, const char *format,
             ...)
{
    (void)of, (void)level, (void)message, (void)format;
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
    env.tls = NULL;
    env.tls_later = NULL;
    is_strict = tls_fails = false;
    peers.env = &env;
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

/* What a member at this place is sent, if the list has these two masters with a password. */
static const char *sent_to(const char *place)
{
    static char sent[ROOM];
    struct uri uri;

    CHECK_INT(links_uri(&links, place, &uri), REDLOCK_OK);
    (void)snprintf(sent, sizeof sent, "%s", uri.password != NULL ? uri.password : "nothing");
    uri_done(&uri);
    return sent;
}

/* The second host is listed without TLS, and the third one with it. */
TEST(a_password_never_goes_from_tls_to_plain)
{
    static char sealed[] = "sealed";

    begin();
    list[2].tls = true;
    list[2].password = sealed;
    env.tls = (void *)&env;
    for (unsigned strict = 0; strict < 2; strict++) {
        is_strict = strict == 1;
        CHECK_STR(sent_to("b:2"), "secret");
        CHECK_STR(sent_to("c:2"), "nothing");
        CHECK_STR(sent_to("d:2"), "nothing");
        CHECK_STR(sent_to("rediss://b:2"), "secret");
        CHECK_STR(sent_to("rediss://C:2"), "sealed");
        CHECK_STR(sent_to("rediss://a:2"), is_strict ? "secret" : "nothing");
        CHECK_STR(sent_to("rediss://d:2"), is_strict ? "secret" : "nothing");
    }
    list[1].tls = true;
    CHECK_STR(sent_to("b:2"), "nothing");
    end();
}

TEST(the_first_member_with_tls_makes_a_context)
{
    begin();
    sit(3, "rediss://d:1");
    sit(4, "rediss://e:1");
    links_change(&links, 0, 0x18);
    links_tidy(&links, &seats, on_close);
    check_said("tls 0, new 3, start 3, new 4, start 4");
    end();
}

/* The CA of the environment proves the member already when its first link is made. */
TEST(a_context_is_made_before_a_password_is_given)
{
    static const struct tls_settings later = {.ca = "ca", .verify = true};

    begin();
    env.tls_later = &later;
    is_strict = true;
    sit(3, "rediss://d:1");
    links_change(&links, 0, 8);
    links_tidy(&links, &seats, on_close);
    check_said("tls 0, new 3, start 3");
    CHECK_STR(peers.uris[3]->password, "secret");
    end();
}

TEST(without_tls_such_a_member_gets_no_link)
{
    begin();
    tls_fails = true;
    sit(3, "rediss://d:1");
    links_change(&links, 0, 8);
    links_tidy(&links, &seats, on_close);
    check_said("tls 0");
    CHECK(peers.links[3] == NULL);
    CHECK_UINT(links.to_open, 0);
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
           RUN(a_password_goes_to_hosts_of_the_list), RUN(a_password_never_goes_from_tls_to_plain),
           RUN(the_first_member_with_tls_makes_a_context),
           RUN(a_context_is_made_before_a_password_is_given),
           RUN(without_tls_such_a_member_gets_no_link), RUN(a_place_that_is_none_gets_no_link))
