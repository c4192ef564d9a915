// A zklock::guard holds the lock. The end of its scope, by return or by exception, releases it.
//
// Build:  c++ -std=c++17 raii.cc $(pkg-config --cflags --libs zklock) -o raii
// Run:    ./raii 127.0.0.1:2181

#include <future>
#include <iostream>
#include <stdexcept>
#include <string>

#include <unistd.h>

#include <zklock.hpp>
#include <zookeeper.h>

namespace {

const int LIMIT_MS = 30000;

// zklock.hpp throws nothing, so this program adds its own exception.
template <typename T> T checked(zklock::result<T> result)
{
    if (!result)
        throw std::runtime_error(result.error().message());
    return result.take();
}

void work(const zklock::lock &lock)
{
    zklock::guard guard = checked(lock.acquire(LIMIT_MS));
    std::cout << "held, with the token " << guard.token() << '\n';
    if (lock.try_acquire())
        throw std::logic_error("it was acquired twice");
    throw std::domain_error("the work has failed");
    // The guard releases the lock here.
}

int run(const char *hosts)
{
    zklock::client client = checked(zklock::client::connect(hosts));
    std::string path = "/locks/raii-" + std::to_string(getpid());
    zklock::lock lock = checked(client.lock(path.c_str()));
    try {
        work(lock);
        return 1;
    } catch (const std::domain_error &error) {
        std::cout << error.what() << ", and the lock is free again\n";
    }
    zklock::guard again = checked(lock.acquire(LIMIT_MS));
    std::cout << "held, with the token " << again.token() << '\n';
    bool was_held = again.is_held();
    for (const zkl_contender &one : checked(lock.contenders()))
        std::cout << "held by process " << one.pid << " on " << one.host << '\n';
    // Called on another thread once the servers have confirmed it; release() waits for that instead.
    std::promise<bool> released;
    zklock::status begun =
        again.release_async(LIMIT_MS, [&released](zklock::status ended) { released.set_value(bool(ended)); });
    return was_held && begun && released.get_future().get() ? 0 : 1;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 2) {
        std::cerr << "usage: " << argv[0] << " HOSTS\n";
        return 2;
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    try {
        return run(argv[1]);
    } catch (const std::exception &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
