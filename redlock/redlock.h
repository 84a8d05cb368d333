/*
 * redlock.h - locks agreed by a majority of independent Redis masters.
 *
 * A lock is held while more than half of the masters store this client's
 * token and the locally measured validity has not run out.  It is a lease:
 * whoever may be paused past the end of one - a process, a virtual machine -
 * must ask redlock_remaining_ms() before it relies on it (redlock(3), CAVEATS).
 *
 * Conventions.  Durations carry their unit in their name.  Strings passed in
 * are copied.  Strings handed out belong to the library and last as long as
 * the object they were asked of, unless the function says otherwise.  ret_*
 * arguments are written on success only.
 *
 * Threads.  A client on the caller's loop (options.loop set) belongs to the
 * thread that runs this loop.  A blocking client (options.loop NULL) may be
 * used by any number of threads at once; the asynchronous calls are not for
 * it.  redlock_remaining_ms() may be called from any thread with either kind.
 *
 * Forks.  A client does not survive fork(): in the child every call on it
 * gives REDLOCK_E_STATE, and redlock_close() frees its memory and closes its
 * sockets without a word to the masters.
 *
 * Signals.  The library installs no handlers, and raises no SIGPIPE.
 */
#ifndef REDLOCK_H
#define REDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define REDLOCK_API __attribute__((visibility("default")))
#define REDLOCK_MUST_CHECK __attribute__((warn_unused_result))
#else
#define REDLOCK_API
#define REDLOCK_MUST_CHECK
#endif

#define REDLOCK_MASTERS_MAX 15 /* Most masters one client accepts. */
#define REDLOCK_NAME_MAX 512   /* Longest resource name, bytes, without the NUL. */
#define REDLOCK_TOKEN_MAX 128  /* Longest foreign token redlock_adopt() takes, likewise. */
#define REDLOCK_NAMES_MAX 16   /* Most resources of one lease: redlock_lock_many(). */

#define REDLOCK_PERMITS_MAX 256 /* Most permits of one semaphore. */

struct ev_loop;       /* libev's; <ev.h> is not needed to include this file. */
struct redlock;       /* A client: its options, masters, and links. */
struct redlock_lease; /* One lock that is held or being acquired. */

/*
 * Status codes.  Zero is success.  A positive code is an ordinary outcome that
 * the caller has to handle; every function lists the outcomes it can give.  A
 * negative code is a failure to pass up.  Values are never reused.
 */
enum redlock_status {
    REDLOCK_OK = 0,

    REDLOCK_CONTENDED = 1,   /* Masters answered; another owner has the lock. */
    REDLOCK_UNREACHABLE = 2, /* Too few masters answered, or may be counted. */
    REDLOCK_TOO_LATE = 3,    /* A majority said yes, but no validity was left. */
    REDLOCK_LOST = 4,        /* The lock had been held, and no longer is, or is about to end. */

    REDLOCK_E_INVAL = -1,  /* An argument or option is out of range. */
    REDLOCK_E_NOMEM = -2,  /* Out of memory; nothing was changed. */
    REDLOCK_E_STATE = -3,  /* Not allowed now: wrong kind of client, closed, forked. */
    REDLOCK_E_SYSTEM = -4, /* Clock, loop, thread, or entropy failed. */
};

/* Constant English text for any status, known or not.  Never NULL.  Any thread. */
REDLOCK_API const char *redlock_strerror(int status);

/* The version of the library, "1.2.3".  Any thread. */
REDLOCK_API const char *redlock_version(void);

enum redlock_level { REDLOCK_LOG_ERROR, REDLOCK_LOG_WARNING, REDLOCK_LOG_INFO, REDLOCK_LOG_DEBUG };

/*
 * What keeps masters from voting whose wall clock was stepped, and may have dropped
 * locks that are held; see redlock(3).
 */
enum redlock_clock_guard {
    REDLOCK_CLOCK_GUARD_OFF,
    REDLOCK_CLOCK_GUARD_PERIODIC, /* Each clock is looked at once a second. */
    REDLOCK_CLOCK_GUARD_PER_VOTE, /* And behind every vote, which counts if it is steady. */
};

/*
 * Options of a client.  Start from redlock_options_init(); fields are only
 * ever appended, and a field past the recorded size takes its default.
 */
