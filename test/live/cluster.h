/*
 * cluster.h - real masters for the tests to break.
 *
 * A cluster starts redis-servers of its own on free ports of the loopback, and kills, stops
 * and restarts them by pid.  They store nothing on disk unless told to.  They end with the
 * test program, however it ends.
 *
 * If something fails here, such as a server that does not start, the program ends with a
 * message.  This code is not what is tested.  So it does not use the library either.
 */
#ifndef TEST_LIVE_CLUSTER_H
#define TEST_LIVE_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CLUSTER_MAX 15      /* As many masters as a client takes. */
#define CLUSTER_DATABASES 4 /* The databases that tests use. */

/* The longest that one event may take, in seconds.  Chosen: more than a slow event takes under
 * valgrind on a busy machine. */
#define CLUSTER_WAIT_S 60

struct redisContext;

struct server {
    unsigned port;
    pid_t pid; /* 0: not running. */
    bool durable;
    bool lazy; /* A durable server has appendfsync everysec, not always. */
    bool paused;
    struct redisContext *control; /* The connection of this module; NULL: none yet. */
    char socket[108];             /* The path of its unix socket. */
};

struct cluster {
    unsigned len;
    struct server server[CLUSTER_MAX];
};

/*
 * Make len servers run, without locks and with a marker (server_season).  Call it at the
 * beginning of a test.  It starts servers that do not run, resumes paused ones, and undoes
 * passwords, roles and users.  A zeroed cluster has no servers.
 */
void cluster_ready(struct cluster *cluster, unsigned len);

/* The same; new servers write each change to disk before they answer (appendfsync always), or
 * within a second of it (everysec). */
void cluster_ready_durable(struct cluster *cluster, unsigned len);
void cluster_ready_lazy(struct cluster *cluster, unsigned len);

/* Make the running servers a set, as clients of this list found it: places with commas in between,
 * as the library prints them.  cluster_ready() does so for cluster_masters() in database 0, and
 * for the same list with "/1" and so on in the others. */
void cluster_found(struct cluster *cluster, const char *list);
/* The servers are in no set. */
void cluster_unfound(struct cluster *cluster);

/* The same for a list as a client takes it, and for servers of any cluster that are in a set.  So
 * one test may reach a server at several places, one after the other.  A list that names members
 * (#NAME) changes nothing.  pilot_open() does this. */
void cluster_found_list(const char *masters);
/* Of server.c: the servers at these places. */
void server_found_all(const char *config, char *const *places, unsigned len);

/* The list "127.0.0.1:port,..." of all servers, or one with each port between two texts.  The
 * list is overwritten by the second next call. */
const char *cluster_masters(const struct cluster *cluster);
const char *cluster_masters_by(const struct cluster *cluster, const char *before,
                               const char *after);

/* Make one server run, as cluster_ready() does. */
void server_ready(struct server *server);
/* Close the connections of this module to all servers. */
void server_disconnect_all(void);

/* Send SIGKILL; start again on the same port, empty unless durable. */
void server_kill(struct server *server);
void server_restart(struct server *server);
/* Restart it as if its power had failed: its file lacks the last SET of this name, and everything
 * after that. */
void server_fail_power(struct server *server, const char *name);
/*
 * Store the marker of the restart guard (redlock/core/guard.h) in databases 0 to 3, as if
 * clients had watched this server for long enough.  A server that loses its data loses the
 * marker.  It then gets no vote for a minute, unless it is seasoned again.
 */
void server_season(struct server *server);
/* Make this server a member of a set, in this database: the configuration, and its own name. */
void server_join(struct server *server, unsigned db, unsigned set, const char *config,
                 const char *name);
/* Send SIGSTOP and wait until it has stopped; send SIGCONT. */
void server_pause(struct server *server);
void server_resume(struct server *server);

/*
 * Run a command there, in hiredis' printf format.  Returns the answer as a number (a status or
 * text: its length; nil: -1), or as text (nil: NULL), which lasts until the next call.  An
 * error ends the program.
 */
long long server_int(struct server *server, const char *format, ...);
const char *server_text(struct server *server, const char *format, ...);

/* The value that is stored under name, or NULL; and its time to live, in ms. */
const char *server_get(struct server *server, const char *name);
long long server_pttl(struct server *server, const char *name);

/* The number of locks in database 0, of any names: all keys but those of the guard. */
unsigned server_locks(struct server *server);

/* Delete all of them at once. */
void server_forget_locks(struct server *server);

/* The number of client connections, without that of this module. */
unsigned server_clients(struct server *server);

/* Conditions for pilot_until(): no server stores a lock; each has one client connection. */
bool cluster_has_no_locks(void *cluster);
bool cluster_has_one_client_each(void *cluster);

/* The number of connections that subscribe to releases of this name. */
long long server_listeners(struct server *server, const char *name);

/* The number of waiters in the queue of this fair lock. */
long long server_queued(struct server *server, const char *name);
/* Wait until the queue has so many waiters on at least so many servers; false: not in time. */
bool cluster_until_queued(struct cluster *cluster, const char *name, long long waiters,
                          unsigned servers);

/* The number of running servers that store this token under name; NULL: any value. */
unsigned cluster_count(struct cluster *cluster, const char *name, const char *token);

/*
 * Fork a child that runs this function and exits with its result, without the parent's
 * clean-up.  The child is killed when the parent ends.  Returns its pid.  cluster_end() kills
 * a child and waits for it.
 */
pid_t cluster_spawn(int (*run)(void *arg), void *arg);
/* The same, with this function in place of fork(). */
pid_t cluster_spawn_by(pid_t (*fork_it)(void), int (*run)(void *arg), void *arg);
/* Every way to fork; a NULL ends the list.  Handlers of pthread_atfork() run at fork() only. */
extern const struct cluster_fork {
    const char *row;
    pid_t (*fork_it)(void);
} cluster_forks[];
void cluster_end(pid_t pid);
/* Wait until it exits by itself.  Returns its exit status, or -1 if a signal ended it or the time
 * ran out. */
int cluster_join(pid_t pid);

/* True: the child has ended by itself.  It is then reaped, and its pid is no longer valid here. */
bool cluster_has_ended(pid_t pid, int *ret_status);

/* A port of 127.0.0.1 on which no process listens.  No other test program takes it while this
 * one runs. */
unsigned cluster_free_port(void);
/* The same, but bound until the program ends, so that connections to it are refused. */
unsigned cluster_closed_port(void);

/* The folders of logs and data, and of unix sockets.  Both are deleted when the program ends. */
const char *cluster_folder(void);
const char *cluster_socket_folder(void);

/* Sleep for 2 ms, in loops that wait for something outside of this process. */
void cluster_nap(void);
/* The monotonic clock in seconds, for bounds on such loops. */
double cluster_now_s(void);

/* The number of open descriptors of this process plus a constant: compare two counts. */
unsigned cluster_descriptors(void);

/* Print a message and end the program. */
void cluster_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif /* TEST_LIVE_CLUSTER_H */
