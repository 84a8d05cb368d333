/*
 * test-loop.c - each loop of the library keeps the rules of loop.h.
 *
 * Each rule is tried on both loops.  A test waits for what must come.  Something later that has
 * come shows what must not come.
 *
 * This file is longer than others, because the tests share one rig that runs each on both loops.
 */
#include "test/lib/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ev.h>

#include "redlock/base/fork.h"
#include "redlock/io/loop.h"
#include "redlock/io/transport.h"
#include "redlock/io/wakeup.h"

#define SOON (10 * DRIFT_MS)
#define PATIENCE_MS 20000 /* Chosen: far above what a busy machine needs. */
#define STORY_MAX 64

enum kind { EV, POLL, KINDS };

static const char *const names[KINDS] = {"libev", "one descriptor"};

/* ---- A kernel that refuses ---- */

static int refused_fd = -1; /* No epoll instance may watch it. */
static unsigned refusals;

/* In place of the C library's, also where libev calls it. */
int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    if (fd != refused_fd)
        return (int)syscall(SYS_epoll_ctl, epoll, op, fd, event);
    refusals++;
    errno = ENOSPC;
    return -1;
}

/* ---- A loop, and what it did ---- */

struct side {
    char name;
    int fd; /* One end of a socket pair; the test has the other. */
    int peer;
    struct watch *watch;
};

struct rig {
    enum kind kind;
    struct ev_loop *ev;
    struct loop *loop;
    struct side a, b;
    char story[STORY_MAX + 1]; /* One letter for each event. */
    unsigned sleeps;
    void (*act)(struct rig *rig); /* Called by each event of a watch and of the loop, if set. */
};

static struct rig rig;

static void tell(char what)
{
    size_t len = strlen(rig.story);

    if (len < STORY_MAX)
        rig.story[len] = what;
    if (rig.act != NULL)
        rig.act(&rig);
}

static void on_loop_timer(void *cookie)
{
    (void)cookie;
    tell('w');
}

static void before_sleep(void *cookie)
{
    ((struct rig *)cookie)->sleeps++;
}

/* Lower case: bytes to read.  Upper case: room to write.  '2': both at once. */
static void on_ready(void *cookie, unsigned what)
{
    struct side *side = cookie;
    char buf[16];

    if (what & LOOP_READ)
        (void)!recv(side->fd, buf, sizeof buf, MSG_DONTWAIT);
    if (what == (LOOP_READ | LOOP_WRITE))
        tell('2');
    else
        tell(what == LOOP_READ ? side->name : (char)(side->name - 'a' + 'A'));
}

static void on_watch_timer(void *cookie)
{
    tell(((struct side *)cookie)->name == 'a' ? '1' : '9');
}

static const struct loop_events loop_events = {
    .on_timer = on_loop_timer,
    .before_sleep = before_sleep,
};
static const struct watch_events watch_events = {
    .on_ready = on_ready,
    .on_timer = on_watch_timer,
};

static void make_side(struct side *side, char name)
{
    int pair[2];

    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    *side = (struct side){.name = name, .fd = pair[0], .peer = pair[1]};
    side->watch = watch_new(rig.loop, &watch_events, side);
    CHECK(side->watch != NULL);
}

static void begin(enum kind kind)
{
    fork_watch();
    check_row = names[kind];
    rig = (struct rig){.kind = kind};
    if (kind == EV) {
        rig.ev = ev_loop_new(EVFLAG_AUTO);
        rig.loop = loop_ev_new(rig.ev, &loop_events, &rig);
    } else {
        rig.loop = loop_poll_new(&loop_events, &rig);
    }
    CHECK(rig.loop != NULL);
    make_side(&rig.a, 'a');
    make_side(&rig.b, 'b');
}

static void end_side(struct side *side)
{
    if (side->watch != NULL)
        watch_free(rig.loop, side->watch);
    (void)close(side->fd);
    (void)close(side->peer);
}

static void end(void)
{
    end_side(&rig.a);
    end_side(&rig.b);
    if (rig.loop != NULL)
        loop_free(rig.loop);
    if (rig.ev != NULL)
        ev_loop_destroy(rig.ev);
}

