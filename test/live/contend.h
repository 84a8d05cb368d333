/*
 * contend.h - many contenders for one lock, and three witnesses of exclusion.
 *
 * Each contender locks and unlocks a number of times.  Between the two it does something that
 * fails if another contender does it at the same time.  The witnesses are independent of locks
 * and of each other:
 *  - a plain counter, which a holder reads, keeps for a moment and writes back;
 *  - an atomic count of holders;
 *  - a file, to which a holder appends a line when its hold begins and when it ends.
 */
#ifndef TEST_LIVE_CONTEND_H
#define TEST_LIVE_CONTEND_H

#include <stdbool.h>

struct contend_plan {
    const char *masters;
    unsigned threads;   /* Threads in each process, on one blocking client. */
    unsigned processes; /* Processes to fork; 0: the threads run in the caller's process. */
    unsigned rounds;    /* Holds of each thread. */
    unsigned linger_us; /* How long each hold lasts. */
    /* Every second process locks on these masters, which breaks exclusion.  The test then checks
     * that the witnesses notice.  NULL: no process does. */
    const char *wrong_masters;
    void (*disturb)(void *disturb_arg); /* Called every few ms while they contend; may be NULL. */
    void *disturb_arg;
    /* UNREACHABLE is no failure of an unlock.  Several masters may restart during a hold, and
     * then too few can confirm the release. */
    bool unlock_may_be_unheard;
};

struct contend_report {
    unsigned holds_wanted;
    unsigned counter;   /* Holds counted by the plain counter; too few if two overlapped. */
    unsigned overlaps;  /* Holds that began during another hold. */
    unsigned log_lines; /* Lines of the file; two for each hold. */
    unsigned log_bad;   /* Lines that do not pair up. */
    unsigned failures;  /* Calls that did not return OK. */
    char failure[600];  /* The message of the first failure. */
};

void contend(const struct contend_plan *plan, struct contend_report *ret_report);

#endif /* TEST_LIVE_CONTEND_H */
