/*
 * zklock.hpp: zklock.h for C++11 and later. It throws nothing but std::bad_alloc, and needs neither exceptions nor
 * run-time types.
 *
 *     auto client = zklock::client::connect("127.0.0.1:2181");
 *     if (!client) return fail(client.error());
 *     auto lock = client->lock("/locks/invoices");
 *     if (!lock) return fail(lock.error());
 *     auto guard = lock->acquire(5000); // milliseconds
 *     if (!guard) return fail(guard.error());
 *     printf("mine; my writes carry the token %lld\n", (long long)guard->token());
 *     // The end of its scope releases the lock in the background; release() waits for the confirmation.
 *
 * Each object owns one of zklock.h, frees it, and can be moved and not copied. One that was moved from, or made by
 * default, is empty: it converts to false, and its functions fail with ZBADARGUMENTS. What a function
 * promises, its codes, its threads and its limits are those of the function of zklock.h that it is named after. All
 * of it is in this header; link what zklock.h needs.
 */
#ifndef ZKLOCK_HPP
#define ZKLOCK_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "zklock.h"

#if defined(__has_cpp_attribute)
#if __has_cpp_attribute(nodiscard) && __cplusplus >= 201703L
#define ZKLOCK_NODISCARD [[nodiscard]]
#endif
#endif
#ifndef ZKLOCK_NODISCARD
#define ZKLOCK_NODISCARD
#endif

namespace zklock {

/* How a function has ended: true when it did what it was asked for. */
class ZKLOCK_NODISCARD status {
public:
    status() noexcept : code_(0) {}

    /* Of a function of zklock.h that has just returned this on this thread. */
    static status of(int code)
    {
        status ended;
        ended.code_ = code;
        if (code != 0)
            ended.message_ = zkl_last_error();
        return ended;
    }

    explicit operator bool() const noexcept { return code_ == 0; }
    /* ZOK, another of ZooKeeper's codes, or a ZKL_* code. */
    int code() const noexcept { return code_; }
    /* What has happened, in one line; empty when it went well. */
    const std::string &message() const noexcept { return message_; }

private:
    int code_;
    std::string message_;
};

/* An object, or why there is none. */
template <typename T> class ZKLOCK_NODISCARD result {
public:
    result(T value) : value_(std::move(value)) {}
    result(status error) : error_(std::move(error)) {}

    explicit operator bool() const noexcept { return static_cast<bool>(error_); }
    const status &error() const noexcept { return error_; }
    /* Of a failure they are empty. */
    T &operator*() noexcept { return value_; }
    T *operator->() noexcept { return &value_; }
    T take() { return std::move(value_); }

private:
    T value_;
    status error_;
};

namespace detail {

struct free {
    void operator()(zkl_client *it) const noexcept { zkl_client_free(it); }
    void operator()(zkl_lock *it) const noexcept { zkl_lock_free(it); }
    void operator()(zkl_guard *it) const noexcept { zkl_guard_free(it); }
    void operator()(zkl_attempt *it) const noexcept { zkl_attempt_free(it); }
    void operator()(zkl_contenders *it) const noexcept { zkl_contenders_free(it); }
};

template <typename T> using owned = std::unique_ptr<T, free>;

template <typename F> void finalize(void *userdata)
{
    delete static_cast<F *>(userdata);
}

/* What is called back lives until zklock.h says that nothing calls it any more. `function(userdata, finalizer)` is
 * one of those that take it; of a failure it calls neither. */
template <typename F, typename Function> status with_callback(F callback, Function function)
{
    std::unique_ptr<F> kept(new F(std::move(callback)));
    int rc = function(kept.get(), &finalize<F>);
    if (rc == 0)
        (void)kept.release();
    return status::of(rc);
}

} // namespace detail

/* Who holds a lock, and who waits: for (const zkl_contender &one : list). */
class contenders {
public:
    class iterator {
    public:
        iterator(const zkl_contenders *list, std::size_t index) noexcept : list_(list), index_(index) {}
        const zkl_contender &operator*() const noexcept { return *zkl_contenders_get(list_, index_); }
        const zkl_contender *operator->() const noexcept { return zkl_contenders_get(list_, index_); }
        iterator &operator++() noexcept
        {
            ++index_;
            return *this;
        }
        bool operator!=(const iterator &other) const noexcept { return index_ != other.index_; }
        bool operator==(const iterator &other) const noexcept { return index_ == other.index_; }

