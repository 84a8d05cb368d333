/*
 * text.h - makes names, and texts of masters, safe to show on a terminal.
 *
 * Names of locks are bytes.  What a command shows of one is printable, takes as many columns as it
 * seems to, and can be given back to a command as it is: see TEXT_NAME.
 */
#ifndef REDLOCK_TEXT_H
#define REDLOCK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the UTF-8 character at text (RFC 3629, section 4).  0: there is none.  A NUL is a
 * character of length 1. */
size_t text_utf8_len(const char *text);

/* The number of the UTF-8 character at text, of this length: U+00E4 is 0xe4. */
uint32_t text_number(const char *text, size_t len);

/* True if the character at text, of this length, is a control character: of ASCII; of C1, which is
 * U+0080 to U+009F and also begins escape sequences (ECMA-48, section 5.3); or one of Unicode that
 * ends a line, turns the direction of what follows (UAX 9, section 2), or has no width. */
bool text_is_control(const char *text, size_t len);

/* A letter of ASCII in lower case.  tolower() is of the program's locale: in Turkish, 'I' is no
 * capital 'i', and all clients must write the same list of masters. */
char text_lower(char c);

/* True if the bytes are the same, in letters of either case, as in text_lower(). */
bool text_same_letters(const char *a, const char *b, size_t len);

/* Write a '?' in place of each byte of a control character, and of each byte that is not UTF-8.  So
 * a master's text cannot control the terminal that shows it.  Returns text. */
char *text_clean(char *text);

/*
 * Write a text for people to read.  Printable ASCII stays as it is, and so do printable characters
 * of UTF-8 if the program's locale has UTF-8, but for those that have no width or look like a
 * blank.  A backslash and every other byte become \xHH.  A text that does not fit ends in "...".
 * Returns buf.  size must be at least 8.
 */
const char *text_quote(const char *text, size_t len, char *buf, size_t size);

enum text_quoting {
    TEXT_WORDS, /* As text_quote() does. */
    TEXT_NAME,  /* A name as commands take it: a comma is "\,", and a blank at either end \x20. */
    TEXT_NAMES, /* The same of several, with a NUL between two.  A comma stands between them. */
    TEXT_DATA,  /* For programs: all UTF-8 but control characters stays, in any locale. */
};
const char *text_quote_as(enum text_quoting how, const char *text, size_t len, char *buf,
                          size_t size);

/* The columns of a terminal that these bytes of a text take.  A byte that is not printable in the
 * program's locale counts as one. */
size_t text_columns(const char *text, size_t len);

/* How many bytes of a text take up to so many columns, at least one character. */
size_t text_fit(const char *text, size_t columns);

/* Cut a quoted text that takes more columns, so that it ends in "...".  Returns it. */
const char *text_cut(char *quoted, size_t columns);

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
