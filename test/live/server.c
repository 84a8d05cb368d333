/*
 * server.c - one redis-server: its commands, and how it starts, stops and restarts.
 */
#include "live/cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#define SERVERS_MAX 64
#define TRIES_MAX 50 /* Attempts to start a server; another program may take its port first. */

static struct server *servers[SERVERS_MAX]; /* All servers that were ever started. */
static unsigned servers_len;
static redisReply *last_reply; /* The caller may still read the text in it. */

/* ---- Commands ---- */

static void disconnect(struct server *server)
{
    if (server->control != NULL)
        redisFree(server->control);
    server->control = NULL;
}

void server_disconnect_all(void)
{
    for (unsigned i = 0; i < servers_len; i++)
        disconnect(servers[i]);
    if (last_reply != NULL)
        freeReplyObject(last_reply);
    last_reply = NULL;
}

static struct redisContext *connect_to(const struct server *server)
{
    const struct timeval timeout = {.tv_sec = CLUSTER_WAIT_S};
    struct redisContext *control = redisConnectWithTimeout("127.0.0.1", (int)server->port, timeout);

    if (control == NULL || control->err != 0) {
        if (control != NULL)
            redisFree(control);
        return NULL;
    }
    (void)redisSetTimeout(control, timeout);
    return control;
}

static redisReply *run_command(struct server *server, const char *format, va_list args)
{
    redisReply *reply;

    if (server->pid == 0 || server->paused)
        cluster_die("port %u: \"%s\" for a server that cannot answer", server->port, format);
    if (server->control == NULL)
        server->control = connect_to(server);
    if (server->control == NULL)
        cluster_die("port %u: cannot connect", server->port);
    reply = redisvCommand(server->control, format, args);
    if (reply == NULL)
        cluster_die("port %u: \"%s\": %s", server->port, format, server->control->errstr);
    if (reply->type == REDIS_REPLY_ERROR)
        cluster_die("port %u: \"%s\": %s", server->port, format, reply->str);
    if (last_reply != NULL)
        freeReplyObject(last_reply);
    last_reply = reply;
    return reply;
}

long long server_int(struct server *server, const char *format, ...)
{
    redisReply *reply;
    va_list args;

    va_start(args, format);
    reply = run_command(server, format, args);
    va_end(args);
    if (reply->type == REDIS_REPLY_INTEGER)
        return reply->integer;
    return reply->type == REDIS_REPLY_NIL ? -1 : (long long)reply->len;
}

const char *server_text(struct server *server, const char *format, ...)
{
    redisReply *reply;
    va_list args;

    va_start(args, format);
    reply = run_command(server, format, args);
    va_end(args);
    return reply->type == REDIS_REPLY_NIL ? NULL : reply->str;
}

const char *server_get(struct server *server, const char *name)
{
    return server_text(server, "GET %s", name);
}

long long server_pttl(struct server *server, const char *name)
{
    return server_int(server, "PTTL %s", name);
}

void server_forget_locks(struct server *server)
{
    (void)server_int(server, "EVAL %s 0",
                     "for _,key in ipairs(redis.call('keys','*')) do "
                     "if key~='redlock:master' and key~='redlock:witness' then "
                     "redis.call('del',key) end end return 0");
}

unsigned server_locks(struct server *server)
{
    long long keys = server_int(server, "DBSIZE");

    return (unsigned)(keys - server_int(server, "EXISTS redlock:master redlock:witness"));
}

void server_season(struct server *server)
{
    char run_id[48] = "";
    const char *run_id_at = strstr(server_text(server, "INFO server"), "run_id:");

    if (run_id_at == NULL || sscanf(run_id_at, "run_id:%47[0-9a-f]", run_id) != 1)
        cluster_die("port %u: INFO reports no run_id", server->port);
    for (int db = CLUSTER_DATABASES - 1; db >= 0;
         db--) { /* The connection must end in database 0. */
        (void)server_int(server, "SELECT %d", db);
        (void)server_int(server, "DEL redlock:master");
        (void)server_int(server, "HSET redlock:master id %s epoch %016x.0 max 1 floor 1 high 16385",
                         run_id, server->port);
    }
}

void server_join(struct server *server, unsigned db, unsigned set, const char *config,
                 const char *name)
{
    (void)server_int(server, "SELECT %u", db);
    (void)server_int(server,
                     "HSET redlock:master epoch %016x.1 of set set %016x ver 1 config %s name %s",
                     server->port, set, config, name);
    (void)server_int(server, "SELECT 0");
}

