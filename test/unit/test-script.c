/*
 * test-script.c - the build has given each script the SHA-1 of its text.  This file computes SHA-1
 * by itself.
 */
#include "redlock/wire/script.h"

#include <stdint.h>

#include "test/lib/check.h"
#include "redlock/wire/keys.h"

static uint32_t rotate(uint32_t x, unsigned bits)
{
    return x << bits | x >> (32 - bits);
}

/* One block of SHA-1, FIPS 180-4, 6.1.2. */
static void sha1_block(uint32_t h[5], const unsigned char *block)
{
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

    for (unsigned t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (unsigned t = 16; t < 80; t++)
        w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    for (unsigned t = 0; t < 80; t++) {
        static const uint32_t k[] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
        uint32_t f = t < 20   ? (b & c) | (~b & d)
                     : t < 40 ? b ^ c ^ d
                     : t < 60 ? (b & c) | (b & d) | (c & d)
                              : b ^ c ^ d;
        uint32_t next = rotate(a, 5) + f + e + k[t / 20] + w[t];

        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

static void sha1(const char *text, size_t len, char ret_digits[41])
{
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    unsigned char padded[SCRIPT_TEXT_MAX + 128] = {0};
    size_t padded_len = (len + 8) / 64 * 64 + 64;

    CHECK(padded_len <= sizeof padded);
    memcpy(padded, text, len);
    padded[len] = 0x80;
    for (unsigned i = 0; i < 8; i++)
        padded[padded_len - 1 - i] = (unsigned char)((uint64_t)len * 8 >> 8 * i);
    for (size_t i = 0; i < padded_len; i += 64)
        sha1_block(h, padded + i);
    for (unsigned i = 0; i < 5; i++)
        snprintf(ret_digits + (size_t)8 * i, 9, "%08x", h[i]);
}

/* Tests the SHA-1 of this file on the examples of FIPS 180, and on the edges of its padding. */
TEST(sha1_is_sha1)
{
    static const struct {
        const char *text, *digits;
    } rows[] = {
        {"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
        {"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
        {"0123456789012345678901234567890123456789012345678901234",
         "9f3a4ce7f66b1b74c34da2c5d732c39f81e0f8df"},
        {"0123456789012345678901234567890123456789012345678901234567890123",
         "cf0800f7644ace3cb4c3fa33388d3ba0ea3c8b6e"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char digits[41];

        sha1(rows[i].text, strlen(rows[i].text), digits);
        CHECK_STR(digits, rows[i].digits);
    }
}

TEST(scripts_have_their_sha1)
{
    for (unsigned i = 0; i < SCRIPT_LEN; i++) {
        const struct script *script = &script_all[i];
        char digits[41];

        CHECK_UINT(script->text_len, strlen(script->text));
        sha1(script->text, script->text_len, digits);
        CHECK_STR(script->sha1, digits);
    }
}

CHECK_MAIN(RUN(sha1_is_sha1), RUN(scripts_have_their_sha1))
