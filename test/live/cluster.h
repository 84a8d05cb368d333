/*
 * cluster.h - real masters for the tests to break.
 *
 * Starts redis-servers of its own on free ports of the loopback, and kills,
 * stops and restarts them by pid.  They keep nothing on disk unless asked to,
 * and they end with the test program, however it ends.
 *
 * Nothing here is what is being tested: where it fails - no redis-server, no
 * answer from a server that should run - the program ends with a message.
 * For the same reason nothing here goes through the library.
 */
#ifndef TEST_LIVE_CLUSTER_H
#define TEST_LIVE_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CLUSTER_MAX 15 /* As many masters as a client takes. */

/* The longest that anything in these tests may take, in seconds: a bound that
 * tells "never" from "slow", even under valgrind on a busy machine. */
#define CLUSTER_WAIT_S 60

struct redisContext;

struct server {
    unsigned port;
    pid_t pid; /* 0: not running. */
    bool durable;
    bool lazy; /* Durable, but with appendfsync everysec. */
    bool paused;
    struct redisContext *control; /* Our own connection to it; NULL: none yet. */
    char socket[108];             /* Path of its unix socket. */
};

struct cluster {
    unsigned len;
    struct server server[CLUSTER_MAX];
};

/*
 * Make len servers run, without locks: starts what does not run, resumes what
 * is paused, and undoes passwords, roles and users.  For the beginning of a
 * test, whatever the one before has left.  A zeroed cluster is one without
 * servers.  They are seasoned (see below).
 */
void cluster_ready(struct cluster *cluster, unsigned len);

/* Let new servers write every change to disk (appendfsync always) before they answer; or within
 * a second of it (everysec). */
void cluster_ready_durable(struct cluster *cluster, unsigned len);
void cluster_ready_lazy(struct cluster *cluster, unsigned len);

/* "127.0.0.1:port,..." of all; or each port between these two texts.  Good until the second next
 * call. */
const char *cluster_masters(const struct cluster *cluster);
const char *cluster_masters_by(const struct cluster *cluster, const char *before,
                               const char *after);

/* Make one server run, as cluster_ready() does. */
void server_ready(struct server *server);
/* Close our own connections to all servers. */
void server_disconnect_all(void);

/* SIGKILL, and start it again on the same port (empty, unless durable). */
void server_kill(struct server *server);
void server_restart(struct server *server);
/* The same, as if its power had failed: of its file there is what there was before it last
 * stored this name. */
void server_fail_power(struct server *server, const char *name);
/*
 * Give it the marker of the restart guard (redlock/core/guard.h) that it would have
 * if clients had watched it for long enough, in databases 0 to 3.  One that
 * forgets what it knew - killed, flushed, made a replica and a master again -
 * has none: it does not vote for a minute, unless it is seasoned again.
 */
void server_season(struct server *server);
/* SIGSTOP and SIGCONT; paused when it returns. */
void server_pause(struct server *server);
void server_resume(struct server *server);

/*
 * Run a command there, in hiredis' printf format, and give back the answer as a
 * number (a status or text: its length; nil: -1), or as text (nil: NULL), good
 * until the next call.  An error ends the program.
 */
long long server_int(struct server *server, const char *format, ...);
const char *server_text(struct server *server, const char *format, ...);

/* What is stored under name, NULL if nothing; and for how long yet, ms. */
const char *server_get(struct server *server, const char *name);
long long server_pttl(struct server *server, const char *name);

/* How many locks are stored in database 0, by whatever names: all keys but the marker. */
unsigned server_locks(struct server *server);

/* Drop them all at once. */
void server_forget_locks(struct server *server);

/* Connections of clients, but for our own. */
unsigned server_clients(struct server *server);

/* Whether no server stores a lock; whether each has one connection of a client.  For
 * pilot_until(). */
bool cluster_has_no_locks(void *cluster);
bool cluster_has_one_client_each(void *cluster);

/* How many connections listen for releases of this name. */
long long server_listeners(struct server *server, const char *name);

/* How many wait in the queue of this fair lock. */
long long server_queued(struct server *server, const char *name);
/* Wait until so many do, at so many servers at least; false: they do not in time. */
bool cluster_until_queued(struct cluster *cluster, const char *name, long long waiters,
                          unsigned servers);

/* How many servers store this token under name; NULL: any token at all. */
unsigned cluster_count(struct cluster *cluster, const char *name, const char *token);

/*
 * Fork a child that runs this and then exits with what it returned, without
 * the parent's clean-up; it is killed when the parent ends.  Returns its pid.
 * And kill it, if it still runs, and wait for it.
 */
pid_t cluster_spawn(int (*run)(void *arg), void *arg);
void cluster_end(pid_t pid);
/* Wait for it to exit by itself; its exit status, or -1 if it did not in time
 * or was ended by a signal. */
int cluster_join(pid_t pid);

/* True: this child has ended by itself, and counts no longer as one. */
bool cluster_has_ended(pid_t pid, int *ret_status);

/* A port of 127.0.0.1 that nobody listens on.  No other test program takes it while this one
 * runs. */
unsigned cluster_free_port(void);
/* The same, and it stays bound: connections to it are refused. */
unsigned cluster_closed_port(void);

/* The folder for logs and data, and the one for unix sockets.  Both go when the program ends. */
const char *cluster_folder(void);
const char *cluster_socket_folder(void);

/* Nap a little, for loops that wait for something outside of this process. */
void cluster_nap(void);
/* Seconds of a clock that only goes forward, for bounds on such loops. */
double cluster_now_s(void);

/* The open descriptors of this process, and the same three more each time: compare two counts. */
unsigned cluster_descriptors(void);

/* Say what went wrong, and end the program. */
void cluster_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif /* TEST_LIVE_CLUSTER_H */