/* "127.0.0.1:PORT", "localhost:PORT/DB" or "unix:/.../PORT.sock?db=DB".  NULL: it cannot be asked.
 */
static struct server *find_server(const char *place, unsigned *ret_db)
{
    const char *at = strstr(place, "unix:") == place ? strrchr(place, '/') : strrchr(place, ':');
    const char *db = strpbrk(at + 1, "/?");
    unsigned port = (unsigned)atoi(at + 1);

    *ret_db = db != NULL ? (unsigned)atoi(db + strcspn(db, "0123456789")) : 0;
    for (unsigned i = 0; i < servers_len; i++)
        if (servers[i]->port == port)
            return servers[i]->pid != 0 && !servers[i]->paused && *ret_db < CLUSTER_DATABASES
                       ? servers[i]
                       : NULL;
    return NULL;
}

/* In a set of another list.  Without an error if the server needs a password, or does not answer.
 */
static bool is_of_another(struct server *server, unsigned db, const char *config)
{
    redisReply *reply;
    bool is_of = false;

    if (server->control == NULL)
        server->control = connect_to(server);
    if (server->control == NULL)
        return false;
    (void)redisAppendCommand(server->control, "SELECT %u", db);
    (void)redisAppendCommand(server->control, "HGET redlock:master config");
    (void)redisAppendCommand(server->control, "SELECT 0");
    for (unsigned i = 0; i < 3; i++) {
        if (redisGetReply(server->control, (void **)&reply) != REDIS_OK) {
            disconnect(server);
            return false;
        }
        if (i == 1)
            is_of = reply->type == REDIS_REPLY_STRING && strcmp(reply->str, config) != 0;
        freeReplyObject(reply);
    }
    return is_of;
}

void server_found_all(const char *config, char *const *places, unsigned len)
{
    unsigned set = 0, db;

    for (unsigned i = 0; i < len; i++) {
        struct server *server = find_server(places[i], &db);

        if (server == NULL || !is_of_another(server, db, config))
            continue;
        set = set == 0 ? server->port : set;
        server_join(server, db, set, config, places[i]);
    }
}

unsigned server_clients(struct server *server)
{
    const char *list = server_text(server, "CLIENT LIST TYPE normal");
    unsigned lines = 0;

    for (const char *p = list; *p != 0; p++)
        lines += *p == '\n';
    return lines - 1;
}

long long server_listeners(struct server *server, const char *name)
{
    return server_int(server, "EVAL %s 0 redlock:wait:%s",
                      "return redis.call('pubsub','numsub',ARGV[1])[2]", name);
}

long long server_queued(struct server *server, const char *name)
{
    return server_int(server, "ZCOUNT redlock:queue:%s 0 inf", name);
}

/* ---- Servers ---- */

