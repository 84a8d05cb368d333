/*
 * holder.h - takes a lock and says what becomes of it.  The programs loop-*.c share it: each of
 * them runs it on another event loop, and nothing here knows which.
 */
#include <stdio.h>

#include <redlock.h>

struct holder {
    struct redlock *rl;
    struct redlock_lease *lease;            /* NULL: the lock is not held. */
    void (*on_held)(struct holder *holder); /* The lock is held from now on. */
    void (*on_end)(struct holder *holder);  /* It is not held any more.  The program is to end. */
    int code;                               /* The exit status. */
};

static void holder_end(struct holder *holder, int code, const char *why)
{
    puts(why);
    holder->lease = NULL;
    holder->code = code;
    holder->on_end(holder);
}

static void holder_on_unlocked(struct redlock_lease *lease, int status, void *arg)
{
    struct holder *holder = arg;

    (void)lease;
    holder_end(holder, status != REDLOCK_OK,
               status == REDLOCK_OK ? "unlocked" : redlock_errmsg(holder->rl));
}

/* What the lock protects must end now: another client may get the lock soon. */
static void holder_on_lost(struct redlock_lease *lease, void *arg)
{
    (void)lease;
    holder_end(arg, 1, "lost");
}

static void holder_on_locked(struct redlock_lease *lease, int status, void *arg)
{
    struct holder *holder = arg;

    if (status != REDLOCK_OK) {
        holder_end(holder, 1, redlock_errmsg(holder->rl));
        return;
    }
    puts("held");
    holder->lease = lease;
    holder->on_held(holder);
}

/* Unlock, at the end of the input. */
static void holder_release(struct holder *holder)
{
    if (holder->lease != NULL)
        (void)redlock_unlock_async(holder->lease, holder_on_unlocked, holder);
    holder->lease = NULL;
}

/* Make a client for any loop, and ask for the lock that the first argument names. */
static int holder_start(struct holder *holder, int argc, char **argv)
{
    struct redlock_options opts;
    struct redlock_lock_options how;
    int status = REDLOCK_E_INVAL;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    redlock_options_init(&opts); /* The masters: REDLOCK_MASTERS. */
    opts.pollable = true;
    opts.reply_timeout_ms = 2000; /* For masters that are far away, or slow. */
    redlock_lock_options_init(&how);
    how.ttl_ms = 20000;       /* Ten times the reply timeout, as production.md says. */
    how.wait_ms = UINT32_MAX; /* Wait for as long as it takes. */
    how.lost = holder_on_lost;
    how.lost_arg = holder;
    if (argc == 2)
        status = redlock_open(&opts, &holder->rl);
    if (status == REDLOCK_OK)
        status = redlock_lock_async(holder->rl, argv[1], &how, holder_on_locked, holder, NULL);
    if (status != REDLOCK_OK)
        fprintf(stderr, "%s: %s\n", argv[0], argc == 2 ? redlock_errmsg(NULL) : "NAME is missing");
    return status;
}
