/*
 * resolve.c - one thread for each name that is being looked up.
 *
 * A look-up belongs to the process, not to a client.  All requests for a name join the look-up of
 * it that is under way, so threads do not pile up while getaddrinfo() hangs.
 */
#include "redlock/io/resolve.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <locale.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "redlock/base/fork.h"
#include "redlock/base/reason.h"
#include "redlock/base/thread.h"

#define ADDRESSES_MAX 8 /* Chosen: more than any master has. */

/*
 * The look-ups of one process.  A forked child has no such threads, so no look-up ends there, and a
 * thread of its parent may have held the mutex.  So it begins with none, and leaks those it
 * inherited.  A handler of pthread_atfork() would not run at _Fork() or a system call.
 */
struct lookups {
    unsigned forks;        /* fork_count() of the process. */
    pthread_mutex_t mutex; /* Guards this list, and every field of a look-up but its result. */
    struct lookup *under_way;
};

/* One name.  Its thread writes the result before is_done is set, and nothing writes it later. */
struct lookup {
    struct lookups *all;
    struct lookup *next;     /* The next look-up under way. */
    struct resolve *waiting; /* The requests for this name. */
    unsigned owners;         /* The thread, and the requests.  The last one frees it. */
    bool is_done;
    int error;        /* An EAI_* code, or 0. */
    int system_error; /* errno, if error is EAI_SYSTEM. */
    unsigned addresses_len;
    char addresses[ADDRESSES_MAX][RESOLVE_ADDRESS_MAX];
    char host[];
};

/* One request. */
struct resolve {
    struct resolve *next; /* The next request for the same name. */
    struct lookup *lookup;
    int fd;
};

static void lock(struct lookups *all)
{
    (void)pthread_mutex_lock(&all->mutex);
}

static void unlock(struct lookups *all)
{
    (void)pthread_mutex_unlock(&all->mutex);
}

/* ---- Forks ---- */

static bool is_inherited(const struct lookups *all)
{
    return all->forks != fork_count();
}

/* The look-ups of this process.  NULL: memory ran out. */
static struct lookups *find_ours(void)
{
    static struct lookups first = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    static _Atomic(struct lookups *) ours = &first;
    struct lookups *found, *fresh;

    fork_watch();
    found = atomic_load(&ours);
    if (!is_inherited(found))
        return found;
    fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return NULL;
    fresh->forks = fork_count();
    (void)pthread_mutex_init(&fresh->mutex, NULL);
    if (atomic_compare_exchange_strong(&ours, &found, fresh))
        return fresh;
    free(fresh); /* Another thread was faster. */
    return found;
}

/* ---- The thread ---- */

int resolve_is_address(const char *host)
{
    unsigned char buf[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, host, buf) == 1 || inet_pton(AF_INET6, host, buf) == 1;
}

static void disown(struct lookup *lookup)
{
    if (--lookup->owners == 0)
        free(lookup);
}

static void look_up(struct lookup *lookup)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *all, *one;

    lookup->error = getaddrinfo(lookup->host, NULL, &hints, &all);
    lookup->system_error = errno;
    if (lookup->error != 0)
        return;
    for (one = all; one != NULL && lookup->addresses_len < ADDRESSES_MAX; one = one->ai_next) {
        char *address = lookup->addresses[lookup->addresses_len];

        if (getnameinfo(one->ai_addr, one->ai_addrlen, address, RESOLVE_ADDRESS_MAX, NULL, 0,
                        NI_NUMERICHOST) == 0)
            lookup->addresses_len++;
    }
    freeaddrinfo(all);
}

static void tell(const struct lookup *lookup)
{
    const uint64_t one = 1;

    for (struct resolve *one_of = lookup->waiting; one_of != NULL; one_of = one_of->next)
        if (write(one_of->fd, &one, sizeof one) != (ssize_t)sizeof one) {
            /* An eventfd at 0 takes a 1.  After an error the next attempt checks is_done. */
        }
}

static void *run(void *arg)
{
    struct lookup *lookup = arg, **at;
    struct lookups *all = lookup->all;

    look_up(lookup);
    lock(all);
    at = &all->under_way;
    while (*at != lookup)
        at = &(*at)->next;
    *at = lookup->next;
    lookup->is_done = true;
    tell(lookup);
    disown(lookup);
    unlock(all);
    return NULL;
}

