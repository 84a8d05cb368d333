/*
 * other_set.c - asks the databases that have keys for their markers.
 */
#include "redlock/cli/doctor/other_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redlock/cli/doctor/talk.h"
#include "redlock/link/uri.h"
#include "redlock/wire/keys.h"
#include "redlock/wire/reply.h"

#define DATABASES_MAX 16 /* As many as Redis has by default. */

/* Read the next number from "db0:keys=1,...".  False: there is none. */
static bool next_database(const char **text, unsigned long *ret_db)
{
    const char *at = strstr(*text, "\ndb");
    char *end;

    if (at == NULL)
        return false;
    *ret_db = strtoul(at + 3, &end, 10);
    *text = end;
    return true;
}

static unsigned list_databases(struct talk *talk, unsigned own, unsigned long dbs[DATABASES_MAX])
{
    const char *const words[TALK_WORDS_MAX] = {"INFO", "keyspace"};
    const struct reply *reply = talk_ask(talk, words);
    const char *text = reply != NULL && reply->type == REPLY_TEXT ? reply->text : "";
    unsigned len = 0;

    while (len < DATABASES_MAX && next_database(&text, &dbs[len]))
        len += dbs[len] != own;
    return len;
}

/* Select the database.  The user may lack the right to another one. */
static bool has_set(struct talk *talk, unsigned long db)
{
    char number[24];
    const char *const select[TALK_WORDS_MAX] = {"SELECT", number};
    const char *const get[TALK_WORDS_MAX] = {"HGET", WIRE_MARKER, "set"};
    const struct reply *reply;

    (void)snprintf(number, sizeof number, "%lu", db);
    reply = talk_ask(talk, select);
    if (reply == NULL || reply->type == REPLY_ERROR)
        return false;
    reply = talk_ask(talk, get);
    return reply != NULL && reply->type == REPLY_TEXT;
}

void other_set_look(struct exam *exam, struct talk *talk)
{
    unsigned long dbs[DATABASES_MAX];
    unsigned len = 0, i = 0;

    if (exam->marker.set == 0 && !has_set(talk, exam->uri->db))
        len = list_databases(talk, exam->uri->db, dbs);
    while (i < len && !has_set(talk, dbs[i]))
        i++;
    if (i < len)
        exam_find(
            exam, FIND_OTHER_SET,
            "correct the number in the list; or, if a second set is meant, run `redlock init`",
            "has a set in its database %lu, and none in database %u, which the list names", dbs[i],
            exam->uri->db);
    if (len > 0)
        (void)has_set(talk, exam->uri->db); /* Back to where it was. */
}