static bool is_readable(int wait_ms)
{
    struct pollfd one = {.fd = loop_poll_fd(rig.loop), .events = POLLIN};

    return poll(&one, 1, wait_ms) == 1;
}

static void on_patience(struct ev_loop *ev, ev_timer *timer, int events)
{
    (void)ev, (void)timer, (void)events;
}

/* Sleep until there is something to do, and do it.  False: nothing came, as when a watcher is lost,
 * and the test has failed. */
static bool turn(void)
{
    bool has_come;

    if (rig.kind == EV) {
        ev_timer patience;

        ev_timer_init(&patience, on_patience, PATIENCE_MS / 1000.0, 0);
        ev_timer_start(rig.ev, &patience);
        (void)ev_run(rig.ev, EVRUN_ONCE);
        has_come = ev_is_active(&patience);
        ev_timer_stop(rig.ev, &patience);
    } else {
        has_come = is_readable(PATIENCE_MS);
        loop_poll_dispatch(rig.loop);
    }
    CHECK(has_come);
    return has_come;
}

/* Turn until so much has happened.  False: it does not come. */
static bool turn_until(size_t len)
{
    while (strlen(rig.story) < len)
        if (!turn())
            return false;
    return true;
}

static void write_to(const struct side *side)
{
    CHECK_INT(write(side->peer, "x", 1), 1);
}

static void read_only(struct side *side)
{
    watch_fd(rig.loop, side->watch, side->fd, LOOP_READ);
}

/* Both sides are ready.  The first event does this. */
static void let_first(void (*act)(struct rig *rig))
{
    read_only(&rig.a);
    read_only(&rig.b);
    write_to(&rig.a);
    write_to(&rig.b);
    rig.act = act;
    turn_until(1);
}

/* The other side tells nothing: the next event is that of the loop's timer. */
static void check_other_is_silent(void)
{
    loop_wake_at(rig.loop, 0);
    turn_until(2);
    CHECK(rig.story[0] == 'a' || rig.story[0] == 'b');
    CHECK_STR(rig.story + 1, "w");
}

/* End the rig of this kind, if there is one, and begin the next. */
static enum kind next(int kind)
{
    if (kind >= 0)
        end();
    if (kind + 1 < KINDS)
        begin((enum kind)(kind + 1));
    return (enum kind)(kind + 1);
}

#define EACH_KIND for (enum kind kind = next(-1); kind < KINDS; kind = next((int)kind))

/* ---- Descriptors ---- */

TEST(a_watch_tells_what_it_was_asked_for)
{
    EACH_KIND
    {
        write_to(&rig.a);
        watch_fd(rig.loop, rig.a.watch, rig.a.fd, LOOP_WRITE);
        turn_until(1);
        CHECK_STR(rig.story, "A");
        read_only(&rig.a);
        turn_until(2);
        CHECK_STR(rig.story, "Aa");
        write_to(&rig.a);
        watch_fd(rig.loop, rig.a.watch, rig.a.fd, LOOP_READ | LOOP_WRITE);
        turn_until(3);
        CHECK_INT(shutdown(rig.a.peer, SHUT_RDWR), 0); /* Is both, of what was asked for. */
        read_only(&rig.a);
        turn_until(4);
        CHECK_STR(rig.story, "Aa2a");
    }
}

TEST(a_descriptor_that_is_not_watched_any_more_is_silent)
{
    EACH_KIND
    {
        read_only(&rig.a);
        read_only(&rig.b);
        write_to(&rig.a);
        watch_fd(rig.loop, rig.a.watch, -1, 0);
        write_to(&rig.b);
        turn_until(1);
        watch_timer(rig.loop, rig.b.watch, SOON);
        turn_until(2);
        CHECK_STR(rig.story, "b9");
    }
}

