/*
 * test-libevent.c - the adapter for libevent, in the child of a fork.  It needs no masters.
 */
#include "test/lib/check.h"

#include <sys/wait.h>
#include <unistd.h>

#include <redlock/adapters/libevent.h>

#include "live/daemon.h"

static struct redlock *rl;
static struct event_base *base;
static struct event *client;
static bool is_done;

static void on_locked(struct redlock_lease *lease, int status, void *arg)
{
    (void)lease, (void)status, (void)arg;
    is_done = true;
}

/* There is something to do for the client from now on. */
static void begin(void)
{
    struct redlock_options opts;

    is_done = false;
    redlock_options_init(&opts);
    opts.masters = "127.0.0.1:1";
    opts.pollable = true;
    CHECK_INT(redlock_open(&opts, &rl), REDLOCK_OK);
    CHECK_INT(redlock_lock_async(rl, "x", NULL, on_locked, NULL, NULL), REDLOCK_OK);
    base = event_base_new();
    client = redlock_libevent_attach(rl, base);
    CHECK(client != NULL);
}

static void end(void)
{
    redlock_libevent_detach(client);
    CHECK(redlock_close(rl) == NULL);
    event_base_free(base);
}

/* The descriptor is readable, and the child may not do what there is to do. */
TEST(a_child_of_a_fork_does_not_spin)
{
    pid_t child;
    int status;

    begin();
    child = fork();
    if (child == 0) {
        if (event_reinit(base) != 0 || event_base_loop(base, EVLOOP_ONCE) < 0)
            _exit(1);
        _exit(event_pending(client, EV_READ, NULL) ? 2 : 0);
    }
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
    CHECK(event_pending(client, EV_READ, NULL));
    end();
}

/* The child shares the loop's epoll instance with its parent. */
static void check_parent_goes_on(pid_t (*make_child)(void))
{
    const struct timeval bound = {.tv_sec = 60};
    pid_t child;
    int status;

    begin();
    child = make_child();
    if (child == 0) {
        redlock_libevent_detach(client);
        _exit(redlock_close(rl) == NULL ? 0 : 1);
    }
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
    CHECK_INT(event_base_loopexit(base, &bound), 0);
    while (!is_done && !event_base_got_exit(base))
        CHECK(event_base_loop(base, EVLOOP_ONCE) >= 0);
    CHECK(is_done);
    end();
}

TEST(a_child_that_cleans_up_leaves_its_parent_alone)
{
    check_parent_goes_on(fork);
}

TEST(a_child_in_another_namespace_leaves_its_parent_alone)
{
    check_parent_goes_on(fork_into_namespace);
}

static void clean_up(void)
{
    redlock_libevent_detach(client);
    (void)redlock_close(rl);
}

TEST(a_daemon_keeps_its_files)
{
    begin();
    check_daemon_keeps_file(redlock_fd(rl), clean_up);
    end();
}

TEST(only_a_pollable_client_is_attached)
{
    begin();
    CHECK(redlock_libevent_attach(NULL, base) == NULL);
    end();
}

CHECK_MAIN(RUN(a_child_of_a_fork_does_not_spin),
           RUN(a_child_that_cleans_up_leaves_its_parent_alone),
           RUN(a_child_in_another_namespace_leaves_its_parent_alone), RUN(a_daemon_keeps_its_files),
           RUN(only_a_pollable_client_is_attached))
