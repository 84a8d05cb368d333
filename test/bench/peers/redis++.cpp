// redis++ IN_FLIGHT SECONDS - lock + unlock cycles of redis-plus-plus, one line of figures.
//
// The masters are those of REDLOCK_MASTERS ("host:port,...").  Each slot is a thread, and has a
// connection of the pool of each master.  test/bench/alternatives starts this.

#include <sw/redis++/patterns/redlock.h>
#include <sw/redis++/redis++.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono;
using namespace sw::redis;

namespace
{

constexpr milliseconds ttl{10000};
constexpr milliseconds failed_pause{1}; // What fails is tried again after this pause.

struct figures {
    std::vector<double> acquire_us;
    size_t cycles = 0;
    size_t errors = 0;
};

using masters = std::vector<std::shared_ptr<Redis>>;

figures slot(const masters &all, const std::string &name, steady_clock::time_point end)
{
    figures found;
    RedLockMutex mutex(all.begin(), all.end(), name);
    while (steady_clock::now() < end) {
        const auto began = steady_clock::now();
        bool locked = false;
        try {
            RedLock<RedLockMutex> lock(mutex, std::defer_lock);
            locked = lock.try_lock(ttl);
            if (locked) {
                found.acquire_us.push_back(
                    duration<double, std::micro>(steady_clock::now() - began).count());
                lock.unlock();
                found.cycles++;
            }
        } catch (const Error &) {
            locked = false;
        }
        if (!locked) {
            found.errors++;
            std::this_thread::sleep_for(failed_pause);
        }
    }
    return found;
}

figures run(const masters &all, size_t in_flight, double seconds)
{
    const auto end = steady_clock::now() + duration_cast<nanoseconds>(duration<double>(seconds));
    std::vector<figures> found(in_flight);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < in_flight; i++)
        threads.emplace_back([&, i] { found[i] = slot(all, "bench/" + std::to_string(i), end); });
    for (auto &thread : threads)
        thread.join();
    figures sum;
    for (const auto &one : found) {
        sum.acquire_us.insert(sum.acquire_us.end(), one.acquire_us.begin(), one.acquire_us.end());
        sum.cycles += one.cycles;
        sum.errors += one.errors;
    }
    std::sort(sum.acquire_us.begin(), sum.acquire_us.end());
    return sum;
}

double percentile(const std::vector<double> &sorted, size_t percent)
{
    return sorted.empty() ? 0 : sorted[(sorted.size() * percent + 99) / 100 - 1];
}

masters connect(size_t in_flight)
{
    masters all;
    std::istringstream places(std::getenv("REDLOCK_MASTERS"));
    for (std::string place; std::getline(places, place, ',');) {
        ConnectionOptions options;
        options.host = place.substr(0, place.rfind(':'));
        options.port = std::stoi(place.substr(place.rfind(':') + 1));
        ConnectionPoolOptions pool;
        pool.size = in_flight;
        all.push_back(std::make_shared<Redis>(options, pool));
    }
    return all;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 3 || !std::getenv("REDLOCK_MASTERS"))
        return 64;
    const size_t in_flight = std::stoul(argv[1]);
    const double seconds = std::stod(argv[2]);
    const auto all = connect(in_flight);
    run(all, in_flight, seconds / 4); // Connects, and warms up.
    const auto began = steady_clock::now();
    const auto cpu_began = std::clock(); // Of all threads.
    const auto found = run(all, in_flight, seconds);
    const auto cpu_us = double(std::clock() - cpu_began) * 1e6 / CLOCKS_PER_SEC;
    std::printf("cycles_per_s=%.1f acquire_p50_us=%.1f acquire_p99_us=%.1f cpu_us_per_cycle=%.2f "
                "errors=%zu\n",
                double(found.cycles) / duration<double>(steady_clock::now() - began).count(),
                percentile(found.acquire_us, 50), percentile(found.acquire_us, 99),
                cpu_us / double(std::max<size_t>(found.cycles, 1)), found.errors);
}
