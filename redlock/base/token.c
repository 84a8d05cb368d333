/*
 * token.c - takes tokens from a ChaCha20 keystream.
 */
#include "redlock/base/token.h"

#include <assert.h>

#include <sodium.h>

#include "redlock/base/random.h"

#define TOKEN_BYTES (TOKEN_LEN / 2)

_Static_assert(sizeof((struct token_key *)0)->bytes == crypto_stream_chacha20_KEYBYTES,
               "the key of the stream");
_Static_assert(crypto_stream_chacha20_NONCEBYTES == sizeof(uint64_t), "a serial is a nonce");

int token_key_init(struct token_key *key)
{
    return random_draw(key->bytes, sizeof key->bytes);
}

void token_key_done(struct token_key *key)
{
    sodium_memzero(key, sizeof *key);
}

/* No lease has the serial number 0, so no token is of this keystream. */
void token_subkey(const struct token_key *key, unsigned char ret_key[TOKEN_SUBKEY])
{
    static const unsigned char nonce[crypto_stream_chacha20_NONCEBYTES];

    (void)crypto_stream_chacha20(ret_key, TOKEN_SUBKEY, nonce, key->bytes);
}

void token_write(const struct token_key *key, uint64_t serial, uint32_t round,
                 char ret_token[TOKEN_LEN])
{
    static const char digits[] = "0123456789abcdef";
    static const unsigned char zeroes[TOKEN_BYTES];
    unsigned char nonce[sizeof serial];
    unsigned char bytes[TOKEN_BYTES];

    for (unsigned i = 0; i < sizeof nonce; i++)
        nonce[i] = (unsigned char)(serial >> (8 * i)); /* Little-endian on every machine. */
    crypto_stream_chacha20_xor_ic(bytes, zeroes, sizeof bytes, nonce, round, key->bytes);
    for (unsigned i = 0; i < TOKEN_BYTES; i++) {
        ret_token[2 * i] = digits[bytes[i] >> 4];
        ret_token[2 * i + 1] = digits[bytes[i] & 15];
    }
}
