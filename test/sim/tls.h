/*
 * tls.h - TLS of the simulated servers, in the runs of the theme tls.
 *
 * The clients have the real filter (redlock/link/stream.c, redlock/io/tls.c).  The server's side is
 * OpenSSL, too, in memory.  What its dice decide are bytes of a message; no length depends on
 * them, and no event of a run depends on anything but lengths.  So a run of a seed is the same
 * every time, with the same OpenSSL.
 */
#ifndef SIM_TLS_H
#define SIM_TLS_H

#include <stdbool.h>
#include <stddef.h>

struct sim_tls;

/* Whether the theme tls can be run. */
bool sim_tls_is_built(void);
/* The file of the CA that the servers' certificate is of. */
const char *sim_tls_ca(void);
/* Free the connections of the run before. */
void sim_tls_begin(void);

/* The server's side of a new connection. */
struct sim_tls *sim_tls_accept(bool is_old);
/* Take bytes of the client.  A byte that is not right ends the run. */
void sim_tls_take(struct sim_tls *tls, const char *bytes, size_t len);
/* Move up to room bytes of what the client said; 0: there is no more. */
size_t sim_tls_read(struct sim_tls *tls, char *buf, size_t room);
/* Say this.  The client was heard before. */
void sim_tls_say(struct sim_tls *tls, const char *bytes, size_t len);
/* Ask for new keys, which the client must answer. */
void sim_tls_renew(struct sim_tls *tls);
/* Say that nothing follows.  False: the handshake is not done. */
bool sim_tls_close(struct sim_tls *tls);
/* Bytes for the client: how many there are; move them. */
size_t sim_tls_pending(const struct sim_tls *tls);
void sim_tls_give(struct sim_tls *tls, char *buf, size_t len);

#endif /* SIM_TLS_H */
