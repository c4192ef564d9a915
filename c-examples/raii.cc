// A lock as C++ likes it: whoever holds a `Held` holds the lock, and where its scope ends, by return
// or by exception, the lock is released.
//
// Build:  c++ -std=c++17 raii.cc $(pkg-config --cflags --libs zklock) -o raii
// Run:    ./raii 127.0.0.1:2181

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include <unistd.h>

#include <zklock.h>
#include <zookeeper.h>

namespace {

using std::chrono::milliseconds;

class Error : public std::runtime_error {
public:
    Error(const char *what, int rc)
        : std::runtime_error(std::string(what) + ": " + zkl_strerror(rc) + " (" + zkl_last_error() + ")"),
          code(rc)
    {
    }
    int code;
};

void check(const char *what, int rc)
{
    if (rc != ZOK)
        throw Error(what, rc);
}

// zklock's objects, each with the function that frees it.
struct Free {
    void operator()(zkl_client *client) const { zkl_client_free(client); }
    void operator()(zkl_lock *lock) const { zkl_lock_free(lock); }
    void operator()(zkl_guard *guard) const { zkl_guard_free(guard); }
};
template <typename T> using Owned = std::unique_ptr<T, Free>;

// The lock, held. Its end releases in the background; `release` waits for the confirmation.
class Held {
public:
    explicit Held(zkl_guard *guard) : guard_(guard) {}

    std::int64_t token() const { return zkl_guard_token(guard_.get()); }
    bool is_held() const { return zkl_guard_state(guard_.get()) == ZKL_HELD; }
    void release() { check("release", zkl_guard_release(guard_.release())); }

private:
    Owned<zkl_guard> guard_;
};

class Lock {
public:
    Lock(zkl_client *client, const std::string &path)
    {
        zkl_lock *lock = nullptr;
        check("lock", zkl_lock_new(client, path.c_str(), nullptr, &lock));
        lock_.reset(lock);
    }

    Held acquire(milliseconds timeout)
    {
        zkl_guard *guard = nullptr;
        check("acquire", zkl_lock_acquire(lock_.get(), static_cast<int>(timeout.count()), &guard));
        return Held(guard);
    }

    // Nothing while somebody else has it.
    std::optional<Held> try_acquire()
    {
        zkl_guard *guard = nullptr;
        int rc = zkl_lock_try(lock_.get(), &guard);
        if (rc == ZKL_TAKEN)
            return std::nullopt;
        check("try", rc);
        return Held(guard);
    }

private:
    Owned<zkl_lock> lock_;
};

Owned<zkl_client> connect(const char *hosts)
{
    zkl_client *client = nullptr;
    check("connect", zkl_client_connect(hosts, nullptr, &client));
    return Owned<zkl_client>(client);
}

void work(Lock &lock)
{
    Held held = lock.acquire(milliseconds(30000));
    std::cout << "held, with the token " << held.token() << '\n';
    if (lock.try_acquire())
        throw std::logic_error("it was acquired twice");
    throw std::runtime_error("the work has failed");
    // No release here, and none is needed.
}

int run(const char *hosts)
{
    Owned<zkl_client> client = connect(hosts);
    Lock lock(client.get(), "/locks/raii-" + std::to_string(getpid()));
    try {
        work(lock);
        return 1;
    } catch (const Error &) {
        throw;
    } catch (const std::runtime_error &error) {
        std::cout << error.what() << ", and the lock is free again\n";
    }
    Held again = lock.acquire(milliseconds(30000));
    std::cout << "held, with the token " << again.token() << '\n';
    bool was_held = again.is_held();
    again.release();
    return was_held ? 0 : 1;
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
