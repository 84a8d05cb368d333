/*
 * test-live-cpp.cpp - redlock.hpp, through the shared object, on real masters.
 *
 * Checks throw, since check.h leaves a failed test by longjmp(), which runs no destructors.
 */
#include "redlock/redlock.hpp"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>
#include <type_traits>

extern "C" {
#include "live/cluster.h"
}

using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<redlockpp::lease>, "one object releases");
static_assert(std::is_nothrow_move_constructible_v<redlockpp::lease>, "it goes into a vector");
static_assert(std::is_nothrow_move_assignable_v<redlockpp::lease>, "it goes into a vector");

#define CHECK(condition)                                                             \
    do {                                                                             \
        if (!(condition))                                                            \
            throw std::logic_error(std::string("line ") + std::to_string(__LINE__) + \
                                   ": failed: " #condition);                         \
    } while (0)

static struct cluster three;

static redlockpp::client open_client()
{
    redlockpp::options opts;

    opts.masters = cluster_masters(&three);
    opts.reply_timeout = 10s;
    return redlockpp::client(opts);
}

static redlockpp::client open_three()
{
    cluster_ready(&three, 3);
    return open_client();
}

static redlockpp::lock_options for_a_minute()
{
    redlockpp::lock_options opts;

    opts.ttl = 60s;
    return opts;
}

/* What a function throws. */
template <typename F> static redlockpp::error thrown_by(F f)
{
    try {
        f();
    } catch (const redlockpp::error &thrown) {
        return thrown;
    }
    throw std::logic_error("nothing was thrown");
}

static void a_lock_excludes()
{
    redlockpp::client one = open_three();
    redlockpp::client two = open_client();
    redlockpp::lease lease = one.lock("jobs/7", for_a_minute());
    std::error_code ec;

    CHECK(lease.held() && lease.remaining() > 30s);
    CHECK(lease.resource() == "jobs/7" && lease.token().size() >= 40 && lease.fence() == 0);
    lease.check();
    CHECK(!two.lock("jobs/7", for_a_minute(), ec).held());
    CHECK(ec == redlockpp::status::contended && ec.category() == redlockpp::category());
    CHECK(thrown_by([&] { (void)two.lock("jobs/7"); }).code() == redlockpp::status::contended);
    lease.unlock();
    CHECK(!lease.held() && lease.get() == nullptr);
    CHECK(two.lock("jobs/7", for_a_minute()).held());
}

/* The message has the context that redlock_errmsg() gives. */
static void an_error_says_why()
{
    redlockpp::client client = open_three();
    redlockpp::lease lease = client.lock("jobs/7", for_a_minute());
    redlockpp::error error = thrown_by([&] { (void)client.lock("jobs/7"); });

    CHECK(std::strstr(error.what(), "jobs/7") != nullptr);
    CHECK(thrown_by([&] { redlockpp::lease().check(); }).code() == redlockpp::status::lost);
    CHECK(thrown_by([&] { (void)redlockpp::lease().token(); }).code() ==
          redlockpp::status::invalid);
}

static void a_scope_releases()
{
    redlockpp::client one = open_three();
    redlockpp::client two = open_client();

    {
        redlockpp::lease lease = one.lock("jobs/7", for_a_minute());
        redlockpp::lease moved = std::move(lease);

        CHECK(!lease.held() && moved.held());
        lease = std::move(moved);
        CHECK(lease.held() && !moved.held());
    }
    CHECK(two.lock("jobs/7", for_a_minute()).held());
}

static void a_lease_keeps_its_client()
{
    redlockpp::lease lease = open_three().lock("jobs/7", for_a_minute());

    lease.extend(50s);
    CHECK(lease.held());
    lease.unlock();
}

static void options_arrive()
{
    redlockpp::client client = open_three();
    redlockpp::lock_options opts = for_a_minute();
    redlockpp::lease reader, other;

    opts.fence = true;
    CHECK(client.lock("fenced", opts).fence() > 0);
    opts.fence = false;
    opts.shared = true;
    reader = client.lock("read", opts);
    other = client.lock("read", opts);
    CHECK(reader.held() && other.held());
    opts.shared = false;
    opts.permits = 2;
    CHECK(client.lock("permit", opts).permit() - 1 < 2);
    opts.permits = 0;
    opts.note = "the note";
    CHECK(client.lock("noted", opts).token().find(":the note") != std::string::npos);
    opts.reentrant = true;
    reader = client.lock("again", opts);
    other = client.lock("again", opts);
    CHECK(other.holds() == 2);
}

static void several_names()
{
    redlockpp::client client = open_three();
    redlockpp::lease lease = client.lock(std::vector<std::string>{"a", "b"}, for_a_minute());
    std::error_code ec;

    CHECK(lease.held());
    (void)client.lock("b", for_a_minute(), ec);
    CHECK(ec == redlockpp::status::contended);
}

/* What would be cut or wrap on the way to the C library. */
static void bad_input_is_refused()
{
    redlockpp::client client = open_three();
    redlockpp::lock_options opts;
    std::error_code ec;
    redlockpp::options wrong;

    CHECK(thrown_by([&] { (void)client.lock(std::string("a\0b", 3)); }).code() ==
          redlockpp::status::invalid);
    CHECK(thrown_by([&] { (void)client.adopt({"a"}, std::string("a\0b", 3)); }).code() ==
          redlockpp::status::invalid);
    opts.note = std::string("a\0b", 3);
    CHECK(std::strstr(thrown_by([&] { (void)client.lock("a", opts); }).what(), "NUL"));
    opts.note.reset();
    opts.ttl = -1ms;
    (void)client.lock("a", opts, ec);
    CHECK(ec == redlockpp::status::invalid);
    opts = for_a_minute();
    opts.max_hold = std::chrono::hours(24 * 60);
    CHECK(std::strstr(thrown_by([&] { (void)client.lock("a", opts); }).what(), "duration"));
    opts = for_a_minute();
    opts.reentrant = true;
    opts.lost = [] {};
    CHECK(thrown_by([&] { (void)client.lock("a", opts); }).code() == redlockpp::status::invalid);
    wrong.masters = "nonsense://x";
    CHECK(thrown_by([&] { redlockpp::client no(wrong); }).code() == redlockpp::status::invalid);
    CHECK(std::strstr(thrown_by([&] { client.lock("a").extend(-1ms); }).what(), "duration"));
    wrong.masters = std::string("127.0.0.1:1\0", 12);
    CHECK(std::strstr(thrown_by([&] { redlockpp::client no(wrong); }).what(), "NUL"));
    wrong.masters.reset();
    wrong.connect_timeout = -5s;
    CHECK(std::strstr(thrown_by([&] { redlockpp::client no(wrong); }).what(), "duration"));
    redlockpp::client no(wrong, ec);
    CHECK(ec == redlockpp::status::invalid);
    CHECK(client.lock("a", for_a_minute()).held());
}

static void a_handed_on_token_is_adopted()
{
    redlockpp::client one = open_three();
    redlockpp::client two = open_client();
    redlockpp::lease lease = one.lock("jobs/7", for_a_minute());
    std::string token = lease.token();
    redlockpp::lease adopted;

    lease.detach();
    CHECK(lease.get() == nullptr);
    adopted = two.adopt({"jobs/7"}, token, for_a_minute());
    CHECK(!adopted.held());
    adopted.extend();
    CHECK(adopted.held());
    adopted.unlock();
    CHECK(one.lock("jobs/7", for_a_minute()).held());
}

static void another_thread_interrupts()
{
    redlockpp::client client = open_three();
    redlockpp::lease lease = client.lock("jobs/7", for_a_minute());
    redlockpp::lock_options opts = for_a_minute();
    std::error_code ec;
    std::thread waiter;

    opts.wait = redlockpp::lock_options::without_limit;
    waiter = std::thread([&] { (void)client.lock("jobs/7", opts, ec); });
    client.interrupt();
    waiter.join();
    CHECK(ec == redlockpp::status::interrupted);
}

/* All masters stop.  The holder is told, and a check says so. */
static void a_lost_lock_is_told()
{
    redlockpp::client client = open_three();
    redlockpp::lock_options opts;
    std::atomic<bool> told{false};
    redlockpp::lease lease;

    opts.ttl = 4s;
    opts.lost = [&] { told = true; };
    lease = client.lock("jobs/7", opts);
    for (unsigned i = 0; i < three.len; i++)
        server_kill(&three.server[i]);
    for (unsigned i = 0; (!told || lease.held()) && i < CLUSTER_WAIT_S * 100; i++)
        std::this_thread::sleep_for(10ms);
    CHECK(told && !lease.held());
    CHECK(thrown_by([&] { lease.check(); }).code() == redlockpp::status::lost);
}

static void readiness_and_figures()
{
    redlockpp::client client = open_three();
    redlockpp::lease lease = client.lock("jobs/7", for_a_minute());
    redlockpp::milliseconds after{-1};

    CHECK(!client.ready(&after) && after == 0ms);
    CHECK(client.stats().acquired == 1 && client.stats().leases == 1);
    CHECK(client.stats().wait.sum_ns > 0);
    CHECK(std::string(client.master_stats(2).address).rfind("127.0.0.1:", 0) == 0);
    CHECK(thrown_by([&] { client.master_stats(16); }).code() == redlockpp::status::invalid);
}

/* The work is done.  So the end of its scope does not fail. */
static void a_scope_whose_release_is_not_confirmed()
{
    redlockpp::options opts;
    std::string logged;

    cluster_ready(&three, 3);
    opts.masters = cluster_masters(&three);
    opts.reply_timeout = 1s;
    opts.log = [&](redlock_level, const char *line) { logged += line; };
    redlockpp::client client(opts);
    {
        redlockpp::lease lease = client.lock("jobs/7", for_a_minute());
        redlockpp::lease other = client.lock("jobs/8", for_a_minute());

        server_pause(&three.server[0]);
        server_pause(&three.server[1]);
        CHECK(thrown_by([&] { other.unlock(); }).code() == redlockpp::status::unreachable);
    }
    CHECK(client.stats().unconfirmed == 2);
    CHECK(logged.find("release jobs/7: too few masters confirmed it") != std::string::npos);
    server_resume(&three.server[0]);
    server_resume(&three.server[1]);
}

static void an_error_has_reasons()
{
    redlockpp::client client = open_three();
    redlockpp::lease held = client.lock("jobs/7", for_a_minute());

    CHECK(thrown_by([&] { (void)client.lock("jobs/7"); }).reasons().empty());
    server_kill(&three.server[0]);
    server_kill(&three.server[2]);
    for (int i = 0; i < 1000; i++) {
        const redlockpp::error thrown = thrown_by([&] { (void)client.lock("jobs/8"); });

        if (std::strstr(thrown.what(), "masters 1 and 3") == nullptr) {
            cluster_nap();
            continue;
        }
        CHECK(thrown.reasons().size() == 2);
        CHECK(thrown.reasons()[1].master == 3 && thrown.reasons()[1].decides);
        CHECK(thrown.reasons()[1].id == "no-connection" && thrown.reasons()[1].words.empty());
        CHECK(thrown.reasons()[1].address.rfind("127.0.0.1:", 0) == 0);
        CHECK(!thrown.reasons()[1].over);
        return;
    }
    CHECK(!"two masters are told");
}

static const struct {
    const char *name;
    void (*run)();
} tests[] = {
    {"an_error_has_reasons", an_error_has_reasons},
    {"a_lock_excludes", a_lock_excludes},
    {"an_error_says_why", an_error_says_why},
    {"a_scope_releases", a_scope_releases},
    {"a_lease_keeps_its_client", a_lease_keeps_its_client},
    {"options_arrive", options_arrive},
    {"several_names", several_names},
    {"bad_input_is_refused", bad_input_is_refused},
    {"a_handed_on_token_is_adopted", a_handed_on_token_is_adopted},
    {"another_thread_interrupts", another_thread_interrupts},
    {"a_lost_lock_is_told", a_lost_lock_is_told},
    {"readiness_and_figures", readiness_and_figures},
    {"a_scope_whose_release_is_not_confirmed", a_scope_whose_release_is_not_confirmed},
};

int main(int argc, char **argv)
{
    unsigned passed = 0, failed = 0;

    setvbuf(stdout, nullptr, _IOLBF, 0);
    for (const auto &test : tests) {
        if (argc > 1 && std::strcmp(argv[1], test.name) != 0)
            continue;
        try {
            test.run();
            passed++;
        } catch (const std::exception &thrown) {
            std::printf("%s\nFAILED %s\n", thrown.what(), test.name);
            failed++;
        }
    }
    std::printf("%u passed, %u failed\n", passed, failed);
    return failed > 0 || passed == 0;
}
