/*
 * test-unload.c - a program unloads the library while a look-up of a host name goes on.
 *
 * usage: test-unload LIBREDLOCK_SO
 *
 * The test has its own getaddrinfo().  It returns only after the program has unloaded the library,
 * as with a slow name server.  Then its thread goes on in the library's code.
 */
#include "test/lib/check.h"

#include <dirent.h>
#include <dlfcn.h>
#include <netdb.h>
#include <semaphore.h>
#include <time.h>

#include "redlock/redlock.h"

#define THREAD_END_MAX 1000 /* Polls, 10 ms apart. */

static const char *library;
static sem_t begun, may_end;

__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **ret)
{
    (void)node, (void)service, (void)hints, (void)ret;
    (void)sem_post(&begun);
    while (sem_wait(&may_end) != 0)
        ;
    return EAI_AGAIN;
}

static unsigned count_threads(void)
{
    DIR *threads = opendir("/proc/self/task");
    unsigned len = 0;

    if (threads == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(threads)) != NULL;)
        len += entry->d_name[0] != '.';
    (void)closedir(threads);
    return len;
}

static void await_threads(unsigned wanted)
{
    const struct timespec pause = {.tv_nsec = 10000000};

    for (unsigned i = 0; i < THREAD_END_MAX && count_threads() > wanted; i++)
        (void)nanosleep(&pause, NULL);
    CHECK_UINT(count_threads(), wanted);
}

/* dlsym() returns functions as pointers to data (dlsym(3)). */
static void find(void *handle, const char *name, void *ret_function)
{
    void *found = dlsym(handle, name);

    CHECK(found != NULL);
    memcpy(ret_function, &found, sizeof found);
}

TEST(a_lookup_outlives_the_library)
{
    void *handle = dlopen(library, RTLD_NOW);
    void (*options_init)(struct redlock_options *, size_t);
    int (*open)(const struct redlock_options *, struct redlock **);
    struct redlock *(*close)(struct redlock *);
    struct redlock_options opts;
    struct redlock *rl = NULL;
    unsigned threads = count_threads();

    CHECK(handle != NULL);
    find(handle, "redlock_options_init_sized", &options_init);
    find(handle, "redlock_open", &open);
    find(handle, "redlock_close", &close);
    options_init(&opts, sizeof opts);
    opts.masters = "never.test:6379";
    CHECK_INT(open(&opts, &rl), REDLOCK_OK);
    CHECK_INT(sem_wait(&begun), 0);
    CHECK(close(rl) == NULL);
    CHECK_INT(dlclose(handle), 0);
    CHECK_INT(sem_post(&may_end), 0);
    await_threads(threads);
}

int main(int argc, char **argv)
{
    static const struct check_test tests[] = {
        {"a_lookup_outlives_the_library", a_lookup_outlives_the_library},
    };

    if (argc < 2 || sem_init(&begun, 0, 0) != 0 || sem_init(&may_end, 0, 0) != 0)
        return 2;
    library = argv[1];
    return check_run(tests, 1, argc - 1, argv + 1);
}
