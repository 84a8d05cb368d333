/*
 * list_file.c - reads the list of masters from a file, and blanks its comment lines.
 */
#include "redlock/base/list_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "redlock/base/error.h"
#include "redlock/base/text.h"

/* In bytes.  Chosen: 15 URIs of the longest kind take 20 000; not measured. */
#define FILE_MAX 65536
#define SHOWN_MAX 200 /* The longest file name in a message, in bytes. */

/* True: in the line, a '#' follows white space.  No URI begins with one. */
static bool has_late_comment(const char *line, size_t len)
{
    for (size_t i = 1; i < len; i++)
        if (line[i] == '#' && strchr(" \t\r\v\f", line[i - 1]) != NULL)
            return true;
    return false;
}

/* Replace each comment line by blanks, which separate URIs.  Returns 0, or the number of the first
 * line with a comment after something else. */
static unsigned blank_comments(char *text)
{
    unsigned number = 1;

    for (char *line = text; *line != 0; number++) {
        size_t len = strcspn(line, "\n");

        if (line[strspn(line, " \t")] == '#')
            memset(line, ' ', len);
        else if (has_late_comment(line, len))
            return number;
        line += len;
        line += *line == '\n';
    }
    return 0;
}

/* Read the file into text[FILE_MAX].  Returns NULL, or why that failed. */
static const char *read_text(const char *path, char *text)
{
    size_t len = 0;
    ssize_t n = 1;
    int error, fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return text_of_errno(errno);
    while (n > 0 && len < FILE_MAX) {
        n = read(fd, text + len, FILE_MAX - len);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n > 0)
            len += (size_t)n;
    }
    error = errno; /* close() may change errno. */
    (void)close(fd);
    if (n < 0)
        return text_of_errno(error);
    if (len == FILE_MAX)
        return "longer than any list of masters";
    text[len] = 0;
    return strlen(text) == len ? NULL : "holds a NUL byte";
}

int list_file_read(const char *path, char **ret_list)
{
    char shown[SHOWN_MAX], late[80];
    /* Zeroed, so that the text ends in a NUL even if read_text() fails. */
    char *text = calloc(1, FILE_MAX);
    const char *why;
    unsigned line;

    if (text == NULL)
        return error_set(REDLOCK_E_NOMEM, "%s", redlock_strerror(REDLOCK_E_NOMEM));
    why = read_text(path, text);
    line = why == NULL ? blank_comments(text) : 0;
    if (line != 0) {
        (void)snprintf(late, sizeof late,
                       "line %u: '#' begins a comment only at the beginning of a line", line);
        why = late;
    }
    if (why != NULL) {
        sodium_memzero(text, FILE_MAX);
        free(text);
        return error_set(REDLOCK_E_INVAL, "the masters' file %s: %s",
                         text_quote(path, strlen(path), shown, sizeof shown), why);
    }
    *ret_list = text;
    return REDLOCK_OK;
}

void list_file_free(char *list)
{
    if (list != NULL)
        sodium_memzero(list, FILE_MAX);
    free(list);
}