    private:
        const zkl_contenders *list_;
        std::size_t index_;
    };

    contenders() noexcept {}
    /* Owns it from here on. */
    explicit contenders(zkl_contenders *it) noexcept : it_(it) {}

    const zkl_contenders *get() const noexcept { return it_.get(); }
    std::size_t size() const noexcept { return zkl_contenders_count(it_.get()); }
    bool empty() const noexcept { return size() == 0; }
    iterator begin() const noexcept { return iterator(it_.get(), 0); }
    iterator end() const noexcept { return iterator(it_.get(), size()); }

private:
    detail::owned<zkl_contenders> it_;
};

/* A lock that is held. Its end releases the lock in the background. */
class guard {
public:
    guard() noexcept {}
    /* Owns it from here on. */
    explicit guard(zkl_guard *it) noexcept : it_(it) {}

    explicit operator bool() const noexcept { return static_cast<bool>(it_); }
    zkl_guard *get() const noexcept { return it_.get(); }

    /* Grows with every acquire of the lock: let the store refuse smaller ones. */
    std::int64_t token() const noexcept { return zkl_guard_token(it_.get()); }
    const char *path() const noexcept { return zkl_guard_path(it_.get()); }
    /* ZKL_HELD, ZKL_SUSPENDED or ZKL_LOST, by the local clock. */
    int state() const noexcept { return zkl_guard_state(it_.get()); }
    bool is_held() const noexcept { return state() == ZKL_HELD; }
    /* ZKL_LOST_SESSION, ZKL_LOST_DELETED or ZKL_LOST_BROKEN; 0 when it is not lost. */
    int lost_reason() const noexcept { return zkl_guard_lost_reason(it_.get()); }

    /* A descriptor that becomes readable when the lock is lost. */
    result<int> fd() const
    {
        int fd = -1;
        status ended = status::of(zkl_guard_fd(it_.get(), &fd));
        return ended ? result<int>(fd) : result<int>(std::move(ended));
    }

    /* A descriptor that becomes readable with each change of the state; take_state() looks, and makes it unreadable
     * until the next. */
    result<int> state_fd() const
    {
        int fd = -1;
        status ended = status::of(zkl_guard_state_fd(it_.get(), &fd));
        return ended ? result<int>(fd) : result<int>(std::move(ended));
    }
    int take_state() const noexcept { return zkl_guard_take_state(it_.get()); }

    /* `lost(int reason)` is called when the lock is lost. It must not throw. */
    template <typename F> status on_lost(F lost) const
    {
        zkl_lost_fn call = [](int reason, void *it) noexcept { (*static_cast<F *>(it))(reason); };
        return detail::with_callback(std::move(lost), [this, call](void *it, zkl_finalizer_fn end) {
            return zkl_guard_on_lost(it_.get(), call, it, end);
        });
    }

    /* `requested(const char *reason)` is called whenever somebody asks for the lock to be released. It must not throw. */
    template <typename F> status on_release_request(F requested) const
    {
        zkl_request_fn call = [](const char *reason, void *it) noexcept { (*static_cast<F *>(it))(reason); };
        return detail::with_callback(std::move(requested), [this, call](void *it, zkl_finalizer_fn end) {
            return zkl_guard_on_release_request(it_.get(), call, it, end);
        });
    }

    /* Waits until the lock is lost. */
    status wait_lost(int timeout_ms = ZKL_FOREVER) const
    {
        return status::of(zkl_guard_wait_lost(it_.get(), timeout_ms));
    }

    /* Replaces the data of a znode, only while the lock is held. */
    status set(const char *path, const void *data, std::size_t size, int version = -1) const
    {
        return status::of(zkl_guard_set(it_.get(), path, data, size, version, nullptr));
    }

