/*
 * zklock.hpp: zklock.h for C++11 and later. It throws only std::bad_alloc, and needs neither exceptions nor run-time
 * types.
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
 * Each object owns one of zklock.h and frees it. It can be moved but not copied. A moved-from or default-constructed
 * object is empty: it converts to false, and its functions fail with ZBADARGUMENTS. Each function has the promises,
 * codes, threads and limits of the function of zklock.h with its name. Everything is in this header; link what zklock.h
 * needs.
 */
#ifndef ZKLOCK_HPP
#define ZKLOCK_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

/* The outcome of a function: true if it succeeded. */
class ZKLOCK_NODISCARD status {
public:
    status() noexcept : code_(0) {}

    /* Of a function of zklock.h that has just returned this code on this thread. */
    static status of(int code)
    {
        status ended;
        ended.code_ = code;
        if (code != 0)
            ended.message_ = zkl_last_error();
        return ended;
    }

    explicit operator bool() const noexcept { return code_ == 0; }
    /* ZOK, a code of ZooKeeper, or a ZKL_* code. */
    int code() const noexcept { return code_; }
    /* The error in one line; empty if there is none. */
    const std::string &message() const noexcept { return message_; }

private:
    int code_;
    std::string message_;
};

/* An object, or the error. */
template <typename T> class ZKLOCK_NODISCARD result {
public:
    result(T value) : value_(std::move(value)) {}
    result(status error) : error_(std::move(error)) {}

    explicit operator bool() const noexcept { return static_cast<bool>(error_); }
    const status &error() const noexcept { return error_; }
    /* Empty after an error. */
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
    void operator()(zkl_watch *it) const noexcept { zkl_watch_free(it); }
    void operator()(zkl_multi_lock *it) const noexcept { zkl_multi_lock_free(it); }
    void operator()(zkl_election *it) const noexcept { zkl_election_free(it); }
    void operator()(zkl_counter *it) const noexcept { zkl_counter_free(it); }
    void operator()(zkl_queue *it) const noexcept { zkl_queue_free(it); }
    void operator()(zkl_delivery *it) const noexcept { zkl_delivery_free(it); }
    void operator()(zkl_group *it) const noexcept { zkl_group_free(it); }
    void operator()(zkl_membership *it) const noexcept { zkl_membership_free(it); }
    void operator()(zkl_members *it) const noexcept { zkl_members_free(it); }
    void operator()(zkl_latch *it) const noexcept { zkl_latch_free(it); }
    void operator()(zkl_barrier *it) const noexcept { zkl_barrier_free(it); }
    void operator()(zkl_double_barrier *it) const noexcept { zkl_double_barrier_free(it); }
    void operator()(zkl_entered *it) const noexcept { zkl_entered_free(it); }
};

template <typename T> using owned = std::unique_ptr<T, free>;

template <typename F> void finalize(void *userdata)
{
    delete static_cast<F *>(userdata);
}

/* Keeps a callback until zklock.h no longer calls it. `function(userdata, finalizer)` registers it. After an error it
 * calls neither. */
template <typename F, typename Function> status with_callback(F callback, Function function)
{
    std::unique_ptr<F> kept(new F(std::move(callback)));
    int rc = function(kept.get(), &finalize<F>);
    if (rc == 0)
        (void)kept.release();
    return status::of(rc);
}

/* The object that a function of zklock.h has put into `it`, or the error. */
template <typename T, typename P> result<T> made(int rc, P *it)
{
    status ended = status::of(rc);
    return ended ? result<T>(T(it)) : result<T>(std::move(ended));
}

/* The same for a value. */
template <typename T> result<T> value(int rc, const T &it)
{
    status ended = status::of(rc);
    return ended ? result<T>(it) : result<T>(std::move(ended));
}

/* Runs a callback with the code alone, or with an object as well. */
template <typename F> void call(int rc, void *it) noexcept
{
    (*static_cast<F *>(it))(status::of(rc));
}
template <typename T, typename F, typename P> void call(int rc, P *given, void *it) noexcept
{
    (*static_cast<F *>(it))(made<T>(rc, given));
}

/* The entries of a list. */
template <typename L, typename E, std::size_t (*Count)(const L *), const E *(*Get)(const L *, std::size_t)>
class list {
public:
    class iterator {
    public:
        iterator(const L *list, std::size_t index) noexcept : list_(list), index_(index) {}
        const E &operator*() const noexcept { return *Get(list_, index_); }
        const E *operator->() const noexcept { return Get(list_, index_); }
        iterator &operator++() noexcept
        {
            ++index_;
            return *this;
        }
        bool operator!=(const iterator &other) const noexcept { return index_ != other.index_; }
        bool operator==(const iterator &other) const noexcept { return index_ == other.index_; }

    private:
        const L *list_;
        std::size_t index_;
    };