/* The number of a descriptor is used again: the watch of the first must not tell of the second. */
TEST(a_closed_descriptor_is_silent_though_a_copy_is_open)
{
    EACH_KIND
    {
        int copy;

        read_only(&rig.a);
        write_to(&rig.b);
        copy = dup(rig.a.fd); /* As a child of a fork has one. */
        watch_fd(rig.loop, rig.a.watch, -1, 0);
        (void)close(rig.a.fd);
        CHECK_INT(write(rig.a.peer, "x", 1), 1);
        read_only(&rig.b);
        turn_until(1);
        watch_timer(rig.loop, rig.b.watch, SOON);
        turn_until(2);
        CHECK_STR(rig.story, "b9");
        CHECK(kind == EV || !is_readable(0));
        rig.a.fd = copy;
    }
}

static void free_other(struct rig *r)
{
    struct side *other = r->story[0] == 'a' ? &r->b : &r->a;

    if (other->watch != NULL)
        watch_free(r->loop, other->watch);
    other->watch = NULL;
}

TEST(a_callback_frees_another_watch_that_is_ready)
{
    EACH_KIND
    {
        let_first(free_other);
        check_other_is_silent();
    }
}

static void free_own(struct rig *r)
{
    struct side *own = r->story[0] == 'a' ? &r->a : &r->b;

    watch_free(r->loop, own->watch);
    own->watch = NULL;
    r->act = NULL;
}

TEST(a_callback_frees_its_own_watch)
{
    EACH_KIND
    {
        read_only(&rig.a);
        write_to(&rig.a);
        rig.act = free_own;
        turn_until(1);
        check_other_is_silent();
    }
}

/* The other side's watch goes to a descriptor that is not ready. */
static void move_other(struct rig *r)
{
    struct side *other = r->story[0] == 'a' ? &r->b : &r->a;
    int fd = dup(other->fd);
    char buf[16];

    (void)!recv(other->fd, buf, sizeof buf, MSG_DONTWAIT);
    watch_fd(r->loop, other->watch, -1, 0);
    (void)close(other->fd);
    other->fd = fd;
    watch_fd(r->loop, other->watch, fd, LOOP_READ);
    r->act = NULL;
}

TEST(readiness_of_the_descriptor_before_does_not_count)
{
    EACH_KIND
    {
        let_first(move_other);
        check_other_is_silent();
    }
}

/* ---- Refusals ---- */

/* A watch that is refused is not ready. */
TEST(a_descriptor_that_is_refused_is_watched_later)
{
    EACH_KIND
    {
        refusals = 0;
        refused_fd = rig.a.fd;
        read_only(&rig.a);
        write_to(&rig.a);
        while (refusals < 3 && turn())
            continue;
        CHECK_STR(rig.story, "");
        CHECK(watch_is_refused(rig.loop, rig.a.watch));
        refused_fd = -1;
        turn_until(1);
        CHECK_STR(rig.story, "a");
        CHECK(!watch_is_refused(rig.loop, rig.a.watch));
    }
}

TEST(a_descriptor_that_is_refused_is_let_go)
{
    EACH_KIND
    {
        refusals = 0;
        refused_fd = rig.a.fd;
        read_only(&rig.a);
        while (refusals < 2 && turn())
            continue;
        watch_fd(rig.loop, rig.a.watch, -1, 0);
        CHECK(!watch_is_refused(rig.loop, rig.a.watch));
        refusals = 0;
        watch_timer(rig.loop, rig.b.watch, 2 * LOOP_AGAIN);
        turn_until(1);
        CHECK_UINT(refusals, 0);
        refused_fd = -1;
    }
}

/* The timerfd of libev's loop is the last that begin() opened but for the sides. */
static int timerfd_of_loop(void)
{
    char path[32], file[32];

    for (int fd = rig.a.fd; fd >= 0; fd--) {
        ssize_t len;

        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        len = readlink(path, file, sizeof file - 1);
        file[len > 0 ? len : 0] = '\0';
        if (strcmp(file, "anon_inode:[timerfd]") == 0)
            return fd;
    }
    return -1;
}

static void count_kick(void *cookie)
{
    ++*(unsigned *)cookie;
}

/* Nothing else wakes the loop.  A thread that sleeps in it is woken, until the timerfd does that.
 */
