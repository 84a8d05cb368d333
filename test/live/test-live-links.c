/*
 * test-live-links.c - how to reach a master: host names, IPv4 and IPv6, unix sockets, passwords,
 * databases.
 *
 * The linker's --wrap redirects two functions to this file.  getaddrinfo() answers for names under
 * .test alike on every machine.  socket() counts the sockets of the library, and those that a child
 * would inherit.
 */
#include "test/lib/check.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

static struct cluster five;

/* ---- Names ---- */

static atomic_bool resolver_hangs; /* slow.test is not resolved until this is false. */

__typeof__(getaddrinfo) __real_getaddrinfo, __wrap_getaddrinfo;

/* two.test has an address on which no server listens, and then the right one. */
static int resolve_two(const struct addrinfo *hints, struct addrinfo **ret)
{
    int error = __real_getaddrinfo("127.0.0.2", NULL, hints, ret);

    return error != 0 ? error : __real_getaddrinfo("127.0.0.1", NULL, hints, &(*ret)->ai_next);
}

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret)
{
    if (strcmp(node, "none.test") == 0)
        return EAI_NONAME;
    if (strcmp(node, "two.test") == 0)
        return resolve_two(hints, ret);
    if (strcmp(node, "slow.test") == 0) {
        while (atomic_load(&resolver_hangs))
            cluster_nap();
        return __real_getaddrinfo("127.0.0.1", service, hints, ret);
    }
    return __real_getaddrinfo(node, service, hints, ret);
}

/* ---- Sockets ---- */

static atomic_bool watches_sockets; /* Set while only the library opens sockets. */
static atomic_uint sockets, inheritable;

__typeof__(socket) __real_socket, __wrap_socket;

int __wrap_socket(int domain, int type, int protocol)
{
    if (atomic_load(&watches_sockets)) {
        atomic_fetch_add(&sockets, 1);
        atomic_fetch_add(&inheritable, !(type & SOCK_CLOEXEC));
    }
    return __real_socket(domain, type, protocol);
}

/* ---- Lists of masters ---- */

/* The list of all masters, each written as before, port, after. */
static const char *written(const char *before, const char *after)
{
    return cluster_masters_by(&five, before, after);
}

/* The list with the first master written in this form, and the others as usual. */
static const char *first_written(const char *before, unsigned port, const char *after)
{
    static char list[1024];
    const char *others = strchr(cluster_masters(&five), ',');

    (void)snprintf(list, sizeof list, "%s%u%s%s", before, port, after, others);
    return list;
}

/* ---- Working ---- */

static bool has_no_key(void *arg)
{
    (void)arg;
    return cluster_count(&five, "x", NULL) == 0;
}

static void work(struct pilot *pilot)
{
    for (unsigned i = 0; i < 3; i++) {
        struct redlock_lease *lease;

        CHECK_INT(pilot_lock_for(pilot, "x", 30000, true, 30000, &lease), REDLOCK_OK);
        CHECK_INT(pilot_extend(pilot, lease, 0), REDLOCK_OK);
        CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
    }
    CHECK(pilot_until(pilot, has_no_key, NULL));
}

/* Either kind of client works with all of these masters, over one connection each. */
static void check_works(const char *masters)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot pilot;

        pilot_open(&pilot, kind, masters, 0);
        work(&pilot);
        CHECK(pilot_until_up(&pilot, five.len));
        CHECK(pilot_until(&pilot, cluster_has_one_client_each, &five));
        pilot_close(&pilot);
    }
}

/* What a message says of a place.  Masters with the same reason share it: "masters 1 and 3 (PLACE,
 * PLACE): reason". */
struct told {
    struct pilot *pilot;
    const char *place, *reason;
};

static bool is_told(void *arg)
{
    const struct told *told = arg;
    struct redlock_lease *lease;
    const char *at;

    CHECK_INT(pilot_lock(told->pilot, "x", NULL, &lease), REDLOCK_UNREACHABLE);
    at = strstr(told->pilot->message, told->place);
    at = at != NULL ? strstr(at, "): ") : NULL;
    return at != NULL && strncmp(at + 3, told->reason, strlen(told->reason)) == 0;
}

