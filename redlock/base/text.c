/*
 * text.c - finds characters, and those that control a terminal.
 */
#include "redlock/base/text.h"

#include <locale.h>
#include <stdbool.h>
#include <string.h>

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

bool text_is_control(const char *text, size_t len)
{
    const unsigned char *at = (const unsigned char *)text;

    return len == 1 ? at[0] < ' ' || at[0] == 0x7f : len == 2 && at[0] == 0xc2 && at[1] < 0xa0;
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