    list() noexcept {}
    /* Takes ownership. */
    explicit list(L *it) noexcept : it_(it) {}

    const L *get() const noexcept { return it_.get(); }
    std::size_t size() const noexcept { return Count(it_.get()); }
    bool empty() const noexcept { return size() == 0; }
    iterator begin() const noexcept { return iterator(it_.get(), 0); }
    iterator end() const noexcept { return iterator(it_.get(), size()); }

private:
    owned<L> it_;
};

} // namespace detail

/* The holders and waiters of a lock: for (const zkl_contender &one : list). */
using contenders = detail::list<zkl_contenders, zkl_contender, &zkl_contenders_count, &zkl_contenders_get>;
/* The members of a group: for (const zkl_member &one : list). */
using members = detail::list<zkl_members, zkl_member, &zkl_members_count, &zkl_members_get>;

/* A lock that is held. Its destructor releases the lock in the background. */
class guard {
public:
    guard() noexcept {}
    /* Takes ownership. */
    explicit guard(zkl_guard *it) noexcept : it_(it) {}

    explicit operator bool() const noexcept { return static_cast<bool>(it_); }
    zkl_guard *get() const noexcept { return it_.get(); }

    /* Grows with every acquire of the lock. Let the store reject smaller ones. */
    std::int64_t token() const noexcept { return zkl_guard_token(it_.get()); }
    const char *path() const noexcept { return zkl_guard_path(it_.get()); }
    /* The path of the claim's znode. */
    std::string claim_path() const
    {
        std::string path(zkl_guard_claim_path(it_.get(), nullptr, 0), '\0');
        zkl_guard_claim_path(it_.get(), &path[0], path.size() + 1);
        return path;
    }
    /* For a multi-lock: the number of its locks, and the token and path of each. */
    std::size_t locks() const noexcept { return zkl_guard_locks(it_.get()); }
    std::int64_t token_of(std::size_t index) const noexcept { return zkl_guard_token_of(it_.get(), index); }
    const char *path_of(std::size_t index) const noexcept { return zkl_guard_path_of(it_.get(), index); }
    /* ZKL_HELD, ZKL_SUSPENDED or ZKL_LOST, by the local clock. */
    int state() const noexcept { return zkl_guard_state(it_.get()); }
    bool is_held() const noexcept { return state() == ZKL_HELD; }
    /* ZKL_READ, ZKL_UPGRADEABLE or ZKL_WRITE for a read/write lock, otherwise ZKL_EXCLUSIVE. */
    int access() const noexcept { return zkl_guard_access(it_.get()); }
    /* From ZKL_UPGRADEABLE to ZKL_WRITE, without releasing the lock. */
    status upgrade(int timeout_ms = ZKL_FOREVER) const
    {
        return status::of(zkl_guard_upgrade(it_.get(), timeout_ms));
    }
    /* To ZKL_UPGRADEABLE or ZKL_READ. No reader passes a waiting writer. */
    status downgrade(int to, int timeout_ms = ZKL_FOREVER) const
    {
        return status::of(zkl_guard_downgrade(it_.get(), to, timeout_ms));
    }
    /* How many guards its owner has of a re-entrant lock. */
    int holds() const noexcept { return zkl_guard_holds(it_.get()); }
    /* ZKL_LOST_SESSION, ZKL_LOST_DELETED or ZKL_LOST_BROKEN; 0 if it is not lost. */
    int lost_reason() const noexcept { return zkl_guard_lost_reason(it_.get()); }

    /* A descriptor that becomes readable when the lock is lost. */
    result<int> fd() const
    {
        int fd = -1;
        status ended = status::of(zkl_guard_fd(it_.get(), &fd));
        return ended ? result<int>(fd) : result<int>(std::move(ended));
    }

    /* A descriptor that becomes readable with each change of the state. take_state() gives the state and makes it
     * unreadable until the next change. */
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

    /* `requested(const char *reason)` is called each time another client asks for a release. It must not throw. */
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

    /* The same without waiting: `done(status)` is called once. It must not throw. */
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

    /* Releases the lock and waits for the confirmation. The guard is then empty, whatever the result. */
    status release(int timeout_ms = ZKL_FOREVER)
    {
        return status::of(zkl_guard_release_within(it_.release(), timeout_ms));
    }

    /* The same without waiting: `done(status)` is called once. It must not throw. */
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

/* A pending acquire or other wait. Its destructor cancels it, unless it has a callback. */
class attempt {
public:
    attempt() noexcept {}
    explicit attempt(zkl_attempt *it) noexcept : it_(it) {}

    explicit operator bool() const noexcept { return static_cast<bool>(it_); }
    zkl_attempt *get() const noexcept { return it_.get(); }

    /* A descriptor that becomes readable when the attempt has ended. */
    result<int> fd() const
    {
        int fd = -1;
        int ended = zkl_attempt_fd(it_.get(), &fd);
        return detail::value(ended, fd);
    }

