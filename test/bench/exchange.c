/*
 * exchange.c - see exchange.h.
 */
#include "test/bench/exchange.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/bench/figures.h"

const char exchange_script[] = "if redis.call(\"get\",KEYS[1]) == ARGV[1] then "
                               "return redis.call(\"del\",KEYS[1]) else return 0 end";

int exchange_dial(const struct figures_master *master)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char port[8];
    int on = 1;
    int fd;
    int rv;

    (void)snprintf(port, sizeof port, "%d", master->port);
    rv = getaddrinfo(master->host, port, &hints, &found);
    if (rv != 0) {
        errno = 0;
        figures_die("%s: %s", master->host, gai_strerror(rv));
    }
    fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol);
    if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) != 0)
        figures_die("%s:%d", master->host, master->port);
    freeaddrinfo(found);
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        figures_die("TCP_NODELAY");
    return fd;
}

/* Writes a command of `argc` words; returns its length. */
static size_t encode(char *ret_command, size_t size, int argc, const char *const *argv)
{
    int len = snprintf(ret_command, size, "*%d\r\n", argc);

    for (int i = 0; i < argc; i++)
        len += snprintf(ret_command + len, size - (size_t)len, "$%zu\r\n%s\r\n", strlen(argv[i]),
                        argv[i]);
    return (size_t)len;
}

void exchange_load(int fd, const char *script, char ret_sha[EXCHANGE_SHA_LEN + 1])
{
    char text[2048]; /* Our own script for the release has less than 1 KiB. */
    size_t len = encode(text, sizeof text, 3, (const char *[]){"SCRIPT", "LOAD", script});
    size_t answer_len = sizeof "$40\r\n" - 1 + EXCHANGE_SHA_LEN + sizeof "\r\n" - 1;

    if (send(fd, text, len, MSG_NOSIGNAL) != (ssize_t)len)
        figures_die("SCRIPT LOAD");
    if (recv(fd, text, answer_len, MSG_WAITALL) != (ssize_t)answer_len || text[0] != '$')
        figures_die("SCRIPT LOAD: unexpected answer");
    memcpy(ret_sha, text + sizeof "$40\r\n" - 1, EXCHANGE_SHA_LEN);
    ret_sha[EXCHANGE_SHA_LEN] = '\0';
}

void exchange_encode(struct exchange_commands *ret_commands, const char *name, const char *token,
                     const char *sha)
{
    ret_commands->len[ACQUIRE] =
        (uint16_t)encode(ret_commands->text[ACQUIRE], EXCHANGE_COMMAND_MAX, 6,
                         (const char *[]){"SET", name, token, "NX", "PX", "10000"});
    ret_commands->len[RELEASE] =
        (uint16_t)encode(ret_commands->text[RELEASE], EXCHANGE_COMMAND_MAX, 5,
                         (const char *[]){"EVALSHA", sha, "1", name, token});
}

size_t exchange_parse(const char *at, size_t len, enum phase phase, bool *ret_yes)
{
    static const char expected[PHASES][6] = {"+OK\r\n", ":1\r\n"};
    size_t expected_len = phase == ACQUIRE ? 5 : 4;
    const char *newline;

    *ret_yes = len >= expected_len && memcmp(at, expected[phase], expected_len) == 0;
    if (*ret_yes)
        return expected_len;
    newline = memchr(at, '\n', len);
    return newline == NULL ? 0 : (size_t)(newline - at) + 1;
}
