/*
 * test-tls.c - the stream of a server with TLS is cut and falsified at every byte.
 *
 * The link then falls with a reason, or works.  It never sends a plain byte, and never hands over a
 * byte that the server did not say.
 */
#include "redlock/link/stream.h"

#include "test/lib/tls_scene.h"

static SSL_CTX *good_server(void)
{
    return tls_peer_context(&good, NULL, 0);
}

/* The bytes that a server sends in all. */
static size_t all_bytes(SSL_CTX *server)
{
    const struct tls_settings chosen = settings();
    struct link *link = make_link(&chosen, "10.0.0.1");

    talk(link, server);
    check_up(link);
    free_link(link);
    return the_transport.in_len;
}

static void end_at_each_byte(int version)
{
    SSL_CTX *server = tls_peer_context(&good, NULL, version);
    const struct tls_settings chosen = settings();
    size_t len = all_bytes(server);

    CHECK(len > 300);
    for (size_t at = 0; at <= len; at++) {
        struct link *link = make_link(&chosen, "10.0.0.1");

        the_transport.arrives = at;
        the_transport.ends = true;
        talk(link, server);
        check_down(link);
        CHECK(at == len || heard_len == 0);
        free_link(link);
    }
    SSL_CTX_free(server);
}

TEST(a_stream_that_ends_at_any_byte_breaks_the_link)
{
    end_at_each_byte(0);
}

TEST(so_does_one_of_tls_1_2)
{
    end_at_each_byte(TLS1_2_VERSION);
}

TEST(a_stream_that_stops_at_any_byte_times_out)
{
    SSL_CTX *server = good_server();
    const struct tls_settings chosen = settings();
    size_t len = all_bytes(server);

    for (size_t at = 0; at < len; at++) {
        struct link *link = make_link(&chosen, "10.0.0.1");

        the_transport.arrives = at;
        talk(link, server);
        if (!link_is_up(link)) {
            CHECK(strstr(words_of(link_reason(link)), "connected, but ") != NULL);
            ring();
            check_down(link);
            CHECK(strstr(words_of(link_reason(link)), "connected, but does not answer") != NULL);
            CHECK((strstr(words_of(link_reason(link)), "redis://") != NULL) == (at == 0));
        }
        free_link(link);
    }
    SSL_CTX_free(server);
}

/* Some bytes mean nothing, as the version of a record. */
TEST(a_false_byte_breaks_the_link_or_means_nothing)
{
    SSL_CTX *server = good_server();
    const struct tls_settings chosen = settings();
    size_t len = all_bytes(server), broken = 0;

    for (size_t at = 0; at < len; at++) {
        struct link *link = make_link(&chosen, "10.0.0.1");

        the_transport.flipped = at;
        talk(link, server);
        CHECK(heard_len <= strlen(pushed) && memcmp(heard, pushed, heard_len) == 0);
        if (link_is_up(link) && heard_len == 0)
            broken++; /* It waits for the rest of a record that seems longer. */
        else if (link_is_up(link))
            check_up(link);
        else
            broken++;
        free_link(link);
    }
    CHECK(broken > len - 40);
    SSL_CTX_free(server);
}

TEST(pieces_end_anywhere)
{
    SSL_CTX *server = good_server();
    const struct tls_settings chosen = settings();

    for (size_t piece = 1; piece < 40; piece++) {
        struct link *link = make_link(&chosen, "10.0.0.1");

        the_transport.piece = piece;
        the_transport.window = 40 - piece;
        talk(link, server);
        check_up(link);
        free_link(link);
    }
    SSL_CTX_free(server);
}

/* More than one read takes, in records that end elsewhere than the reads.  Nothing is left when the
 * socket is silent. */
TEST(all_that_has_arrived_is_read)
{
    static char many[40000], want[40000];
    const struct tls_settings chosen = settings();
    SSL_CTX *server = good_server();
    struct link *link = make_link(&chosen, "10.0.0.1");
    size_t len = 0, want_len = 0;

    for (unsigned i = 0; i < 4000; i++) {
        len += (size_t)snprintf(many + len, sizeof many - len, "+%u\r\n", i % 10000);
        want_len += (size_t)snprintf(want + want_len, sizeof want - want_len, "%u", i % 10000);
    }
    push = many;
    pushed = want;
    talk(link, server);
    check_up(link);
    push = "+pushed\r\n";
    pushed = "pushed";
    free_link(link);
    SSL_CTX_free(server);
}

/* ---- What a server may do beside answering ---- */

static size_t sent_before; /* Bytes that the client had sent by then. */

static void say_goodbye(struct tls_peer *peer)
{
    CHECK(SSL_shutdown(peer->ssl) >= 0);
}

static void ask_for_another_handshake(struct tls_peer *peer)
{
    sent_before = the_transport.out_len;
    CHECK_INT(SSL_renegotiate(peer->ssl), 1);
    CHECK_INT(SSL_do_handshake(peer->ssl), 1);
}

