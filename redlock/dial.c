/*
 * dial.c - socket() and connect().
 */
#include "redlock/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int dial(int family, const void *to, socklen_t to_len)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;

    if (fd < 0)
        return -1;
    /* A signal ends the call, and not the attempt (connect(2)). */
    if (connect(fd, to, to_len) == 0 || errno == EINPROGRESS || errno == EINTR)
        return fd;
    error = errno;
    (void)close(fd);
    errno = error;
    return -1;
}

/* A zone is the name of an interface, or its number. */
static int dial_zone(const char *address, const char *zone, struct sockaddr_in6 *to)
{
    char host[INET6_ADDRSTRLEN];
    size_t host_len = (size_t)(zone - address);

    errno = EINVAL;
    if (host_len >= sizeof host)
        return -1;
    memcpy(host, address, host_len);
    host[host_len] = '\0';
    if (inet_pton(AF_INET6, host, &to->sin6_addr) != 1)
        return -1;
    to->sin6_scope_id = if_nametoindex(zone + 1);
    if (to->sin6_scope_id == 0)
        to->sin6_scope_id = (uint32_t)strtoul(zone + 1, NULL, 10);
    return dial(AF_INET6, to, sizeof *to);
}

int dial_address(const char *address, uint16_t port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    const char *zone = strchr(address, '%');

    if (zone != NULL)
        return dial_zone(address, zone, &v6);
    if (inet_pton(AF_INET, address, &v4.sin_addr) == 1)
        return dial(AF_INET, &v4, sizeof v4);
    if (inet_pton(AF_INET6, address, &v6.sin6_addr) == 1)
        return dial(AF_INET6, &v6, sizeof v6);
    errno = EINVAL;
    return -1;
}

int dial_path(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = strlen(path);

    if (len >= sizeof to.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(to.sun_path, path, len + 1);
    return dial(AF_UNIX, &to, sizeof to);
}
