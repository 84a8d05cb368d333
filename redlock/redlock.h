/*
 * redlock.h - locks agreed by a majority of independent Redis masters.
 *
 * A client holds a lock while two things are true: more than half of the
 * masters store the client's random token, and the validity that the client
 * measured has not run out.  A lock is a lease: it ends by itself unless it is
 * renewed.  A pause of the process, or of its virtual machine, can outlast the
 * lease.  So call redlock_remaining_ms() before each step that needs the lock.
 * redlock(3), CAVEATS, says what can still go wrong after that call.
 *
 * This file is a summary.  redlock(3) is the full reference.  It is longer than others: what a
 * program includes is one file.
 *
 * Conventions.  The name of a duration ends in its unit, as in ttl_ms.  The
 * library copies every string that it is given.  A string that a function
 * returns belongs to the library; it is valid as long as the object that it was
 * read from, unless the function says otherwise.  A function writes its ret_*
 * arguments only if it succeeds.
 *
 * Threads.  A client with options.loop or options.pollable set is a loop client:
 * it belongs to the thread that runs its loop.  Any other client is a blocking
 * client: any number of threads may use it at once, and it refuses the
 * asynchronous calls.  Any thread may call redlock_remaining_ms() with either.
 *
 * Forks.  A client does not survive fork().  In the child process every call
 * with the client returns REDLOCK_E_STATE.  In the child redlock_close() frees
 * the memory and closes the sockets, and sends nothing to the masters.
 * Open clients after daemonizing, which forks and may close all descriptors.
 *
 * Signals.  The library installs no signal handlers and raises no SIGPIPE.
 */
#ifndef REDLOCK_H
#define REDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* REDLOCK_MUST_CHECK: a compiler warns if the result is ignored.  That is a mistake with calls that
 * give a lock or more time, that write a ret_* argument only if they succeed, or that only
 * report something. */
#if defined(__GNUC__)
#define REDLOCK_API __attribute__((visibility("default")))
#define REDLOCK_MUST_CHECK __attribute__((warn_unused_result))
#else
#define REDLOCK_API
#define REDLOCK_MUST_CHECK
#endif

#define REDLOCK_MASTERS_MAX 15 /* Most masters of one client. */
#define REDLOCK_NAME_MAX 512   /* Longest resource name, in bytes without the NUL. */
#define REDLOCK_TOKEN_MAX 128  /* Longest token for redlock_adopt(), in bytes without the NUL. */
#define REDLOCK_NOTE_MAX 80    /* Longest note beside a lock, in bytes without the NUL. */
#define REDLOCK_NAMES_MAX 16   /* Most resources of one lease; see redlock_lock_many(). */

#define REDLOCK_PERMITS_MAX 256 /* Most permits of one semaphore. */

struct ev_loop;       /* A loop of libev.  This file does not need <ev.h>. */
struct redlock;       /* A client: its options, masters and connections. */
struct redlock_lease; /* One lock that is held or is being acquired. */

/*
 * Status codes.  Zero is success.  A positive code is an ordinary outcome: the
 * caller must handle it, and every function lists those that it can give.  A
 * negative code is a failure: the caller passes it up.  The value of a code
 * never gets another meaning.
 */
enum redlock_status {
    REDLOCK_OK = 0,

    REDLOCK_CONTENDED = 1,   /* Another client, or another lease of this one, has the lock. */
    REDLOCK_UNREACHABLE = 2, /* Too few masters answered in time. */
    REDLOCK_TOO_LATE = 3,    /* A majority agreed, but too late: no validity was left. */
    REDLOCK_LOST = 4,        /* The lock was held, and is lost or about to end. */
    REDLOCK_INTERRUPTED = 5, /* redlock_interrupt() ended the call.  Nothing is held. */
    REDLOCK_NOT_READY = 6,   /* Enough masters answer, and too few of them may vote yet. */

