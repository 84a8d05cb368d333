/*
 * text.c - see text.h.
 */
#include "redlock/base/text.h"

#include <assert.h>
#include <langinfo.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

static bool is_within(unsigned char byte, unsigned char low, unsigned char high)
{
    return byte >= low && byte <= high;
}

/* This reads no byte behind the NUL, which is no continuation byte. */
size_t text_utf8_len(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t len = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    unsigned char low = 0x80, high = 0xbf;

    if (len == 1)
        return 1;
    if (!is_within(at[0], 0xc2, 0xf4))
        return 0;
    /* These refuse overlong forms, surrogates, and all past U+10FFFF. */
    low = at[0] == 0xe0 ? 0xa0 : at[0] == 0xf0 ? 0x90 : low;
    high = at[0] == 0xed ? 0x9f : at[0] == 0xf4 ? 0x8f : high;
    if (!is_within(at[1], low, high))
        return 0;
    for (size_t i = 2; i < len; i++)
        if (!is_within(at[i], 0x80, 0xbf))
            return 0;
    return len;
}

uint32_t text_number(const char *text, size_t len)
{
    static const unsigned char first[] = {0x7f, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t number = (unsigned char)text[0] & first[len];

    for (size_t i = 1; i < len; i++)
        number = number << 6 | ((unsigned char)text[i] & 0x3f);
    return number;
}

bool text_is_control(const char *text, size_t len)
{
    const uint32_t c = text_number(text, len);

    return c < ' ' || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

char text_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool text_same_letters(const char *a, const char *b, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text_lower(a[i]) != text_lower(b[i]))
            return false;
    }
    return true;
}

char *text_clean(char *text)
{
    char *at = text;

    while (*at != 0) {
        size_t len = text_utf8_len(at);

        if (len == 0 || text_is_control(at, len)) {
            len = len == 0 ? 1 : len;
            memset(at, '?', len);
        }
        at += len;
    }
    return text;
}

/* ---- Quoting ---- */

/* Printable characters that are empty: with them, two names would look the same. */
static bool looks_blank(uint32_t c)
{
    static const uint16_t blanks[] = {0xa0, 0xad, 0x115f, 0x2007, 0x202f, 0x2800, 0x3164, 0xffa0};

    for (size_t i = 0; i < sizeof blanks / sizeof *blanks; i++)
        if (c == blanks[i])
            return true;
    return false;
}

/* The columns of a character, in the program's locale.  0: it is not shown as it is.  Here a
 * wchar_t is a number of Unicode: __STDC_ISO_10646__. */
static size_t width_of(const char *at, size_t len)
{
    const uint32_t c = text_number(at, len);

    if (len == 0 || text_is_control(at, len))
        return 0;
    if (len == 1)
        return 1;
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0 || looks_blank(c) || !iswgraph((wint_t)c))
        return 0;
    return wcwidth((wchar_t)c) > 0 ? (size_t)wcwidth((wchar_t)c) : 0;
}

/* What stands for a character that is special in names, or NULL: it is not special there. */
static const char *of_names(enum text_quoting how, const char *text, size_t len, size_t i)
{
    const bool is_list = how == TEXT_NAMES;
    const bool begins = i == 0 || (is_list && text[i - 1] == '\0');
    const bool ends = i + 1 == len || (is_list && text[i + 1] == '\0');

    if (how != TEXT_NAME && !is_list)
        return NULL;
    if (text[i] == ',')
        return "\\,";
    if (text[i] == ' ' && (begins || ends))
        return "\\x20";
    return text[i] == '\0' && is_list ? "," : NULL;
}

/* Write the character at text[i] as it is, or else one byte of it.  Returns how many of its bytes
 * were written. */
