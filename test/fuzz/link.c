/*
 * link.c - fuzz target: the whole client on links to hostile masters, from open to close.
 *
 * The input picks the settings, and then the events: changes of connections, any bytes or an
 * answer to the oldest command, limits of reads and writes, time, and calls of the program,
 * also from its callbacks.  link-net.c has the rules for links.  The rules for calls:
 *
 *  - an operation ends once, after its call has returned, and with one of its outcomes;
 *  - it ends in time, unless it waits for ever;
 *  - after a cancel, a detach, a close, or an unlock of its lease, it never ends;
 *  - the lost notice comes once, for a lease that the program still has;
 *  - when the client is closed, all of its memory is freed.
 *
 * At the end the masters may become good.  Then all links come up and stay up, unless a master told
 * of another set before.  Without a guard, a lock is granted.
 *
 * FUZZ_TELL in the environment prints the story of an input.
 */
#include "link.h"

#include <stdarg.h>
#include <string.h>

#include <sanitizer/allocator_interface.h>
#include <sodium.h>

#define MEMORY_MAX (64u << 20) /* Of the process.  Chosen: what a hostile master may cost. */

static struct input {
    const unsigned char *bytes;
    size_t len;
} input;
static bool tells;

void tell(const char *format, ...)
{
    va_list args;

    if (!tells)
        return;
    fprintf(stderr, "%12.6f  ", (double)net_now() / 1e9);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

unsigned next_byte(void)
{
    if (input.len == 0)
        return 0;
    input.len--;
    return *input.bytes++;
}

/* ---- Entropy and memory ---- */

static uint64_t dice;
/* Blocks that this thread has not freed.  libFuzzer has a thread of its own. */
static _Thread_local int64_t blocks;

static uint32_t roll(void)
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(dice >> 32);
}

static void roll_buf(void *buf, size_t size)
{
    unsigned char *p = buf;

    while (size-- > 0)
        *p++ = (unsigned char)roll();
}

static const char *name_dice(void)
{
    return "fuzz";
}

static struct randombytes_implementation dice_implementation = {
    .implementation_name = name_dice,
    .random = roll,
    .buf = roll_buf,
};

static void on_malloc(const volatile void *p, size_t size)
{
    (void)p, (void)size;
    blocks++;
}

static void on_free(const volatile void *p)
{
    blocks -= p != NULL;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    tells = getenv("FUZZ_TELL") != NULL;
    MUST(randombytes_set_implementation(&dice_implementation) == 0);
    MUST(sodium_init() >= 0);
    MUST(__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) != 0);
    return 0;
}

/* ---- Events ---- */

static drift_span read_span(void)
{
    static const drift_span units[] = {50000, DRIFT_MS, 20 * DRIFT_MS, 300 * DRIFT_MS};
    unsigned byte = next_byte();

    return (1 + byte / 4) * units[byte % 4];
}

/* Bytes that a server may send, or pieces of it. */
static void feed_fragment(struct transport *transport, unsigned which)
{
    static const char *const fragments[] = {
        "*3\r\n$7\r\nmessage\r\n",
        "*1\r\n*1\r\n*1\r\n",
        "$5\r\nhel",
        "lo\r\n",
        ":9223372036854775807\r\n",
        ":-9223372036854775808\r\n",
        "*1000000000\r\n",
        "$-1\r\n",
        "$1000000\r\n",
        "*-1\r\n",
        "$0\r\n\r\n",
        "*2\r\n:1\r\n",
        ">3\r\n",
        "%1\r\n",
        "#t\r\n",
        ",1.5\r\n",
        "_\r\n",
        "(123\r\n",
        "+\r\n",
        "-\r\n",
        "\r\n",
        "+OK",
        "-ERR \x01\x7f\r\n",
        "*0\r\n",
        "$40\r\n",
        "*2\r\n$16\r\n0000000000000001\r\n",
    };
    const char *text = fragments[which % (sizeof fragments / sizeof fragments[0])];

    net_feed(transport, text, strlen(text));
}