struct redlock_options {
    size_t size;
    const char *masters;         /* URIs split by commas or white space, see redlock(3):
                                  * "redis://user:pass@host:6379/0", "unix:///run/r.sock",
                                  * plain "host:port", "[::1]:7001".  1 to 15, all different.
                                  * NULL: the environment variable REDLOCK_MASTERS. */
    struct ev_loop *loop;        /* Caller's loop: asynchronous calls only, no threads (but see
                                  * redlock(3) on host names).  It must outlive the client.
                                  * NULL: blocking client, with a thread of its own. */
    uint32_t connect_timeout_ms; /* Resolve, connect and handshake.  1 to 3600000, default 1000. */
    uint32_t reply_timeout_ms;   /* Per round of requests.  1 to 3600000, default 50. */
    uint32_t drift_ppm;          /* Bound on the rate between any two clocks.
                                  * 0 to 500000, default 10000 (1 %). */
    uint32_t drift_fixed_ms;     /* Added to the above.  0 to 60000, default 2. */
    uint32_t max_ttl_ms;         /* Longest lease accepted.  1 to 86400000, default 60000. */
    /* Keep a master that was restarted, or flushed, without what it knew from
     * voting until all that it may have granted is over: some time more than
     * max_ttl_ms, which should be the same for all clients.  Masters that are new and volatile wait
     * likewise; see redlock(3).  All clients of these masters must use it.
     * Default true. */
    bool restart_guard;
    /* All clients of these masters must use the same.  Default PERIODIC. */
    enum redlock_clock_guard clock_guard;
    /* Called with one line, without a newline, from whichever thread the
     * library runs in; it must not call the library.  NULL: no log. */
    void (*log)(void *log_arg, enum redlock_level level, const char *message);
    void *log_arg;
};
REDLOCK_API void redlock_options_init_sized(struct redlock_options *opts, size_t size);
#define redlock_options_init(opts) redlock_options_init_sized((opts), sizeof *(opts))

/*
 * Options of one lock; same growth rule.  NULL wherever accepted: all defaults.
 */
struct redlock_lock_options {
    size_t size;
    uint32_t ttl_ms;  /* Lease asked of the masters.  Up to max_ttl_ms, and longer than
                       * its drift allowance.  Default 10000. */
    uint32_t wait_ms; /* Keep trying this long.  0: one round (default).  UINT32_MAX: for ever. */
    uint32_t retry_delay_min_ms; /* Random pause between two rounds, or a fourth of that
                                  * between two looks where masters tell of releases;
                                  * see redlock(3).  Default 50. */
    uint32_t retry_delay_max_ms; /* At least the above.  Default 200. */
    bool no_renew;               /* Let the lease run out instead of renewing it. */
    bool fence; /* Draw a fencing token, see redlock_fence(); needs restart_guard. */
    bool fair;  /* Wait in a queue, for one's turn; see redlock(3).  Not with fence, shared,
                 * permits, or several resources. */
    /*
     * Hold it together with others who do so, the readers, while nobody has it alone (default
     * false).  Who waits to have it alone keeps new readers out; those who have it keep it.
     * Not with fence, fair, reentrant, permits, or several resources.
     */
    bool shared;
    uint32_t max_hold_ms;    /* Stop renewing after this long.  0: no limit (default). */
    uint32_t lost_margin_ms; /* How long before the deadline lost is called, less than the
                              * validity; half of that counts at most.
                              * 0: a tenth of ttl_ms (default). */
    uint32_t permits;        /* So many may hold it at once: up to 256, and the same for all who use
                              * it, see redlock(3).  Not with fence, fair, shared, reentrant, or
                              * several resources.
                              * 0: it is a lock (default), which has nothing to do with a semaphore of
                              * the same name. */
    /*
     * Called once, lost_margin_ms before the deadline, when the lease could
     * not be renewed, or at once when a majority says that it is gone.  Until
     * the deadline, which redlock_remaining_ms() tells, the lock is still
     * held.  Runs on the loop, or in the thread of a blocking client; it
     * may call redlock_remaining_ms() and, on a loop client only, all else.
     * redlock_unlock() and redlock_detach() in another thread wait for it, so
     * it must not wait for them; after them it does not run any more.
     */
    void (*lost)(struct redlock_lease *lease, void *lost_arg);
    void *lost_arg;
    /*
     * Its owner may lock it again (default false): gets the same lease then, at
     * once and without asking a master, if it is held still (else LOST), and
     * with the options of the first time; it is released by the last unlock.
     * For others, and for locks that are not reentrant, it is held.
     */
    bool reentrant;
    const void *owner; /* Any pointer, compared only; NULL: the calling thread (default), and
                        * no other thread may unlock or detach it. */
};
REDLOCK_API void redlock_lock_options_init_sized(struct redlock_lock_options *opts, size_t size);
#define redlock_lock_options_init(opts) redlock_lock_options_init_sized((opts), sizeof *(opts))

/*
 * Make a client; opts may be NULL.  It begins to connect at once, and masters
 * that are down are no error: the first lock waits for the first attempt to
 * connect, at most connect_timeout_ms.
 * Gives OK, E_INVAL, E_NOMEM, E_SYSTEM.
 */
