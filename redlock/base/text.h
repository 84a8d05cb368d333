/*
 * text.h - makes texts of masters safe to show on a terminal.
 */
#ifndef REDLOCK_TEXT_H
#define REDLOCK_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* The length of the UTF-8 character at text (RFC 3629, section 4).  0: there is none.  A NUL is a
 * character of length 1. */
size_t text_utf8_len(const char *text);

/* True if the character at text, of this length, is a control character of ASCII or of C1.  C1 is
 * U+0080 to U+009F, which also begin escape sequences (ECMA-48, section 5.3). */
bool text_is_control(const char *text, size_t len);

/* A letter of ASCII in lower case.  tolower() is of the program's locale: in Turkish, 'I' is no
 * capital 'i', and all clients must write the same list of masters. */
char text_lower(char c);

/* True if the bytes are the same, in letters of either case, as in text_lower(). */
bool text_same_letters(const char *a, const char *b, size_t len);

/* Write a '?' in place of each byte of a control character, and of each byte that is not UTF-8.  So
 * a master's text cannot control the terminal that shows it.  Returns text. */
char *text_clean(char *text);

/* Cut the end of a master's error that does not belong into a message: a full stop, the place in a
 * script, which Redis 7 adds, and the arguments of a command that it does not know.  Returns text.
 */
char *text_end_error(char *text);

/* Write stars over each copy of the secret.  "": nothing is secret.  Returns text. */
char *text_hide(char *text, const char *secret);

/* The system's words for an errno, in English whatever the program's locale is.  Valid until the
 * thread's next call. */
const char *text_of_errno(int error);

#endif /* REDLOCK_TEXT_H */