static size_t quote_one(enum text_quoting how, const char *text, size_t len, size_t i,
                        char ret_piece[5])
{
    const char *special = of_names(how, text, len, i);
    char at[5] = ""; /* text needs no NUL behind it. */
    size_t n;

    memcpy(at, text + i, len - i < 4 ? len - i : 4);
    n = text_utf8_len(at);
    if (special != NULL) {
        (void)strcpy(ret_piece, special);
        return 1;
    }
    if (at[0] != '\\' && n > 0 &&
        (how == TEXT_DATA ? !text_is_control(at, n) : width_of(at, n) > 0)) {
        memcpy(ret_piece, at, n);
        ret_piece[n] = '\0';
        return n;
    }
    (void)snprintf(ret_piece, 5, "\\x%02x", (unsigned char)at[0]);
    return 1;
}

const char *text_quote_as(enum text_quoting how, const char *text, size_t text_len, char *buf,
                          size_t size)
{
    size_t len = 0; /* Bytes written so far. */
    size_t fit = 0; /* The longest part that leaves room for "...". */

    assert(size >= 8);
    for (size_t i = 0; i < text_len;) {
        char piece[5];
        size_t piece_len;

        i += quote_one(how, text, text_len, i, piece);
        piece_len = strlen(piece);
        if (len + piece_len >= size) {
            memcpy(buf + fit, "...", sizeof "...");
            return buf;
        }
        memcpy(buf + len, piece, piece_len);
        len += piece_len;
        if (len + sizeof "..." <= size)
            fit = len;
    }
    buf[len] = '\0';
    return buf;
}

const char *text_quote(const char *text, size_t len, char *buf, size_t size)
{
    return text_quote_as(TEXT_WORDS, text, len, buf, size);
}

/* ---- Columns ---- */

/* Step over a character.  Returns its columns. */
static size_t step(const char *text, size_t *at)
{
    size_t len = text_utf8_len(text + *at), width = width_of(text + *at, len);

    len = len == 0 ? 1 : len;
    *at += len;
    return width > 0 ? width : len;
}

size_t text_columns(const char *text, size_t len)
{
    size_t columns = 0;

    for (size_t at = 0; at < len;)
        columns += step(text, &at);
    return columns;
}

size_t text_fit(const char *text, size_t columns)
{
    size_t at = 0, used = 0, fit = 0;

    while (text[at] != '\0') {
        used += step(text, &at);
        if (used > columns)
            return fit > 0 ? fit : at;
        fit = at;
    }
    return fit;
}

const char *text_cut(char *quoted, size_t columns)
{
    size_t at = 0, used = 0, fit = 0;

    assert(columns >= strlen("..."));
    while (quoted[at] != '\0') {
        size_t len =
            quoted[at] == '\\' ? quoted[at + 1] == ',' ? 2 : 4 : 1; /* An escape is whole. */

        do
            used += step(quoted, &at);
        while (--len > 0 && quoted[at] != '\0');
        if (used > columns) {
            memcpy(quoted + fit, "...", sizeof "...");
            return quoted;
        }
        if (used + strlen("...") <= columns)
            fit = at;
    }
    return quoted;
}

/* ---- Texts of masters ---- */

/* "WRONGTYPE Operation ... value script: 5f0a..., on @user_script:9.", and "ERR unknown command
 * 'SCRIPT', with args beginning with: 'LOAD' ...", which goes on with the text of our script. */
char *text_end_error(char *text)
{
    static const char before[] = " script: ", digits[] = "0123456789abcdef";
    char *args = strstr(text, ", with args beginning with");
    size_t len;

    if (args != NULL)
        *args = '\0';

    for (char *place = strstr(text, before); place != NULL; place = strstr(place + 1, before))
        if (strspn(place + sizeof before - 1, digits) >= 8)
            *place = '\0';
    len = strlen(text);
    if (len > 1 && text[len - 1] == '.' && text[len - 2] != '.')
        text[len - 1] = '\0';
    return text;
}

char *text_hide(char *text, const char *secret)
{
    size_t len = strlen(secret);

    if (len == 0)
        return text;
    for (char *at = strstr(text, secret); at != NULL; at = strstr(at + len, secret))
        memset(at, '*', len);
    return text;
}

/* newlocale() makes the locale C without an allocation, and no program frees it. */
const char *text_of_errno(int error)
{
    return strerror_l(error, newlocale(LC_ALL_MASK, "C", (locale_t)0));
}
