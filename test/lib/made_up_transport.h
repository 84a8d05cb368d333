/*
 * made_up_transport.h - what made-up transports of one link have in common.
 *
 * A test program includes it once, behind its struct transport, which has the fields events and
 * cookie.  It writes the other functions of redlock/io/transport.h itself.
 */
#ifndef TEST_MADE_UP_TRANSPORT_H
#define TEST_MADE_UP_TRANSPORT_H

#include "redlock/io/loop.h"

static struct transport the_transport;

static drift_time made_up_now(const struct loop *loop)
{
    (void)loop;
    return 1;
}

static const struct loop_ops made_up_ops = {.now = made_up_now};
__attribute__((unused)) static struct loop made_up_loop = {.ops = &made_up_ops};

struct transport *transport_new(struct loop *loop, const struct transport_events *events,
                                void *cookie)
{
    (void)loop;
    the_transport.events = events;
    the_transport.cookie = cookie;
    return &the_transport;
}

enum why transport_silence(const struct transport *transport)
{
    (void)transport;
    return WHY_CONNECT_TIMEOUT;
}

#endif /* TEST_MADE_UP_TRANSPORT_H */
