/*
 * contend.h - many who want one lock, and three witnesses.
 *
 * Every contender takes the lock, does something that goes wrong if another
 * one does it at the same time, and gives the lock back, a number of times.
 * The witnesses know nothing of locks, nor of one another: a counter that is
 * read, kept for a moment and written back; an atomic number of those inside;
 * and a file to which each appends a line when it comes in and when it goes.
 */
#ifndef TEST_LIVE_CONTEND_H
#define TEST_LIVE_CONTEND_H

#include <stdbool.h>

struct contend_plan {
    const char *masters;
    unsigned threads;   /* In each process, on one blocking client. */
    unsigned processes; /* Forked; 0: the threads are those of the caller. */
    unsigned rounds;    /* Of each thread. */
    unsigned linger_us; /* How long each stays inside. */
    /* Every second process locks here instead, so that exclusion is broken, to
     * see whether the witnesses notice.  NULL: none does. */
    const char *wrong_masters;
    void (*disturb)(void *disturb_arg); /* Called now and then while they contend; may be NULL. */
    void *disturb_arg;
    /* A hold may outlast the restarts of several masters, and then too few can say
     * that they released it: UNREACHABLE is no failure of an unlock. */
    bool unlock_may_be_unheard;
};

struct contend_report {
    unsigned holds_wanted;
    unsigned counter;   /* Holds, as counted under the lock: less if any two overlapped. */
    unsigned overlaps;  /* How often somebody was inside already. */
    unsigned log_lines; /* Two a hold; */
    unsigned log_bad;   /* those that do not pair up. */
    unsigned failures;  /* Calls that gave anything but OK; */
    char failure[600];  /* one of them. */
};

void contend(const struct contend_plan *plan, struct contend_report *ret_report);

#endif /* TEST_LIVE_CONTEND_H */
