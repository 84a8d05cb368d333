/*
 * default-address.c - the classic exercise: many requests at once, one default address.
 *
 * A user of a shop may have any number of addresses.  The first one that the user adds is the
 * default.  Each request tests by itself whether its address is the first:
 *
 *     SELECT count(*) FROM address WHERE user = 42      is there one yet?
 *     INSERT INTO address ...                           the default, if there was none
 *
 * These are two transactions, and other requests can do the same between them.  All requests that
 * count before the first insert find nothing, and all of them write a default.  The database keeps
 * each transaction whole, but does not know that the two belong together.  (A single database
 * could do both in one transaction.  The exercise stands for work where it cannot, because the
 * query and the write are in two systems, or minutes apart.)
 *
 * Two processes handle 300 requests each, all for user 42, all at once.  Each request holds the
 * lock "user/42" while it counts and inserts; with --no-lock there is no lock:
 *
 *     default-address [--no-lock] DATABASE       a file that the program makes
 *
 * The exit status is 0 if the table has 600 addresses, and one of them is the default.
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

/* Simulated work between the query and the write, such as a query to another service.  It makes
 * the race likely.  Without this work and without the lock, five runs gave 1, 2, 481, 1 and 1
 * defaults: most tests would not find the mistake. */
#define WORK_MS 5

/* The insert takes some milliseconds, and at worst a second.  If less than that is left of the
 * lock, the insert does not begin; one that has begun is interrupted. */
#define WRITE_MS 1000

/* How long a request waits for the lock before it fails.  All 600 take about ten seconds. */
#define PATIENCE_MS 300000

/* A request that lost the lock before it wrote anything is repeated, this often at most. */
#define ATTEMPTS 5

enum outcome {
    ADDED,
    FAILED, /* The request has printed the reason. */
    LATE,   /* The lock was lost, or about to be lost; nothing was written. */
};

/* The requests of a process share this.  Any number of threads may use one client.  They need no
 * mutex: the lock excludes the threads of both processes. */
struct shop {
    struct redlock *rl; /* NULL: --no-lock. */
    pthread_barrier_t start;
};

struct request {
    struct shop *shop;
    sqlite3 *db; /* One for each request, because SQLite serializes the use of a shared one. */
    char street[40];
    bool added;
};

/* ---- The table ---- */

static sqlite3 *open_database(const char *path, bool locked)
{
    sqlite3 *db;

    if (sqlite3_open(path, &db) != SQLITE_OK)
        errx(1, "%s: %s", path, sqlite3_errmsg(db));
    /* If two transactions meet in the table, SQLite makes one wait, if it may, or fail.  With the
     * lock none may wait, and yet none fails: they never meet.  Without the lock almost all would
     * fail, and hide the race; so they may wait. */
    if (!locked)
        (void)sqlite3_busy_timeout(db, PATIENCE_MS);
    return db;
}

static void make_table(const char *path)
{
    sqlite3 *db = open_database(path, true); /* No other process has it open yet. */

    if (sqlite3_exec(db,
                     "CREATE TABLE address (user INTEGER NOT NULL, street TEXT NOT NULL,"
                     " is_default INTEGER NOT NULL)",
                     NULL, NULL, NULL) != SQLITE_OK)
        errx(1, "%s: %s", path, sqlite3_errmsg(db));
    (void)sqlite3_close(db);
}

/* Run a query whose answer is one number, as one transaction; -1: it failed. */
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

/* Add one address, as one transaction.  Returns SQLite's status. */
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
    (void)sqlite3_step(statement); /* sqlite3_finalize() returns the same error. */
    return sqlite3_finalize(statement);
}

/* ---- A request ---- */

/* Count, and then insert.  Two requests must not do this at once. */
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
    /* The lock is a lease, and this process may have been stopped for longer than it lasts.  Only
     * this call compares the lease with the present time. */
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

/* The library renews the lock while it is held.  If it cannot, it calls this, and the lock ends in
 * WRITE_MS at the latest.  This interrupts an insert under way, and SQLite undoes it.  A later
 * insert is not interrupted: therefore add_address() asks.  Runs in the library's thread. */
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
    opts.lost_arg = request->db; /* Must stay open until the unlock returns. */
    if (redlock_lock(rl, "user/42", &opts, &lease) != REDLOCK_OK) {
        warnx("%s: %s", request->street, redlock_errmsg(rl));
        return FAILED;
    }
    outcome = add_address(request, lease);
    /* If too few masters confirm the release, the lock expires, and other requests wait until then,
     * which is harmless.  If the lock was lost and the address was written, this process was
     * stopped during the insert, and another holder may have counted meanwhile.  Only a database
     * that refuses the writes of past holders can prevent that. */
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

    redlock_options_init(&opts); /* REDLOCK_MASTERS names the masters. */
    if (redlock_open(&opts, &rl) != REDLOCK_OK)
        errx(1, "%s", redlock_errmsg(NULL));
    return rl;
}

/* Run a thread for each request.  In a pool of 16 threads, only 16 requests would compete for the
 * lock.  Returns how many requests added an address. */
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

/* No client of redlock and no connection of SQLite may be open here: they do not survive a fork.
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