    REDLOCK_E_INVAL = -1,     /* An argument or an option is out of its range. */
    REDLOCK_E_NOMEM = -2,     /* Out of memory.  Nothing was changed. */
    REDLOCK_E_STATE = -3,     /* Not allowed now, for example after a fork; see redlock(3). */
    REDLOCK_E_SYSTEM = -4,    /* The system refused a clock, a timer, a thread or random numbers. */
    REDLOCK_E_FORBIDDEN = -5, /* Too few masters allow it: the password, or the ACL, is wrong. */
    REDLOCK_E_WRONG_SET = -6, /* The list names masters that are not of one set. */
};

/* A constant English text for any status, known or not.  Never NULL.  Any thread. */
REDLOCK_API REDLOCK_MUST_CHECK const char *redlock_strerror(int status);

/* The version of the library, as in "1.2.3".  Any thread. */
REDLOCK_API REDLOCK_MUST_CHECK const char *redlock_version(void);

/* The library logs warnings and information.  Nothing is of the other levels yet. */
enum redlock_level { REDLOCK_LOG_ERROR, REDLOCK_LOG_WARNING, REDLOCK_LOG_INFO, REDLOCK_LOG_DEBUG };

/*
 * The clock guard.  Redis expires keys by the wall clock of its machine.  A clock
 * that is set forward therefore drops locks that are still held.  The guard
 * rejects the votes of a master whose clock was stepped; see redlock(3).
 */
enum redlock_clock_guard {
    REDLOCK_CLOCK_GUARD_OFF,
    REDLOCK_CLOCK_GUARD_PERIODIC, /* Ask each master for its time once a second. */
    REDLOCK_CLOCK_GUARD_PER_VOTE, /* Also ask with each vote, and count the vote only if the
                                   * answer proves that the clock is steady. */
};

/*
 * Options of a client.  Call redlock_options_init() before you set a field.
 * Later versions only append fields.  If the program was built with an older
 * header, newer fields have their defaults.
 */
struct redlock_options {
    size_t size; /* Set by redlock_options_init(). */
    /* The masters: 1 to 15 URIs, all different, separated by commas or white
     * space.  Examples: "redis://user:pass@host:6379/0", "unix:///run/r.sock",
     * "host:port", "[::1]:7001".  NULL (default): the value of the environment
     * variable REDLOCK_MASTERS, which may be "@FILE", unlike this option: then the
     * list is read from this file, once.  redlock(3) has the syntax. */
    const char *masters;
    /* Set: a loop client on this loop, with asynchronous calls only.  It starts
     * no threads, except to look up host names.  The loop must outlive the client.
     * NULL (default): a blocking client with a thread of its own, unless pollable is
     * set. */
    struct ev_loop *loop;
    /* Time for one attempt to resolve a name, to connect and to shake hands.
     * 1 to 3600000, default 1000. */
    uint32_t connect_timeout_ms;
    /* Time for the answers to one round of requests.  1 to 3600000, default 50. */
    uint32_t reply_timeout_ms;
    /* Bound on the difference between the rates of any two clocks, in parts per
     * million.  0 to 500000, default 10000 (1 %). */
    uint32_t drift_ppm;
    /* Allowance for the resolution of clocks, in addition to drift_ppm.
     * 0 to 60000, default 2. */
    uint32_t drift_fixed_ms;
    /* Longest lease that the client may ask for.  1 to 86400000, default 60000.
     * Use the same value in all clients of the same masters. */
    uint32_t max_ttl_ms;
    /* Keep a master that was flushed, or restarted without durable storage, from
     * voting until every lease that it may have granted is over.  This takes a
     * little more than the longest max_ttl_ms of all clients.  New masters wait as
     * long, unless all of them are new and durable; see redlock(3).  Default true.
     * It protects only if all clients of the same masters set it. */
    bool restart_guard;
    /* Default REDLOCK_CLOCK_GUARD_PERIODIC.  All clients of the same masters must
     * use the same. */
    enum redlock_clock_guard clock_guard;
    /* Receives each log message: one line without a newline.  The library calls
     * it from any of its threads and from any thread that calls the library.  It
     * must not call the library.  NULL (default): no log. */
    void (*log)(void *log_arg, enum redlock_level level, const char *message);
    void *log_arg; /* Passed to log. */
    /* A text that masters store with the token of each lock, so that people see who
     * holds it: up to REDLOCK_NOTE_MAX bytes, no control characters.  "": none.
     * NULL (default): "HOST/PID" of this process.  Everybody who may read the keys
     * can read it. */
    const char *note;
    /* TLS is for masters with rediss:// URIs; see redlock(3), TLS.  Default true: verify
     * their certificates.  False: anybody on the way can answer for the masters and
     * read the passwords, so use it for tests only. */
    bool tls_verify;
    /* A file or a folder of CA certificates.  NULL (default): the value of the
     * environment variable REDLOCK_TLS_CA.  "", or an unset variable: those of the
     * system. */
    const char *tls_ca;
    /* Files with the certificate of this client and its key, which must not be
     * encrypted, in PEM.  NULL (default): the values of REDLOCK_TLS_CERT and
     * REDLOCK_TLS_KEY.  "", or unset variables: none. */
    const char *tls_cert;
    const char *tls_key;
    /* The name that the certificate of each master must have.  NULL (default): the
     * host of its URI. */
    const char *tls_server_name;
    /* Make a loop client for any event loop; see redlock_fd().  Must not be set together
     * with loop.  Default false. */
    bool pollable;
};
REDLOCK_API void redlock_options_init_sized(struct redlock_options *opts, size_t size);
#define redlock_options_init(opts) redlock_options_init_sized((opts), sizeof *(opts))

