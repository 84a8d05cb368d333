/*
 * test-token.c - tokens are the keystream that token.h defines, and never repeat.
 */
#include <stdlib.h>

#include <sodium.h>

#include "redlock/base/token.h"

#include "test/lib/check.h"

#define BLOCK 64 /* Bytes of a ChaCha20 block, RFC 8439, 2.3. */

static struct token_key counting_key(void)
{
    struct token_key key;

    for (unsigned i = 0; i < sizeof key.bytes; i++)
        key.bytes[i] = (unsigned char)(i + 1);
    return key;
}

TEST(a_token_is_a_piece_of_the_keystream)
{
    static const uint64_t serials[] = {0, 1, 0x0102030405060708, UINT64_MAX};
    struct token_key key = counting_key();

    for (unsigned i = 0; i < sizeof serials / sizeof serials[0]; i++) {
        unsigned char nonce[8], stream[8 * BLOCK];

        for (unsigned j = 0; j < 8; j++)
            nonce[j] = (unsigned char)(serials[i] >> 8 * j);
        crypto_stream_chacha20(stream, sizeof stream, nonce, key.bytes);
        for (uint32_t round = 0; round < 8; round++) {
            char token[TOKEN_LEN + 1], want[TOKEN_LEN + 1];

            memset(token, '#', sizeof token);
            token_write(&key, serials[i], round, token);
            CHECK(token[TOKEN_LEN] == '#'); /* A note may stand there. */
            token[TOKEN_LEN] = '\0';
            sodium_bin2hex(want, sizeof want, stream + (size_t)round * BLOCK, TOKEN_LEN / 2);
            CHECK_STR(token, want);
        }
    }
}

/* A separate program computed it from RFC 8439, 2.3, without libsodium.  Counter and nonce have
 * 64 bits each, as in Bernstein's original. */
TEST(a_known_token)
{
    struct token_key key = counting_key();
    char token[TOKEN_LEN + 1] = "";

    token_write(&key, UINT64_C(0x1122334455667788), UINT32_C(0xfffffffe), token);
    CHECK_STR(token, "0c6421599819245534ea6f1f6d14cf09071b9b63");
}

#define SERIALS 300
#define ROUNDS 100
static char tokens[SERIALS * ROUNDS][TOKEN_LEN + 1];

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

TEST(no_two_are_the_same)
{
    struct token_key key;
    unsigned len = 0;

    CHECK_INT(token_key_init(&key), 0);
    for (unsigned s = 0; s < SERIALS; s++) {
        for (unsigned r = 0; r < ROUNDS; r++)
            token_write(&key, s, r, tokens[len++]);
    }
    qsort(tokens, len, sizeof tokens[0], compare);
    for (unsigned i = 0; i < len; i++) {
        CHECK_UINT(strlen(tokens[i]), TOKEN_LEN);
        CHECK_UINT(strspn(tokens[i], "0123456789abcdef"), TOKEN_LEN);
        CHECK(i == 0 || strcmp(tokens[i - 1], tokens[i]) != 0);
    }
}

/* Every bit of serial and round changes the token. */
TEST(every_bit_counts)
{
    struct token_key key = counting_key();
    unsigned len = 0;

    token_write(&key, 0, 0, tokens[len++]);
    for (unsigned bit = 0; bit < 64; bit++)
        token_write(&key, UINT64_C(1) << bit, 0, tokens[len++]);
    for (unsigned bit = 0; bit < 32; bit++)
        token_write(&key, 0, UINT32_C(1) << bit, tokens[len++]);
    qsort(tokens, len, sizeof tokens[0], compare);
    for (unsigned i = 1; i < len; i++)
        CHECK(strcmp(tokens[i - 1], tokens[i]) != 0);
}

TEST(a_token_can_be_written_again)
{
    struct token_key key;
    char first[TOKEN_LEN + 1] = "", again[TOKEN_LEN + 1] = "";

    CHECK_INT(token_key_init(&key), 0);
    token_write(&key, 42, 7, first);
    token_write(&key, 43, 8, again);
    CHECK(strcmp(first, again) != 0);
    token_write(&key, 42, 7, again);
    CHECK_STR(again, first);
}

TEST(keys_are_drawn_and_wiped)
{
    static const struct token_key zeroes;
    struct token_key a = zeroes, b = zeroes;

    CHECK_INT(token_key_init(&a), 0);
    CHECK_INT(token_key_init(&b), 0);
    CHECK(memcmp(&a, &b, sizeof a) != 0);
    CHECK(memcmp(&a, &zeroes, sizeof a) != 0);
    token_key_done(&a);
    CHECK(memcmp(&a, &zeroes, sizeof a) == 0);
}

/* A subkey is not the beginning of a token. */
TEST(a_subkey_is_of_its_key_alone)
{
    unsigned char one[TOKEN_SUBKEY], again[TOKEN_SUBKEY], other[TOKEN_SUBKEY];
    struct token_key key, another;
    char text[2 * TOKEN_SUBKEY + 1], token[TOKEN_LEN + 1];

    CHECK_INT(token_key_init(&key), 0);
    CHECK_INT(token_key_init(&another), 0);
    token_subkey(&key, one);
    token_subkey(&key, again);
    token_subkey(&another, other);
    CHECK(memcmp(one, again, sizeof one) == 0);
    CHECK(memcmp(one, other, sizeof one) != 0);
    for (unsigned i = 0; i < TOKEN_SUBKEY; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", one[i]);
    for (uint64_t serial = 1; serial < 4; serial++) {
        token_write(&key, serial, 0, token);
        CHECK(memcmp(token, text, 2 * TOKEN_SUBKEY) != 0);
    }
}

CHECK_MAIN(RUN(a_subkey_is_of_its_key_alone), RUN(a_token_is_a_piece_of_the_keystream),
           RUN(a_known_token), RUN(no_two_are_the_same), RUN(every_bit_counts),
           RUN(a_token_can_be_written_again), RUN(keys_are_drawn_and_wiped))
