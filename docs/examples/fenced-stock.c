/*
 * fenced-stock.c - a table that refuses the writes of past holders.
 *
 * A shop has 100 pieces of an article.  A process that sells one reads the number, and writes one
 * less; it holds the lock "stock/7" while it does both.  A lock is a lease, and a process may be
 * stopped at any time, even between its last check of the lock and its write:
 *
 *     Ann     locks, reads 100, sees that 2 s are left, and is stopped (SIGSTOP)
 *     Bob     waits until the lock expires, locks, reads 100, writes 99
 *     Ann     goes on, and writes 99: two pieces are sold, but the table counts one
 *
 * No lock service can prevent that: the check was right, but the write comes later.  The table can
 * prevent it.  Each lock comes with a fencing token, a number greater than those of all earlier
 * locks.  The table stores the greatest token that it has seen, and refuses smaller ones.  So Ann
 * is refused, starts again, reads 99 and writes 98.
 *
 *     fenced-stock [--no-fence] DATABASE       a file that the program makes
 *
 * The exit status is 0 if the table is right.  With --no-fence the table accepts any write, and is
 * wrong.
 */
#include <err.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <redlock.h>
#include <sqlite3.h>

#define ARTICLE 7
#define STOCK 100
#define SOLD 2

/* Short, because Bob waits until it expires.  Ann's client is stopped, so it cannot renew. */
#define TTL_MS 2000
#define PATIENCE_MS 60000

/* ---- The table ---- */

/* A table needs a column and this trigger to be safe from past holders.  A holder may write more
 * than once with one token, so only smaller tokens are refused.  One transaction must compare and
 * write, or another write could come in between. */
static const char fence_rule[] =
    "CREATE TRIGGER refuse_past_holders BEFORE UPDATE ON stock WHEN NEW.fence < OLD.fence "
    "BEGIN SELECT RAISE(ABORT, 'a later holder has written'); END";

static sqlite3 *open_database(const char *path)
{
    sqlite3 *db;

    if (sqlite3_open(path, &db) != SQLITE_OK)
        errx(1, "%s: %s", path, sqlite3_errmsg(db));
    return db;
}

static void make_table(const char *path, bool fenced)
{
    sqlite3 *db = open_database(path);

    if (sqlite3_exec(db,
                     "CREATE TABLE stock (article INTEGER PRIMARY KEY, count INTEGER NOT NULL,"
                     " fence INTEGER NOT NULL);"
                     "INSERT INTO stock VALUES (7, 100, 0)",
                     NULL, NULL, NULL) != SQLITE_OK ||
        (fenced && sqlite3_exec(db, fence_rule, NULL, NULL, NULL) != SQLITE_OK))
        errx(1, "%s: %s", path, sqlite3_errmsg(db));
    (void)sqlite3_close(db);
}

static int read_count(sqlite3 *db)
{
    sqlite3_stmt *statement;
    int count;

    if (sqlite3_prepare_v2(db, "SELECT count FROM stock WHERE article = ?", -1, &statement, NULL) !=
            SQLITE_OK ||
        sqlite3_bind_int(statement, 1, ARTICLE) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW)
        errx(1, "read: %s", sqlite3_errmsg(db));
    count = sqlite3_column_int(statement, 0);
    (void)sqlite3_finalize(statement);
    return count;
}

/* False: the write was refused.  Tokens stay below 2^53, so they fit into SQLite's integers, and
 * even into a double. */
static bool write_count(sqlite3 *db, int count, uint64_t fence)
{
    sqlite3_stmt *statement;
    int status;

    if (sqlite3_prepare_v2(db, "UPDATE stock SET count = ?, fence = ? WHERE article = ?", -1,
                           &statement, NULL) != SQLITE_OK)
        errx(1, "write: %s", sqlite3_errmsg(db));
    (void)sqlite3_bind_int(statement, 1, count);
    (void)sqlite3_bind_int64(statement, 2, (sqlite3_int64)fence);
    (void)sqlite3_bind_int(statement, 3, ARTICLE);
    (void)sqlite3_step(statement);
    status = sqlite3_finalize(statement);
    if (status != SQLITE_OK && status != SQLITE_CONSTRAINT)
        errx(1, "write: %s", sqlite3_errmsg(db));
    return status == SQLITE_OK;
}

