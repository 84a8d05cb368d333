/*
 * proxy.h - a bad network between clients and masters.
 *
 * A thread that takes connections on ports of its own and passes on what it reads, byte by
 * byte the same.  After a random number of bytes in one direction it delays them, drops the
 * rest, closes the connection in order, or resets it.  All is drawn from one seed.
 */
#ifndef TEST_LIVE_PROXY_H
#define TEST_LIVE_PROXY_H

#include <stdint.h>

struct cluster;
struct proxy;

/* Begin with one port for each master of the cluster.  Never NULL. */
struct proxy *proxy_start(const struct cluster *cluster, uint64_t seed);

/* "127.0.0.1:port,..." of all; good as long as the proxy. */
const char *proxy_masters(const struct proxy *proxy);

/* From now on pass on everything at once, and begin with the connections that stand. */
void proxy_calm(struct proxy *proxy);

/* How many faults there were. */
unsigned proxy_faults(const struct proxy *proxy);

/* Close all connections and free. */
void proxy_stop(struct proxy *proxy);

#endif /* TEST_LIVE_PROXY_H */