/*
 * Options of one lock.  Call redlock_lock_options_init() before you set a field.
 * The struct grows as struct redlock_options does.  Where a function takes a
 * pointer to it, NULL means the default of each field.
 */
struct redlock_lock_options {
    size_t size; /* Set by redlock_lock_options_init(). */
    /* Length of the lease.  At most max_ttl_ms of the client, and longer than the
     * drift allowance of such a lease.  Default 10000. */
    uint32_t ttl_ms;
    /* How long to keep trying.  0 (default): one round of requests, with permits up
     * to four.  UINT32_MAX: without a limit. */
    uint32_t wait_ms;
    /* Bounds of the random pause between two rounds.  Default 50 and 200; the
     * second must not be less than the first.  When masters announce releases, a
     * waiter polls four times less often; see redlock(3). */
    uint32_t retry_delay_min_ms;
    uint32_t retry_delay_max_ms;
    bool no_renew; /* Let the lease run out.  Default false: renew it in time. */
    /* Draw a fencing token; see struct redlock_lease_info.  Needs restart_guard.  redlock(3),
     * KINDS OF LOCKS, says which options go together. */
    bool fence;
    /* Wait in a queue, so that waiters with fair get the lock in order.  A waiter
     * without fair may overtake them. */
    bool fair;
    /*
     * Hold the lock as a reader, together with other readers.  A holder without
     * shared is a writer.  Readers and a writer never hold the lock together.  A
     * waiting writer keeps new readers out; present readers keep the lock.
     */
    bool shared;
    /* Stop renewing this long after the lock was acquired.  0 (default): no limit. */
    uint32_t max_hold_ms;
    /* How long before the deadline to call lost.  Must be less than the validity.
     * A value above half of the validity is cut to half.  0 (default): a tenth of
     * ttl_ms. */
    uint32_t lost_margin_ms;
    /* Take one permit of a semaphore that has this many: 1 to 256.  All users of
     * the semaphore must set the same number.  0 (default): a lock.  A semaphore and
     * a lock of the same name are independent. */
    uint32_t permits;
    /*
     * Called once when the hold ends soon, or has ended.  If the lease was not
     * renewed, the call comes lost_margin_ms before the deadline, also with no_renew.
     * If no majority can store the lock any more, it comes at once.  If the process
     * was stopped, it comes late.  redlock_remaining_ms() says whether the lock is
     * still held.
     *
     * The callback of a loop client runs on the loop and may call any function.
     * The callback of a blocking client runs in the thread of the client and may
     * call redlock_remaining_ms() and redlock_lease_info() only.  There
     * redlock_unlock() and redlock_detach() in another thread wait until the callback
     * returns, so it must not wait for them.  After them it does not run any more.
     */
    void (*lost)(struct redlock_lease *lease, void *lost_arg);
    void *lost_arg; /* Passed to lost. */
    /*
     * Let the owner lock the resource again (default false).  The owner then gets
     * the same lease at once, without a request to a master.  If that lease is not
     * held any more, the call returns LOST, and the owner must unlock the lease
     * first.  The options of the first lock stay in force.  A reader that asks again
     * to write gets E_STATE.  The last unlock releases the lock.  For other owners, and
     * for locks that are not reentrant, the resource is locked.
     */
    bool reentrant;
    /* The owner of a reentrant lock: any pointer, which is only compared.  NULL
     * (default): the calling thread.  No other thread can then unlock or detach. */
    const void *owner;
    /* The note of this lock.  "": none.  NULL (default): that of the client.  A
     * lock that is adopted keeps the note that it has. */
    const char *note;
};
REDLOCK_API void redlock_lock_options_init_sized(struct redlock_lock_options *opts, size_t size);
#define redlock_lock_options_init(opts) redlock_lock_options_init_sized((opts), sizeof *(opts))