    /* The outcome of an acquire without a callback, once. ZKL_PENDING until it has ended. */
    result<guard> take() const
    {
        zkl_guard *held = nullptr;
        int ended = zkl_attempt_take(it_.get(), &held);
        return detail::made<guard>(ended, held);
    }

    /* After this the outcome is ZKL_CANCELLED. No claim is left, and nothing is taken. */
    status cancel() const { return status::of(zkl_attempt_cancel(it_.get())); }

private:
    detail::owned<zkl_attempt> it_;
};

/* A lock on a path. All acquires exclude each other, unless the lock is re-entrant. */
class lock {
public:
    lock() noexcept {}
    explicit lock(zkl_lock *it) noexcept : it_(it) {}

    explicit operator bool() const noexcept { return static_cast<bool>(it_); }
    zkl_lock *get() const noexcept { return it_.get(); }
    const char *path() const noexcept { return zkl_lock_path(it_.get()); }

    /* Waits up to the limit. */
    result<guard> acquire(int timeout_ms = ZKL_FOREVER) const
    {
        zkl_guard *held = nullptr;
        status ended = status::of(zkl_lock_acquire(it_.get(), timeout_ms, &held));
        return ended ? result<guard>(guard(held)) : result<guard>(std::move(ended));
    }

    /* ZKL_TAKEN if another contender is ahead. */
    result<guard> try_acquire() const
    {
        zkl_guard *held = nullptr;
        status ended = status::of(zkl_lock_try(it_.get(), &held));
        return ended ? result<guard>(guard(held)) : result<guard>(std::move(ended));
    }

    /* `done(result<guard>)` is called once with the outcome. It must not throw. */
    template <typename F> result<attempt> acquire_async(int timeout_ms, F done) const
    {
        zkl_attempt *begun = nullptr;
        auto begin = [this, timeout_ms, &begun](void *it, zkl_finalizer_fn end) {
            return zkl_lock_acquire_async(it_.get(), timeout_ms, &outcome<F>, it, end, &begun);
        };
        status ended = detail::with_callback(std::move(done), begin);
        return ended ? result<attempt>(attempt(begun)) : result<attempt>(std::move(ended));
    }
    /* Without a callback: attempt::fd() reports the end, attempt::take() gives the outcome. */
    result<attempt> acquire_async(int timeout_ms = ZKL_FOREVER) const
    {
        zkl_attempt *begun = nullptr;
        int ended = zkl_lock_acquire_async(it_.get(), timeout_ms, nullptr, nullptr, nullptr, &begun);
        return detail::made<attempt>(ended, begun);
    }

    template <typename F> status try_acquire_async(F done) const
    {
        return detail::with_callback(std::move(done), [this](void *it, zkl_finalizer_fn end) {
            return zkl_lock_try_async(it_.get(), &outcome<F>, it, end);
        });
    }

    /* The holder: one entry, or none. */
    result<zklock::contenders> holder() const { return listed(&zkl_lock_holder); }
    /* The holders and waiters, in their order. */
    result<zklock::contenders> contenders() const { return listed(&zkl_lock_contenders); }

    /* `done(result<contenders>)` is called once with the first `most`. It must not throw. */
    template <typename F> status contenders_async(std::size_t most, F done) const
    {
        zkl_contenders_fn call = [](int ended, zkl_contenders *list, void *it) noexcept {
            (*static_cast<F *>(it))(listed(ended, list));
        };
        return detail::with_callback(std::move(done), [this, most, call](void *it, zkl_finalizer_fn end) {
            return zkl_lock_contenders_async(it_.get(), most, call, it, end);
        });
    }

    /* The same lock, which a thread that holds it can acquire again at once. */
    result<lock> reentrant() const { return made(&zkl_lock_reentrant); }
    /* A re-entrant lock for one more owner that is not a thread. */
    result<lock> as_owner() const { return made(&zkl_lock_as_owner); }

    /* Asks a holder from a list to release the lock. The list must still exist. */
    status request_release(const zkl_contender &holder, const char *reason = "") const
    {
        return status::of(zkl_lock_request_release(it_.get(), &holder, reason));
    }

    /* Takes the lock from a holder from a list. Its guard is lost before another client can hold the lock. */
    status break_hold(const zkl_contender &holder, const char *reason, int grace_ms,
                      int timeout_ms = ZKL_FOREVER) const
    {
        return status::of(zkl_lock_break_hold(it_.get(), &holder, reason, grace_ms, timeout_ms));
    }

