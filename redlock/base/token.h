/*
 * token.h - the random values that masters store.
 *
 * Every round of every lock has a token of its own, or a delayed release of
 * one could delete the key of the next.  Tokens are 160 bits of the ChaCha20
 * keystream under a key that each client draws once from randombytes_buf();
 * where in the keystream is told by the lease's serial number (the nonce) and
 * the round (the block counter).  So they are as unguessable as the key,
 * never repeat, cost no system call, and the token of any past round can be
 * written again - for a master that comes back and may still store it -
 * without having been kept.
 */
#ifndef REDLOCK_TOKEN_H
#define REDLOCK_TOKEN_H

#include <stdint.h>

#define TOKEN_LEN 40 /* Hexadecimal digits of 160 bits. */

struct token_key {
    unsigned char bytes[32]; /* crypto_stream_chacha20_KEYBYTES */
};

/* Draw a fresh key.  Returns 0, or -1 if libsodium cannot start (no entropy). */
int token_key_init(struct token_key *key);

/* Wipe it. */
void token_key_done(struct token_key *key);

/* Write the token of a lease's round: TOKEN_LEN lower-case digits and a NUL. */
void token_write(const struct token_key *key, uint64_t serial, uint32_t round,
                 char ret_token[TOKEN_LEN + 1]);

#endif /* REDLOCK_TOKEN_H */