TEST(an_alarm_rings_though_the_timerfd_is_refused)
{
    unsigned kicks = 0;
    size_t rings = 0;

    begin(EV);
    loop_on_kick(rig.loop, count_kick, &kicks);
    refused_fd = timerfd_of_loop();
    CHECK(refused_fd >= 0);
    refusals = 0;
    while (rings < 3) {
        loop_wake_at(rig.loop, loop_now(rig.loop) + 20 * SOON); /* The later one is replaced. */
        loop_wake_at(rig.loop, loop_now(rig.loop) + SOON);
        turn_until(++rings);
    }
    CHECK_STR(rig.story, "www");
    CHECK(refusals >= 2);
    CHECK(kicks >= 3);
    refused_fd = -1;
    while (rings < STORY_MAX && kicks > 0) { /* libev's timer may ring a moment earlier. */
        kicks = 0;
        loop_wake_at(rig.loop, loop_now(rig.loop) + SOON);
        turn_until(++rings);
    }
    CHECK_UINT(kicks, 0);
    CHECK_UINT(strlen(rig.story), rings);
    end();
}

/* It is the next descriptor that is free. */
TEST(a_loop_whose_eventfd_is_refused_is_not_used)
{
    struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO);

    check_row = "";
    refused_fd = eventfd(0, EFD_CLOEXEC);
    (void)close(refused_fd);
    CHECK_INT(wakeup_take(ev), ENOSPC);
    ev_loop_destroy(ev);
    refused_fd = -1;
    ev = ev_loop_new(EVFLAG_AUTO);
    CHECK_INT(wakeup_take(ev), 0);
    ev_loop_destroy(ev);
}

/* ---- Timers ---- */

TEST(timers_ring_in_order_and_once)
{
    EACH_KIND
    {
        watch_timer(rig.loop, rig.a.watch, 30 * SOON);
        watch_timer(rig.loop, rig.b.watch, 20 * SOON);
        loop_wake_at(rig.loop, loop_now(rig.loop) + SOON);
        turn_until(3);
        CHECK_STR(rig.story, "w91");
    }
}

TEST(a_timer_is_turned_off_and_set_anew)
{
    EACH_KIND
    {
        drift_time begun;

        begun = loop_now(rig.loop);
        watch_timer(rig.loop, rig.a.watch, SOON);
        watch_timer(rig.loop, rig.a.watch, DRIFT_NEVER);
        loop_wake_at(rig.loop, begun + SOON);
        loop_wake_at(rig.loop, begun + 3 * SOON); /* In place of the first. */
        watch_timer(rig.loop, rig.b.watch, 2 * SOON);
        turn_until(2);
        CHECK_STR(rig.story, "9w");
        CHECK(loop_now(rig.loop) >= begun + 3 * SOON);
    }
}

TEST(an_instant_in_the_past_rings_at_once)
{
    EACH_KIND
    {
        watch_timer(rig.loop, rig.a.watch, 0);
        loop_wake_at(rig.loop, 0);
        turn_until(2);
        CHECK(strchr(rig.story, 'w') != NULL && strchr(rig.story, '1') != NULL);
    }
}

TEST(answers_come_before_timeouts)
{
    EACH_KIND
    {
        read_only(&rig.a);
        read_only(&rig.b);
        watch_timer(rig.loop, rig.a.watch, SOON);
        loop_wake_at(rig.loop, loop_now(rig.loop) + SOON);
        (void)usleep(3 * SOON / 1000); /* A pause of the process. */
        write_to(&rig.a);
        write_to(&rig.b);
        if (kind == EV)
            ev_now_update(rig.ev);
        turn_until(4);
        CHECK(strspn(rig.story, "ab") == 2);
    }
}

static void wake_again(struct rig *r)
{
    loop_wake_at(r->loop, 0);
}

TEST(a_timer_that_is_set_by_its_ring_does_not_hold_up_the_loop)
{
    EACH_KIND
    {
        rig.act = wake_again;
        loop_wake_at(rig.loop, 0);
        turn();
        turn();
        rig.act = NULL;
        CHECK(strlen(rig.story) < STORY_MAX);
    }
}

/* ---- Turns ---- */