    /* The number of permits of a semaphore, for all clients. */
    result<int> limit() const
    {
        int limit = 0;
        status ended = status::of(zkl_lock_limit(it_.get(), &limit));
        return ended ? result<int>(limit) : result<int>(std::move(ended));
    }
    status set_limit(int limit) const { return status::of(zkl_lock_set_limit(it_.get(), limit)); }

private:
    result<lock> made(int (*of)(const zkl_lock *, zkl_lock **)) const
    {
        zkl_lock *it = nullptr;
        status ended = status::of(of(it_.get(), &it));
        return ended ? result<lock>(lock(it)) : result<lock>(std::move(ended));
    }

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

/* Several locks that are acquired together, all or none. */
class multi_lock {
public:
    multi_lock() noexcept {}
    explicit multi_lock(zkl_multi_lock *it) noexcept : it_(it) {}

    /* A multi-lock of these locks, which are copied: multi_lock::of({&one, &other}). */
    static result<multi_lock> of(std::initializer_list<const lock *> locks)
    {
        std::vector<const zkl_lock *> all;
        for (const lock *one : locks)
            all.push_back(one == nullptr ? nullptr : one->get());
        zkl_multi_lock *it = nullptr;
        int ended = zkl_multi_lock_new(all.data(), all.size(), &it);
        return detail::made<multi_lock>(ended, it);
    }

    explicit operator bool() const noexcept { return static_cast<bool>(it_); }
    zkl_multi_lock *get() const noexcept { return it_.get(); }

    result<guard> acquire(int timeout_ms = ZKL_FOREVER) const
    {
        zkl_guard *held = nullptr;
        int ended = zkl_multi_lock_acquire(it_.get(), timeout_ms, &held);
        return detail::made<guard>(ended, held);
    }
    /* ZKL_TAKEN if another contender is ahead at any lock. */
    result<guard> try_acquire() const
    {
        zkl_guard *held = nullptr;
        int ended = zkl_multi_lock_try(it_.get(), &held);
        return detail::made<guard>(ended, held);
    }
    /* `done(result<guard>)` is called once with the outcome. It must not throw. */
    template <typename F> result<attempt> acquire_async(int timeout_ms, F done) const
    {
        zkl_attempt *begun = nullptr;
        auto begin = [this, timeout_ms, &begun](void *it, zkl_finalizer_fn end) {
            return zkl_multi_lock_acquire_async(it_.get(), timeout_ms, &detail::call<guard, F>, it, end, &begun);
        };
        status ended = detail::with_callback(std::move(done), begin);
        return ended ? result<attempt>(attempt(begun)) : result<attempt>(std::move(ended));
    }
    /* Without a callback: attempt::fd() reports the end, attempt::take() gives the outcome. */
    result<attempt> acquire_async(int timeout_ms = ZKL_FOREVER) const
    {
        zkl_attempt *begun = nullptr;
        int ended = zkl_multi_lock_acquire_async(it_.get(), timeout_ms, nullptr, nullptr, nullptr, &begun);
        return detail::made<attempt>(ended, begun);
    }

private:
    detail::owned<zkl_multi_lock> it_;
};

/* A watch with a callback. Its destructor ends it. */
class watch {
public:
    watch() noexcept {}
    explicit watch(zkl_watch *it) noexcept : it_(it) {}

    explicit operator bool() const noexcept { return static_cast<bool>(it_); }
    zkl_watch *get() const noexcept { return it_.get(); }

private:
    detail::owned<zkl_watch> it_;
};

/* An election: one participant leads at a time. The leader has a guard, with the term as its token. */
class election {
public:
    election() noexcept {}
    explicit election(zkl_election *it) noexcept : it_(it) {}

    explicit operator bool() const noexcept { return static_cast<bool>(it_); }
    zkl_election *get() const noexcept { return it_.get(); }

    /* Waits until this participant leads. */
    result<guard> campaign(int timeout_ms = ZKL_FOREVER) const
    {
        zkl_guard *held = nullptr;
        int ended = zkl_election_campaign(it_.get(), timeout_ms, &held);
        return detail::made<guard>(ended, held);
    }
    /* `done(result<guard>)` is called once with the outcome. It must not throw. */
    template <typename F> result<attempt> campaign_async(int timeout_ms, F done) const
    {
        zkl_attempt *begun = nullptr;
        auto begin = [this, timeout_ms, &begun](void *it, zkl_finalizer_fn end) {
            return zkl_election_campaign_async(it_.get(), timeout_ms, &detail::call<guard, F>, it, end, &begun);
        };
        status ended = detail::with_callback(std::move(done), begin);
        return ended ? result<attempt>(attempt(begun)) : result<attempt>(std::move(ended));
    }
    /* Without a callback: attempt::fd() reports the end, attempt::take() gives the outcome. */
    result<attempt> campaign_async(int timeout_ms = ZKL_FOREVER) const
    {
        zkl_attempt *begun = nullptr;
        int ended = zkl_election_campaign_async(it_.get(), timeout_ms, nullptr, nullptr, nullptr, &begun);
        return detail::made<attempt>(ended, begun);
    }

