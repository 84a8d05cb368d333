/*
 * redis_error.c - reads the code of an error, or the whole sentence where an error has none.
 *
 * The code stands first, also for errors inside a script (Redis 7).  Redis up to 6 hides such an
 * error in "ERR Error running script (call to f_...): @user_script:1: -READONLY ...".
 */
#include "redlock/wire/redis_error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "redlock/base/text.h"
#include "redlock/wire/reply.h"

static const struct {
    const char *code;
    enum why why;
} codes[] = {
    {"NOAUTH", WHY_ERROR_LOGIN},
    {"WRONGPASS", WHY_ERROR_LOGIN},
    {"NOPERM", WHY_ERROR_RIGHT},
    {"READONLY", WHY_ERROR_REPLICA},
    {"CLUSTERDOWN", WHY_ERROR_CLUSTER},
    {"MOVED", WHY_ERROR_CLUSTER},
    {"LOADING", WHY_ERROR_LOADING},
    {"MASTERDOWN", WHY_ERROR_MASTER_DOWN},
    {"NOSCRIPT", WHY_ERROR_SCRIPT},
    {"BUSY", WHY_ERROR_BUSY},
    {"DENIED", WHY_ERROR_PROTECTED},
    {"NOREPLICAS", WHY_ERROR_REPLICAS},
    {"WRONGTYPE", WHY_ERROR_TYPE},
    {"OOM", WHY_ERROR_MEMORY},
    {"MISCONF", WHY_ERROR_DISK},
    {"ERR", WHY_ERROR},
    {"NOPROTO", WHY_ERROR},
};

/* Errors with the code ERR, and of scripts that may not do what they call (Redis 6 and 7). */
static const struct {
    const char *words;
    enum why why;
} sentences[] = {
    {"ERR invalid password", WHY_ERROR_LOGIN}, /* Redis 5. */
    {"ERR Client sent AUTH, but no password is set", WHY_ERROR_LOGIN},
    {"ERR AUTH <password> called without any password", WHY_ERROR_LOGIN},
    {"ERR max number of clients ", WHY_ERROR_CLIENTS},
    {"ERR unknown command", WHY_ERROR_COMMAND},
    {"ERR DB index is out of range", WHY_ERROR_DATABASE},
    {"ERR invalid DB index", WHY_ERROR_DATABASE},
    {"ERR ACL failure in script", WHY_ERROR_RIGHT},
};

static bool is_code_at(const char *at, const char *code)
{
    size_t len = strlen(code);

    at += *at == '-';
    return strncmp(at, code, len) == 0 && (at[len] == ' ' || at[len] == '\0');
}

static enum why kind_at(const char *at)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (is_code_at(at, codes[i].code))
            return codes[i].why;
    return WHY_ERROR;
}

/* Behind a script's place in an error of Redis up to 6. */
static enum why kind_in_script(const char *text)
{
    enum why why = WHY_ERROR;

    for (const char *at = strstr(text, ": "); at != NULL && why == WHY_ERROR;
         at = strstr(at + 2, ": "))
        why = kind_at(at + 2);
    return why;
}

/* Redis 7 says so with the code ERR.  Redis 6 has the place in the script before it, with another
 * ERR before that, or none if the script hands over the answer of redis.pcall(). */
static bool is_about_a_right(const char *text)
{
    return (strncmp(text, "ERR ", 4) == 0 || strncmp(text, "@user_script", 12) == 0) &&
           strstr(text, "The user executing the script can't") != NULL;
}

enum why redis_error_kind(const char *text)
{
    static const char in_script[] = "ERR Error running script";

    if (is_about_a_right(text))
        return WHY_ERROR_RIGHT;
    if (strncmp(text, in_script, sizeof in_script - 1) == 0)
        return kind_in_script(text);
    for (size_t i = 0; i < sizeof sentences / sizeof sentences[0]; i++)
        if (strncmp(text, sentences[i].words, strlen(sentences[i].words)) == 0)
            return sentences[i].why;
    return kind_at(text);
}

/* "NOPERM this user has no permissions to access one of the keys used as arguments" of Redis 6,
 * "NOPERM No permissions to access a channel" of Redis 7; else they name a command. */
enum redis_right redis_error_right(const char *text)
{
    if (strstr(text, " key") != NULL)
        return RIGHT_TO_KEY;
    return strstr(text, " channel") != NULL ? RIGHT_TO_CHANNEL : RIGHT_TO_COMMAND;
}

size_t redis_error_code_len(const char *error)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (error[0] != '-' && is_code_at(error, codes[i].code))
            return strlen(codes[i].code);
    return 0;
}

bool redis_error_is(enum why why)
{
    return why >= WHY_ERROR_LOGIN && why <= WHY_ERROR;
}

/* Of a text that is too long, keep the whole sentences.  MISCONF has several. */
static void end_sentence(char *text)
{
    for (size_t len = strlen(text); len > 1; len--)
        if (text[len - 2] == '.' && text[len - 1] == ' ') {
            text[len - 2] = '\0';
            return;
        }
}

void redis_error_reason(struct reason *ret_reason, const char *text)
{
    char whole[REASON_WORDS_MAX];

    if (text[0] == '\0') {
        reason_set(ret_reason, WHY_GARBAGE);
        return;
    }
    (void)snprintf(whole, sizeof whole, "%s", text);
    if (strlen(text) >= sizeof whole)
        end_sentence(whole);
    reason_quote(ret_reason, redis_error_kind(text), whole, NULL);
    (void)text_end_error(ret_reason->words);
}

void reply_reason(const struct reply *reply, struct reason *ret_reason)
{
    if (reply->type == REPLY_ERROR)
        redis_error_reason(ret_reason, reply->text);
    else
        reason_set(ret_reason, WHY_GARBAGE);
}