TEST(the_loop_says_before_it_sleeps)
{
    EACH_KIND
    {
        unsigned sleeps;

        read_only(&rig.a);
        write_to(&rig.a);
        turn_until(1);
        sleeps = rig.sleeps;
        CHECK(sleeps > 0);
        loop_flush_soon(rig.loop);
        if (kind == EV)
            loop_wake_at(rig.loop, 0);
        turn();
        CHECK(rig.sleeps > sleeps);
    }
}

static void free_loop(struct rig *r)
{
    watch_free(r->loop, r->a.watch);
    watch_free(r->loop, r->b.watch);
    r->a.watch = r->b.watch = NULL;
    loop_free(r->loop);
    r->loop = NULL;
    r->act = NULL;
}

/* Neither the other watch nor before_sleep() is called any more. */
TEST(a_callback_frees_the_loop)
{
    EACH_KIND
    {
        let_first(free_loop);
        CHECK_UINT(strlen(rig.story), 1);
        CHECK_UINT(rig.sleeps, kind == EV); /* libev had slept before. */
    }
}

TEST(a_timer_frees_the_loop)
{
    EACH_KIND
    {
        loop_wake_at(rig.loop, 0);
        watch_timer(rig.loop, rig.a.watch, 0);
        rig.act = free_loop;
        turn_until(1);
        CHECK_UINT(strlen(rig.story), 1);
    }
}

/* The child has the loop's descriptors, and a watch's, in common with the parent. */
TEST(a_child_of_a_fork_leaves_the_loop_alone)
{
    EACH_KIND
    {
        pid_t child;
        int status;

        read_only(&rig.a);
        if (kind == EV) /* libev tells the kernel before it sleeps. */
            (void)ev_run(rig.ev, EVRUN_NOWAIT);
        loop_wake_at(rig.loop, loop_now(rig.loop) + 2 * SOON);
        child = fork();
        if (child == 0) {
            loop_wake_at(rig.loop, loop_now(rig.loop) + 3600 * DRIFT_S);
            watch_fd(rig.loop, rig.a.watch, rig.a.fd, LOOP_WRITE);
            watch_fd(rig.loop, rig.a.watch, -1, 0);
            watch_free(rig.loop, rig.a.watch);
            watch_free(rig.loop, rig.b.watch);
            loop_free(rig.loop);
            _exit(0);
        }
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK_INT(status, 0);
        turn_until(1);
        write_to(&rig.a);
        turn_until(2);
        CHECK_STR(rig.story, "wa");
    }
}

static void break_off(struct ev_loop *ev, ev_timer *timer, int events)
{
    (void)timer, (void)events;
    ev_break(ev, EVBREAK_ALL);
}

/* Both sides are ready in the child, and a timer is set there.  Returns 0 if it tells nothing and
 * does not spin.  The turns of the loop are counted by its prepare watchers. */
static unsigned turns;

static void count_turn(struct ev_loop *ev, ev_prepare *prepare, int events)
{
    (void)prepare, (void)events;
    if (++turns == 1000)
        ev_break(ev, EVBREAK_ALL);
}

static int run_inherited(void)
{
    ev_timer timer;
    ev_prepare prepare;

    rig.story[0] = '\0';
    rig.sleeps = 0;
    if (rig.kind == EV) {
        ev_timer_init(&timer, break_off, 0.1, 0);
        ev_timer_start(rig.ev, &timer);
        ev_prepare_init(&prepare, count_turn);
        ev_prepare_start(rig.ev, &prepare);
        turns = 0;
        ev_run(rig.ev, 0);
        if (turns >= 1000)
            return 1;
    } else {
        loop_poll_dispatch(rig.loop);
    }
    watch_timer(rig.loop, rig.a.watch, 0); /* As a late callback of the child might. */
    read_only(&rig.b);
    if (rig.kind == EV) {
        (void)ev_run(rig.ev, EVRUN_NOWAIT);
        ev_timer_stop(rig.ev, &timer); /* Both are gone when this returns. */
        ev_prepare_stop(rig.ev, &prepare);
    }
    return rig.story[0] != '\0' || (rig.kind == EV && rig.sleeps > 0) ? 2 : 0;
}

static void be_child_that_runs(bool frees)
{
    int result = run_inherited();

    if (frees) {
        watch_free(rig.loop, rig.a.watch);
        watch_free(rig.loop, rig.b.watch);
        loop_free(rig.loop);
        if (rig.kind == EV)
            (void)ev_run(rig.ev, EVRUN_NOWAIT);
    }
    _exit(result);
}

