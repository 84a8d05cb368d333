/*
 * masters_double.c - masters that are up, have their data and count, in place of redlock/masters
 * and of the listening links.  The test defines masters_send(), listener_init() and listener_say().
 */
#include "test/lib/masters_double.h"

#include <stdlib.h>
#include <string.h>

#include "redlock/line/listener.h"
#include "redlock/masters/masters.h"

/* The words of a command, with a space between, and / for NUL. */
void masters_double_decode(const char *command, size_t len, char *ret_text)
{
    const char *end = command + len, *at = strchr(command, '\n') + 1;
    char *to = ret_text;

    while (at < end) {
        size_t word_len = strtoul(at + 1, NULL, 10);

        at = strchr(at, '\n') + 1;
        if (word_len < 100) {
            for (size_t i = 0; i < word_len; i++)
                *to++ = at[i] != '\0' ? at[i] : '/';
            *to++ = ' ';
        }
        at += word_len + 2;
    }
    to[-1] = '\0';
}

void listener_start(struct listener *listener)
{
    (void)listener;
}

void listener_stop(struct listener *listener)
{
    (void)listener;
}

void listener_on_left(struct listener *listener, quorum_mask left)
{
    (void)listener, (void)left;
}

void listener_flush(struct listener *listener)
{
    (void)listener;
}

void listener_write(struct listener *listener)
{
    (void)listener;
}

void masters_write(struct masters *all)
{
    (void)all;
}

void masters_want_proof(struct masters *all, enum quorum_command command, quorum_mask to)
{
    (void)all, (void)command, (void)to;
}

bool masters_hold(struct masters *all, unsigned m, const struct ask *ask, const struct vote *vote)
{
    (void)all, (void)m, (void)ask, (void)vote;
    return false;
}

quorum_mask masters_barred(const struct masters *all)
{
    (void)all;
    return 0;
}

quorum_mask masters_double_uncounted;

bool masters_count(struct masters *all, unsigned m, enum quorum_command command, drift_time at)
{
    (void)all, (void)command, (void)at;
    return !(masters_double_uncounted & mask_of(m));
}

void masters_raised(struct masters *all, unsigned m, uint64_t number)
{
    (void)all, (void)m, (void)number;
}

void masters_look_again(struct masters *all, unsigned m)
{
    (void)all, (void)m;
}

const char *masters_state(const struct masters *all, unsigned m)
{
    (void)all, (void)m;
    return "1.0";
}

enum outlook masters_outlook(const struct masters *all, quorum_mask refused, drift_time at,
                             struct outlook_view *ret_view)
{
    (void)all, (void)refused, (void)at;
    *ret_view = (struct outlook_view){0};
    return OUTLOOK_WELL;
}

enum outlook masters_outlook_of(const struct masters *all, quorum_mask failed, quorum_mask refused,
                                drift_time at, struct outlook_view *ret_view)
{
    (void)all, (void)failed, (void)refused, (void)at;
    *ret_view = (struct outlook_view){0};
    return OUTLOOK_WELL;
}

void masters_note(struct masters *all, unsigned m, const struct reason *why)
{
    (void)all, (void)m, (void)why;
}

void masters_relink(struct masters *all, unsigned m, const struct reason *why)
{
    (void)all, (void)m, (void)why;
}

const char *masters_name(const struct masters *all, unsigned m)
{
    (void)all, (void)m;
    return "made-up";
}

const struct reason *masters_reason(const struct masters *all, unsigned m)
{
    static const struct reason none = {.why = WHY_NONE};

    (void)all, (void)m;
    return &none;
}

void masters_recall(const struct masters *all, unsigned m, enum why seen, struct reason *ret_why)
{
    (void)all, (void)m;
    reason_set(ret_why, seen);
}

bool masters_is_linked(const struct masters *all, unsigned m)
{
    return (all->peers.up & mask_of(m)) != 0;
}

bool masters_link_is_up(const struct masters *all, unsigned m)
{
    return (all->peers.up & mask_of(m)) != 0;
}

bool masters_found(const struct masters *all)
{
    (void)all;
    return false;
}

bool masters_concern(const struct masters *all, unsigned m)
{
    return m < all->peers.len;
}