REDLOCK_API REDLOCK_MUST_CHECK int redlock_open(const struct redlock_options *opts,
                                                struct redlock **ret_rl);

/*
 * Release what is held, cancel what is under way, close the links, free.
 * NULL is fine; returns NULL.  Blocking clients: no other thread may begin a
 * call any more, and those under way end with E_STATE; waits for the masters
 * to confirm, at most reply_timeout_ms; not from a callback (nothing happens
 * then, and it returns rl).  Loop clients: releases are written as
 * far as the sockets take them, none is waited for; allowed in a callback.
 */
REDLOCK_API struct redlock *redlock_close(struct redlock *rl);

/*
 * What went wrong last in this thread, outermost step first: "acquire jobs/7:
 * too few masters answered: master 2 (10.0.0.2:6379): Connection refused".  Empty if nothing did.
 * In a done callback it is about this operation.  Never NULL, never a password; lasts until the
 * thread's next call of the library.  rl may be NULL, for what redlock_open() said.
 */
REDLOCK_API const char *redlock_errmsg(const struct redlock *rl);

/*
 * Blocking calls: from any thread, clients without a loop (else E_STATE).
 *
 * lock: OK, CONTENDED, UNREACHABLE, TOO_LATE, LOST (only with reentrant).  A
 *     resource is named by any 1 to 512 bytes but NUL.  Unless OK, every
 *     master that may have taken the lock has been sent a release.
 * extend: make it last ttl_ms from now, 0: as long as before; it never gets
 *     shorter.  OK; UNREACHABLE or TOO_LATE: the old lease still counts down;
 *     LOST: also in the last lost_margin_ms, when lost was told, or would have
 *     been; until the deadline it is held then, and an unlock is OK.
 * unlock: OK (a majority confirmed), UNREACHABLE (what is left runs out by
 *     itself), LOST (it was not held any more).  Always frees the lease, but
 *     with reentrant an inner one (OK, LOST) or another thread's (E_STATE);
 *     NULL is fine.
 * All: E_INVAL, E_NOMEM, E_STATE.
 */
REDLOCK_API REDLOCK_MUST_CHECK int redlock_lock(struct redlock *rl, const char *resource,
                                                const struct redlock_lock_options *opts,
                                                struct redlock_lease **ret_lease);
REDLOCK_API REDLOCK_MUST_CHECK int redlock_extend(struct redlock_lease *lease, uint32_t ttl_ms);
REDLOCK_API int redlock_unlock(struct redlock_lease *lease);

/*
 * The same on the caller's loop (else E_STATE).  If the call returns OK, done
 * runs exactly once, later, from the loop - never before the call returns -
 * unless redlock_cancel(), redlock_detach(), redlock_close(), or an unlock of
 * the same lease comes first, after which it never runs.  Its status is one of those of the
 * blocking call.
 *
 * lock: the lease in *ret_lease (may be NULL) is for redlock_cancel(); if
 *     status is not OK, the library frees it when done returns.
 * extend: E_STATE while another extend is under way, or before the lock is held.
 * unlock: done may be NULL.  The lease may not be used after the call that
 *     frees it.  In done it is only good to tell one lease from another.
 */
typedef void redlock_done_fn(struct redlock_lease *lease, int status, void *arg);
REDLOCK_API REDLOCK_MUST_CHECK int redlock_lock_async(struct redlock *rl, const char *resource,
                                                      const struct redlock_lock_options *opts,
                                                      redlock_done_fn *done, void *arg,
                                                      struct redlock_lease **ret_lease);
REDLOCK_API REDLOCK_MUST_CHECK int redlock_extend_async(struct redlock_lease *lease,
                                                        uint32_t ttl_ms, redlock_done_fn *done,
                                                        void *arg);
REDLOCK_API int redlock_unlock_async(struct redlock_lease *lease, redlock_done_fn *done, void *arg);

/*
 * The same for several resources at once, in one lease: all of them or none, so that no
 * two who ask for the same in another order wait for each other.  1 to 16 names, all
 * different.  Whoever has one of them by itself excludes this lease, and the other way
 * round.  Not with fence, fair, shared, reentrant, or permits.  Extend, unlock and cancel
 * are those above.
 */
REDLOCK_API REDLOCK_MUST_CHECK int
redlock_lock_many(struct redlock *rl, const char *const *resources, size_t resources_len,
                  const struct redlock_lock_options *opts, struct redlock_lease **ret_lease);
REDLOCK_API REDLOCK_MUST_CHECK int
redlock_lock_many_async(struct redlock *rl, const char *const *resources, size_t resources_len,
                        const struct redlock_lock_options *opts, redlock_done_fn *done, void *arg,
                        struct redlock_lease **ret_lease);