    /* Resigns in favour of a participant from a list. The list must still exist. */
    status hand_over(const guard &leads, const zkl_contender &to, int timeout_ms = ZKL_FOREVER) const
    {
        return status::of(zkl_election_hand_over(it_.get(), leads.get(), &to, timeout_ms));
    }
    /* `done(status)` is called once. It must not throw. */
    template <typename F>
    status hand_over_async(const guard &leads, const zkl_contender &to, int timeout_ms, F done) const
    {
        zkl_election *of = it_.get();
        zkl_guard *held = leads.get();
        return detail::with_callback(std::move(done), [=, &to](void *it, zkl_finalizer_fn end) {
            return zkl_election_hand_over_async(of, held, &to, timeout_ms, &detail::call<F>, it, end);
        });
    }

    /* The leader: one entry, or none. */
    result<contenders> leader() const { return listed(&zkl_election_leader); }
    /* The participants, in the order in which they will lead. */
    result<contenders> participants() const { return listed(&zkl_election_participants); }

    /* `changed(result<contenders>)` is called with the leader, now and at each change, until the watch ends. It must
     * not throw. */
    template <typename F> result<watch> observe(F changed) const
    {
        zkl_watch *begun = nullptr;
        auto begin = [this, &begun](void *it, zkl_finalizer_fn end) {
            return zkl_election_observe(it_.get(), &detail::call<contenders, F>, it, end, &begun);
        };
        status ended = detail::with_callback(std::move(changed), begin);
        return ended ? result<watch>(watch(begun)) : result<watch>(std::move(ended));
    }

private:
    result<contenders> listed(int (*function)(const zkl_election *, zkl_contenders **)) const
    {
        zkl_contenders *found = nullptr;
        int ended = function(it_.get(), &found);
        return detail::made<contenders>(ended, found);
    }

    detail::owned<zkl_election> it_;
};

/* A number that many clients read and change. */
class counter {
public:
    counter() noexcept {}
    explicit counter(zkl_counter *it) noexcept : it_(it) {}

    explicit operator bool() const noexcept { return static_cast<bool>(it_); }
    zkl_counter *get() const noexcept { return it_.get(); }

    result<std::int64_t> value(int timeout_ms = ZKL_FOREVER) const
    {
        std::int64_t number = 0;
        int ended = zkl_counter_get(it_.get(), timeout_ms, &number);
        return detail::value(ended, number);
    }
    status set(std::int64_t number, int timeout_ms = ZKL_FOREVER) const
    {
        return status::of(zkl_counter_set(it_.get(), number, timeout_ms));
    }
    /* Gives the new value. */
    result<std::int64_t> add(std::int64_t number, int timeout_ms = ZKL_FOREVER) const
    {
        std::int64_t after = 0;
        int ended = zkl_counter_add(it_.get(), number, timeout_ms, &after);
        return detail::value(ended, after);
    }
    /* Gives the old value. */
    result<std::int64_t> get_and_add(std::int64_t number, int timeout_ms = ZKL_FOREVER) const
    {
        std::int64_t before = 0;
        int ended = zkl_counter_get_and_add(it_.get(), number, timeout_ms, &before);
        return detail::value(ended, before);
    }
    /* Gives the old value: the number was set exactly if that is `expected`. */
    result<std::int64_t> compare_and_set(std::int64_t expected, std::int64_t number,
                                         int timeout_ms = ZKL_FOREVER) const
    {
        std::int64_t before = 0;
        int ended = zkl_counter_compare_and_set(it_.get(), expected, number, timeout_ms, &before);
        return detail::value(ended, before);
    }

private:
    detail::owned<zkl_counter> it_;
};

/* An element that was taken from a queue. Its destructor gives the element back. */
class delivery {
public:
    delivery() noexcept {}
    explicit delivery(zkl_delivery *it) noexcept : it_(it) {}

    explicit operator bool() const noexcept { return static_cast<bool>(it_); }
    zkl_delivery *get() const noexcept { return it_.get(); }

    const void *data() const noexcept { return zkl_delivery_data(it_.get(), nullptr); }
    std::size_t size() const noexcept
    {
        std::size_t size = 0;
        zkl_delivery_data(it_.get(), &size);
        return size;
    }
    std::string text() const { return empty() ? std::string() : std::string(static_cast<const char *>(data()), size()); }
    bool empty() const noexcept { return size() == 0; }
    const char *path() const noexcept { return zkl_delivery_path(it_.get()); }
    /* The claim, for the functions of zklock.h. It ends with this object. */
    const zkl_guard *claim() const noexcept { return zkl_delivery_guard(it_.get()); }
    std::int64_t token() const noexcept { return zkl_guard_token(claim()); }
    bool is_held() const noexcept { return zkl_guard_state(claim()) == ZKL_HELD; }

