/*
 * cluster.c - what a test program owns: its folder, its children, its ports, its servers.
 */
#include "live/cluster.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
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
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Below the ports that kernels give to outgoing connections, so that a restarted server
 * finds its port free. */
#define PORT_FIRST 17000
#define PORT_LAST 31999

#define CHILDREN_MAX 64

static pid_t owner; /* The process that started the children.  Its forks leave them alone. */
static pid_t children[CHILDREN_MAX];
static char dir[400];       /* The folder of logs and data. */
static char socket_dir[32]; /* The folder of sockets, if dir is too long for their names; or "". */

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

static void clean_up(void)
{
    if (getpid() != owner)
        return;
    server_disconnect_all();
    for (unsigned i = 0; i < CHILDREN_MAX; i++)
        cluster_end(children[i]);
    remove_tree(dir);
    remove_tree(socket_dir);
}

/* The folder is beside the program, in the build folder. */
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
    /* An address holds no long path, and no blank as it is. */
    if (strlen(dir) + sizeof "/12345.sock" > sizeof((struct server *)0)->socket ||
        strchr(dir, ' ') != NULL) {
        strcpy(socket_dir, "/tmp/redlock-test-XXXXXX");
        if (mkdtemp(socket_dir) == NULL)
            cluster_die("cannot make %s: %s", socket_dir, strerror(errno));
    }
    (void)atexit(clean_up);
}

const char *cluster_folder(void)
{
    make_folder();
    return dir;
}