/* Both kinds work with four of five masters.  With fewer, the message gives the reason of this
 * place. */
static void check_works_but_one(const char *masters, const char *place, const char *reason)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot pilot;
        struct told told = {&pilot, place, reason};

        check_row = place;
        pilot_open(&pilot, kind, masters, 0);
        work(&pilot);
        CHECK(pilot_until_up(&pilot, 4));
        for (unsigned i = 1; i < 4; i++)
            server_kill(&five.server[i]);
        CHECK(pilot_until_up(&pilot, 1));
        CHECK(pilot_until(&pilot, is_told, &told));
        pilot_close(&pilot);
        cluster_ready(&five, 5);
    }
}

/* ---- Places ---- */

TEST(unix_sockets)
{
    char masters[5 * 128] = "", one[128];

    cluster_ready(&five, 5);
    for (unsigned i = 0; i < 5; i++) {
        (void)snprintf(one, sizeof one, "%s%s%s", i > 0 ? " " : "", i % 2 ? "unix:" : "unix://",
                       five.server[i].socket);
        strcat(masters, one);
    }
    check_works(masters);
}

/* A program that another thread starts must not inherit a link.  Otherwise the master would not
 * notice that the client has gone. */
static void check_close_on_exec(const char *masters)
{
    struct pilot pilot;

    atomic_store(&sockets, 0);
    atomic_store(&inheritable, 0);
    atomic_store(&watches_sockets, true);
    pilot_open(&pilot, PILOT_BLOCKING, masters, 0);
    CHECK(pilot_until_up(&pilot, 5));
    atomic_store(&watches_sockets, false);
    pilot_close(&pilot);
    CHECK(atomic_load(&sockets) >= 5);
    CHECK_UINT(atomic_load(&inheritable), 0);
}

TEST(sockets_are_close_on_exec_from_the_start)
{
    char list[1024];
    size_t len = 0;

    cluster_ready(&five, 5);
    check_close_on_exec(written("127.0.0.1:", ""));
    check_close_on_exec(written("two.test:", ""));
    for (unsigned i = 0; i < five.len; i++)
        len += (size_t)snprintf(list + len, sizeof list - len, "%sunix://%s", i > 0 ? "," : "",
                                five.server[i].socket);
    check_close_on_exec(list);
}

TEST(no_unix_socket)
{
    cluster_ready(&five, 5);
    check_works_but_one(first_written("unix:///nowhere/", 1, ".sock"), "unix:/nowhere/1.sock",
                        "No such file or directory");
    check_works_but_one(first_written("unix:///dev/null?db=", 1, ""), "unix:/dev/null?db=1",
                        "Connection refused");
}

static bool has_ipv6(void)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool bound = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;

    if (fd >= 0)
        (void)close(fd);
    return bound;
}

TEST(ipv6)
{
    cluster_ready(&five, 5);
    if (!has_ipv6()) {
        printf("ipv6: SKIPPED, this machine has no ::1\n");
        return;
    }
    check_works(written("[::1]:", ""));
    check_works(written("redis://[0:0:0:0:0:0:0:1]:", "/0"));
}

TEST(host_names)
{
    cluster_ready(&five, 5);
    check_works(written("localhost:", ""));
    check_works(written("slow.test:", ""));
}

TEST(no_such_host)
{
    cluster_ready(&five, 5);
    check_works_but_one(first_written("none.test:", 1, ""), "none.test:1",
                        "cannot resolve the name: Name or service not known");
}

/* The first attempt tries all addresses, so even a lock without a wait works. */
TEST(host_of_two_addresses)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        cluster_ready(&five, 5);
        pilot_open(&pilot, kind, written("two.test:", ""), 0);
        CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_OK);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
        pilot_close(&pilot);
    }
}

static void set_timeout(struct redlock_options *opts)
{
    opts->connect_timeout_ms = 1000;
}