    /* Removes the element. The delivery is then empty, whatever the result. */
    status done(int timeout_ms = ZKL_FOREVER) { return status::of(zkl_delivery_done(it_.release(), timeout_ms)); }
    /* The same without waiting: `ended(status)` is called once. It must not throw. */
    template <typename F> status done_async(int timeout_ms, F ended)
    {
        return detail::with_callback(std::move(ended), [this, timeout_ms](void *it, zkl_finalizer_fn end) {
            return zkl_delivery_done_async(it_.release(), timeout_ms, &detail::call<F>, it, end);
        });
    }

private:
    detail::owned<zkl_delivery> it_;
};

/* A work queue: each element is delivered at least once. */
class queue {
public:
    queue() noexcept {}
    explicit queue(zkl_queue *it) noexcept : it_(it) {}

    explicit operator bool() const noexcept { return static_cast<bool>(it_); }
    zkl_queue *get() const noexcept { return it_.get(); }

    /* Puts any bytes. */
    status put(const std::string &text, int priority = ZKL_DEFAULT_PRIORITY, int timeout_ms = ZKL_FOREVER) const
    {
        return status::of(zkl_queue_put(it_.get(), text.data(), text.size(), priority, timeout_ms));
    }
    /* Gives the size of the first element and copies as much as fits. ZNOTHING if the queue is empty. */
    result<std::size_t> peek(void *buffer, std::size_t size, int timeout_ms = ZKL_FOREVER) const
    {
        std::size_t whole = 0;
        int ended = zkl_queue_peek(it_.get(), timeout_ms, buffer, size, &whole);
        return detail::value(ended, whole);
    }
    /* Waits for an element. */
    result<delivery> take(int timeout_ms = ZKL_FOREVER) const
    {
        zkl_delivery *taken = nullptr;
        int ended = zkl_queue_take(it_.get(), timeout_ms, &taken);
        return detail::made<delivery>(ended, taken);
    }
    /* `done(result<delivery>)` is called once with the outcome. It must not throw. */
    template <typename F> result<attempt> take_async(int timeout_ms, F done) const
    {
        zkl_attempt *begun = nullptr;
        auto begin = [this, timeout_ms, &begun](void *it, zkl_finalizer_fn end) {
            return zkl_queue_take_async(it_.get(), timeout_ms, &detail::call<delivery, F>, it, end, &begun);
        };
        status ended = detail::with_callback(std::move(done), begin);
        return ended ? result<attempt>(attempt(begun)) : result<attempt>(std::move(ended));
    }

private:
    detail::owned<zkl_queue> it_;
};

/* The program's membership in a group. Its destructor leaves the group. */
class membership {
public:
    membership() noexcept {}
    explicit membership(zkl_membership *it) noexcept : it_(it) {}

    explicit operator bool() const noexcept { return static_cast<bool>(it_); }
    zkl_membership *get() const noexcept { return it_.get(); }
    const char *id() const noexcept { return zkl_membership_id(it_.get()); }
    const char *path() const noexcept { return zkl_membership_path(it_.get()); }
    /* Whether it is a member now, by the local clock. */
    bool is_member() const noexcept { return zkl_membership_is_member(it_.get()) == 1; }
    /* The membership is then empty, whatever the result. */
    status leave(int timeout_ms = ZKL_FOREVER) { return status::of(zkl_membership_leave(it_.release(), timeout_ms)); }

private:
    detail::owned<zkl_membership> it_;
};

/* A group of members. */
class group {
public:
    group() noexcept {}
    explicit group(zkl_group *it) noexcept : it_(it) {}

    explicit operator bool() const noexcept { return static_cast<bool>(it_); }
    zkl_group *get() const noexcept { return it_.get(); }

    /* Joins with any bytes as its data. */
    result<membership> join(const std::string &text, int timeout_ms = ZKL_FOREVER) const
    {
        zkl_membership *joined = nullptr;
        int ended = zkl_group_join(it_.get(), text.data(), text.size(), timeout_ms, &joined);
        return detail::made<membership>(ended, joined);
    }
    result<zklock::members> members(int timeout_ms = ZKL_FOREVER) const
    {
        zkl_members *found = nullptr;
        int ended = zkl_group_members(it_.get(), timeout_ms, &found);
        return detail::made<zklock::members>(ended, found);
    }
    /* `changed(result<members>)` is called with the members, now and at each change, until the watch ends. It must not
     * throw. */
    template <typename F> result<zklock::watch> watch(F changed) const
    {
        zkl_watch *begun = nullptr;
        auto begin = [this, &begun](void *it, zkl_finalizer_fn end) {
            return zkl_group_watch(it_.get(), &detail::call<zklock::members, F>, it, end, &begun);
        };
        status ended = detail::with_callback(std::move(changed), begin);
        return ended ? result<zklock::watch>(zklock::watch(begun)) : result<zklock::watch>(std::move(ended));
    }

private:
    detail::owned<zkl_group> it_;
};

/* A latch: it opens when it is counted down to zero. */
class latch {
public:
    latch() noexcept {}
    explicit latch(zkl_latch *it) noexcept : it_(it) {}

