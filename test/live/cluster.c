/*
 * cluster.c - redis-servers as children.
 */
#include "live/cluster.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

/* Below the ports that kernels give to outgoing connections, so that a server
 * that is restarted finds its port free. */
#define PORT_FIRST 17000
#define PORT_LAST 31999

#define CHILDREN_MAX 64
#define SERVERS_MAX 64
#define DATABASES 4  /* That tests use. */
#define TRIES_MAX 50 /* To start a server: another one may take our port first. */

static pid_t owner; /* The process that has the children; its forks have none. */
static pid_t children[CHILDREN_MAX];
static struct server *servers[SERVERS_MAX]; /* All that were ever started. */
static unsigned servers_len;
static redisReply *last_reply; /* What the caller may still look at. */
static char dir[400];          /* Of logs and data. */
static char socket_dir[32];    /* Where dir is too long for the name of a socket; else "". */

/* ---- Small things ---- */

void cluster_die(const char *format, ...)
{
    va_list args;

    fflush(stdout);
    fprintf(stderr, "cluster: ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    exit(1);
}

void cluster_nap(void)
{
    const struct timespec nap = {.tv_nsec = 2000000};

    (void)nanosleep(&nap, NULL);
}

double cluster_now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

unsigned cluster_descriptors(void)
{
    DIR *open_now = opendir("/proc/self/fd");
    unsigned len = 0;

    if (open_now == NULL)
        cluster_die("no /proc");
    while (readdir(open_now) != NULL)
        len++;
    (void)closedir(open_now);
    return len;
}

/* ---- The folder ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void remove_tree(const char *path)
{
    if (path[0] != 0)
        (void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void disconnect(struct server *server)
{
    if (server->control != NULL)
        redisFree(server->control);
    server->control = NULL;
}

static void clean_up(void)
{
    if (getpid() != owner)
        return;
    for (unsigned i = 0; i < servers_len; i++)
        disconnect(servers[i]);
    if (last_reply != NULL)
        freeReplyObject(last_reply);
    for (unsigned i = 0; i < CHILDREN_MAX; i++)
        cluster_end(children[i]);
    remove_tree(dir);
    remove_tree(socket_dir);
}

/* Beside the program: that is in the build folder. */
static void make_folder(void)
{
    ssize_t len;

    if (owner != 0)
        return;
    owner = getpid();
    len = readlink("/proc/self/exe", dir, sizeof dir - sizeof ".XXXXXX");
    if (len <= 0)
        cluster_die("cannot find my own folder: %s", strerror(errno));
    strcpy(dir + len, ".XXXXXX");
    if (mkdtemp(dir) == NULL)
        cluster_die("cannot make %s: %s", dir, strerror(errno));
    if (strlen(dir) + sizeof "/12345.sock" > sizeof((struct server *)0)->socket) {
        strcpy(socket_dir, "/tmp/redlock-test-XXXXXX");
        if (mkdtemp(socket_dir) == NULL)
            cluster_die("cannot make %s: %s", socket_dir, strerror(errno));
    }
    (void)atexit(clean_up);
}

/* ---- Children ---- */

static pid_t *find_child(pid_t pid)
{
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        if (children[i] == pid)
            return &children[i];
    }
    cluster_die("no child %d, or too many of them", (int)pid);
}

pid_t cluster_spawn(int (*run)(void *arg), void *arg)
{
    pid_t *place, pid;

    make_folder();
    place = find_child(0);
    fflush(NULL);
    pid = fork();
    if (pid < 0)
        cluster_die("cannot fork: %s", strerror(errno));
    if (pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != owner)
            _exit(1);
        _exit(run(arg));
    }
    *place = pid;
    return pid;
}

void cluster_end(pid_t pid)
{
    if (pid == 0)
        return;
    *find_child(pid) = 0;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

int cluster_join(pid_t pid)
{
    double end_s = cluster_now_s() + CLUSTER_WAIT_S;
    int status;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (cluster_now_s() > end_s) {
            cluster_end(pid);
            return -1;
        }
        cluster_nap();
    }
    *find_child(pid) = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- Ports ---- */

/* A socket bound to this port, or -1.  Not listening. */
static int bind_port(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    /* What a dead connection left on the port does not matter. */
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

/* For as long as this program runs: while a server of ours is down, no other program of
 * these must take its port.  By a name that goes with the process.  False: it is another
 * one's. */
static bool claim_port(unsigned port)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    /* Behind a 0 it is of no file system. */
    (void)snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "redlock-test-port-%u", port);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&name, sizeof name) == 0)
        return true; /* Stays open. */
    (void)close(fd);
    return false;
}

static unsigned next_port(void)
{
    static unsigned port;

    if (port == 0) /* Programs that run at once begin at different places. */
        port = PORT_FIRST + (unsigned)getpid() * 97 % (PORT_LAST - PORT_FIRST);
    if (++port > PORT_LAST)
        port = PORT_FIRST;
    return port;
}

static int bind_free_port(unsigned *ret_port)
{
    for (unsigned i = 0; i < PORT_LAST - PORT_FIRST; i++) {
        unsigned port = next_port();
        int fd = bind_port(port);

        if (fd >= 0 && claim_port(port)) {
            *ret_port = port;
            return fd;
        }
        if (fd >= 0)
            (void)close(fd);
    }
    cluster_die("no free port");
}

static unsigned free_port(void)
{
    unsigned port;

    (void)close(bind_free_port(&port));
    return port;
}

