/*
 * connect.c - numeric addresses, and sockets that connect to them.
 *
 * hiredis does not open them.  It sets no close-on-exec, so a process that is started before the
 * caller sets it would inherit the socket.
 */
#include "redlock/io/connect.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "redlock/base/reason.h"
#include "redlock/io/resolve.h"

union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
};

/* Split "fe80::1%eth0" into the address and the interface. */
static void read_scope(const char *text, char *ret_bare, struct sockaddr_in6 *address)
{
    size_t len = strcspn(text, "%");

    memcpy(ret_bare, text, len);
    ret_bare[len] = '\0';
    if (text[len] == '%')
        address->sin6_scope_id = if_nametoindex(text + len + 1);
}

/* Make the address of a path or of a numeric host.  Returns its length; 0: it is no address. */
static socklen_t make_address(const char *host, const char *path, unsigned port,
                              union address *address)
{
    char bare[RESOLVE_ADDRESS_MAX];

    memset(address, 0, sizeof *address);
    if (path != NULL) {
        address->un.sun_family = AF_UNIX;
        assert(strlen(path) < sizeof address->un.sun_path); /* uri.c has checked it. */
        memcpy(address->un.sun_path, path, strlen(path) + 1);
        return sizeof address->un;
    }
    if (inet_pton(AF_INET, host, &address->in.sin_addr) == 1) {
        address->in.sin_family = AF_INET;
        address->in.sin_port = htons((uint16_t)port);
        return sizeof address->in;
    }
    read_scope(host, bare, &address->in6);
    if (inet_pton(AF_INET6, bare, &address->in6.sin6_addr) != 1)
        return 0;
    address->in6.sin6_family = AF_INET6;
    address->in6.sin6_port = htons((uint16_t)port);
    return sizeof address->in6;
}

/* If a host vanishes, the kernel gives up an idle link at the second probe, after 20 s.  It gives
 * up a link with unacknowledged bytes 15 s after they were sent.  Without TCP_USER_TIMEOUT it would
 * not probe such a link, but resend the bytes for a quarter of an hour.  A listening link has no
 * other timeout. */
static void set_tcp(int fd)
{
    const int on = 1, idle_s = 15, interval_s = 5;
    const unsigned unheard_ms = 15000;

    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unheard_ms, sizeof unheard_ms);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static bool is_of_routes(int error)
{
    return error == ENETUNREACH || error == EHOSTUNREACH || error == ENETDOWN;
}

int connect_begin(const char *address, const char *path, unsigned port, struct reason *ret_why)
{
    union address to;
    socklen_t len = make_address(address, path, port, &to);
    int fd;

    if (len == 0) {
        reason_set(ret_why, WHY_NO_FAMILY);
        return -1;
    }
    fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && path == NULL)
        set_tcp(fd);
    /* After EINTR connecting goes on in the background, as after EINPROGRESS (connect(2)). */
    if (fd >= 0 && (connect(fd, &to.any, len) == 0 || errno == EINPROGRESS || errno == EINTR))
        return fd;
    reason_of_errno(ret_why, errno);
    if (is_of_routes(errno)) /* Nothing was sent yet: a router would tell it later. */
        ret_why->why = WHY_OWN_SYSTEM;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

int connect_error(int fd)
{
    int error = 0;
    socklen_t len = sizeof error;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    return error;
}