    explicit operator bool() const noexcept { return static_cast<bool>(it_); }
    zkl_latch *get() const noexcept { return it_.get(); }

    /* These three give the remaining count. */
    result<std::uint32_t> set(std::uint32_t events, int timeout_ms = ZKL_FOREVER) const
    {
        std::uint32_t left = 0;
        int ended = zkl_latch_set(it_.get(), events, timeout_ms, &left);
        return detail::value(ended, left);
    }
    result<std::uint32_t> count_down(int timeout_ms = ZKL_FOREVER) const
    {
        std::uint32_t left = 0;
        int ended = zkl_latch_count_down(it_.get(), timeout_ms, &left);
        return detail::value(ended, left);
    }
    result<std::uint32_t> left(int timeout_ms = ZKL_FOREVER) const
    {
        std::uint32_t left = 0;
        int ended = zkl_latch_left(it_.get(), timeout_ms, &left);
        return detail::value(ended, left);
    }
    /* Waits until it is open. */
    status wait(int timeout_ms = ZKL_FOREVER) const { return status::of(zkl_latch_wait(it_.get(), timeout_ms)); }
    /* `done(status)` is called once. It must not throw. */
    template <typename F> result<attempt> wait_async(int timeout_ms, F done) const
    {
        zkl_attempt *begun = nullptr;
        auto begin = [this, timeout_ms, &begun](void *it, zkl_finalizer_fn end) {
            return zkl_latch_wait_async(it_.get(), timeout_ms, &detail::call<F>, it, end, &begun);
        };
        status ended = detail::with_callback(std::move(done), begin);
        return ended ? result<attempt>(attempt(begun)) : result<attempt>(std::move(ended));
    }

private:
    detail::owned<zkl_latch> it_;
};

/* A barrier: while it is set, clients wait until it is removed. */
class barrier {
public:
    barrier() noexcept {}
    explicit barrier(zkl_barrier *it) noexcept : it_(it) {}

    explicit operator bool() const noexcept { return static_cast<bool>(it_); }
    zkl_barrier *get() const noexcept { return it_.get(); }

    status set(int timeout_ms = ZKL_FOREVER) const { return status::of(zkl_barrier_set(it_.get(), timeout_ms)); }
    status remove(int timeout_ms = ZKL_FOREVER) const { return status::of(zkl_barrier_remove(it_.get(), timeout_ms)); }
    /* Waits until it is not set. */
    status pass(int timeout_ms = ZKL_FOREVER) const { return status::of(zkl_barrier_pass(it_.get(), timeout_ms)); }
    /* `done(status)` is called once. It must not throw. */
    template <typename F> result<attempt> pass_async(int timeout_ms, F done) const
    {
        zkl_attempt *begun = nullptr;
        auto begin = [this, timeout_ms, &begun](void *it, zkl_finalizer_fn end) {
            return zkl_barrier_pass_async(it_.get(), timeout_ms, &detail::call<F>, it, end, &begun);
        };
        status ended = detail::with_callback(std::move(done), begin);
        return ended ? result<attempt>(attempt(begun)) : result<attempt>(std::move(ended));
    }

private:
    detail::owned<zkl_barrier> it_;
};

/* A participant that has entered a double barrier. Its destructor leaves without waiting for the others. */
class entered {
public:
    entered() noexcept {}
    explicit entered(zkl_entered *it) noexcept : it_(it) {}

    explicit operator bool() const noexcept { return static_cast<bool>(it_); }
    zkl_entered *get() const noexcept { return it_.get(); }

    /* Waits until all of its round have left. The object is then empty, whatever the result. */
    status leave(int timeout_ms = ZKL_FOREVER) { return status::of(zkl_entered_leave(it_.release(), timeout_ms)); }
    /* The same without waiting: `done(status)` is called once. It must not throw. */
    template <typename F> status leave_async(int timeout_ms, F done)
    {
        return detail::with_callback(std::move(done), [this, timeout_ms](void *it, zkl_finalizer_fn end) {
            return zkl_entered_leave_async(it_.release(), timeout_ms, &detail::call<F>, it, end);
        });
    }

private:
    detail::owned<zkl_entered> it_;
};

/* A barrier for participants that enter together and leave together. */
class double_barrier {
public:
    double_barrier() noexcept {}
    explicit double_barrier(zkl_double_barrier *it) noexcept : it_(it) {}

    explicit operator bool() const noexcept { return static_cast<bool>(it_); }
    zkl_double_barrier *get() const noexcept { return it_.get(); }

