/*
 * default-address.c - the classic exercise: many requests at once, one default address.
 *
 * A shop lets its users have any number of addresses, and the first one that a user adds is
 * the default.  Whether it is the first, each request finds out by itself:
 *
 *     SELECT count(*) FROM address WHERE user = 42      is there one yet?
 *     INSERT INTO address ...                           the default, if there was none
 *
 * These are two transactions, and between them other requests do the same.  All that look
 * before the first insert is done find nothing, and all of them write a default.  The database
 * is no help: it keeps each transaction whole, and nobody told it that the two belong together.
 * (With a single database one could tell it.  The exercise stands for work where one cannot,
 * because the look and the write are in two systems, or minutes apart.)
 *
 * Here two processes handle 300 requests each, all for user 42, all at once.  Around the look
 * and the write they hold the lock "user/42"; with --no-lock they do without it:
 *
 *     default-address [--no-lock] DATABASE       a file that the program makes
 *
 * It ends with 0 if the table is as it should be: 600 addresses, one of them the default.
 */
#include <err.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <redlock.h>
#include <sqlite3.h>

#define USER 42
#define PROCESSES 2
#define REQUESTS 300 /* In each process. */

/* Pretended work between the look and the write: say, to ask another service whether the street
 * exists.  It is here to make the race likely.  Without it, and without the lock, five runs gave
 * 1, 2, 481, 1 and 1 defaults: a mistake that would pass most tests. */
#define WORK_MS 5

/* The insert takes some milliseconds, and on a bad day a second.  With less than that left of
 * the lock it is not begun, and is broken off where it has been. */
#define WRITE_MS 1000

/* A request that has waited for so long fails.  All 600 together take some ten seconds. */
#define PATIENCE_MS 300000

/* A request that lost the lock before it wrote anything begins anew, so often at most. */
#define ATTEMPTS 5

enum outcome {
    ADDED,
    FAILED, /* And said why. */
    LATE,   /* The lock was lost, or about to be; nothing was written. */
};

/* What the requests of a process share.  Any number of threads may use one client, and need no
 * mutex of their own: the lock that keeps out the other process keeps them apart, too. */
struct shop {
    struct redlock *rl; /* NULL: --no-lock. */
    pthread_barrier_t start;
};

struct request {
    struct shop *shop;
    sqlite3 *db; /* Its own: a shared connection would put the requests of a process in a row. */
    char street[40];
    bool added;
};

/* ---- The table ---- */

static sqlite3 *open_database(const char *path, bool locked)
{
    sqlite3 *db;

    if (sqlite3_open(path, &db) != SQLITE_OK)
        errx(1, "%s: %s", path, sqlite3_errmsg(db));
    /* Of two transactions that meet in the table SQLite makes one wait, if it may, or fail.  With
     * the lock it may not wait at all, and yet none fails: they never meet.  Without the lock
     * almost all would fail, which would hide what they do if they only wait. */
    if (!locked)
        (void)sqlite3_busy_timeout(db, PATIENCE_MS);
    return db;
}

static void make_table(const char *path)
{
    sqlite3 *db = open_database(path, true); /* Nobody else has it yet. */

    if (sqlite3_exec(db,
                     "CREATE TABLE address (user INTEGER NOT NULL, street TEXT NOT NULL,"
                     " is_default INTEGER NOT NULL)",
                     NULL, NULL, NULL) != SQLITE_OK)
        errx(1, "%s: %s", path, sqlite3_errmsg(db));
    (void)sqlite3_close(db);
}