/* The client may be closed, or its timeout may pass, before the name is resolved. */
TEST(slow_resolver)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        cluster_ready(&five, 5);
        atomic_store(&resolver_hangs, true);
        pilot_open(&pilot, kind, written("slow.test:", ""), 0);
        pilot_turn(&pilot);
        pilot_close(&pilot);
        CHECK_INT(pilot_try_open(&pilot, kind, written("slow.test:", ""), set_timeout), REDLOCK_OK);
        CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_UNREACHABLE);
        CHECK_HAS(pilot.message, "timeout while resolving the name");
        atomic_store(&resolver_hangs, false);
        work(&pilot);
        pilot_close(&pilot);
    }
}

/* ---- Logins and databases ---- */

static void add_user(const char *rights)
{
    for (unsigned i = 0; i < five.len; i++) {
        char command[256];

        (void)snprintf(command, sizeof command,
                       "ACL SETUSER tester reset on >geheim@:/%%%% ~x ~redlock:master %s", rights);
        (void)server_int(&five.server[i], command);
    }
}

TEST(user_and_password)
{
    cluster_ready(&five, 5);
    add_user("allkeys +@all");
    check_works(written("redis://tester:geheim%40%3A%2F%25@127.0.0.1:", ""));
    check_works(written("tester:geheim%40:/%25@127.0.0.1:", "/2"));
}

TEST(password_alone)
{
    cluster_ready(&five, 5);
    for (unsigned i = 0; i < five.len; i++)
        (void)server_int(&five.server[i], "CONFIG SET requirepass geheim");
    check_works(written(":geheim@127.0.0.1:", ""));
}

/* The rights that locks and the restart guard need in database 0. */
static const char *const needs[] = {
    "+script|load", "+evalsha", "+eval", "+set",  "+get",   "+del",  "+pttl",
    "+pexpire",     "+info",    "+time", "+hget", "+hmget", "+hset", "+hdel",
};

#define NEEDS_LEN (sizeof needs / sizeof *needs)
#define FEW_RIGHTS "tester:geheim%40:/%25@127.0.0.1:"

/* Add a user with all of these rights but one; NEEDS_LEN: with all. */
static void add_needy_user(size_t but)
{
    char rights[256] = "-@all";

    for (size_t i = 0; i < NEEDS_LEN; i++) {
        if (i != but)
            (void)snprintf(rights + strlen(rights), sizeof rights - strlen(rights), " %s",
                           needs[i]);
    }
    add_user(rights);
}

TEST(user_of_few_rights)
{
    cluster_ready(&five, 5);
    add_needy_user(NEEDS_LEN);
    check_works(written(FEW_RIGHTS, ""));
}

/* True if lock, extend and unlock work. */
static bool works_once(void)
{
    struct redlock_lease *lease;
    struct pilot pilot;
    bool works;

    pilot_open(&pilot, PILOT_LOOP, written(FEW_RIGHTS, ""), 0);
    works = pilot_lock(&pilot, "x", NULL, &lease) == REDLOCK_OK;
    if (works)
        works = pilot_extend(&pilot, lease, 20000) == REDLOCK_OK;
    if (works)
        works = pilot_unlock(&pilot, lease) == REDLOCK_OK;
    pilot_close(&pilot);
    return works;
}

/* Each right of the list is needed. */
TEST(user_of_too_few_rights)
{
    for (size_t i = 0; i <= NEEDS_LEN; i++) {
        check_row = i < NEEDS_LEN ? needs[i] : "none is missing";
        cluster_ready(&five, 5);
        add_needy_user(i);
        CHECK(works_once() == (i == NEEDS_LEN));
    }
}

static char spoken[64 * 1024]; /* All log messages and error messages. */
static size_t spoken_len;

static void listen_to(void *arg, enum redlock_level level, const char *message)
{
    (void)arg, (void)level;
    spoken_len +=
        (size_t)snprintf(spoken + spoken_len, sizeof spoken - spoken_len, "%s\n", message);
}

static void set_log(struct redlock_options *opts)
{
    opts->log = listen_to;
}