static int exec_server(void *arg)
{
    const struct server *server = arg;
    const char *append = server->durable ? "yes" : "no";
    const char *fsync = server->lazy ? "everysec" : "always";
    char port[12], name[16];
    int log;

    (void)snprintf(port, sizeof port, "%u", server->port);
    (void)snprintf(name, sizeof name, "%u", server->port);
    if (chdir(cluster_folder()) != 0 || (mkdir(name, 0700) != 0 && errno != EEXIST) ||
        chdir(name) != 0)
        return 1;
    log = open("log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
        return 1;
    /* The "-" means that the second address may be missing. */
    execlp("redis-server", "redis-server", "--port", port, "--bind", "127.0.0.1", "-::1",
           "--unixsocket", server->socket, "--dir", ".", "--save", "", "--appendonly", append,
           "--appendfsync", fsync, "--repl-diskless-sync-delay", "0", "--daemonize", "no",
           (char *)NULL);
    return 127;
}

/* True if our child answers on the port, not another program's, and has loaded its data. */
static bool is_ours(struct server *server)
{
    redisReply *reply;
    bool ours = false;
    char *pid;

    server->control = connect_to(server);
    if (server->control == NULL)
        return false;
    reply = redisCommand(server->control, "INFO");
    if (reply != NULL && reply->type == REDIS_REPLY_STRING) {
        pid = strstr(reply->str, "process_id:");
        ours = pid != NULL && atoi(pid + strlen("process_id:")) == server->pid &&
               strstr(reply->str, "\nloading:1") == NULL;
    }
    if (reply != NULL)
        freeReplyObject(reply);
    if (!ours)
        disconnect(server);
    return ours;
}

/* False: it ended, because the port was taken or for another reason. */
static bool start_server(struct server *server)
{
    double end_s = cluster_now_s() + CLUSTER_WAIT_S;

    (void)snprintf(server->socket, sizeof server->socket, "%.90s/%u.sock", cluster_socket_folder(),
                   server->port);
    server->paused = false;
    server->pid = cluster_spawn(exec_server, server);
    for (;;) {
        int status;

        if (is_ours(server))
            return true;
        if (cluster_has_ended(server->pid, &status)) {
            server->pid = 0;
            if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
                cluster_die("cannot run redis-server");
            return false;
        }
        if (cluster_now_s() > end_s)
            cluster_die("port %u: redis-server does not come up", server->port);
        cluster_nap();
    }
}

static void start_anywhere(struct server *server)
{
    if (servers_len == SERVERS_MAX)
        cluster_die("too many servers");
    servers[servers_len++] = server;
    for (unsigned i = 0; i < TRIES_MAX; i++) {
        server->port = cluster_free_port();
        if (start_server(server))
            return;
    }
    cluster_die("redis-server does not start on any port");
}

void server_kill(struct server *server)
{
    disconnect(server);
    cluster_end(server->pid);
    server->pid = 0;
    server->paused = false;
}

void server_restart(struct server *server)
{
    if (server->pid != 0)
        server_kill(server);
    for (unsigned i = 0; i < TRIES_MAX; i++) {
        if (start_server(server))
            return;
        cluster_nap();
    }
    cluster_die("port %u: redis-server does not start again", server->port);
}

/* Open the append-only file.  Redis 7 moved it. */
static FILE *open_append_file(const struct server *server)
{
    static const char *const names[] = {"appendonlydir/appendonly.aof.1.incr.aof",
                                        "appendonly.aof"};
    char path[500];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        FILE *file;

        (void)snprintf(path, sizeof path, "%s/%u/%s", cluster_folder(), server->port, names[i]);
        file = fopen(path, "r+");
        if (file != NULL)
            return file;
    }
    cluster_die("port %u: no append-only file", server->port);
}

/* Returns where the last occurrence of text begins in the file, or the length of the file. */
static long find_last(FILE *file, const char *text)
{
    size_t len = strlen(text), matched = 0;
    long at = 0, last = -1;
    int c;

    for (; (c = getc(file)) != EOF; at++) {
        matched = c == text[matched] ? matched + 1 : c == text[0];
        if (matched != len)
            continue;
        last = at + 1 - (long)len;
        matched = 0;
    }
    return last >= 0 ? last : at;
}

void server_fail_power(struct server *server, const char *name)
{
    char text[64];
    FILE *file;

    server_kill(server);
    (void)snprintf(text, sizeof text, "$3\r\nSET\r\n$%zu\r\n%s\r\n", strlen(name), name);
    file = open_append_file(server);
    /* Redis ignores the first half of the command, which stays in the file. */
    if (ftruncate(fileno(file), find_last(file, text)) != 0)
        cluster_die("port %u: cannot cut its file", server->port);
    (void)fclose(file);
    server_restart(server);
}

void server_pause(struct server *server)
{
    int status;

    if (server->paused || server->pid == 0)
        return;
    if (kill(server->pid, SIGSTOP) != 0 || waitpid(server->pid, &status, WUNTRACED) < 0 ||
        !WIFSTOPPED(status))
        cluster_die("port %u: cannot stop it", server->port);
    server->paused = true;
}

void server_resume(struct server *server)
{
    if (!server->paused)
        return;
    if (kill(server->pid, SIGCONT) != 0)
        cluster_die("port %u: cannot resume it", server->port);
    server->paused = false;
}

void server_ready(struct server *server)
{
    if (server->pid == 0) {
        if (server->port == 0)
            start_anywhere(server);
        else
            server_restart(server);
    }
    server_resume(server);
    (void)server_int(server, "CLIENT UNPAUSE");
    (void)server_int(server, "REPLICAOF NO ONE");
    (void)server_int(server, "CONFIG SET requirepass %s", "");
    (void)server_int(server, "CONFIG SET maxmemory 0");
    (void)server_int(server, "ACL DELUSER tester");
    (void)server_int(server, "CLIENT KILL TYPE normal");
    (void)server_int(server, "FLUSHALL");
    (void)server_int(server, "SCRIPT FLUSH");
    server_season(server);
}
