// An event loop on one thread acquires a lock, works, loses the lock with its session, and acquires it again. The loop
// never blocks. It ends when its input ends.
//
// Build:  c++ -std=c++17 event_loop.cc $(pkg-config --cflags --libs zklock) -o event_loop
// Run:    ./event_loop 127.0.0.1:2181      (Ctrl-D ends it)

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <poll.h>
#include <unistd.h>

#include <zklock.hpp>
#include <zookeeper.h>

namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

const int TICK_MS = 10;

class Program {
public:
    explicit Program(zklock::lock lock) : lock_(std::move(lock)) {}

    // Returns the program's exit code.
    int run()
    {
        if (!begin())
            return 1;
        bool has_held = false;
        Milliseconds longest(0);
        while (attempt_ || guard_) {
            pollfd fds[] = {
                {attempt_ ? attempt_fd_ : -1, POLLIN, 0},
                {guard_ ? loss_fd_ : -1, POLLIN, 0},
                // Not before it has held once, because the input may be empty.
                {has_held ? STDIN_FILENO : -1, POLLIN, 0},
            };
            int ready = poll(fds, 3, TICK_MS);
            Clock::time_point woken = Clock::now();
            if (ready == 0 && guard_)
                ++work_;
            if (fds[1].revents && !lost())
                return 1;
            if (fds[0].revents && !acquired())
                return 1;
            has_held = has_held || guard_;
            if (fds[2].revents && at_end()) {
                // Both end in the background: a held lock is released, an attempt cancelled.
                guard_ = zklock::guard();
                attempt_ = zklock::attempt();
            }
            longest = std::max(longest, Milliseconds(Clock::now() - woken));
        }
        return finish(longest);
    }

private:
    // Begins to acquire. The claim is in flight when this returns.
    bool begin()
    {
        auto begun = lock_.acquire_async();
        if (!begun)
            return complain(begun.error());
        auto fd = begun->fd();
        if (!fd)
            return complain(fd.error());
        attempt_ = begun.take();
        attempt_fd_ = *fd;
        return true;
    }

    bool acquired()
    {
        auto outcome = attempt_.take();
        attempt_ = zklock::attempt();
        if (!outcome)
            return complain(outcome.error());
        guard_ = outcome.take();
        auto fd = guard_.fd();
        if (!fd)
            return complain(fd.error());
        loss_fd_ = *fd;
        say("held", guard_.token());
        return true;
    }

    bool lost()
    {
        say("lost", guard_.token());
        guard_ = zklock::guard();
        return begin();
    }

    int finish(Milliseconds longest)
    {
        std::printf("%ld pieces of work; the longest turn took %.3f ms\n", work_, longest.count());
        return 0;
    }

    static bool at_end()
    {
        char line[256];
        return read(STDIN_FILENO, line, sizeof line) <= 0;
    }

    static void say(const char *what, std::int64_t token)
    {
        std::printf("%s: token %lld\n", what, static_cast<long long>(token));
        std::fflush(stdout);
    }

    static bool complain(const zklock::status &status)
    {
        std::fprintf(stderr, "%s\n", status.message().c_str());
        return false;
    }

    zklock::lock lock_;
    zklock::attempt attempt_;
    int attempt_fd_ = -1;
    zklock::guard guard_;
    int loss_fd_ = -1;
    long work_ = 0;
};

} // namespace

int main(int argc, char **argv)
{
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s HOSTS\n", argv[0]);
        return 2;
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.session_timeout_ms = 6000;
    // This blocks, so it comes before the loop.
    auto client = zklock::client::connect(argv[1], &options);
    if (!client) {
        std::fprintf(stderr, "%s\n", client.error().message().c_str());
        return 1;
    }
    auto lock = client->lock("/locks/event-loop");
    if (!lock) {
        std::fprintf(stderr, "%s\n", lock.error().message().c_str());
        return 1;
    }
    return Program(lock.take()).run();
}