/* A query whose answer is one number, in a transaction of its own; -1: it failed. */
static int ask_number(sqlite3 *db, const char *query)
{
    sqlite3_stmt *statement;
    int number = -1;

    if (sqlite3_prepare_v2(db, query, -1, &statement, NULL) != SQLITE_OK)
        return -1;
    if (sqlite3_bind_int(statement, 1, USER) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int(statement, 0);
    return sqlite3_finalize(statement) == SQLITE_OK ? number : -1;
}

/* Add one address, in a transaction of its own.  Gives SQLite's status. */
static int insert_address(sqlite3 *db, const char *street, bool is_default)
{
    sqlite3_stmt *statement;
    int status =
        sqlite3_prepare_v2(db, "INSERT INTO address VALUES (?, ?, ?)", -1, &statement, NULL);

    if (status != SQLITE_OK)
        return status;
    (void)sqlite3_bind_int(statement, 1, USER);
    (void)sqlite3_bind_text(statement, 2, street, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int(statement, 3, is_default);
    (void)sqlite3_step(statement); /* What it gives, finalize gives again. */
    return sqlite3_finalize(statement);
}

/* ---- A request ---- */

/* Look, and then write: what must not be done by two at once. */
static enum outcome add_address(struct request *request, const struct redlock_lease *lease)
{
    const struct timespec work = {.tv_nsec = WORK_MS * 1000000};
    int status, before = ask_number(request->db, "SELECT count(*) FROM address WHERE user = ?");

    if (before < 0 && sqlite3_errcode(request->db) == SQLITE_INTERRUPT)
        return LATE;
    if (before < 0) {
        warnx("%s: look: %s", request->street, sqlite3_errmsg(request->db));
        return FAILED;
    }
    (void)nanosleep(&work, NULL);
    /* The lock is a lease, and this process may have been stopped for longer than it lasts.  The
     * library compares clocks in this very call; whatever it said earlier is old. */
    if (lease != NULL && redlock_remaining_ms(lease) < WRITE_MS)
        return LATE;
    status = insert_address(request->db, request->street, before == 0);
    if (status == SQLITE_INTERRUPT)
        return LATE;
    if (status != SQLITE_OK) {
        warnx("%s: write: %s", request->street, sqlite3_errstr(status));
        return FAILED;
    }
    return ADDED;
}

/* The library renews the lock for as long as we hold it.  Now it could not, and the lock ends in
 * WRITE_MS, if it has not ended: an insert that is under way is broken off, and SQLite undoes it.
 * One that begins later is not: therefore add_address() asks.  Runs in the library's thread. */
static void on_lost(struct redlock_lease *lease, void *db)
{
    (void)lease;
    sqlite3_interrupt(db);
}

static enum outcome add_address_locked(struct request *request)
{
    struct redlock *rl = request->shop->rl;
    struct redlock_lock_options opts;
    struct redlock_lease *lease;
    enum outcome outcome;

    redlock_lock_options_init(&opts);
    opts.wait_ms = PATIENCE_MS;
    opts.lost_margin_ms = WRITE_MS;
    opts.lost = on_lost;
    opts.lost_arg = request->db; /* Stays open until after the unlock; then it is not called. */
    if (redlock_lock(rl, "user/42", &opts, &lease) != REDLOCK_OK) {
        warnx("%s: %s", request->street, redlock_errmsg(rl));
        return FAILED;
    }
    outcome = add_address(request, lease);
    /* If too few masters confirm it, the lock ends when its time is up, and the others wait until
     * then; no harm is done.  If it had been lost, and something was written, then this process
     * was stopped in the very insert: it cannot know whether somebody else looked meanwhile.  Only
     * a database that refuses the writes of past holders would help. */
    if (redlock_unlock(lease) != REDLOCK_OK)
        warnx("%s: %s%s", request->street, outcome == ADDED ? "added, but: " : "",
              redlock_errmsg(rl));
    return outcome;
}

static void *handle(void *arg)
{
    struct request *request = arg;
    enum outcome outcome = LATE;

    (void)pthread_barrier_wait(&request->shop->start);
    for (int attempt = 0; attempt < ATTEMPTS && outcome == LATE; attempt++)
        outcome =
            request->shop->rl != NULL ? add_address_locked(request) : add_address(request, NULL);
    if (outcome == LATE)
        warnx("%s: lost the lock %d times, and gave up", request->street, ATTEMPTS);
    request->added = outcome == ADDED;
    return NULL;
}

/* ---- A process ---- */

static struct redlock *open_client(void)
{
    struct redlock_options opts;
    struct redlock *rl;

    redlock_options_init(&opts); /* The masters: from REDLOCK_MASTERS. */
    if (redlock_open(&opts, &rl) != REDLOCK_OK)
        errx(1, "%s", redlock_errmsg(NULL));
    return rl;
}

/* A thread for each request.  With a pool of 16, say, 16 requests would wait for the lock and the
 * others for a thread: fewer tries, but not the exercise.  Gives how many added an address. */
static unsigned handle_all(struct shop *shop, const char *path, int process)
{
    static struct request requests[REQUESTS];
    pthread_t threads[REQUESTS];
    unsigned added = 0;

    if (pthread_barrier_init(&shop->start, NULL, REQUESTS) != 0)
        errx(1, "no barrier");
    for (int i = 0; i < REQUESTS; i++) {
        requests[i].shop = shop;
        requests[i].db = open_database(path, shop->rl != NULL);
        (void)snprintf(requests[i].street, sizeof requests[i].street, "%d Process Street, Flat %d",
                       process, i + 1);
        if (pthread_create(&threads[i], NULL, handle, &requests[i]) != 0)
            errx(1, "no thread for request %d", i + 1);
    }
    for (int i = 0; i < REQUESTS; i++) {
        (void)pthread_join(threads[i], NULL);
        (void)sqlite3_close(requests[i].db);
        added += requests[i].added;
    }
    (void)pthread_barrier_destroy(&shop->start);
    return added;
}

static int run_process(const char *path, int process, bool locked)
{
    struct redlock_stats stats = {.size = sizeof stats};
    struct shop shop = {.rl = locked ? open_client() : NULL};
    unsigned added = handle_all(&shop, path, process);

    printf("process %d: %u of %d requests added an address", process, added, REQUESTS);
    if (locked && redlock_stats(shop.rl, &stats) == REDLOCK_OK && stats.acquired > 0)
        printf(", after %.0f tries for the lock on average",
               (double)stats.rounds / (double)stats.acquired);
    printf("\n");
    redlock_close(shop.rl);
    return added == REQUESTS ? 0 : 1;
}

/* ---- The program ---- */

/* Neither clients of redlock nor connections of SQLite survive a fork; there are none yet.
 * True if all requests of all processes have added an address. */
static bool run_processes(const char *path, bool locked)
{
    bool all_added = true;
    int status;

    for (int process = 1; process <= PROCESSES; process++) {
        pid_t pid = fork();

        if (pid < 0)
            err(1, "fork");
        if (pid == 0)
            exit(run_process(path, process, locked));
    }
    for (int process = 1; process <= PROCESSES; process++) {
        if (wait(&status) < 0)
            err(1, "wait");
        all_added = all_added && status == 0;
    }
    return all_added;
}

int main(int argc, char **argv)
{
    bool locked = !(argc > 1 && strcmp(argv[1], "--no-lock") == 0);
    int addresses, defaults;
    bool all_added;
    const char *path;
    sqlite3 *db;

    if (argc != (locked ? 2 : 3)) {
        fprintf(stderr, "usage: %s [--no-lock] DATABASE\n", argv[0]);
        return 64;
    }
    path = argv[argc - 1];
    make_table(path);
    all_added = run_processes(path, locked);

    db = open_database(path, locked);
    addresses = ask_number(db, "SELECT count(*) FROM address WHERE user = ?");
    defaults = ask_number(db, "SELECT sum(is_default) FROM address WHERE user = ?");
    (void)sqlite3_close(db);
    printf("addresses=%d defaults=%d\n", addresses, defaults);
    return all_added && addresses == PROCESSES * REQUESTS && defaults == 1 ? 0 : 1;
}
