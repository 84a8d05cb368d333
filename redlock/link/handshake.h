/*
 * handshake.h - what is said on a new connection, and what the answers mean.
 *
 *   AUTH (with a password), SELECT (another db than 0), SCRIPT LOAD of the
 *   scripts, INFO, and with the restart guard CONFIG GET of what it keeps - all
 *   at once, so that it costs one round trip.
 *
 * No I/O: master.c carries the bytes.
 */
#ifndef REDLOCK_HANDSHAKE_H
#define REDLOCK_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reply;
struct uri;

/* What INFO told; "?" where it did not, or was not allowed. */
struct master_info {
    char version[32];
    char role[16];
    char mode[16];   /* "standalone", "cluster", ... */
    char policy[24]; /* What it drops when its memory is full. */
    char run_id[48];
    char loading;       /* '1' yes, '0' no, '?'; likewise the next. */
    char keeps;         /* Whether it writes what it stores to an append-only file. */
    bool promoted;      /* It was a replica, and not started again since. */
    bool syncs;         /* appendfsync is always, and that at all times; false: not, or not told. */
    uint64_t maxmemory; /* Bytes; 0: no limit, or not told. */
    uint64_t uptime_s;
};

enum handshake_step {
    HANDSHAKE_AUTH,
    HANDSHAKE_SELECT,
    HANDSHAKE_RELEASE, /* SCRIPT LOAD of this one, and of the next. */
    HANDSHAKE_EXTEND,
    HANDSHAKE_INFO,
    HANDSHAKE_FSYNC, /* CONFIG GET appendfsync, and no-appendfsync-on-rewrite. */
    HANDSHAKE_REWRITE,
    HANDSHAKE_STEPS
};

struct handshake {
    enum handshake_step steps[HANDSHAKE_STEPS];
    unsigned steps_len, steps_done;
};

/*
 * Begin: *ret_bytes is what to send, for the caller to wipe (it may hold a
 * password) and to free().  Its length, or 0 without memory.
 */
size_t handshake_begin(struct handshake *handshake, const struct uri *uri, bool guarded,
                       char **ret_bytes);

/* For a link that only listens: AUTH, and nothing else; not without a password. */
size_t handshake_begin_listening(struct handshake *handshake, const struct uri *uri,
                                 char **ret_bytes);

enum handshake_result { HANDSHAKE_GOES_ON, HANDSHAKE_DONE, HANDSHAKE_FAILED };

/*
 * Take the next answer.  DONE: this is a master that can be asked, and *info
 * tells which.  FAILED: it is none, and error says why.
 */
enum handshake_result handshake_on_reply(struct handshake *handshake, const struct reply *reply,
                                         struct master_info *info, char *error, size_t error_size);

/* Whether INFO was told at all; false of zeroes, too. */
bool handshake_is_informed(const struct master_info *info);

/*
 * Whether both are one and the same server, by the id that it drew when it
 * started.  False where either id is not known: who may not ask INFO cannot be
 * told.  One server listed twice must not have two votes.
 */
bool handshake_is_same(const struct master_info *a, const struct master_info *b);

/* Whether the id that a server draws when it starts is known, by which the
 * restart guard knows it again. */
bool handshake_is_known(const struct master_info *info);

/* Whether what it says is stored survives a restart, as far as it says. */
bool handshake_is_durable(const struct master_info *info);

/* And what it has once said.  Not if it was a replica: then it was another server that said so. */
bool handshake_keeps(const struct master_info *info);

/* What is no reason to refuse a master, but a risk: that it drops locks when
 * its memory is full, and that it forgets them when it is restarted. */
bool handshake_evicts(const struct master_info *info);
bool handshake_forgets(const struct master_info *info);

#endif /* REDLOCK_HANDSHAKE_H */
