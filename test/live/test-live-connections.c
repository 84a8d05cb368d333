/*
 * test-live-connections.c - reconnects and closed clients leak no memory and no descriptor.  The
 * kernel ends a connection to a host that has vanished.
 */
#include "test/lib/check.h"

#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

static struct cluster five;

static long heap(void)
{
    return (long)mallinfo2().uordblks;
}

static void reconnect(struct pilot *pilot, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t wanted = pilot_stats(pilot).connects + five.len;
        struct redlock_lease *lease;

        for (unsigned m = 0; m < five.len; m++)
            (void)server_int(&five.server[m], "CLIENT KILL TYPE normal");
        /* When a link is up again, the guard queries the master before it may vote. */
        CHECK(pilot_until_connects(pilot, wanted));
        CHECK(pilot_until_up(pilot, five.len));
        CHECK_INT(pilot_lock(pilot, "x", NULL, &lease), REDLOCK_OK);
        CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
    }
}

/* 5 masters times 100 rounds times 2 kinds of client. */
TEST(a_thousand_reconnects)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot pilot;
        unsigned descriptors;
        long bytes;

        check_row = pilot_kind_name(kind);
        CHECK(pilot_open_five(&pilot, kind, &five));
        reconnect(&pilot, 10); /* Let buffers grow to their final size. */
        CHECK(pilot_until_leases(&pilot, 0));
        descriptors = cluster_descriptors();
        bytes = heap();
        reconnect(&pilot, 90);
        CHECK(pilot_until_leases(&pilot, 0));
        CHECK_UINT(cluster_descriptors(), descriptors);
        CHECK(heap() - bytes < 256 << 10); /* Spent leases stay for a while; see LEASE_SPENT. */
        CHECK(pilot_until(&pilot, cluster_has_one_client_each, &five));
        CHECK_UINT(pilot_stats(&pilot).connects, 5 + 500);
        pilot_close(&pilot);
    }
}

static void open_and_close(unsigned clients)
{
    for (unsigned i = 0; i < clients; i++) {
        struct redlock_lease *lease;
        struct pilot pilot;

        pilot_open(&pilot, i % 2 ? PILOT_LOOP : PILOT_BLOCKING, cluster_masters(&five), 0);
        CHECK_INT(pilot_lock_for(&pilot, "x", 30000, true, 30000, &lease), REDLOCK_OK);
        if (i % 3 == 0)
            CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
        pilot_close(&pilot);
    }
}

TEST(a_hundred_clients)
{
    unsigned descriptors;
    long bytes;

    cluster_ready(&five, 5);
    open_and_close(10);
    descriptors = cluster_descriptors();
    bytes = heap();
    open_and_close(100);
    CHECK_UINT(cluster_descriptors(), descriptors);
    CHECK(heap() - bytes < 64 << 10);
}

static bool leads_to_a_master(int fd)
{
    struct sockaddr_in peer = {.sin_family = AF_UNSPEC};
    socklen_t len = sizeof peer;

    if (getpeername(fd, (struct sockaddr *)&peer, &len) != 0 || peer.sin_family != AF_INET)
        return false;
    for (unsigned m = 0; m < five.len; m++)
        if (five.server[m].port == ntohs(peer.sin_port))
            return true;
    return false;
}

static int option_of(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof value;

    CHECK_INT(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

/* The kernel ends a connection to a host that has vanished.  This includes connections that only
 * listen, and those with a subscription that was not acknowledged. */
TEST(the_kernel_gives_up)
{
    struct redlock_lease *lease, *other;
    bool is_of_test[256];
    unsigned links = 0;
    struct pilot pilot;

    cluster_ready(&five, 5);
    for (int fd = 0; fd < 256; fd++)
        is_of_test[fd] = leads_to_a_master(fd);
    pilot_open(&pilot, PILOT_LOOP, cluster_masters(&five), 0);
    CHECK(pilot_until_up(&pilot, 5));
    CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_OK);
    CHECK_INT(pilot_lock_for(&pilot, "x", 30000, false, 1000, &other), REDLOCK_CONTENDED);
    for (int fd = 0; fd < 256; fd++) {
        if (is_of_test[fd] || !leads_to_a_master(fd))
            continue;
        links++;
        CHECK_INT(option_of(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
        CHECK_INT(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE), 15);
        CHECK_INT(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 15000);
    }
    CHECK_UINT(links, 10); /* Five connections for commands, and five for subscriptions. */
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
}

CHECK_MAIN({"a_thousand_reconnects", a_thousand_reconnects},
           {"a_hundred_clients", a_hundred_clients}, {"the_kernel_gives_up", the_kernel_gives_up})
