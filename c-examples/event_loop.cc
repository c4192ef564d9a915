// One thread, one event loop, and a lock: it is acquired, worked under, lost with its session and acquired again,
// and the loop never stands still for any of that. The loop ends when its input does.
//
// Build:  c++ -std=c++17 event_loop.cc $(pkg-config --cflags --libs zklock) -o event_loop
// Run:    ./event_loop 127.0.0.1:2181      (Ctrl-D ends it)

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <optional>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <zklock.hpp>
#include <zookeeper.h>

namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

const int TICK_MS = 10;

// Hands the outcome of an acquire from zklock's callback thread to the loop, which a descriptor wakes.
class Outcome {
public:
    Outcome() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
    ~Outcome() { close(fd_); }
    Outcome(const Outcome &) = delete;
    Outcome &operator=(const Outcome &) = delete;

    int fd() const { return fd_; }

    void set(zklock::result<zklock::guard> outcome)
    {
        std::lock_guard<std::mutex> held(mutex_);
        outcome_.emplace(std::move(outcome));
        eventfd_write(fd_, 1);
    }

    std::optional<zklock::result<zklock::guard>> take()
    {
        std::lock_guard<std::mutex> held(mutex_);
        eventfd_t count;
        eventfd_read(fd_, &count);
        return std::exchange(outcome_, std::nullopt);
    }

private:
    int fd_;
    std::mutex mutex_;
    std::optional<zklock::result<zklock::guard>> outcome_;
};

class Program {
public:
    explicit Program(zklock::lock lock) : lock_(std::move(lock)) {}

    // Gives the program's exit code.
    int run()
    {
        if (!begin())
            return 1;
        bool has_held = false;
        Milliseconds longest(0);
        while (attempt_ || guard_) {
            pollfd fds[] = {
                {outcome_.fd(), POLLIN, 0},
                {guard_ ? loss_fd_ : -1, POLLIN, 0},
                // Not before it has held once: input may be at its end from the beginning.
                {has_held && !is_ending_ ? STDIN_FILENO : -1, POLLIN, 0},
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
                is_ending_ = true;
                // Released in the background. What is under way is given up: its outcome ends the loop.
                guard_ = zklock::guard();
                if (attempt_)
                    static_cast<void>(attempt_.cancel());
            }
            longest = std::max(longest, Milliseconds(Clock::now() - woken));
        }
        return finish(longest);
    }

private:
    // Begins to acquire. The claim is on its way when this returns.
    bool begin()
    {
        auto begun = lock_.acquire_async(
            ZKL_FOREVER, [this](zklock::result<zklock::guard> outcome) { outcome_.set(std::move(outcome)); });
        if (!begun)
            return complain(begun.error());
        attempt_ = begun.take();
        return true;
    }

    bool acquired()
    {
        auto outcome = outcome_.take();
        if (!outcome)
            return true;
        attempt_ = zklock::attempt();
        if (is_ending_)
            return true;
        if (!*outcome)
            return complain(outcome->error());
        guard_ = outcome->take();
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
    Outcome outcome_;
    zklock::attempt attempt_;
    zklock::guard guard_;
    int loss_fd_ = -1;
    bool is_ending_ = false;
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
    // Waits, so it comes before the loop.
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
