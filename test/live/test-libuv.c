/*
 * test-libuv.c - the adapter for libuv, in the child of a fork.  It needs no masters.
 */
#include "test/lib/check.h"

#include <sys/wait.h>
#include <unistd.h>

#include <redlock/adapters/libuv.h>

#include "live/daemon.h"

static struct redlock *rl;
static uv_loop_t loop;
static uv_poll_t *client;
static bool is_done;

static void on_locked(struct redlock_lease *lease, int status, void *arg)
{
    (void)lease, (void)status, (void)arg;
    is_done = true;
}

static void on_late(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

static void begin(void)
{
    struct redlock_options opts;

    is_done = false;
    redlock_options_init(&opts);
    opts.masters = "127.0.0.1:1";
    opts.pollable = true;
    CHECK_INT(redlock_open(&opts, &rl), REDLOCK_OK);
    CHECK_INT(redlock_lock_async(rl, "x", NULL, on_locked, NULL, NULL), REDLOCK_OK);
    CHECK_INT(uv_loop_init(&loop), 0);
    client = redlock_libuv_attach(rl, &loop);
    CHECK(client != NULL);
    (void)uv_run(&loop, UV_RUN_NOWAIT); /* libuv watches the descriptor from then on. */
}

static void end(void)
{
    redlock_libuv_detach(client);
    CHECK(redlock_close(rl) == NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(uv_loop_close(&loop), 0);
}

/* The child shares the loop's epoll instance with its parent. */
static void check_parent_goes_on(pid_t (*make_child)(void))
{
    uv_timer_t late;
    pid_t child;
    int status;

    begin();
    child = make_child();
    if (child == 0) {
        redlock_libuv_detach(client);
        _exit(redlock_close(rl) == NULL ? 0 : 1);
    }
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
    CHECK_INT(uv_timer_init(&loop, &late), 0);
    CHECK_INT(uv_timer_start(&late, on_late, 60000, 0), 0);
    while (!is_done && uv_is_active((const uv_handle_t *)&late))
        (void)uv_run(&loop, UV_RUN_ONCE);
    CHECK(is_done);
    uv_close((uv_handle_t *)&late, NULL);
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
    redlock_libuv_detach(client);
    (void)redlock_close(rl);
}

TEST(a_daemon_keeps_its_files)
{
    begin();
    check_daemon_keeps_file(redlock_fd(rl), clean_up);
    end();
}

CHECK_MAIN(RUN(a_child_that_cleans_up_leaves_its_parent_alone),
           RUN(a_child_in_another_namespace_leaves_its_parent_alone), RUN(a_daemon_keeps_its_files))
