/*
 * combine.c - which options of a lock go together: checks those of a command, and prints the table.
 */
#include "redlock/core/combine.h"

#include <stdio.h>

#include "redlock/cli/common/cli.h"

static const char *option_of(enum combine option)
{
    switch (option) {
    case COMBINE_FAIR:
        return "--fair";
    case COMBINE_FENCE:
        return "--fence";
    case COMBINE_PERMITS:
        return "--permits";
    case COMBINE_SHARED:
        return "--shared";
    case COMBINE_ADOPT: /* The command has no option for these. */
    case COMBINE_REENTRANT:
    case COMBINE_SEVERAL:
    case COMBINE_LEN:
        break;
    }
    return "";
}

static combine_set set_of(const struct cli_names *names, const struct redlock_lock_options *opts)
{
    return (combine_set)opts->fair << COMBINE_FAIR | (combine_set)opts->fence << COMBINE_FENCE |
           (combine_set)(opts->permits > 0) << COMBINE_PERMITS |
           (combine_set)(names->len > 1) << COMBINE_SEVERAL |
           (combine_set)opts->shared << COMBINE_SHARED;
}

void cli_check_lock(const struct cli *cli, const struct cli_names *names,
                    const struct redlock_lock_options *opts)
{
    const struct combine_clash *clash = combine_clash_in(set_of(names, opts));

    if (clash != NULL && (clash->one == COMBINE_SEVERAL || clash->other == COMBINE_SEVERAL))
        cli_usage_error(cli, "%s is for one NAME, and here are %zu: %s",
                        option_of(clash->one == COMBINE_SEVERAL ? clash->other : clash->one),
                        names->len, clash->why);
    if (clash != NULL)
        cli_usage_error(cli, "%s and %s do not go together: %s", option_of(clash->one),
                        option_of(clash->other), clash->why);
    if (opts->fence && !cli_is_guarded(cli))
        cli_usage_error(cli, "--fence needs the restart guard, which is off");
}

/* ---- The table ---- */

static void print_cell(const char *text, bool is_last)
{
    (void)printf(is_last ? "%s\n" : "%-10s", text);
}

/* Reasons are numbered as they are listed. */
static void print_pair(enum combine one, enum combine other, bool is_last)
{
    const struct combine_clash *clash = combine_clash_in(1u << one | 1u << other);
    unsigned number = 0;
    char text[12];

    while (clash != NULL && combine_clash_at(number++) != clash)
        ;
    (void)snprintf(text, sizeof text, "%u", number);
    print_cell(clash != NULL ? text : "yes", is_last);
}

void cli_print_combinations(void)
{
    const struct combine_clash *clash;

    print_cell("", false);
    for (enum combine column = 0; column + 1 < COMBINE_LEN; column++)
        print_cell(combine_word(column), column + 2 == COMBINE_LEN);
    for (enum combine row = 1; row < COMBINE_LEN; row++) {
        print_cell(combine_word(row), false);
        for (enum combine column = 0; column < row; column++)
            print_pair(row, column, column + 1 == row);
    }
    for (unsigned i = 0; (clash = combine_clash_at(i)) != NULL; i++)
        (void)printf("\n%2u %s, %s:\n   %s\n", i + 1, combine_word(clash->one),
                     combine_word(clash->other), clash->why);
}