    /* The same, without waiting: `done(status)` is called once. It must not throw. */
    template <typename F>
    status set_async(const char *path, const void *data, std::size_t size, int version, F done) const
    {
        zkl_written_fn call = [](int ended, const struct Stat *, void *it) noexcept {
            (*static_cast<F *>(it))(status::of(ended));
        };
        zkl_guard *held = it_.get();
        return detail::with_callback(std::move(done), [=](void *it, zkl_finalizer_fn end) {
            return zkl_guard_set_async(held, path, data, size, version, call, it, end);
        });
    }

    /* Releases the lock, and waits until that is confirmed. It is empty then, whatever that gives. */
    status release(int timeout_ms = ZKL_FOREVER)
    {
        return status::of(zkl_guard_release_within(it_.release(), timeout_ms));
    }

    /* The same, without waiting: `done(status)` is called once. It must not throw. */
    template <typename F> status release_async(int timeout_ms, F done)
    {
        zkl_result_fn call = [](int ended, void *it) noexcept { (*static_cast<F *>(it))(status::of(ended)); };
        return detail::with_callback(std::move(done), [this, timeout_ms, call](void *it, zkl_finalizer_fn end) {
            return zkl_guard_release_async(it_.release(), timeout_ms, call, it, end);
        });
    }

private:
    detail::owned<zkl_guard> it_;
};

/* An acquire under way. Its end does not cancel it. */
class attempt {
public:
    attempt() noexcept {}
    explicit attempt(zkl_attempt *it) noexcept : it_(it) {}

    explicit operator bool() const noexcept { return static_cast<bool>(it_); }
    zkl_attempt *get() const noexcept { return it_.get(); }

    /* Its callback comes with ZKL_CANCELLED then, and no claim is left. */
    status cancel() const { return status::of(zkl_attempt_cancel(it_.get())); }

private:
    detail::owned<zkl_attempt> it_;
};

/* A lock on a path. Every acquire contends for itself. */
class lock {
public:
    lock() noexcept {}
    explicit lock(zkl_lock *it) noexcept : it_(it) {}

    explicit operator bool() const noexcept { return static_cast<bool>(it_); }
    zkl_lock *get() const noexcept { return it_.get(); }
    const char *path() const noexcept { return zkl_lock_path(it_.get()); }

    /* Waits for it, up to the limit. */
    result<guard> acquire(int timeout_ms = ZKL_FOREVER) const
    {
        zkl_guard *held = nullptr;
        status ended = status::of(zkl_lock_acquire(it_.get(), timeout_ms, &held));
        return ended ? result<guard>(guard(held)) : result<guard>(std::move(ended));
    }

    /* ZKL_TAKEN where anybody is ahead. */
    result<guard> try_acquire() const
    {
        zkl_guard *held = nullptr;
        status ended = status::of(zkl_lock_try(it_.get(), &held));
        return ended ? result<guard>(guard(held)) : result<guard>(std::move(ended));
    }

    /* `done(result<guard>)` is called with the outcome, once. It must not throw. */
    template <typename F> result<attempt> acquire_async(int timeout_ms, F done) const
    {
        zkl_attempt *begun = nullptr;
        auto begin = [this, timeout_ms, &begun](void *it, zkl_finalizer_fn end) {
            return zkl_lock_acquire_async(it_.get(), timeout_ms, &outcome<F>, it, end, &begun);
        };
        status ended = detail::with_callback(std::move(done), begin);
        return ended ? result<attempt>(attempt(begun)) : result<attempt>(std::move(ended));
    }

    template <typename F> status try_acquire_async(F done) const
    {
        return detail::with_callback(std::move(done), [this](void *it, zkl_finalizer_fn end) {
            return zkl_lock_try_async(it_.get(), &outcome<F>, it, end);
        });
    }

    /* Who holds it: one, or nobody. */
    result<zklock::contenders> holder() const { return listed(&zkl_lock_holder); }
    /* Who holds it, and who waits, in their order. */
    result<zklock::contenders> contenders() const { return listed(&zkl_lock_contenders); }

