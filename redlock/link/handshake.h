/*
 * handshake.h - the commands on a new connection, and what the answers mean; pure.
 *
 * The commands are AUTH if there is a password, INFO, SELECT if the database is not 0, and SCRIPT
 * LOAD of release.lua and of extend.lua.  With the restart guard, two CONFIG GET ask whether the
 * master is durable.  All are sent at once, in one round trip.
 *
 * INFO tells the kind of the server, which is judged before all that a Sentinel or a node of a
 * cluster answers otherwise.  So a refused password waits for it, too: a Sentinel has none.
 */
#ifndef REDLOCK_HANDSHAKE_H
#define REDLOCK_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/base/reason.h"

struct reply;
struct uri;

/* What a master reported about itself.  "?": nothing, or an ACL forbids INFO. */
struct master_info {
    char version[32];
    char role[16];
    char mode[16];   /* "standalone", "cluster", "sentinel", ... */
    char policy[24]; /* What the master evicts when its memory is full. */
    char run_id[48];
    char loading;  /* '1': it still loads its data; '0': no; '?': not known. */
    char keeps;    /* '1': it writes an append-only file; '0': no; '?': not known. */
    bool forbids;  /* It forbids INFO, so all of this is not known. */
    bool promoted; /* It was a replica, and has not restarted since. */
    bool syncs;    /* appendfsync is always, also during a rewrite.  false: no, or not known. */
    uint64_t maxmemory; /* In bytes.  0: no limit, or not known. */
    uint64_t uptime_s;
};

enum handshake_step {
    HANDSHAKE_AUTH,
    HANDSHAKE_INFO,
    HANDSHAKE_SELECT,
    HANDSHAKE_RELEASE, /* SCRIPT LOAD of release.lua. */
    HANDSHAKE_EXTEND,  /* SCRIPT LOAD of extend.lua. */
    HANDSHAKE_FSYNC,   /* CONFIG GET appendfsync. */
    HANDSHAKE_REWRITE, /* CONFIG GET no-appendfsync-on-rewrite. */
    HANDSHAKE_STEPS
};

struct handshake {
    const struct uri *uri; /* The URI of the master. */
    enum handshake_step steps[HANDSHAKE_STEPS];
    unsigned steps_len, steps_done;
    bool complains; /* An answer was an error, and *ret_why has it.  The server may close for it. */
};

/*
 * Begin a greeting.  *ret_bytes is what to send.  The caller wipes it, because it may hold a
 * password, and calls free().  Returns its length; 0: memory ran out.  *uri is used until the last
 * answer.
 */
size_t handshake_begin(struct handshake *handshake, const struct uri *uri, bool guarded,
                       char **ret_bytes);

/* Begin the greeting of a listening link, which is AUTH alone.  There must be a password. */
size_t handshake_begin_listening(struct handshake *handshake, const struct uri *uri,
                                 char **ret_bytes);

enum handshake_result { HANDSHAKE_GOES_ON, HANDSHAKE_DONE, HANDSHAKE_FAILED };

/*
 * Take the next answer, and store what it reports in *info.  DONE: the server may be asked for a
 * lock.  FAILED: it must not be, and *ret_why says why.
 */
enum handshake_result handshake_on_reply(struct handshake *handshake, const struct reply *reply,
                                         struct master_info *info, struct reason *ret_why);

/* True: a connection that broke during the greeting may be one of TLS. */
bool handshake_may_be_tls(const struct handshake *handshake);

/* True if INFO reported anything.  False for a zeroed struct. */
bool handshake_is_informed(const struct master_info *info);

/*
 * True if both are the same server, by the run_id that a server draws when it starts.  One server
 * that is listed twice must not have two votes.  False if either run_id is not known, as where an
 * ACL forbids INFO.
 */
bool handshake_is_same(const struct master_info *a, const struct master_info *b);

/* Why the restart guard, which recognises a master by its run_id, must refuse it.  NONE: it may
 * not. */
enum why handshake_refuses(const struct master_info *info);

/* True if each write that the master confirms survives a restart, according to its settings. */
bool handshake_is_durable(const struct master_info *info);

/* True if each write that was ever confirmed survives, too.  A promoted replica may lack writes
 * that its former master confirmed. */
bool handshake_keeps(const struct master_info *info);

/* Two risks, which are no reasons to refuse a master.  It drops locks when its memory is full
 * (evicts), or when it restarts (forgets). */
bool handshake_evicts(const struct master_info *info);
bool handshake_forgets(const struct master_info *info);

#endif /* REDLOCK_HANDSHAKE_H */
