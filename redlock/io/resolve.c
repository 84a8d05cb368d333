/*
 * resolve.c - one thread per look-up.
 */
#include "redlock/io/resolve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ADDRESSES_MAX 8            /* No source; more than any master has. */
#define THREAD_STACK (256u * 1024) /* NSS modules have buffers of tens of KiB. */

struct resolve {
    atomic_int owners; /* The loop's side, and the thread. */
    int fd;
    int error;        /* EAI_* */
    int system_error; /* With EAI_SYSTEM: errno. */
    unsigned addresses_len;
    char addresses[ADDRESSES_MAX][RESOLVE_ADDRESS_MAX];
    char host[];
};

int resolve_is_address(const char *host)
{
    unsigned char buf[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, host, buf) == 1 || inet_pton(AF_INET6, host, buf) == 1;
}

static void disown(struct resolve *resolve)
{
    if (atomic_fetch_sub(&resolve->owners, 1) != 1)
        return;
    (void)close(resolve->fd);
    free(resolve);
}

static void look_up(struct resolve *resolve)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *all, *one;

    resolve->error = getaddrinfo(resolve->host, NULL, &hints, &all);
    resolve->system_error = errno;
    if (resolve->error != 0)
        return;
    for (one = all; one != NULL && resolve->addresses_len < ADDRESSES_MAX; one = one->ai_next) {
        char *address = resolve->addresses[resolve->addresses_len];

        if (getnameinfo(one->ai_addr, one->ai_addrlen, address, RESOLVE_ADDRESS_MAX, NULL, 0,
                        NI_NUMERICHOST) == 0)
            resolve->addresses_len++;
    }
    freeaddrinfo(all);
}

static void *run(void *arg)
{
    struct resolve *resolve = arg;
    const uint64_t one = 1;

    look_up(resolve);
    if (write(resolve->fd, &one, sizeof one) != (ssize_t)sizeof one) {
        /* An eventfd at 0 takes a 1; and if not, the timeout of the connection helps. */
    }
    disown(resolve);
    return NULL;
}

/* All signals blocked: they are for the program's own threads.  0, or an error. */
static int start_thread(struct resolve *resolve)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    int error;

    error = pthread_attr_init(&attr);
    if (error != 0)
        return error;
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attr, THREAD_STACK);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &attr, run, resolve);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    return error;
}

struct resolve *resolve_start(const char *host)
{
    size_t len = strlen(host);
    struct resolve *resolve = calloc(1, sizeof *resolve + len + 1);
    int error;

    if (resolve == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    memcpy(resolve->host, host, len + 1);
    atomic_init(&resolve->owners, 2);
    resolve->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    error = errno;
    if (resolve->fd < 0)
        goto fail_fd;
    error = start_thread(resolve);
    if (error != 0)
        goto fail_thread;
    return resolve;

fail_thread:
    (void)close(resolve->fd);
fail_fd:
    free(resolve);
    errno = error;
    return NULL;
}

int resolve_fd(const struct resolve *resolve)
{
    return resolve->fd;
}

unsigned resolve_len(const struct resolve *resolve)
{
    return resolve->addresses_len;
}

const char *resolve_take(struct resolve *resolve, unsigned turn,
                         char ret_address[RESOLVE_ADDRESS_MAX])
{
    if (resolve->error == EAI_SYSTEM)
        return strerror(resolve->system_error);
    if (resolve->error != 0)
        return gai_strerror(resolve->error);
    if (resolve->addresses_len == 0)
        return "the name has no address";
    memcpy(ret_address, resolve->addresses[turn % resolve->addresses_len], RESOLVE_ADDRESS_MAX);
    return NULL;
}

void resolve_free(struct resolve *resolve)
{
    disown(resolve);
}
