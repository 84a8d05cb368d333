/*
 * page.h - what `redlock list` prints.
 */
#ifndef REDLOCK_PAGE_H
#define REDLOCK_PAGE_H

#include <stdbool.h>

#include "drift/drift.h"
#include "redlock/cli/common/question.h"
#include "redlock/cli/common/remark.h"
#include "redlock/cli/list/locks.h"
#include "redlock/cli/list/screen.h"
#include "redlock/client/inspect.h"
#include "redlock/redlock.h"

/* What one scan of all masters has found. */
struct page_scan {
    struct locks locks;
    struct locks_row *rows; /* Of its locks. */
    size_t rows_len;
    drift_time at; /* 0: a majority was not scanned. */
};

struct page {
    bool all; /* Also guesses, and locks that less than a majority stores. */
    bool json;
    bool watch;
    const char *pattern;                       /* NULL: all names. */
    struct remark errors[REDLOCK_MASTERS_MAX]; /* Why a scan is not complete. */
    quorum_mask failed;                        /* Masters whose scan ended with an error. */
    const struct question *question;
    struct page_scan now, before;
    struct screen screen;
};

/* Make room for another scan. */
void page_turn(struct page *page);

/* Print what the scans have found, and flush it.  Returns an exit code. */
int page_print(struct page *page);
void page_done(struct page *page);

#endif /* REDLOCK_PAGE_H */
