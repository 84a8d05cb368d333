/*
 * number.c - reads numbers and lengths of time.
 */
#include "redlock/cli/common/cli.h"

#include <stdio.h>
#include <string.h>

#define TOO_LARGE (UINT64_C(1) << 32) /* As hours it is still below 2^64 ms. */

/* Read digits.  strtoul() would also accept signs and blanks.  Returns the end of the digits, or
 * text if there are none.  A value above every limit becomes TOO_LARGE. */
static const char *read_digits(const char *text, uint64_t *ret_value)
{
    const char *at = text;
    uint64_t value = 0;

    while (*at >= '0' && *at <= '9') {
        value = value * 10 + (uint64_t)(*at++ - '0');
        if (value > TOO_LARGE)
            value = TOO_LARGE;
    }
    *ret_value = value;
    return at;
}

static uint64_t unit_ms(const char *unit)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};

    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(unit, units[i].name) == 0)
            return units[i].ms;
    return 0;
}

const char *cli_show_duration(uint32_t ms, char *buf, size_t size)
{
    if (ms % 3600000 == 0 && ms != 0)
        (void)snprintf(buf, size, "%uh", ms / 3600000);
    else if (ms % 60000 == 0 && ms != 0)
        (void)snprintf(buf, size, "%um", ms / 60000);
    else if (ms % 1000 == 0 && ms != 0)
        (void)snprintf(buf, size, "%us", ms / 1000);
    else
        (void)snprintf(buf, size, "%ums", ms);
    return buf;
}

uint32_t cli_read_duration(const struct cli *cli, const char *what, const char *text,
                           uint32_t min_ms, uint32_t max_ms, const char *range)
{
    char shown[CLI_NAMES_SHOWN_MAX];
    uint64_t value = 0;
    const char *unit = read_digits(text, &value);
    uint64_t factor = unit_ms(unit);

    if (unit != text && *unit == 0 && value == 0)
        factor = 1; /* Zero needs no unit. */
    if (unit == text || factor == 0)
        cli_usage_error(cli,
                        "%s is '%s', but a duration is a whole number with a unit: "
                        "500ms, 30s, 2m, 1h",
                        what, cli_show_argument(text, shown));
    if (value * factor < min_ms || value * factor > max_ms)
        cli_usage_error(cli, "%s is '%s', but must be %s", what, cli_show_argument(text, shown),
                        range);
    return (uint32_t)(value * factor);
}

uint32_t cli_duration_ms(const struct cli *cli, const char *what, const char *text, uint32_t min_ms,
                         uint32_t max_ms)
{
    char range[48], min[16], max[16];

    (void)snprintf(range, sizeof range, "%s to %s", cli_show_duration(min_ms, min, sizeof min),
                   cli_show_duration(max_ms, max, sizeof max));
    return cli_read_duration(cli, what, text, min_ms, max_ms, range);
}

uint32_t cli_number(const struct cli *cli, const char *what, const char *text, uint32_t min,
                    uint32_t max)
{
    char shown[CLI_NAMES_SHOWN_MAX];
    uint64_t value = 0;
    const char *end = read_digits(text, &value);

    if (end == text || *end != 0 || value < min || value > max)
        cli_usage_error(cli, "%s is '%s', but must be a whole number, %u to %u", what,
                        cli_show_argument(text, shown), min, max);
    return (uint32_t)value;
}