/* The parent's loop has slept, so that the kernel knows its descriptors. */
static void fork_with_all_ready(bool frees)
{
    pid_t child;
    int status;

    read_only(&rig.a);
    read_only(&rig.b);
    watch_timer(rig.loop, rig.b.watch, 20 * SOON);
    loop_wake_at(rig.loop, loop_now(rig.loop) + 20 * SOON);
    if (rig.kind == EV)
        (void)ev_run(rig.ev, EVRUN_NOWAIT);
    write_to(&rig.a);
    write_to(&rig.b);
    child = fork();
    if (child == 0)
        be_child_that_runs(frees);
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
}

/* The child reads nothing, rings nothing and takes nothing out of the set that both share. */
TEST(a_child_of_a_fork_runs_the_loop_for_nothing)
{
    for (int frees = 0; frees < 2; frees++)
        EACH_KIND
        {
            fork_with_all_ready(frees != 0);
            if (!turn_until(4))
                return;
            CHECK_UINT(strspn(rig.story, "ab9w"), 4);
            CHECK(strchr(rig.story, 'a') != NULL && strchr(rig.story, 'b') != NULL);
            CHECK(strchr(rig.story, '9') != NULL && strchr(rig.story, 'w') != NULL);
            write_to(&rig.a);
            if (!turn_until(5))
                return;
            CHECK_INT(rig.story[4], 'a');
        }
}

static pid_t forked;

static void fork_within(struct rig *r)
{
    r->act = NULL;
    forked = fork();
}

/* The child returns from a callback into the loop, where the other side is still ready. */
TEST(a_callback_forks_and_the_child_returns)
{
    EACH_KIND
    {
        int status;

        let_first(fork_within);
        if (forked == 0 && strlen(rig.story) != 1)
            _exit(3);
        if (forked == 0)
            be_child_that_runs(true);
        CHECK_INT(waitpid(forked, &status, 0), forked);
        CHECK_INT(status, 0);
        if (!turn_until(2))
            return;
        write_to(&rig.a);
        if (!turn_until(3))
            return;
        CHECK_STR(rig.story + 2, "a");
    }
}

static const struct transport_events no_events;

/* A transport that connects to a socket of ours. */
static struct transport *make_transport(int *ret_listener)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct transport *transport = transport_new(rig.loop, &no_events, NULL);
    socklen_t len = sizeof address;
    struct transport_to to = {.host = "127.0.0.1"};
    struct reason why;

    *ret_listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(bind(*ret_listener, (struct sockaddr *)&address, len), 0);
    CHECK_INT(listen(*ret_listener, 1), 0);
    CHECK_INT(getsockname(*ret_listener, (struct sockaddr *)&address, &len), 0);
    to.port = ntohs(address.sin_port);
    CHECK(transport != NULL && transport_open(transport, &to, 0, &why));
    return transport;
}

/* A child that has closed all descriptors has files of its own under these numbers. */
TEST(a_child_of_a_fork_closes_no_file_of_its_own)
{
    EACH_KIND
    {
        int listener, status;
        struct transport *transport = make_transport(&listener);
        pid_t child = fork();

        if (child == 0) {
            int null = open("/dev/null", O_RDONLY);

            for (int fd = 3; fd < 64; fd++)
                (void)dup2(null, fd);
            transport_free(transport);
            watch_free(rig.loop, rig.a.watch);
            watch_free(rig.loop, rig.b.watch);
            loop_free(rig.loop);
            for (int fd = 3; fd < 64; fd++)
                if (fcntl(fd, F_GETFD) < 0)
                    _exit(fd);
            _exit(0);
        }
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK_INT(status, 0);
        transport_free(transport);
        (void)close(listener);
    }
}

/* ---- One descriptor ---- */