    result<entered> enter(int timeout_ms = ZKL_FOREVER) const
    {
        zkl_entered *in = nullptr;
        int ended = zkl_double_barrier_enter(it_.get(), timeout_ms, &in);
        return detail::made<entered>(ended, in);
    }
    /* `done(result<entered>)` is called once with the outcome. It must not throw. */
    template <typename F> result<attempt> enter_async(int timeout_ms, F done) const
    {
        zkl_attempt *begun = nullptr;
        auto begin = [this, timeout_ms, &begun](void *it, zkl_finalizer_fn end) {
            return zkl_double_barrier_enter_async(it_.get(), timeout_ms, &detail::call<entered, F>, it, end, &begun);
        };
        status ended = detail::with_callback(std::move(done), begin);
        return ended ? result<attempt>(attempt(begun)) : result<attempt>(std::move(ended));
    }

private:
    detail::owned<zkl_double_barrier> it_;
};

/* A client with its own session or a handle of the program. Its locks and guards keep the session. */
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

    /* Connects to any store by its address: "sqlite:/var/lib/app/locks.db". */
    static result<client> to_store(const char *address, const zkl_client_options *options = nullptr)
    {
        zkl_client *made = nullptr;
        status ended = status::of(zkl_store_connect(address, options, &made));
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
    /* The store of its locks: "zookeeper", "sqlite" ... */
    const char *store() const noexcept { return zkl_client_store(it_.get()); }
    /* Whether the store can do all of these (ZKL_CAN_*). */
    bool can(int what) const noexcept { int all = zkl_client_can(it_.get()); return all >= 0 && (all & what) == what; }
    /* Continues on another handle of the program, with its locks. */
    status follow(struct _zhandle *zh) const { return status::of(zkl_client_follow(it_.get(), zh)); }
    /* Detaches from an adopted handle at once, or ends the client's own session. */
    status detach() const { return status::of(zkl_client_detach(it_.get())); }

    result<zklock::lock> lock(const char *path, const zkl_lock_options *options = nullptr) const
    {
        zkl_lock *made = nullptr;
        status ended = status::of(zkl_lock_new(it_.get(), path, options, &made));
        return ended ? result<zklock::lock>(zklock::lock(made)) : result<zklock::lock>(std::move(ended));
    }

    /* The lock of a key. Nothing is left of it while it is unused. */
    result<zklock::lock> lock_of_key(const char *path, const std::string &key,
                                     const zkl_lock_options *options = nullptr) const
    {
        zkl_lock *made = nullptr;
        int ended = zkl_lock_of_key(it_.get(), path, key.data(), key.size(), options, &made);
        return detail::made<zklock::lock>(ended, made);
    }
    result<zklock::election> election(const char *path, const zkl_lock_options *options = nullptr) const
    {
        zkl_election *made = nullptr;
        int ended = zkl_election_new(it_.get(), path, options, &made);
        return detail::made<zklock::election>(ended, made);
    }
    result<zklock::counter> counter(const char *path, const zkl_recipe_options *options = nullptr) const
    {
        zkl_counter *made = nullptr;
        int ended = zkl_counter_new(it_.get(), path, options, &made);
        return detail::made<zklock::counter>(ended, made);
    }
    result<zklock::queue> queue(const char *path, const zkl_recipe_options *options = nullptr) const
    {
        zkl_queue *made = nullptr;
        int ended = zkl_queue_new(it_.get(), path, options, &made);
        return detail::made<zklock::queue>(ended, made);
    }
    result<zklock::group> group(const char *path, const zkl_recipe_options *options = nullptr) const
    {
        zkl_group *made = nullptr;
        int ended = zkl_group_new(it_.get(), path, options, &made);
        return detail::made<zklock::group>(ended, made);
    }
    result<zklock::latch> latch(const char *path, const zkl_recipe_options *options = nullptr) const
    {
        zkl_latch *made = nullptr;
        int ended = zkl_latch_new(it_.get(), path, options, &made);
        return detail::made<zklock::latch>(ended, made);
    }
    result<zklock::barrier> barrier(const char *path, const zkl_recipe_options *options = nullptr) const
    {
        zkl_barrier *made = nullptr;
        int ended = zkl_barrier_new(it_.get(), path, options, &made);
        return detail::made<zklock::barrier>(ended, made);
    }
    result<zklock::double_barrier> double_barrier(const char *path, int participants,
                                                  const zkl_recipe_options *options = nullptr) const
    {
        zkl_double_barrier *made = nullptr;
        int ended = zkl_double_barrier_new(it_.get(), path, participants, options, &made);
        return detail::made<zklock::double_barrier>(ended, made);
    }

private:
    detail::owned<zkl_client> it_;
};

/* Ends the threads of zklock and frees what it keeps for the process. Destroy all objects first. */
inline status shutdown()
{
    return status::of(zkl_shutdown());
}

} // namespace zklock

#endif
