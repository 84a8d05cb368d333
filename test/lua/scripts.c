/*
 * scripts.c - prints each script of the library: SHA-1, length, text.
 */
#include "redlock/wire/script.h"

#include <stdio.h>

int main(void)
{
    for (unsigned i = 0; i < SCRIPT_LEN; i++)
        printf("%s %zu\n%s\n", script_all[i].sha1, script_all[i].text_len, script_all[i].text);
    return 0;
}
