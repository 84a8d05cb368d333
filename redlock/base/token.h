/*
 * token.h - the random values that masters store.
 *
 * Every round of every lock has its own token.  Otherwise a delayed release of one round could
 * delete the key of the next.
 *
 * A token is 160 bits of a ChaCha20 keystream.  Each client draws the key once, from
 * randombytes_buf().  The lease's serial number is the nonce, and the round is the block counter.
 * So a token is as hard to guess as the key, never repeats, and costs no system call.  The client
 * can write the token of a past round again without storing it.  It needs that token when a master
 * comes back that may still store it.
 */
#ifndef REDLOCK_TOKEN_H
#define REDLOCK_TOKEN_H

#include <stdint.h>

#define TOKEN_LEN 40   /* Hexadecimal digits of 160 bits. */
#define TOKEN_NOTE ':' /* Stands between a token and its note; see note.h. */

#define TOKEN_SUBKEY 16 /* Bytes: crypto_shorthash_KEYBYTES. */

struct token_key {
    unsigned char bytes[32]; /* crypto_stream_chacha20_KEYBYTES */
};

/* Draw a fresh key.  Returns what random_draw() does. */
int token_key_init(struct token_key *key);

/* Wipe the key. */
void token_key_done(struct token_key *key);

/* Derive a second key, which tokens do not reveal.  It draws no bytes from
 * randombytes_buf(), so that a seed of the simulator keeps its meaning. */
void token_subkey(const struct token_key *key, unsigned char ret_key[TOKEN_SUBKEY]);

/* Write the token of a lease's round: TOKEN_LEN lower-case digits, and no NUL. */
void token_write(const struct token_key *key, uint64_t serial, uint32_t round,
                 char ret_token[TOKEN_LEN]);

#endif /* REDLOCK_TOKEN_H */