/* ---- Requests ---- */

static struct lookup *find(const struct lookups *all, const char *host)
{
    struct lookup *lookup = all->under_way;

    while (lookup != NULL && strcmp(lookup->host, host) != 0)
        lookup = lookup->next;
    return lookup;
}

/* Start a look-up.  NULL: memory or a thread was missing, and errno is set. */
static struct lookup *make(struct lookups *all, const char *host)
{
    size_t len = strlen(host);
    struct lookup *lookup = calloc(1, sizeof *lookup + len + 1);
    int error = ENOMEM;

    if (lookup != NULL) {
        memcpy(lookup->host, host, len + 1);
        lookup->all = all;
        lookup->owners = 1;
        error = thread_start(NULL, run, lookup);
    }
    if (error != 0) {
        free(lookup);
        errno = error;
        return NULL;
    }
    lookup->next = all->under_way;
    all->under_way = lookup;
    return lookup;
}

/* Join the look-up of host, or start one.  Returns false where make() fails. */
static bool join(struct resolve *resolve, const char *host)
{
    struct lookups *all = find_ours();
    struct lookup *lookup;

    if (all == NULL) {
        errno = ENOMEM;
        return false;
    }
    lock(all);
    lookup = find(all, host);
    if (lookup == NULL)
        lookup = make(all, host);
    if (lookup != NULL) {
        lookup->owners++;
        resolve->lookup = lookup;
        resolve->next = lookup->waiting;
        lookup->waiting = resolve;
    }
    unlock(all);
    return lookup != NULL;
}

struct resolve *resolve_start(const char *host)
{
    struct resolve *resolve = calloc(1, sizeof *resolve);
    int error;

    if (resolve == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    resolve->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    error = errno;
    if (resolve->fd < 0)
        goto fail_fd;
    if (!join(resolve, host)) {
        error = errno;
        goto fail_join;
    }
    return resolve;

fail_join:
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

/* The mutex makes the thread's result visible to the caller. */
bool resolve_is_done(const struct resolve *resolve)
{
    struct lookups *all = resolve->lookup->all;
    bool is_done;

    if (is_inherited(all))
        return false;
    lock(all);
    is_done = resolve->lookup->is_done;
    unlock(all);
    return is_done;
}

static const struct lookup *result_of(const struct resolve *resolve)
{
    bool is_done = resolve_is_done(resolve);

    assert(is_done);
    (void)is_done; /* Unused without assertions. */
    return resolve->lookup;
}

unsigned resolve_len(const struct resolve *resolve)
{
    return result_of(resolve)->addresses_len;
}

/* In English: gai_strerror() speaks the language of the thread. */
static void explain(const struct lookup *lookup, struct reason *ret_why)
{
    locale_t before;

    if (lookup->error == EAI_SYSTEM) {
        reason_set(ret_why, WHY_NAME_SYSTEM);
        ret_why->number = lookup->system_error;
        return;
    }
    if (lookup->error == 0) {
        reason_set(ret_why, WHY_NO_ADDRESS);
        return;
    }
    before = uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
    reason_quote(ret_why, WHY_NO_NAME, gai_strerror(lookup->error), NULL);
    (void)uselocale(before);
}

bool resolve_take(const struct resolve *resolve, unsigned turn,
                  char ret_address[RESOLVE_ADDRESS_MAX], struct reason *ret_why)
{
    const struct lookup *lookup = result_of(resolve);

    if (lookup->error != 0 || lookup->addresses_len == 0) {
        explain(lookup, ret_why);
        return false;
    }
    memcpy(ret_address, lookup->addresses[turn % lookup->addresses_len], RESOLVE_ADDRESS_MAX);
    return true;
}

void resolve_free(struct resolve *resolve)
{
    struct resolve **at = &resolve->lookup->waiting;
    struct lookups *all = resolve->lookup->all;

    if (!is_inherited(all)) { /* Else the list may be in disorder, and the number another file's. */
        lock(all);
        while (*at != resolve)
            at = &(*at)->next;
        *at = resolve->next;
        disown(resolve->lookup);
        unlock(all);
        (void)close(resolve->fd);
    }
    free(resolve);
}