/*
 * For opts.log: write each message to a pipe, with opts.log_arg an int *, its descriptor.  It
 * writes the number of the level, a space, the message and a newline, at once.  So a program reads
 * the log where it may call the library and wait, which log itself may not.  If the descriptor does
 * not block, a message that does not fit is dropped.
 */
REDLOCK_API void redlock_log_to(void *log_arg, enum redlock_level level, const char *message);

/*
 * Make a client.  opts may be NULL: all defaults.  The client begins to connect
 * and the call does not wait for that.  A master that is down is no error.  The
 * first lock waits for the first attempts to connect if it needs them for a
 * majority, at most connect_timeout_ms, or twice that if the set has members
 * that the list does not name.
 * Returns OK, E_INVAL, E_NOMEM, E_SYSTEM.
 */
REDLOCK_API REDLOCK_MUST_CHECK int redlock_open(const struct redlock_options *opts,
                                                struct redlock **ret_rl);

/*
 * Release all leases, end all operations, close the connections and free the
 * client.  Returns NULL, except below.  rl may be NULL.
 *
 * Blocking client: no other thread may begin a call any more.  Calls under way
 * return E_STATE.  redlock_close() waits for the masters to confirm the releases,
 * at most reply_timeout_ms.  From a callback it does nothing and returns rl.
 *
 * Loop client: redlock_close() writes as many releases as the sockets take and
 * waits for no answer.  It may be called from a callback.
 */
REDLOCK_API struct redlock *redlock_close(struct redlock *rl);

/*
 * The latest error message of this thread, with its context, outermost step
 * first: "acquire jobs/7: too few masters could vote: master 2 (10.0.0.2:6379):
 * Connection refused".  In a done callback it describes that operation, and in lost
 * of a loop client the loss.  redlock_reason() has the same for programs.  It is
 * empty if nothing went wrong.  It is never NULL and never holds a password.  It
 * is valid until the next call of the library in this thread.  rl may be NULL,
 * for instance after redlock_open() failed.
 */
REDLOCK_API REDLOCK_MUST_CHECK const char *redlock_errmsg(const struct redlock *rl);