    /* `done(result<contenders>)` is called once, with the first `most`. It must not throw. */
    template <typename F> status contenders_async(std::size_t most, F done) const
    {
        zkl_contenders_fn call = [](int ended, zkl_contenders *list, void *it) noexcept {
            (*static_cast<F *>(it))(listed(ended, list));
        };
        return detail::with_callback(std::move(done), [this, most, call](void *it, zkl_finalizer_fn end) {
            return zkl_lock_contenders_async(it_.get(), most, call, it, end);
        });
    }

    /* Asks a holder of a list, which has to be there yet, to release the lock. */
    status request_release(const zkl_contender &holder, const char *reason = "") const
    {
        return status::of(zkl_lock_request_release(it_.get(), &holder, reason));
    }

    /* Takes the lock from a holder of a list, whose guard is lost before another can hold. */
    status break_hold(const zkl_contender &holder, const char *reason, int grace_ms,
                      int timeout_ms = ZKL_FOREVER) const
    {
        return status::of(zkl_lock_break_hold(it_.get(), &holder, reason, grace_ms, timeout_ms));
    }

    /* How many permits a semaphore has, for all who use it. */
    result<int> limit() const
    {
        int limit = 0;
        status ended = status::of(zkl_lock_limit(it_.get(), &limit));
        return ended ? result<int>(limit) : result<int>(std::move(ended));
    }
    status set_limit(int limit) const { return status::of(zkl_lock_set_limit(it_.get(), limit)); }

private:
    template <typename F> static void outcome(int ended, zkl_guard *held, void *it) noexcept
    {
        F &done = *static_cast<F *>(it);
        if (ended == 0)
            done(result<guard>(guard(held)));
        else
            done(result<guard>(status::of(ended)));
    }

    static result<zklock::contenders> listed(int ended, zkl_contenders *list)
    {
        if (ended != 0)
            return result<zklock::contenders>(status::of(ended));
        return result<zklock::contenders>(zklock::contenders(list));
    }

    result<zklock::contenders> listed(int (*function)(const zkl_lock *, zkl_contenders **)) const
    {
        zkl_contenders *list = nullptr;
        int ended = function(it_.get(), &list);
        return listed(ended, list);
    }

    detail::owned<zkl_lock> it_;
};

/* A session, of its own or of a handle that the program has. Locks and guards keep it for themselves. */
class client {
public:
    client() noexcept {}
    explicit client(zkl_client *it) noexcept : it_(it) {}

    static result<client> connect(const char *hosts, const zkl_client_options *options = nullptr)
    {
        zkl_client *made = nullptr;
        status ended = status::of(zkl_client_connect(hosts, options, &made));
        return ended ? result<client>(client(made)) : result<client>(std::move(ended));
    }

    static result<client> adopt(struct _zhandle *zh, const zkl_client_options *options = nullptr)
    {
        zkl_client *made = nullptr;
        status ended = status::of(zkl_client_adopt(zh, options, &made));
        return ended ? result<client>(client(made)) : result<client>(std::move(ended));
    }

    explicit operator bool() const noexcept { return static_cast<bool>(it_); }
    zkl_client *get() const noexcept { return it_.get(); }
    int state() const noexcept { return zkl_client_state(it_.get()); }
    /* 0 while there is no session. */
    std::int64_t session_id() const noexcept { return zkl_client_session_id(it_.get()); }
    int session_timeout_ms() const noexcept { return zkl_client_session_timeout_ms(it_.get()); }
    /* Goes on with another handle of the program's, and its locks with it. */
    status follow(struct _zhandle *zh) const { return status::of(zkl_client_follow(it_.get(), zh)); }
    /* Lets go of an adopted handle at once, or ends a session of its own. */
    status detach() const { return status::of(zkl_client_detach(it_.get())); }

    result<zklock::lock> lock(const char *path, const zkl_lock_options *options = nullptr) const
    {
        zkl_lock *made = nullptr;
        status ended = status::of(zkl_lock_new(it_.get(), path, options, &made));
        return ended ? result<zklock::lock>(zklock::lock(made)) : result<zklock::lock>(std::move(ended));
    }

private:
    detail::owned<zkl_client> it_;
};

} // namespace zklock

#endif
