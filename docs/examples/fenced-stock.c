/*
 * fenced-stock.c - a table that refuses the writes of past holders.
 *
 * A shop has 100 pieces of an article.  A process that sells one reads the number, and writes one
 * less; it holds the lock "stock/7" while it does both.  A lock is a lease, and a process may be
 * stopped at any time, even between its last check of the lock and its write:
 *
 *     Ann     locks, reads 100, sees that 2 s are left, and is stopped (SIGSTOP)
 *     Bob     waits until the lock expires, locks, reads 100
 *     Ann     goes on, and writes 99
 *     Bob     writes 99: two pieces are sold, but the table counts one
 *
 * No lock service can prevent that: the check was right, but the write comes later.  The table can
 * prevent it.  Each lock comes with a fencing token, a number greater than those of all earlier
 * locks.  The table stores the greatest token that it has seen, and refuses smaller ones.  So Ann
 * is refused, starts again, reads 99 and writes 98.
 *
 * Bob shows its token when it reads, not only when it writes.  Otherwise the table would not know
 * Bob's token yet when Ann writes, and would accept both writes.
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

#define STOCK 100
#define SOLD 2

/* Short, because Bob waits until it expires.  Ann's client is stopped, so it cannot renew. */
#define TTL_MS 2000
#define PATIENCE_MS 60000
#define SILENT_MS 5000 /* Then the program says why it has no lock yet. */

/* ---- The table ---- */

/* A table needs a column and this trigger to be safe from past holders.  A holder may come more
 * than once with one token, so only smaller tokens are refused.  One transaction must compare and
 * write, or another write could come in between. */
static const char fence_rule[] =
    "CREATE TRIGGER refuse_past_holders BEFORE UPDATE ON stock WHEN NEW.fence < OLD.fence "
    "BEGIN SELECT RAISE(ABORT, 'a later holder was here'); END";

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

/* Ask the table, and show it the token: "?1" of the SQL.  Tokens stay below 2^53, so they fit into
 * SQLite's integers, and even into a double.  Returns the count; -1: the table refused the token.
 */
static int ask(sqlite3 *db, const char *sql, uint64_t fence, int count)
{
    sqlite3_stmt *statement;
    int ret = -1;
    int status;

    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        errx(1, "%s: %s", sql, sqlite3_errmsg(db));
    (void)sqlite3_bind_int64(statement, 1, (sqlite3_int64)fence);
    if (sqlite3_bind_parameter_count(statement) == 2)
        (void)sqlite3_bind_int(statement, 2, count);
    while (sqlite3_step(statement) == SQLITE_ROW)
        ret = sqlite3_column_int(statement, 0);
    status = sqlite3_finalize(statement);
    if (status != SQLITE_OK && status != SQLITE_CONSTRAINT)
        errx(1, "%s: %s", sql, sqlite3_errmsg(db));
    return ret;
}

static int read_count(sqlite3 *db, uint64_t fence)
{
    return ask(db, "UPDATE stock SET fence = ?1 WHERE article = 7 RETURNING count", fence, 0);
}

/* False: the write was refused. */
static bool write_count(sqlite3 *db, uint64_t fence, int count)
{
    return ask(db, "UPDATE stock SET fence = ?1, count = ?2 WHERE article = 7 RETURNING count",
               fence, count) == count;
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
    opts.fence = true;
    opts.wait_ms = SILENT_MS;
    if (redlock_lock(rl, "stock/7", &opts, &lease) == REDLOCK_OK)
        return lease;
    warnx("%s; tries for %d s more", redlock_errmsg(rl), PATIENCE_MS / 1000);
    opts.wait_ms = PATIENCE_MS;
    if (redlock_lock(rl, "stock/7", &opts, &lease) != REDLOCK_OK)
        errx(1, "%s", redlock_errmsg(rl));
    return lease;
}

/* Wait until the process is stopped or has ended.  True: it is stopped. */
static bool wait_for(pid_t pid, int *ret_status)
{
    if (waitpid(pid, ret_status, WUNTRACED) != pid)
        err(1, "waitpid");
    return WIFSTOPPED(*ret_status);
}

static void go_on(pid_t ann)
{
    int status;

    (void)kill(ann, SIGCONT);
    if (!wait_for(ann, &status))
        errx(1, "Ann has ended before it was stopped");
}

/* ann: 0 in Ann, which stops itself before and after its first write, as can happen to any process.
 * In Bob it is Ann's PID: Bob lets Ann write in the middle of its own sale.  -1: neither happens.
 * False: nothing was sold, because another process has the lock by now. */
static bool sell_one(struct redlock *rl, sqlite3 *db, const char *who, pid_t ann)
{
    struct redlock_lease *lease = lock(rl);
    struct redlock_lease_info info = {.size = sizeof info};
    bool sold = false;
    int count;

    if (redlock_lease_info(lease, &info) != REDLOCK_OK)
        errx(1, "%s", redlock_errmsg(rl));
    count = read_count(db, info.fence);
    printf("%s: has the lock, token %" PRIu64 ", and reads %d\n", who, info.fence, count);
    /* This check avoids a write that would be refused.  Without fencing it is the only protection,
     * but the lock may expire right after it. */
    if (count >= 0 && redlock_remaining_ms(lease) > 0) {
        if (ann == 0)
            printf("%s: %u ms of the lock are left; is stopped\n", who,
                   redlock_remaining_ms(lease));
        (void)fflush(stdout);
        if (ann == 0)
            (void)raise(SIGSTOP);
        if (ann > 0)
            go_on(ann);
        sold = write_count(db, info.fence, count - 1);
        printf("%s: %s %d\n", who, sold ? "writes" : "is refused to write", count - 1);
        (void)fflush(stdout);
        if (ann == 0)
            (void)raise(SIGSTOP);
    }
    (void)redlock_unlock(lease); /* Ann's lock is lost by now; only the table's answer matters. */
    return sold;
}

static void sell(const char *path, const char *who, pid_t ann)
{
    struct redlock *rl = open_client();
    sqlite3 *db = open_database(path);

    while (!sell_one(rl, db, who, ann))
        ann = -1;
    (void)sqlite3_close(db);
    redlock_close(rl);
}

/* ---- The program ---- */

/* No client of redlock and no connection of SQLite may be open here: they do not survive a fork. */
static pid_t start_ann(const char *path)
{
    int status;
    pid_t pid = fork();

    if (pid < 0)
        err(1, "fork");
    if (pid == 0) {
        sell(path, "Ann", 0);
        exit(0);
    }
    if (!wait_for(pid, &status))
        errx(1, "Ann has ended before it was stopped");
    return pid;
}

static int count_left(const char *path)
{
    sqlite3 *db = open_database(path);
    int count = ask(db, "SELECT count + ?1 FROM stock WHERE article = 7", 0, 0);

    (void)sqlite3_close(db);
    return count;
}

int main(int argc, char **argv)
{
    bool fenced = !(argc > 1 && strcmp(argv[1], "--no-fence") == 0);
    int count, status;
    const char *path;
    pid_t ann;

    if (argc != (fenced ? 2 : 3)) {
        fprintf(stderr, "usage: %s [--no-fence] DATABASE\n", argv[0]);
        return 64;
    }
    path = argv[argc - 1];
    make_table(path, fenced);
    ann = start_ann(path);
    sell(path, "Bob", ann);
    (void)kill(ann, SIGCONT);
    if (wait_for(ann, &status) || status != 0)
        errx(1, "Ann has failed");

    count = count_left(path);
    printf("sold=%d left=%d\n", SOLD, count);
    return count == STOCK - SOLD ? 0 : 1;
}