/*
 * Blocking calls, for blocking clients only (else E_STATE).  Any thread.
 *
 * lock acquires a resource, named by 1 to 512 bytes other than NUL.
 *     OK: it is held.  CONTENDED, UNREACHABLE, NOT_READY, TOO_LATE: it is not held, and
 *     each reachable master that may have stored the token has been sent a release.
 *     E_FORBIDDEN, E_WRONG_SET: the same, and to try again does not help.
 *     LOST: only with reentrant.  INTERRUPTED: as UNREACHABLE; redlock_interrupt().
 * extend makes the lease last ttl_ms from now; 0 means as long as it lasted
 *     before.  It never makes the lease shorter.
 *     OK: extended.  UNREACHABLE, NOT_READY, TOO_LATE, E_FORBIDDEN, E_WRONG_SET: the
 *     lease is as it was.  LOST: the lock is not held any more, or is in its last
 *     lost_margin_ms, when nothing extends it.  In the second case it is held until
 *     the deadline, and can be unlocked.
 * unlock releases the lock and frees the lease.
 *     OK: a majority confirmed.  UNREACHABLE: too few confirmed in time; keys that
 *     are left expire by themselves.  LOST: the lock was not held any more.
 *     E_STATE: the lease is as it was and is not freed, unless the client was closed
 *     meanwhile.  With reentrant, only the last unlock releases and frees; one
 *     before it gives OK or LOST.  lease may be NULL: OK.
 * Each of these may also return E_INVAL, E_NOMEM or E_STATE.
 */
REDLOCK_API REDLOCK_MUST_CHECK int redlock_lock(struct redlock *rl, const char *resource,
                                                const struct redlock_lock_options *opts,
                                                struct redlock_lease **ret_lease);
REDLOCK_API REDLOCK_MUST_CHECK int redlock_extend(struct redlock_lease *lease, uint32_t ttl_ms);
REDLOCK_API int redlock_unlock(struct redlock_lease *lease);

/*
 * Interrupt a blocking client.  Every redlock_lock() and redlock_lock_many() that is
 * under way with it ends with INTERRUPTED.  If none is, the next one does, before it
 * asks any master; so an interrupt just before the call is not missed.  Several
 * interrupts before that one count once.  Other calls are not interrupted, because
 * they end by themselves within the timeouts.  Leases and other clients are not
 * touched.
 *
 * Any thread may call it, and so may a signal handler: it takes no lock, keeps errno,
 * and leaves redlock_errmsg() alone.  The client must not be closed before the call
 * returns.  rl may be NULL.  With a loop client, and after a fork, it does nothing.
 */
REDLOCK_API void redlock_interrupt(struct redlock *rl);

/*
 * Asynchronous calls, for loop clients only (else E_STATE).  They do the same and
 * do not wait.
 *
 * If a call returns OK, the loop calls done exactly once, later, with one of the
 * statuses of the blocking call.  done never runs before the call has returned.
 * It never runs after redlock_cancel(), redlock_detach(), redlock_close() or a
 * later unlock of the same lease.  If a call does not return OK, done never runs.
 *
 * lock: ret_lease may be NULL.  Until done runs, *ret_lease is for redlock_cancel()
 *     only.  If done gets another status than OK, the library frees the lease when
 *     done returns.  With reentrant, the call itself can return LOST.
 * extend: E_STATE before the lock is held, or while another extend is under way.
 * unlock: done may be NULL.  The lease must not be used after the call that frees
 *     it.  In done it only tells which lease it was.
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
 * Any event loop: for clients with options.pollable (else E_STATE).  They do not use
 * libev.  They have all asynchronous calls, and start no thread, except to look up host
 * names; masters that are given by address need none.
 *
 * fd: a descriptor that is readable while there is something to do: bytes came or can be
 *     written, a time is over, or a call left something to send.  Wait for it to be
 *     readable, with the loop of the program, and then call dispatch.  It is the same as
 *     long as the client lives.  It belongs to the client: do not read, write or close it,
 *     and do not wait for it after redlock_close().
 *     Returns the descriptor, which is not negative, or E_INVAL, E_STATE.
 * dispatch: do what there is to do, and run the callbacks that are due.  It never blocks.
 *     It does not do everything at once: the descriptor stays readable if something is
 *     left.  Nothing is sent, received, renewed or reported without it, so call it soon.
 *     It may be called at any time, also from a callback.  A callback must call it before
 *     it waits for the descriptor itself.  A callback may close the client.
 *     Returns OK, E_INVAL, E_STATE.
 *
 * Both belong to the thread of the client.  redlock/adapters has a header for each of
 * libuv, glib, libevent, sd-event and poll(2).
 */
