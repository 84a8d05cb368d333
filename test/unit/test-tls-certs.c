/*
 * test-tls-certs.c - which servers and which settings are refused, and why.
 */
#include "redlock/io/tls.h"

#include "redlock/base/error.h"
#include "test/lib/tls_scene.h"

/* ---- Servers that are refused ---- */

struct refused {
    const char *name;     /* Of the server's certificate. */
    const char *host;     /* That the client asks for. */
    const char *override; /* The option tls_server_name, or NULL. */
    int from_days, until_days;
    enum { BY_CA, BY_OTHER_CA, BY_ITSELF } issuer;
    int max_version;
    const char *why; /* NULL: accepted. */
};

static const struct refused refused[] = {
    {"DNS:a.example", "a.example", NULL, -1, 1, BY_CA, 0, NULL},
    {"DNS:a.example", "A.EXAMPLE.", NULL, -1, 1, BY_CA, 0, NULL},
    {"DNS:*.b.example", "a.b.example", NULL, -1, 1, BY_CA, 0, NULL},
    {"DNS:a*.b.example", "ab.b.example", NULL, -1, 1, BY_CA, 0, "hostname mismatch"},
    {"IP:10.0.0.1", "10.0.0.1", NULL, -1, 1, BY_CA, 0, NULL},
    {"IP:::1", "::1", NULL, -1, 1, BY_CA, 0, NULL},
    {"DNS:a.example", "10.0.0.1", "a.example", -1, 1, BY_CA, 0, NULL},
    {"DNS:a.example", "b.example", NULL, -1, 1, BY_CA, 0, "hostname mismatch: it is not for b.ex"},
    {"DNS:a.example", "a.example", "b.example", -1, 1, BY_CA, 0, "it is not for b.example"},
    {"IP:10.0.0.1", "10.0.0.2", NULL, -1, 1, BY_CA, 0, "IP address mismatch: it is not for 10.0"},
    {"DNS:10.0.0.1", "10.0.0.1", NULL, -1, 1, BY_CA, 0, "IP address mismatch"},
    {"IP:10.0.0.1", "a.example", NULL, -1, 1, BY_CA, 0, "hostname mismatch"},
    {"DNS:a.example", "a.example", NULL, -9, -1, BY_CA, 0, "certificate has expired"},
    {"DNS:a.example", "a.example", NULL, 1, 9, BY_CA, 0, "certificate is not yet valid"},
    {"DNS:a.example", "a.example", NULL, -1, 1, BY_OTHER_CA, 0, "unable to get local issuer"},
    {"DNS:a.example", "a.example", NULL, -1, 1, BY_ITSELF, 0, "self-signed certificate"},
    {"DNS:a.example", "a.example", NULL, -1, 1, BY_CA, TLS1_2_VERSION, NULL},
    {"DNS:a.example", "a.example", NULL, -1, 1, BY_CA, TLS1_1_VERSION, "TLS: "},
};

static struct tls_identity identity_of(const struct refused *row)
{
    struct tls_identity other, identity;

    if (row->issuer != BY_OTHER_CA)
        return tls_identity_make(row->name, row->issuer == BY_CA ? &ca : NULL, row->from_days,
                                 row->until_days);
    other = tls_identity_make(NULL, NULL, -1, 1);
    identity = tls_identity_make(row->name, &other, row->from_days, row->until_days);
    tls_identity_done(&other);
    return identity;
}

TEST(certificates_are_verified)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const struct refused *row = &refused[i];
        struct tls_identity identity = identity_of(row);
        SSL_CTX *server = tls_peer_context(&identity, NULL, row->max_version);
        struct tls_settings chosen = settings();
        struct link *link;

        check_row = row->why != NULL ? row->why : row->name;
        chosen.server_name = row->override;
        link = make_link(&chosen, row->host);
        talk(link, server);
        if (row->why == NULL) {
            check_up(link);
        } else {
            check_down(link);
            if (strstr(words_of(link_reason(link)), row->why) == NULL)
                CHECK_STR(words_of(link_reason(link)), row->why);
        }
        free_link(link);
        SSL_CTX_free(server);
        tls_identity_done(&identity);
    }
    check_row = NULL;
}

/* The bounds are in days.  A slow test may have taken some minutes. */
static void check_left(const struct link *link, int days)
{
    int64_t left_s = 0;

    CHECK(link_left_s(link, &left_s));
    CHECK(left_s <= days * INT64_C(86400) && left_s > days * INT64_C(86400) - 3600);
}

/* The CA of the tests ends after a day, and so does the chain of a certificate that ends later. */
TEST(the_first_certificate_of_the_chain_ends)
{
    struct tls_identity own = tls_identity_make("DNS:a.example", &ca, -1, 9);
    SSL_CTX *server = tls_peer_context(&own, NULL, 0);
    struct tls_settings chosen = settings();
    struct link *link = make_link(&chosen, "a.example");
    int64_t left_s;

    CHECK(!link_left_s(link, &left_s));
    talk(link, server);
    check_left(link, 1);
    free_link(link);
    SSL_CTX_free(server);
    tls_identity_done(&own);
}