/* Each row is refused with its message, and no message contains a password. */
struct refusal {
    const char *row, *before, *after, *message;
    int status;
};

static const struct refusal refusals[] = {
    {"no password", "127.0.0.1:", "", "NOAUTH Authentication required", REDLOCK_E_FORBIDDEN},
    {"wrong password", ":verraten@127.0.0.1:", "", "AUTH: WRONGPASS invalid username-password",
     REDLOCK_E_FORBIDDEN},
    {"wrong user", "redis://mallory:verraten@127.0.0.1:", "/1",
     "AUTH: WRONGPASS invalid username-password", REDLOCK_E_FORBIDDEN},
    {"password of the user alone", "redis://tester:verraten@127.0.0.1:", "",
     "AUTH: WRONGPASS invalid username-password", REDLOCK_E_FORBIDDEN},
    {"no such database", ":geheim@127.0.0.1:", "/4711", "SELECT: ERR DB index is out of range",
     REDLOCK_UNREACHABLE},
};

TEST(refused_without_betraying)
{
    cluster_ready(&five, 5);
    add_user("+@all");
    for (unsigned i = 0; i < five.len; i++) {
        (void)server_int(&five.server[i], "CONFIG SET requirepass geheim");
        (void)server_int(&five.server[i], "CLIENT KILL TYPE normal");
    }
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
            const struct refusal *refusal = &refusals[i];
            struct redlock_lease *lease;
            struct pilot pilot;

            check_row = refusal->row;
            spoken_len = 0;
            CHECK_INT(
                pilot_try_open(&pilot, kind, written(refusal->before, refusal->after), set_log),
                REDLOCK_OK);
            CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), refusal->status);
            pilot_close(&pilot);
            CHECK_HAS(spoken, refusal->message);
            CHECK(pilot_blames(&pilot, 0x1f));
            CHECK_HAS(pilot.message, refusal->message);
            listen_to(NULL, REDLOCK_LOG_ERROR, pilot.message);
            CHECK(strstr(spoken, "verraten") == NULL);
            CHECK(strstr(spoken, "geheim") == NULL);
        }
    }
}

/* The second key there is the marker, which does not expire. */
static bool has_a_key_in_db_3(void *arg)
{
    (void)arg;
    return strstr(server_text(&five.server[0], "INFO keyspace"), "db3:keys=2,expires=1") != NULL;
}

TEST(databases)
{
    struct redlock_lease *lease, *other;
    struct pilot zero, three;

    cluster_ready(&five, 5);
    pilot_open(&zero, PILOT_LOOP, cluster_masters(&five), 0);
    pilot_open(&three, PILOT_LOOP, written("127.0.0.1:", "/3"), 0);
    CHECK(pilot_until_up(&zero, 5));
    CHECK(pilot_until_up(&three, 5));
    CHECK_INT(pilot_lock(&three, "x", NULL, &lease), REDLOCK_OK);
    CHECK_UINT(cluster_count(&five, "x", NULL), 0);
    CHECK(pilot_until(&three, has_a_key_in_db_3, NULL));
    CHECK_INT(pilot_lock(&zero, "x", NULL, &other), REDLOCK_OK);
    CHECK_INT(pilot_unlock(&zero, other), REDLOCK_OK);
    CHECK_INT(pilot_unlock(&three, lease), REDLOCK_OK);
    pilot_close(&zero);
    pilot_close(&three);
}

CHECK_MAIN({"sockets_are_close_on_exec_from_the_start", sockets_are_close_on_exec_from_the_start},
           {"unix_sockets", unix_sockets}, {"no_unix_socket", no_unix_socket}, {"ipv6", ipv6},
           {"host_names", host_names}, {"no_such_host", no_such_host},
           {"host_of_two_addresses", host_of_two_addresses}, {"slow_resolver", slow_resolver},
           {"user_and_password", user_and_password}, {"password_alone", password_alone},
           {"user_of_few_rights", user_of_few_rights},
           {"user_of_too_few_rights", user_of_too_few_rights},
           {"refused_without_betraying", refused_without_betraying}, {"databases", databases})