/* ---- A sale ---- */

static struct redlock *open_client(void)
{
    struct redlock *rl;

    if (redlock_open(NULL, &rl) != REDLOCK_OK) /* REDLOCK_MASTERS names the masters. */
        errx(1, "%s", redlock_errmsg(NULL));
    return rl;
}

static struct redlock_lease *lock(struct redlock *rl)
{
    struct redlock_lock_options opts;
    struct redlock_lease *lease;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = TTL_MS;
    opts.wait_ms = PATIENCE_MS;
    opts.fence = true;
    if (redlock_lock(rl, "stock/7", &opts, &lease) != REDLOCK_OK)
        errx(1, "%s", redlock_errmsg(rl));
    return lease;
}

/* False: nothing was sold, because another process has the lock by now.  stops: this process stops
 * itself between the check and the write, as can happen to any process. */
static bool sell_one(struct redlock *rl, sqlite3 *db, const char *who, bool stops)
{
    struct redlock_lease *lease = lock(rl);
    struct redlock_lease_info info = {.size = sizeof info};
    int count = read_count(db);
    bool sold = false;

    if (redlock_lease_info(lease, &info) != REDLOCK_OK)
        errx(1, "%s", redlock_errmsg(rl));
    printf("%s: has the lock, token %" PRIu64 ", and reads %d\n", who, info.fence, count);
    /* This check avoids a write that would be refused.  Without fencing it is the only protection,
     * but the lock may expire right after it. */
    if (redlock_remaining_ms(lease) > 0) {
        if (stops) {
            printf("%s: %u ms of the lock are left; is stopped\n", who,
                   redlock_remaining_ms(lease));
            (void)fflush(stdout);
            (void)raise(SIGSTOP);
        }
        sold = write_count(db, count - 1, info.fence);
        printf("%s: %s %d\n", who, sold ? "writes" : "is refused to write", count - 1);
    }
    (void)redlock_unlock(lease); /* Ann's lock is lost by now; only the table's answer matters. */
    (void)fflush(stdout);
    return sold;
}

static void sell(const char *path, const char *who, bool stops)
{
    struct redlock *rl = open_client();
    sqlite3 *db = open_database(path);

    while (!sell_one(rl, db, who, stops))
        stops = false;
    (void)sqlite3_close(db);
    redlock_close(rl);
}

/* ---- The program ---- */

/* No client of redlock and no connection of SQLite may be open here: they do not survive a fork. */
static pid_t start_ann(const char *path)
{
    pid_t pid = fork();

    if (pid < 0)
        err(1, "fork");
    if (pid == 0) {
        sell(path, "Ann", true);
        exit(0);
    }
    return pid;
}

/* Wait until the process is stopped or has ended.  True: it is stopped. */
static bool wait_for(pid_t pid, int *ret_status)
{
    if (waitpid(pid, ret_status, WUNTRACED) != pid)
        err(1, "waitpid");
    return WIFSTOPPED(*ret_status);
}

int main(int argc, char **argv)
{
    bool fenced = !(argc > 1 && strcmp(argv[1], "--no-fence") == 0);
    int count, status;
    const char *path;
    sqlite3 *db;
    pid_t ann;

    if (argc != (fenced ? 2 : 3)) {
        fprintf(stderr, "usage: %s [--no-fence] DATABASE\n", argv[0]);
        return 64;
    }
    path = argv[argc - 1];
    make_table(path, fenced);
    ann = start_ann(path);
    if (!wait_for(ann, &status))
        errx(1, "Ann has ended before she was stopped");
    sell(path, "Bob", false);
    (void)kill(ann, SIGCONT);
    if (wait_for(ann, &status) || status != 0)
        errx(1, "Ann has failed");

    db = open_database(path);
    count = read_count(db);
    (void)sqlite3_close(db);
    printf("sold=%d left=%d\n", SOLD, count);
    return count == STOCK - SOLD ? 0 : 1;
}