TEST(without_verification_any_certificate_will_do)
{
    struct tls_identity own = tls_identity_make("DNS:a.example", NULL, -9, -1);
    SSL_CTX *server = tls_peer_context(&own, NULL, 0);
    const struct tls_settings chosen = {.verify = false};
    struct link *link = make_link(&chosen, "10.0.0.1");

    CHECK(!tls_context_is_strict(env.tls));
    talk(link, server);
    check_up(link);
    check_left(link, -1);
    free_link(link);
    SSL_CTX_free(server);
    tls_identity_done(&own);
}

TEST(a_server_may_want_a_certificate)
{
    SSL_CTX *server = tls_peer_context(&good, &ca, 0);
    struct tls_settings chosen = settings();
    struct link *link = make_link(&chosen, "10.0.0.1");

    talk(link, server);
    check_down(link);
    CHECK_STR(words_of(link_reason(link)),
              "TLS: the server refuses: tlsv13 alert certificate required "
              "(give tls_cert and tls_key; redlock: --tls-cert and --tls-key)");
    free_link(link);
    chosen.cert = cert_path;
    chosen.key = key_path;
    link = make_link(&chosen, "10.0.0.1");
    talk(link, server);
    check_up(link);
    free_link(link);
    SSL_CTX_free(server);
}

/* Nothing else helps than another certificate of ours, or another CA there. */
TEST(a_server_may_not_know_our_ca)
{
    struct tls_identity foreign = tls_identity_make("DNS:ca.example", NULL, -1, 1);
    SSL_CTX *server = tls_peer_context(&good, &foreign, 0);
    struct tls_settings chosen = settings();
    struct link *link;

    chosen.cert = cert_path;
    chosen.key = key_path;
    link = make_link(&chosen, "10.0.0.1");
    talk(link, server);
    check_down(link);
    CHECK_STR(words_of(link_reason(link)), "TLS: the server refuses: tlsv1 alert unknown ca");
    CHECK_STR(reason_cure(link_reason(link)), CURE_OUR_CERTIFICATE);
    free_link(link);
    SSL_CTX_free(server);
    tls_identity_done(&foreign);
}

/* ---- Settings ---- */

static void check_refused(struct tls_settings chosen, const char *why)
{
    struct tls_context *context;

    CHECK_INT(tls_context_new(&chosen, &context), REDLOCK_E_INVAL);
    if (strstr(error_message(), why) == NULL)
        CHECK_STR(error_message(), why);
}

TEST(bad_settings_are_refused)
{
    struct tls_settings chosen = settings();

    chosen.ca = "/nowhere/ca.pem";
    check_refused(chosen, "tls_ca: /nowhere/ca.pem: No such file or directory");
    chosen.ca = key_path;
    check_refused(chosen, "tls_ca: ");
    chosen = settings();
    chosen.cert = cert_path;
    check_refused(chosen, "tls_cert is set, and tls_key is not");
    chosen.key = other_path; /* Nobody is asked for the passphrase. */
    check_refused(chosen, ": the key is encrypted");
    chosen.key = cert_path;
    check_refused(chosen, ": it has no key in PEM");
    chosen.cert = key_path;
    check_refused(chosen, ": it has no certificate in PEM");
    chosen.cert = "/nowhere/cert.pem";
    check_refused(chosen, "tls_cert: /nowhere/cert.pem: No such file or directory");
    chosen.cert = NULL;
    check_refused(chosen, "tls_key is set, and tls_cert is not");
}

TEST(a_name_that_no_server_has_is_refused)
{
    struct tls_settings chosen = settings();
    struct tls_context *context;
    char name[258];

    memset(name, 'a', sizeof name);
    name[256] = '\0';
    chosen.server_name = name;
    check_refused(chosen, "tls_server_name must have 1 to 255 bytes");
    name[255] = '.'; /* It does not count. */
    CHECK_INT(tls_context_new(&chosen, &context), REDLOCK_OK);
    tls_context_free(context);
    chosen.server_name = ".";
    check_refused(chosen, "tls_server_name must have 1 to 255 bytes");
}

TEST(a_key_must_fit_its_certificate)
{
    struct tls_settings chosen = settings();
    struct tls_identity other = tls_identity_make("DNS:a.example", &ca, -1, 1);

    tls_identity_save_key(&other, other_path, NULL);
    chosen.cert = cert_path;
    chosen.key = other_path;
    check_refused(chosen, "tls_key: ");
    tls_identity_done(&other);
}

TLS_MAIN(RUN(certificates_are_verified), RUN(the_first_certificate_of_the_chain_ends),
         RUN(without_verification_any_certificate_will_do), RUN(a_server_may_want_a_certificate),
         RUN(a_server_may_not_know_our_ca), RUN(bad_settings_are_refused),
         RUN(a_name_that_no_server_has_is_refused), RUN(a_key_must_fit_its_certificate))
