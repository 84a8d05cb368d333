/*
 * wait-warming.cpp - as wait-warming.c, in C++.
 */
#include <redlock.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <thread>

using namespace std::chrono_literals;

/* The longest time that a master still warms up, as far as it is known. */
static std::chrono::milliseconds warms_for(const redlockpp::error &error)
{
    std::chrono::milliseconds longest = 0ms;

    for (const redlockpp::reason &why : error.reasons()) {
        std::cerr << "master " << why.master << " (" << why.address << "): [" << why.id << "]\n";
        if (why.id == "warming" && why.over)
            longest = std::max(longest, *why.over);
    }
    return longest > 0ms ? longest : 500ms;
}

static redlockpp::lease lock(redlockpp::client &client, const char *name,
                             const redlockpp::lock_options &how)
{
    for (int attempts = 20;;) {
        try {
            return client.lock(name, how);
        } catch (const redlockpp::error &error) {
            if (error.code() != redlockpp::status::not_ready || --attempts == 0)
                throw;
            std::this_thread::sleep_for(warms_for(error));
        }
    }
}

int main(int argc, char **argv)
{
    redlockpp::options opts;
    redlockpp::lock_options how;

    if (argc < 2)
        return 64;
    if (argc > 2)
        opts.max_ttl = std::chrono::milliseconds(std::atoi(argv[2]));
    how.ttl = std::min(how.ttl, opts.max_ttl);
    try {
        redlockpp::client client(opts);
        redlockpp::lease lease = lock(client, argv[1], how);

        std::cout << "work\n";
        lease.unlock();
    } catch (const redlockpp::error &error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
    return 0;
}