/*
 * Forget a lease, whatever it is doing: it is undone on every master in the
 * background, its callbacks never run, and it is freed.  NULL is fine.  Loop
 * clients only (no effect on others).
 */
REDLOCK_API void redlock_cancel(struct redlock_lease *lease);

/*
 * Take over a lease from its token: one that another process, or an earlier
 * run of this one, acquired and handed on.  No master is asked, so nothing is
 * known yet: remaining is 0 until redlock_extend() gives OK, and there is no
 * renewal before that.  redlock_unlock() works at once.  token: 1 to 128
 * bytes but NUL.  opts: with the same permits, and shared for a reader's; not reentrant,
 * nor fair, without which a fair lock is adopted.  Both kinds of client.
 * Gives OK, E_INVAL, E_NOMEM, E_STATE.
 */
REDLOCK_API REDLOCK_MUST_CHECK int redlock_adopt(struct redlock *rl, const char *resource,
                                                 const char *token,
                                                 const struct redlock_lock_options *opts,
                                                 struct redlock_lease **ret_lease);
/* One of several resources: the same names, in any order. */
REDLOCK_API REDLOCK_MUST_CHECK int redlock_adopt_many(struct redlock *rl,
                                                      const char *const *resources,
                                                      size_t resources_len, const char *token,
                                                      const struct redlock_lock_options *opts,
                                                      struct redlock_lease **ret_lease);

/*
 * Forget a lease without undoing it: nothing more is sent, its callbacks
 * never run, and it is freed.  The lock stays until it runs out, or until
 * whoever has been given the token adopts it.  A lease whose time is up is not
 * to be handed on: releases of its token may be under way.  NULL is fine.  Both kinds of
 * client; E_STATE while a call with this lease is under way.
 */
REDLOCK_API int redlock_detach(struct redlock_lease *lease);

/*
 * How often the owner of a reentrant lease has locked it, and not unlocked it
 * again, whether or not it is held still; 0 while it is being acquired.  Of
 * another lease: 1 if it is held, else 0.  Both kinds of client.
 */
REDLOCK_API uint32_t redlock_holds(const struct redlock_lease *lease);

/* Validity left, from a clock read now, rounded down; 0 when not held.  Any thread. */
REDLOCK_API uint32_t redlock_remaining_ms(const struct redlock_lease *lease);
/* The name that was locked; of several, the first. */
REDLOCK_API const char *redlock_resource(const struct redlock_lease *lease);
/* The random token that the masters store, 40 hexadecimal digits; see redlock_adopt(). */
REDLOCK_API const char *redlock_token(const struct redlock_lease *lease);
/* Which of the permits it has, from 1, which nobody else has then; 0: it is no permit. */
REDLOCK_API uint32_t redlock_permit(const struct redlock_lease *lease);

/*
 * The fencing token of this hold, 1 to 2^53 - 1: never that of another lock of this
 * resource, and greater than that of any that had been granted when this one was asked
 * for, whatever clocks and pauses do.  What remembers the greatest that it was shown,
 * and refuses smaller ones, is safe from past holders.  0: none was asked for, none is
 * there yet, or the lease was adopted.
 */
REDLOCK_API uint64_t redlock_fence(const struct redlock_lease *lease);

/* What a client has done so far; same growth rule as the options. */
struct redlock_stats {
    size_t size;        /* Set by the caller to sizeof(struct redlock_stats). */
    uint64_t acquired;  /* Locks that were granted. */
    uint64_t contended; /* Calls to lock that ended so; likewise the next two. */
    uint64_t unreachable;
    uint64_t too_late;
    uint64_t extended;   /* Leases made longer, renewals included. */
    uint64_t released;   /* Unlocks that a majority confirmed. */
    uint64_t lost;       /* Leases whose end was, or would have been, told by a lost. */
    uint64_t rounds;     /* Times that the masters were asked for a lock. */
    uint64_t commands;   /* Commands sent to masters, handshakes aside. */
    uint64_t late_yes;   /* Grants that came when their round was over, and were undone. */
    uint64_t connects;   /* Links that came up. */
    uint32_t leases;     /* Leases in memory now, those being cleaned up included. */
    uint32_t masters;    /* Masters configured. */
    uint32_t masters_up; /* Masters that can be asked now. */
    uint64_t fenced;     /* Locks that were granted with a fencing token; */
    uint64_t raised;     /* and those of them whose token took a second round trip. */
};
/* Gives OK, E_INVAL, E_STATE. */
REDLOCK_API int redlock_stats(struct redlock *rl, struct redlock_stats *ret_stats);

#ifdef __cplusplus
}
#endif

#endif /* REDLOCK_H */