unsigned cluster_closed_port(void)
{
    static unsigned port;

    if (port == 0)
        (void)bind_free_port(&port); /* Stays open and bound until the program ends. */
    return port;
}

/* ---- Commands ---- */

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
                     "if key~='redlock:master' then redis.call('del',key) end end return 0");
}

unsigned server_locks(struct server *server)
{
    long long keys = server_int(server, "DBSIZE");

    return (unsigned)(keys - server_int(server, "EXISTS redlock:master"));
}

void server_season(struct server *server)
{
    char run_id[48] = "";
    const char *run_id_at = strstr(server_text(server, "INFO server"), "run_id:");

    if (run_id_at == NULL || sscanf(run_id_at, "run_id:%47[0-9a-f]", run_id) != 1)
        cluster_die("port %u: INFO tells no run_id", server->port);
    for (int db = DATABASES - 1; db >= 0; db--) { /* The last one is where our connection stays. */
        (void)server_int(server, "SELECT %d", db);
        (void)server_int(server, "DEL redlock:master");
        (void)server_int(server, "HSET redlock:master id %s epoch %016x max 1 floor 1 high 16385",
                         run_id, server->port);
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

/* There may be something else than a token: readers, as long as a slow master has them. */
static bool has_token(struct server *server, const char *name, const char *token)
{
    return server_int(server, "EVAL %s 1 %s %s",
                      "local stored = redis.pcall('GET', KEYS[1]) "
                      "return stored == ARGV[1] and 1 or 0",
                      name, token) == 1;
}

unsigned cluster_count(struct cluster *cluster, const char *name, const char *token)
{
    unsigned count = 0;

    for (unsigned i = 0; i < cluster->len; i++) {
        struct server *server = &cluster->server[i];

        if (server->pid == 0 || server->paused)
            continue;
        count += token == NULL ? server_int(server, "EXISTS %s", name) == 1
                               : has_token(server, name, token);
    }
    return count;
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
    if (chdir(dir) != 0 || (mkdir(name, 0700) != 0 && errno != EEXIST) || chdir(name) != 0)
        return 1;
    log = open("log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
        return 1;
    /* The second address may be missing: the "-" says so. */
    execlp("redis-server", "redis-server", "--port", port, "--bind", "127.0.0.1", "-::1",
           "--unixsocket", server->socket, "--dir", ".", "--save", "", "--appendonly", append,
           "--appendfsync", fsync, "--repl-diskless-sync-delay", "0", "--daemonize", "no",
           (char *)NULL);
    return 127;
}

/* Whether what answers on the port is our child, and not somebody else's; and has its data. */
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

/* False: it ended, because the port was taken, or something was amiss. */
static bool start_server(struct server *server)
{
    double end_s = cluster_now_s() + CLUSTER_WAIT_S;

    make_folder();
    (void)snprintf(server->socket, sizeof server->socket, "%.90s/%u.sock",
                   socket_dir[0] != 0 ? socket_dir : dir, server->port);
    server->paused = false;
    server->pid = cluster_spawn(exec_server, server);
    for (;;) {
        int status;

        if (is_ours(server))
            return true;
        if (waitpid(server->pid, &status, WNOHANG) != 0) {
            *find_child(server->pid) = 0;
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
        server->port = free_port();
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

/* The file that it appends to: from Redis 7 on, and before. */
static FILE *open_append_file(const struct server *server)
{
    static const char *const names[] = {"appendonlydir/appendonly.aof.1.incr.aof",
                                        "appendonly.aof"};
    char path[500];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        FILE *file;

        (void)snprintf(path, sizeof path, "%s/%u/%s", dir, server->port, names[i]);
        file = fopen(path, "r+");
        if (file != NULL)
            return file;
    }
    cluster_die("port %u: it appends to no file", server->port);
}

/* Where the last of these begins in a file, or its end. */
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
    if (ftruncate(fileno(file), find_last(file, text)) != 0) /* Half a command is left out. */
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

/* ---- The cluster ---- */

/* As a test finds it. */
static void renew_server(struct server *server)
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

static void make_ready(struct cluster *cluster, unsigned len, bool durable, bool lazy)
{
    if (len > CLUSTER_MAX)
        cluster_die("%u servers are too many", len);
    cluster->len = len;
    for (unsigned i = 0; i < len; i++) {
        if (cluster->server[i].pid == 0) {
            cluster->server[i].durable = durable;
            cluster->server[i].lazy = lazy;
        }
        renew_server(&cluster->server[i]);
    }
}

void cluster_ready(struct cluster *cluster, unsigned len)
{
    make_ready(cluster, len, false, false);
}

void cluster_ready_durable(struct cluster *cluster, unsigned len)
{
    make_ready(cluster, len, true, false);
}

void cluster_ready_lazy(struct cluster *cluster, unsigned len)
{
    make_ready(cluster, len, true, true);
}

const char *cluster_masters(const struct cluster *cluster)
{
    static char lists[2][CLUSTER_MAX * sizeof "127.0.0.1:65535,"];
    static unsigned turn;
    char *list = lists[turn ^= 1];
    size_t len = 0;

    for (unsigned i = 0; i < cluster->len; i++)
        len += (size_t)snprintf(list + len, sizeof lists[0] - len, "%s127.0.0.1:%u",
                                i > 0 ? "," : "", cluster->server[i].port);
    return list;
}
