/*
 * storelink.c - see storelink.h.
 */
#include "partition/storelink.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "partition/tool.h"

#define REQUEST_MAX 320
#define ANSWER_MAX 64

void storelink_close(struct storelink *link)
{
    if (link->fd >= 0)
        (void)close(link->fd);
    link->fd = -1;
}

/* Never waits: a store that does not accept counts as silent. */
static bool connect_to(struct storelink *link)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (link->fd >= 0)
        return true;
    if (strlen(link->path) >= sizeof address.sun_path)
        tool_die("%s: too long for the name of a socket", link->path);
    strcpy(address.sun_path, link->path);
    link->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (link->fd < 0)
        return false;
    return connect(link->fd, (struct sockaddr *)&address, sizeof address) == 0;
}

/* False: no byte came before the deadline. */
static bool wait_for_bytes(int fd, uint64_t deadline_ns)
{
    for (;;) {
        struct pollfd readable = {fd, POLLIN, 0};
        uint64_t now = tool_now_ns(), left = deadline_ns > now ? deadline_ns - now : 0;
        struct timespec at_most = {(time_t)(left / NS_PER_S), (long)(left % NS_PER_S)};
        int found = ppoll(&readable, 1, &at_most, NULL);

        if (found > 0)
            return true;
        if (found == 0 || errno != EINTR)
            return false;
    }
}

/* Read one line.  There is never more than one answer under way. */
static bool read_answer(int fd, uint64_t deadline_ns, char answer[ANSWER_MAX])
{
    size_t len = 0;

    while (len < ANSWER_MAX - 1) {
        ssize_t got;

        if (!wait_for_bytes(fd, deadline_ns))
            return false;
        got = recv(fd, answer + len, ANSWER_MAX - 1 - len, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        len += got > 0 ? (size_t)got : 0;
        answer[len] = 0;
        if (len > 0 && answer[len - 1] == '\n')
            return true;
    }
    return false;
}

/* A request is sent as a whole, or not at all: without room in the socket, the store is stuck. */
static bool exchange(struct storelink *link, const char *request, size_t len, uint64_t deadline_ns,
                     char answer[ANSWER_MAX])
{
    return connect_to(link) && send(link->fd, request, len, MSG_NOSIGNAL) == (ssize_t)len &&
           read_answer(link->fd, deadline_ns, answer);
}

enum store_answer storelink_write(struct storelink *link, const char *lock, const char *id,
                                  const char *by, uint64_t deadline_ns)
{
    char request[REQUEST_MAX], answer[ANSWER_MAX];
    int len = snprintf(request, sizeof request, "write %s %s %s %" PRIu64 "\n", lock, id, by,
                       deadline_ns);

    if (!exchange(link, request, (size_t)len, deadline_ns, answer)) {
        storelink_close(link); /* A late answer must not count for the next request. */
        return STORE_SILENT;
    }
    if (strncmp(answer, "ok ", 3) == 0)
        return STORE_OK;
    if (strcmp(answer, "refused\n") != 0)
        tool_die("the store answers \"%.*s\"", (int)strcspn(answer, "\n"), answer);
    return STORE_REFUSED;
}