static void talk_to(SSL_CTX *server, void (*then)(struct tls_peer *peer), struct link *link)
{
    finish = then;
    talk(link, server);
    finish = NULL;
    SSL_CTX_free(server);
}

/* The socket stays open, and silent. */
TEST(a_server_that_says_goodbye_is_gone)
{
    const struct tls_settings chosen = settings();
    struct link *link = make_link(&chosen, "10.0.0.1");

    talk_to(good_server(), say_goodbye, link);
    check_down(link);
    CHECK_STR(words_of(link_reason(link)), "Server closed the connection");
    CHECK_UINT(heard_len, strlen(pushed));
    free_link(link);
    link = make_link(&chosen, "10.0.0.1");
    talk_to(tls_peer_context(&good, NULL, TLS1_2_VERSION), say_goodbye, link);
    check_down(link);
    free_link(link);
}

/* TLS 1.2.  The client says at once that it will not, and this server then gives up. */
TEST(a_second_handshake_is_refused)
{
    const struct tls_settings chosen = settings();
    struct link *link = make_link(&chosen, "10.0.0.1");

    talk_to(tls_peer_context(&good, NULL, TLS1_2_VERSION), ask_for_another_handshake, link);
    check_down(link);
    CHECK(the_transport.out_len > sent_before);
    free_link(link);
}

/* It reads nothing from then on. */
static void ask_again_and_again(struct tls_peer *peer)
{
    the_transport.window = 0;
    for (unsigned i = 0; i < 1700; i++) {
        CHECK_INT(SSL_renegotiate(peer->ssl), 1);
        CHECK_INT(SSL_do_handshake(peer->ssl), 1);
    }
}

/* The client's refusals must not fill its memory. */
TEST(a_server_that_reads_no_answers_is_left)
{
    const struct tls_settings chosen = settings();
    struct link *link = make_link(&chosen, "10.0.0.1");

    talk_to(tls_peer_context(&good, NULL, TLS1_2_VERSION), ask_again_and_again, link);
    check_down(link);
    CHECK_STR(words_of(link_reason(link)),
              "TLS: the server does not read the answers that it wants");
    free_link(link);
}

/* With TLS 1.2, these bytes come with the end of the handshake, and no others follow. */
TEST(a_server_may_speak_first)
{
    const struct tls_settings chosen = settings();
    SSL_CTX *server = tls_peer_context(&good, NULL, TLS1_2_VERSION);
    struct link *link = make_link(&chosen, "10.0.0.1");

    welcome = "-ERR max number of clients reached\r\n";
    talk(link, server);
    welcome = NULL;
    check_down(link);
    CHECK_STR(words_of(link_reason(link)), "AUTH: ERR max number of clients reached");
    free_link(link);
    SSL_CTX_free(server);
}

TEST(a_server_may_speak_plain)
{
    static const char *const texts[] = {"-ERR unknown command\r\n", "+OK\r\n", "$-1\r\n",
                                        "HTTP/1.1 400 Bad Request\r\n\r\n"};
    const struct tls_settings chosen = settings();

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct link *link = make_link(&chosen, "10.0.0.1");

        open_link();
        memcpy(the_transport.in, texts[i], strlen(texts[i]));
        the_transport.in_len = strlen(texts[i]);
        the_transport.piece = 1;
        while (turn())
            ;
        check_down(link);
        check_sealed();
        CHECK_STR(
            words_of(link_reason(link)),
            "TLS: the server does not speak TLS at this port (if that is right, write redis://)");
        free_link(link);
    }
}

TEST(without_a_context_nothing_is_sent)
{
    const struct tls_settings chosen = settings();
    struct link *link = make_link(&chosen, "10.0.0.1");

    free_link(link);
    link = make_link(&chosen, "10.0.0.1");
    link_free(link);
    tls_context_free(env.tls);
    env.tls = NULL;
    link = link_new(
        &(struct link_config){
            .env = &env,
            .uri = &(struct uri){.host = ca_path, .name = ca_path, .port = 1, .tls = true},
            .dirty = &dirty,
            .listens = true},
        &events, NULL);
    falls = 0;
    ring();
    check_down(link);
    CHECK_UINT(the_transport.out_len, 0);
    link_free(link);
}

TLS_MAIN(RUN(a_stream_that_ends_at_any_byte_breaks_the_link), RUN(so_does_one_of_tls_1_2),
         RUN(a_stream_that_stops_at_any_byte_times_out),
         RUN(a_false_byte_breaks_the_link_or_means_nothing), RUN(pieces_end_anywhere),
         RUN(all_that_has_arrived_is_read), RUN(a_server_that_says_goodbye_is_gone),
         RUN(a_second_handshake_is_refused), RUN(a_server_that_reads_no_answers_is_left),
         RUN(a_server_may_speak_first), RUN(a_server_may_speak_plain),
         RUN(without_a_context_nothing_is_sent))