REDLOCK_API REDLOCK_MUST_CHECK int redlock_fd(const struct redlock *rl);
REDLOCK_API int redlock_dispatch(struct redlock *rl);

/*
 * Lock several resources in one lease: all of them or none.  So two clients that
 * ask for the same resources in different orders do not block each other.
 * resources: 1 to 16 names, all different.  A lock of one name excludes every
 * lease that contains the name, and the other way round.  Extend, unlock and cancel
 * as above and below.
 */
REDLOCK_API REDLOCK_MUST_CHECK int
redlock_lock_many(struct redlock *rl, const char *const *resources, size_t resources_len,
                  const struct redlock_lock_options *opts, struct redlock_lease **ret_lease);
REDLOCK_API REDLOCK_MUST_CHECK int
redlock_lock_many_async(struct redlock *rl, const char *const *resources, size_t resources_len,
                        const struct redlock_lock_options *opts, redlock_done_fn *done, void *arg,
                        struct redlock_lease **ret_lease);

/*
 * Give up a lease, whatever it is doing.  The call waits for no master: the library
 * releases the lease on every master in the background, runs none of its callbacks
 * and frees it, also if it is locked several times.  lease may be NULL.
 * Blocking client: the call waits only for a lost callback of the lease that runs.
 * An extend that another thread waits for ends with LOST.  It does nothing from a
 * callback, and if a reentrant lock belongs to another thread.  To end a call to
 * lock, whose lease is not known yet, use redlock_interrupt().
 */
REDLOCK_API void redlock_cancel(struct redlock_lease *lease);

/*
 * Make a lease from the token of a lock that another process, or an earlier run of
 * this one, acquired and handed on.  The call asks no master, so nothing is known
 * yet: redlock_remaining_ms() is 0, and nothing is renewed, until an extend has
 * given OK.  redlock_unlock() works at once.  token: 1 to 128 bytes other than NUL.
 * opts: set permits and shared as the lock had them.  Must not set reentrant or
 * fair; adopt a fair lock without fair.  Both kinds of client.
 * Returns OK, E_INVAL, E_NOMEM, E_STATE.
 */
REDLOCK_API REDLOCK_MUST_CHECK int redlock_adopt(struct redlock *rl, const char *resource,
                                                 const char *token,
                                                 const struct redlock_lock_options *opts,
                                                 struct redlock_lease **ret_lease);
/* The same for a lease of several resources: all of its names, in any order. */
REDLOCK_API REDLOCK_MUST_CHECK int redlock_adopt_many(struct redlock *rl,
                                                      const char *const *resources,
                                                      size_t resources_len, const char *token,
                                                      const struct redlock_lock_options *opts,
                                                      struct redlock_lease **ret_lease);

/*
 * Free a lease without a release: the library sends nothing more and runs none of
 * its callbacks.  The lock stays until it runs out, or until a process that has the
 * token adopts it.  Do not hand on a lease that has run out: the library may be
 * releasing its token already.  lease may be NULL.  Both kinds of client.
 * E_STATE: the lock is not held yet, a blocking call with it is under way, or it
 * belongs to another thread; then the lease is as it was.
 */
REDLOCK_API int redlock_detach(struct redlock_lease *lease);

/* How long the lock can still be relied on, by a clock that is read now, rounded
 * down.  0: it is not held.  Any thread.  It waits for no other thread, so call it
 * before each step that needs the lock. */
REDLOCK_API REDLOCK_MUST_CHECK uint32_t redlock_remaining_ms(const struct redlock_lease *lease);