TEST(the_descriptor_is_readable_if_there_is_something_to_do)
{
    begin(POLL);
    CHECK(!is_readable(0));
    loop_poll_dispatch(rig.loop); /* For nothing. */
    CHECK_UINT(rig.sleeps, 1);
    read_only(&rig.a);
    CHECK(!is_readable(0));
    write_to(&rig.a);
    CHECK(is_readable(PATIENCE_MS));
    loop_poll_dispatch(rig.loop);
    CHECK_STR(rig.story, "a");
    CHECK(!is_readable(0));
    loop_flush_soon(rig.loop);
    CHECK(is_readable(PATIENCE_MS));
    loop_poll_dispatch(rig.loop);
    CHECK(!is_readable(0));
    loop_wake_at(rig.loop, loop_now(rig.loop) + SOON);
    CHECK(is_readable(PATIENCE_MS));
    loop_poll_dispatch(rig.loop);
    CHECK(!is_readable(0));
    watch_fd(rig.loop, rig.a.watch, rig.a.fd, LOOP_WRITE); /* There is always room. */
    turn();
    turn();
    CHECK_STR(rig.story, "awAA");
    end();
}

static void set_late(struct rig *r)
{
    r->act = NULL;
    loop_wake_at(r->loop, loop_now(r->loop) + SOON);
    watch_fd(r->loop, r->b.watch, r->b.fd, LOOP_READ);
}

/* What a callback sets is not lost at the end of the dispatch. */
TEST(a_callback_sets_a_timer_and_a_watch)
{
    begin(POLL);
    read_only(&rig.a);
    write_to(&rig.a);
    rig.act = set_late;
    turn_until(2);
    write_to(&rig.b);
    turn_until(3);
    CHECK_STR(rig.story, "awb");
    end();
}

static void dispatch_within(struct rig *r)
{
    r->act = NULL;
    loop_wake_at(r->loop, loop_now(r->loop) + SOON);
    loop_poll_dispatch(r->loop);
    CHECK(is_readable(PATIENCE_MS));
    loop_poll_dispatch(r->loop);
}

TEST(a_callback_dispatches)
{
    begin(POLL);
    let_first(dispatch_within);
    CHECK_UINT(strlen(rig.story), 3);
    CHECK_INT(rig.story[2], 'w');
    CHECK(!is_readable(0));
    end();
}

static void free_within(struct rig *r)
{
    r->act = free_loop;
    loop_wake_at(r->loop, 0);
    loop_poll_dispatch(r->loop);
}

TEST(a_callback_within_a_callback_frees_the_loop)
{
    begin(POLL);
    let_first(free_within);
    CHECK_UINT(strlen(rig.story), 2);
    end();
}

CHECK_MAIN(RUN(a_watch_tells_what_it_was_asked_for),
           RUN(a_descriptor_that_is_not_watched_any_more_is_silent),
           RUN(a_closed_descriptor_is_silent_though_a_copy_is_open),
           RUN(a_callback_frees_another_watch_that_is_ready), RUN(a_callback_frees_its_own_watch),
           RUN(readiness_of_the_descriptor_before_does_not_count),
           RUN(a_descriptor_that_is_refused_is_watched_later),
           RUN(a_descriptor_that_is_refused_is_let_go),
           RUN(an_alarm_rings_though_the_timerfd_is_refused),
           RUN(a_loop_whose_eventfd_is_refused_is_not_used), RUN(timers_ring_in_order_and_once),
           RUN(a_timer_is_turned_off_and_set_anew), RUN(an_instant_in_the_past_rings_at_once),
           RUN(answers_come_before_timeouts),
           RUN(a_timer_that_is_set_by_its_ring_does_not_hold_up_the_loop),
           RUN(the_loop_says_before_it_sleeps), RUN(a_callback_frees_the_loop),
           RUN(a_timer_frees_the_loop), RUN(a_child_of_a_fork_leaves_the_loop_alone),
           RUN(a_child_of_a_fork_runs_the_loop_for_nothing),
           RUN(a_callback_forks_and_the_child_returns),
           RUN(a_child_of_a_fork_closes_no_file_of_its_own),
           RUN(the_descriptor_is_readable_if_there_is_something_to_do),
           RUN(a_callback_sets_a_timer_and_a_watch), RUN(a_callback_dispatches),
           RUN(a_callback_within_a_callback_frees_the_loop))
