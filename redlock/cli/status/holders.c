/*
 * holders.c - finds what a majority stores of what several masters tell.
 */
#include "redlock/cli/status/holders.h"

#include <stdlib.h>
#include <string.h>

#include "redlock/base/mask.h"

/* Redlock may have written it, and its time is not over.  No token contains a NUL. */
static bool is_holder(const struct shown_row *row)
{
    return (row->what == SHOWN_READER || (row->what == SHOWN_PERMIT && shown_is(row, "string"))) &&
           row->text_len > 0 && row->text_len <= REDLOCK_TOKEN_MAX &&
           strlen(row->text) == row->text_len && row->left_ms > 0;
}

static int compare(const void *a, const void *b)
{
    const struct shown_row *one = a, *other = b;

    if (one->number != other->number)
        return one->number < other->number ? -1 : 1;
    return strcmp(one->text, other->text);
}

/* How long this master stores the holder.  0: it does not. */
static long long left_of(const struct shown *shown, const struct shown_row *holder)
{
    for (size_t i = 0; shown != NULL && i < shown->len; i++)
        if (is_holder(&shown->rows[i]) && compare(&shown->rows[i], holder) == 0)
            return shown->rows[i].left_ms;
    return 0;
}

/* The longest time for which a majority stores the holder.  0: no majority does. */
static long long left_of_majority(const struct shown *const *of, unsigned masters,
                                  const struct members *lists, const struct shown_row *holder)
{
    long long left_ms[QUORUM_MASTERS_MAX] = {0};

    for (unsigned m = 0; m < masters; m++)
        left_ms[m] = left_of(of[m], holder);
    return members_reach(lists, left_ms);
}

bool holders_agree(const struct shown *const *of, unsigned masters, const struct members *lists,
                   struct shown *ret_agreed)
{
    size_t most = 1;

    for (unsigned m = 0; m < masters; m++)
        most += of[m] != NULL ? of[m]->len : 0;
    *ret_agreed = (struct shown){.rows = calloc(most, sizeof *ret_agreed->rows)};
    if (ret_agreed->rows == NULL)
        return false;
    for (unsigned m = 0; m < masters; m++)
        for (size_t i = 0; of[m] != NULL && i < of[m]->len; i++) {
            struct shown_row *holder = &ret_agreed->rows[ret_agreed->len];

            *holder = of[m]->rows[i];
            if (!is_holder(holder) || left_of(ret_agreed, holder) != 0)
                continue;
            holder->left_ms = left_of_majority(of, masters, lists, holder);
            ret_agreed->len += holder->left_ms > 0;
        }
    qsort(ret_agreed->rows, ret_agreed->len, sizeof *ret_agreed->rows, compare);
    return true;
}