/* What a client knows of a lease.  Grows as the options do. */
struct redlock_lease_info {
    size_t size; /* The caller sets it to sizeof(struct redlock_lease_info). */
    /* The name that was locked; of several, the first.  Valid as long as the lease. */
    const char *resource;
    /* What the masters store: 40 random hexadecimal digits and, if the lock has a note,
     * a colon and the note; or the token that was given to redlock_adopt().  Valid as
     * long as the lease.  "": none was drawn yet. */
    const char *token;
    /*
     * The fencing token of this hold, 1 to 2^53 - 1.  No other lock of this resource
     * ever has the same.  It is greater than that of every lock of this resource that
     * had been granted when this one was requested.  Clocks and pauses cannot change
     * that, unless a majority of the masters loses its data; see redlock(3).  A resource
     * that remembers the greatest token it was shown, and refuses smaller ones, is safe
     * from past holders.  0: the lock was taken without fence, is not held yet, or was
     * adopted.
     */
    uint64_t fence;
    uint32_t remaining_ms; /* As redlock_remaining_ms(), at the time of this call. */
    /* The number of the permit, from 1.  While it is held, no other holder has the same
     * number.  0: the lease is not a permit. */
    uint32_t permit;
    /* How many unlocks a reentrant lease still needs, whether it is held or not; 0 while
     * it is being acquired.  For other leases: 1 if it is held, else 0. */
    uint32_t holds;
    uint32_t resources_len; /* How many names the lease has. */
};
/* It asks no master.  Any thread, as long as the lease is not freed.
 * Returns OK, E_INVAL, E_STATE. */
REDLOCK_API REDLOCK_MUST_CHECK int redlock_lease_info(const struct redlock_lease *lease,
                                                      struct redlock_lease_info *ret_info);

/*
 * How many times fell into which range.  This struct never grows.
 * counts[i]: times of at most REDLOCK_BUCKET_US(i) microseconds, and longer than the limit
 * before.  The last one: all longer times.
 */
#define REDLOCK_BUCKETS 30
#define REDLOCK_BUCKET_US(i) (UINT64_C(32) << (i))
struct redlock_histogram {
    uint64_t sum_ns; /* The sum of all times, in nanoseconds. */
    uint64_t counts[REDLOCK_BUCKETS];
};

/* What a client has done since it was opened.  Grows as the options do. */
struct redlock_stats {
    size_t size;          /* The caller sets it to sizeof(struct redlock_stats). */
    uint64_t acquired;    /* Locks granted. */
    uint64_t contended;   /* Calls to lock that ended with CONTENDED. */
    uint64_t unreachable; /* Calls to lock for which too few masters voted: UNREACHABLE, NOT_READY,
                           * E_FORBIDDEN, E_WRONG_SET. */
    uint64_t too_late;    /* Calls to lock that ended with TOO_LATE. */
    uint64_t extended;    /* Extensions that moved the deadline of a held lease, with renewals. */
    uint64_t released;    /* Unlocks that a majority confirmed. */
    uint64_t lost;        /* Leases for which lost was called, or would have been if set. */
    uint64_t rounds;      /* Rounds of requests for a lock. */
    uint64_t commands;    /* Commands sent, except handshakes and the guards' periodic queries. */
    uint64_t late_yes;    /* Grants that came after their round was over, and were undone. */
    uint64_t connects;    /* Connections for commands that came up. */
    uint32_t leases;      /* Leases in memory now, with those that are being released. */
    uint32_t masters;     /* Masters of the set; of the list while no set is known. */
    uint32_t masters_up;  /* Masters that can be asked for a lock now. */
    uint64_t fenced;      /* Locks granted with a fencing token. */
    uint64_t raised;      /* Fencing tokens that took more than one round trip. */
    /* For each lock that was granted: the time from the call; from its last round of requests. */
    struct redlock_histogram wait, acquire;
    /* For each hold that is over: how long it lasted, until the call that ended it, or until it
     * was lost. */
    struct redlock_histogram hold;
    struct redlock_histogram extend; /* For each of extended: the time from its requests. */
    uint64_t unconfirmed; /* Unlocks that too few masters confirmed: they ended UNREACHABLE. */
};
/* Returns OK, E_INVAL, E_STATE. */
REDLOCK_API REDLOCK_MUST_CHECK int redlock_stats(struct redlock *rl,
                                                 struct redlock_stats *ret_stats);

#define REDLOCK_ADDRESS_MAX 264 /* Bytes of an address in struct redlock_master_stats. */

/*
 * What a client has seen of one master since it was opened, or since the master got its number.
 * The counts are of requests for leases.  Grows as the options do.
 */
