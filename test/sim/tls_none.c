/*
 * tls_none.c - tls.h in a build without TLS: the theme tls cannot be run.
 */
#include "tls.h"
#include "sim.h"

static _Noreturn void give_up(void)
{
    world_fail("simulator", "this build has no TLS");
}

bool sim_tls_is_built(void)
{
    return false;
}

const char *sim_tls_ca(void)
{
    give_up();
}

void sim_tls_begin(void)
{
}

struct sim_tls *sim_tls_accept(bool is_old)
{
    (void)is_old;
    give_up();
}

void sim_tls_take(struct sim_tls *tls, const char *bytes, size_t len)
{
    (void)tls, (void)bytes, (void)len;
    give_up();
}

size_t sim_tls_read(struct sim_tls *tls, char *buf, size_t room)
{
    (void)tls, (void)buf, (void)room;
    give_up();
}

void sim_tls_say(struct sim_tls *tls, const char *bytes, size_t len)
{
    (void)tls, (void)bytes, (void)len;
    give_up();
}

void sim_tls_renew(struct sim_tls *tls)
{
    (void)tls;
    give_up();
}

bool sim_tls_close(struct sim_tls *tls)
{
    (void)tls;
    give_up();
}

size_t sim_tls_pending(const struct sim_tls *tls)
{
    (void)tls;
    give_up();
}

void sim_tls_give(struct sim_tls *tls, char *buf, size_t len)
{
    (void)tls, (void)buf, (void)len;
    give_up();
}