static void feed_raw(struct transport *transport)
{
    size_t len = next_byte() % 64;
    char buf[64];

    for (size_t i = 0; i < len; i++)
        buf[i] = (char)next_byte();
    net_feed(transport, buf, len);
}

static void feed_flood(struct transport *transport)
{
    static char flood[2048];
    size_t len = 8 * next_byte();

    memset(flood, 'x', sizeof flood);
    net_feed(transport, flood, len);
}

static void feed_message(struct transport *transport)
{
    static const uint32_t numbers[] = {0, 1, 2, 17, 250, 10000, UINT32_MAX - 1, UINT32_MAX};
    unsigned which = next_byte();
    char buf[ANSWER_MAX];

    net_feed(transport, buf, peer_message(which / 32, which % 4, numbers[which / 4 % 8], buf));
}

static void do_bytes(struct transport *transport, unsigned what)
{
    static const size_t sizes[] = {0, 1, 2, 7, 100, 1000, 10000, SIZE_MAX};

    switch (what) {
    case 0:
    case 1:
        net_answer(transport, next_byte());
        break;
    case 2:
        for (unsigned i = 0; i < 8; i++)
            net_answer(transport, 0);
        break;
    case 3:
        feed_fragment(transport, next_byte());
        break;
    case 4:
        feed_raw(transport);
        break;
    case 5:
        feed_message(transport);
        break;
    case 6:
        feed_flood(transport);
        break;
    case 7:
        net_accept(transport, next_byte() % 4 != 0);
        break;
    case 8:
        net_end(transport, next_byte() % 2 == 0);
        break;
    case 9:
        net_set_room(transport, sizes[next_byte() % 8]);
        break;
    case 10:
        net_set_piece(transport, 1 + sizes[next_byte() % 7]);
        break;
    default:
        net_set_auto(transport, next_byte() % 4 != 0);
        break;
    }
}

static void do_event(void)
{
    unsigned byte = next_byte(), what = byte / 8 % 32;
    struct transport *transport = net_pick(byte % 8);

    if (what < 12 && transport != NULL) {
        do_bytes(transport, what);
    } else if (what < 20) {
        calls_one(next_byte());
    } else if (what < 24) {
        net_turn();
    } else if (what < 26) {
        net_settle();
    } else if (what < 30) {
        net_pass(read_span());
    } else if (byte == 247) {
        net_break_clock();
    } else if (what < 31) {
        drift_span span = read_span();

        net_stall(span);
        calls_on_stall(span);
    } else {
        net_settings.is_auto = next_byte() % 2 == 0;
    }
}

/* ---- One input ---- */

/* From now on, all masters are good. */
static void recover(bool bursts)
{
    input.len = 0;
    net_reset_all();
    net_pass(5 * DRIFT_S);
    net_reset_all(); /* A second connection clears what was odd on the first. */
    net_pass(5 * DRIFT_S);
    if (!calls_is_open() || net_is_tired())
        return;
    net_forbid_closing(!peer_told_another_set);
    if (calls_is_guarded()) {
        net_pass(5 * DRIFT_S);
    } else {
        MUST(calls_all_up());
        calls_recovered(bursts);
    }
    net_forbid_closing(false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t before = blocks;
    unsigned end;

    if (size < 3)
        return 0;
    input = (struct input){.bytes = data, .len = size};
    dice = size;
    net_begin();
    end = next_byte() % 4; /* 1 or 3: close; 2: with a burst. */
    calls_open();
    while (calls_is_open() && input.len > 0 && !net_is_tired())
        do_event();
    if (end % 2 == 0 && calls_is_open() && net_has_clock())
        recover(end == 2);
    MUST(__sanitizer_get_current_allocated_bytes() < MEMORY_MAX);
    if (calls_is_open())
        calls_close();
    MUST(blocks == before);
    return 0;
}
