/*
 * uri.c - fuzz target: any bytes as a URI, and as a list of masters.
 *
 * The target checks that a URI's name parses to the same place.  No message depends on the text
 * between the first ':' and the last '@', which may be a secret.  To check that, the target
 * parses again with other letters and digits there.  So it finds a quoted secret even if it looks
 * like a word of the message.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "redlock/base/error.h"
#include "redlock/client/options.h"
#include "redlock/link/uri.h"

/* The next letter or digit of the same class in an escape; 0 stays, because %00 is special.  All
 * else stays, so that the text is split at the same places. */
static char other(char c)
{
    static const char *const classes[] = {"123456789", "abcdef", "ABCDEF", "ghijklmnopqrstuvwxyz",
                                          "GHIJKLMNOPQRSTUVWXYZ"};

    for (unsigned i = 0; c != '\0' && i < sizeof classes / sizeof classes[0]; i++) {
        const char *at = strchr(classes[i], c);

        if (at != NULL)
            return at[1] != '\0' ? at[1] : classes[i][0];
    }
    return c;
}

/* Change the secret.  Returns 0 if there is none. */
static int change_secret(char *text, size_t len)
{
    char *begin = memchr(text, ':', len);
    char *end = memrchr(text, '@', len);

    if (begin == NULL || end == NULL || end < begin)
        return 0;
    for (char *p = begin; p < end; p++)
        *p = other(*p);
    return 1;
}

static void check_name(const struct uri *uri)
{
    struct uri again;

    for (const char *p = uri->name; *p != '\0'; p++)
        MUST(*p > ' ' && *p < 0x7f && *p != ',' && *p != '@');
    MUST(uri_parse(uri->name, strlen(uri->name), &again) == REDLOCK_OK);
    MUST(uri_same_place(uri, &again));
    MUST(strcmp(uri->name, again.name) == 0);
    MUST(again.db == uri->db && again.port == uri->port);
    MUST(again.user == NULL && again.password == NULL);
    uri_done(&again);
}

/* Parse a URI.  ret_said gets its name, or the error message. */
static int parse(const char *text, size_t len, char ret_said[ERROR_MESSAGE_MAX])
{
    struct uri uri;
    int r;

    error_clear();
    r = uri_parse(text, len, &uri);
    MUST(r == REDLOCK_OK || r == REDLOCK_E_INVAL);
    if (r == REDLOCK_OK) {
        check_name(&uri);
        MUST((uri.host == NULL) != (uri.path == NULL));
        MUST((uri.port == 0) == (uri.path != NULL));
        snprintf(ret_said, ERROR_MESSAGE_MAX, "%s", uri.name);
        uri_done(&uri);
    } else {
        MUST(error_message()[0] != '\0');
        snprintf(ret_said, ERROR_MESSAGE_MAX, "%s", error_message());
    }
    return r;
}

/* The same for a list.  ret_said gets only the error message. */
static int parse_list(const char *list, char ret_said[ERROR_MESSAGE_MAX])
{
    struct redlock_options opts;
    struct options options;
    int r;

    redlock_options_init(&opts);
    opts.masters = list;
    error_clear();
    r = options_copy(&opts, NULL, &options);
    MUST(r == REDLOCK_OK || r == REDLOCK_E_INVAL);
    if (r == REDLOCK_OK) {
        MUST(options.masters_len >= 1 && options.masters_len <= REDLOCK_MASTERS_MAX);
        options_done(&options);
    }
    snprintf(ret_said, ERROR_MESSAGE_MAX, "%s", error_message());
    return r;
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t len);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t len)
{
    char said[ERROR_MESSAGE_MAX], said_of_other[ERROR_MESSAGE_MAX];
    char *text = malloc(len + 1); /* The list needs a NUL. */
    int r, r_of_list;

    MUST(text != NULL);
    memcpy(text, bytes, len);
    text[len] = '\0';
    r_of_list = parse_list(text, said);
    if (r_of_list == REDLOCK_OK && strpbrk(text, ", \t\r\n\v\f") == NULL && strlen(text) == len)
        MUST(parse(text, len, said) == REDLOCK_OK); /* A list may be one URI. */
    r = parse(text, len, said);
    if (change_secret(text, len)) {
        MUST(parse(text, len, said_of_other) == r);
        MUST(strcmp(said, said_of_other) == 0);
    }
    free(text);
    return 0;
}
