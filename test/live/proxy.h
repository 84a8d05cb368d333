/*
 * proxy.h - a bad network between clients and masters.
 *
 * A thread accepts connections on ports of its own, and passes on all bytes unchanged.  After a
 * random number of bytes in one direction it delays them, drops the rest, closes the connection
 * in order, or resets it.  One seed determines all numbers.
 */
#ifndef TEST_LIVE_PROXY_H
#define TEST_LIVE_PROXY_H

#include <stdint.h>

struct cluster;
struct proxy;

/* Start a proxy with one port for each master of the cluster.  Never returns NULL. */
struct proxy *proxy_start(const struct cluster *cluster, uint64_t seed);

/* The list "127.0.0.1:port#127.0.0.1:port of the master,..." of all its ports; lasts as long as the
 * proxy. */
const char *proxy_masters(const struct proxy *proxy);

/* From now on pass on everything at once, on all connections. */
void proxy_calm(struct proxy *proxy);

/* The number of faults so far. */
unsigned proxy_faults(const struct proxy *proxy);

/* Close all connections and free. */
void proxy_stop(struct proxy *proxy);

#endif /* TEST_LIVE_PROXY_H */