const char *cluster_socket_folder(void)
{
    make_folder();
    return socket_dir[0] != 0 ? socket_dir : dir;
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

/* A fork by a system call alone, of which glibc does not know. */
static pid_t clone_without_libc(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

const struct cluster_fork cluster_forks[] = {
    {"fork()", fork},
#if __GLIBC_PREREQ(2, 34)
    {"_Fork()", _Fork},
#endif
    {"clone", clone_without_libc},
    {NULL, NULL},
};

pid_t cluster_spawn_by(pid_t (*fork_it)(void), int (*run)(void *arg), void *arg)
{
    pid_t *place, pid;

    make_folder();
    place = find_child(0);
    fflush(NULL);
    pid = fork_it();
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

pid_t cluster_spawn(int (*run)(void *arg), void *arg)
{
    return cluster_spawn_by(fork, run, arg);
}

void cluster_end(pid_t pid)
{
    if (pid == 0)
        return;
    *find_child(pid) = 0;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

bool cluster_has_ended(pid_t pid, int *ret_status)
{
    if (waitpid(pid, ret_status, WNOHANG) == 0)
        return false;
    *find_child(pid) = 0;
    return true;
}

int cluster_join(pid_t pid)
{
    double end_s = cluster_now_s() + CLUSTER_WAIT_S;
    int status;

    while (!cluster_has_ended(pid, &status)) {
        if (cluster_now_s() > end_s) {
            cluster_end(pid);
            return -1;
        }
        cluster_nap();
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- Ports ---- */

/* Returns a socket that is bound to this port and does not listen, or -1. */
static int bind_port(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    /* A connection in TIME_WAIT must not block the port. */
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

/* Reserve the port until this program ends, so that no other test program takes it while our
 * server is down.  The reservation is an abstract socket, which ends with the process.  False:
 * another program has it. */
static bool claim_port(unsigned port)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    /* A name that begins with 0 is abstract (unix(7)). */
    (void)snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "redlock-test-port-%u", port);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&name, sizeof name) == 0)
        return true; /* Stays open. */
    (void)close(fd);
    return false;
}

static unsigned next_port(void)
{
    static unsigned port;

    if (port == 0) /* Programs that run at the same time begin at different ports. */
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

unsigned cluster_free_port(void)
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

/* ---- The cluster ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The text of a configuration: the members in order. */
static void write_config(char *list, char *config)
{
    char *places[CLUSTER_MAX], *rest = NULL;
    unsigned len = 0;

    for (char *p = strtok_r(list, ",", &rest); p != NULL; p = strtok_r(NULL, ",", &rest))
        places[len++] = p;
    qsort(places, len, sizeof places[0], by_text);
    for (unsigned i = 0; i < len; i++)
        config += sprintf(config, "%s%s", i > 0 ? " " : "", places[i]);
}

/* A server finds its own name by its port. */
static void join_in(struct cluster *cluster, unsigned db, const char *list)
{
    char config[4096], copy[4096], name[400], port[12];

    (void)snprintf(copy, sizeof copy, "%s", list);
    write_config(copy, config);
    for (unsigned i = 0; i < cluster->len; i++) {
        struct server *server = &cluster->server[i];
        const char *at;

        (void)snprintf(port, sizeof port, "%u", server->port);
        at = strstr(list, port);
        if (server->pid == 0 || server->paused || at == NULL)
            continue;
        while (at > list && at[-1] != ',')
            at--;
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        server_join(server, db, cluster->server[0].port, config, name);
    }
}

void cluster_found(struct cluster *cluster, const char *list)
{
    join_in(cluster, 0, list);
}

/* One master of a list, as the library prints its place. */
static void write_place(const char *entry, size_t len, char *place, size_t size)
{
    static const char long_ipv6[] = "[0:0:0:0:0:0:0:1]";
    const char *end = entry + len, *at = memrchr(entry, '@', len);
    bool is_unix = strncmp(entry, "unix:", 5) == 0;
    size_t place_len;

    entry += strncmp(entry, "redis://", 8) == 0 ? 8 : 0;
    entry += is_unix ? strncmp(entry, "unix://", 7) == 0 ? 7 : 5 : 0;
    entry = at != NULL ? at + 1 : entry;
    if (strncmp(entry, long_ipv6, sizeof long_ipv6 - 1) == 0)
        (void)snprintf(place, size, "[::1]%.*s", (int)(end - entry - (sizeof long_ipv6 - 1)),
                       entry + sizeof long_ipv6 - 1);
    else
        (void)snprintf(place, size, "%s%.*s", is_unix ? "unix:" : "", (int)(end - entry), entry);
    place_len = strlen(place);
    if (!is_unix && place_len > 2 && strcmp(place + place_len - 2, "/0") == 0)
        place[place_len - 2] = '\0';
}

void cluster_found_list(const char *masters)
{
    char text[CLUSTER_MAX][400], config[CLUSTER_MAX * 401], *places[CLUSTER_MAX], *end = config;
    bool is_fork = getpid() != owner;
    unsigned len = 0;

    if (masters == NULL || strchr(masters, '#') != NULL)
        return;
    for (const char *p = masters; *p != '\0' && len < CLUSTER_MAX;) {
        size_t entry_len = strcspn(p, ", \n\t");

        if (entry_len > 0 && memchr(p, ':', entry_len) == NULL)
            return;
        if (entry_len > 0) {
            places[len] = text[len];
            write_place(p, entry_len, text[len++], sizeof text[0]);
        }
        p += entry_len;
        p += strspn(p, ", \n\t");
    }
    qsort(places, len, sizeof places[0], by_text);
    for (unsigned i = 0; i < len; i++)
        end += sprintf(end, "%s%s", i > 0 ? " " : "", places[i]);
    if (is_fork) /* The connections are those of the parent, which uses them at the same time. */
        server_disconnect_all();
    server_found_all(config, places, len);
    if (is_fork)
        server_disconnect_all();
}

void cluster_unfound(struct cluster *cluster)
{
    for (unsigned i = 0; i < cluster->len; i++)
        if (cluster->server[i].pid != 0 && !cluster->server[i].paused)
            server_season(&cluster->server[i]);
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
        server_ready(&cluster->server[i]);
    }
    for (unsigned db = 0; db < CLUSTER_DATABASES; db++) {
        char after[4] = "";

        if (db > 0)
            (void)snprintf(after, sizeof after, "/%u", db);
        join_in(cluster, db, cluster_masters_by(cluster, "127.0.0.1:", after));
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

const char *cluster_masters_by(const struct cluster *cluster, const char *before, const char *after)
{
    static char lists[2][1024];
    static unsigned turn;
    char *list = lists[turn ^= 1];
    size_t len = 0;

    for (unsigned i = 0; i < cluster->len; i++)
        len += (size_t)snprintf(list + len, sizeof lists[0] - len, "%s%s%u%s", i > 0 ? "," : "",
                                before, cluster->server[i].port, after);
    return list;
}

const char *cluster_masters(const struct cluster *cluster)
{
    return cluster_masters_by(cluster, "127.0.0.1:", "");
}

/* The key may have another type: a slow master may still store readers. */
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

bool cluster_until_queued(struct cluster *cluster, const char *name, long long waiters,
                          unsigned servers)
{
    double end_s = cluster_now_s() + CLUSTER_WAIT_S;

    while (cluster_now_s() < end_s) {
        unsigned found = 0;

        for (unsigned i = 0; i < cluster->len; i++)
            found +=
                cluster->server[i].pid != 0 && server_queued(&cluster->server[i], name) == waiters;
        if (found >= servers)
            return true;
        cluster_nap();
    }
    return false;
}

bool cluster_has_no_locks(void *arg)
{
    struct cluster *cluster = arg;

    for (unsigned i = 0; i < cluster->len; i++) {
        if (server_locks(&cluster->server[i]) != 0)
            return false;
    }
    return true;
}

bool cluster_has_one_client_each(void *arg)
{
    struct cluster *cluster = arg;

    for (unsigned i = 0; i < cluster->len; i++) {
        if (server_clients(&cluster->server[i]) != 1)
            return false;
    }
    return true;
}