struct redlock_master_stats {
    size_t size; /* The caller sets it to sizeof(struct redlock_master_stats). */
    char address[REDLOCK_ADDRESS_MAX]; /* "host:port", as in messages. */
    bool is_up;                        /* It can be asked for a lock now. */
    /* The times from a request until its answer, without releases, and without those
     * under late. */
    struct redlock_histogram round_trip;
    uint64_t late; /* Answers that came when the lease had a later request. */
    uint64_t yes;  /* Votes: it stored, extended or deleted the token. */
    uint64_t no;   /* Refused: another token is stored, or ours is not. */
    /* A yes that did not count, because the master's clock is wrong, or not known yet. */
    uint64_t void_clock;
    /* A yes that did not count, because the master had lost its data, the set had changed,
     * or the fencing counter did not count. */
    uint64_t void_state;
    uint64_t forbidden; /* Errors: the password or the ACL forbids it. */
    uint64_t errors;    /* Other errors, and answers that are none. */
    uint64_t timeouts;  /* Requests that were not answered within reply_timeout_ms. */
    uint64_t connects;  /* Connections for commands that came up. */
    uint64_t breaks;    /* Connections that fell, and attempts that failed. */
};
/* number: 1 to REDLOCK_MASTERS_MAX, as in messages.  Returns OK, E_STATE, or E_INVAL: no master has
 * this number. */
REDLOCK_API REDLOCK_MUST_CHECK int redlock_master_stats(struct redlock *rl, unsigned number,
                                                        struct redlock_master_stats *ret_stats);

#define REDLOCK_WORDS_MAX 240 /* Bytes of the words in struct redlock_reason. */

/* Why a master gave no vote.  Grows as the options do. */
struct redlock_reason {
    size_t size;     /* The caller sets it to sizeof(struct redlock_reason). */
    unsigned master; /* Its number, as in messages and for redlock_master_stats(). */
    bool decides;    /* For this reason alone, a call would fail with the same status. */
    /* The time from now until the reason may be over by itself, as for a master that is
     * warming up.  0: it may be over now.  UINT32_MAX: not known. */
    uint32_t over_ms;
    /* The identifier (redlock help IDENTIFIER), as "no-connection": a constant. */
    const char *id;
    /* "host:port", as in the message.  "": the set has changed, and the number is not that of
     * this master any more. */
    char address[REDLOCK_ADDRESS_MAX];
    /* What the message quotes: words of the server, of TLS or of the resolver of names, or names of
     * masters.  Printable UTF-8, for people.  "": nothing, or it is not known any more. */
    char words[REDLOCK_WORDS_MAX];
};
/*
 * The masters that redlock_errmsg() blames.  number counts them from 0: first those that decide,
 * then the others, by their numbers.  Known after lock, extend, unlock or redlock_ready() has
 * failed for its masters, until the next other call in this thread, and in the callbacks of a
 * loop client.  It asks no master, and leaves redlock_errmsg() as it is.
 * Returns OK, with a copy; E_STATE: in a callback of a blocking client, or after a fork; E_INVAL:
 * number is behind the last, the failure is of another client, or an argument is wrong.
 */
REDLOCK_API REDLOCK_MUST_CHECK int redlock_reason(struct redlock *rl, unsigned number,
                                                  struct redlock_reason *ret_reason);

/*
 * Whether a majority of the masters may vote now, as far as the client knows.  It asks
 * no master and does not wait.  Both kinds of client.
 * OK: yes, and *ret_ms is 0.  NOT_READY, also right after redlock_open(): *ret_ms is the
 * time until then, as far as it is known; ask again when it is over.
 * UNREACHABLE, E_FORBIDDEN, E_WRONG_SET: a lock would end so.  Or E_INVAL, E_STATE.
 * ret_ms may be NULL.
 */
REDLOCK_API REDLOCK_MUST_CHECK int redlock_ready(struct redlock *rl, uint32_t *ret_ms);

#ifdef __cplusplus
}
#endif

#endif /* REDLOCK_H */
