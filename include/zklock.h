/*
 * zklock.h: distributed locks on Apache ZooKeeper. Generated from src/capi: do not edit.
 *
 *     zkl_client *client = NULL;
 *     zkl_lock *lock = NULL;
 *     zkl_guard *guard = NULL;
 *     int rc = zkl_client_connect("127.0.0.1:2181", NULL, &client);
 *     if (rc == 0) rc = zkl_lock_new(client, "/locks/invoices", NULL, &lock);
 *     if (rc == 0) rc = zkl_lock_acquire(lock, 5000, &guard);
 *     if (rc == 0) printf("mine; my writes carry the token %lld\n", (long long)zkl_guard_token(guard));
 *     if (rc == 0) rc = zkl_guard_release(guard);
 *     if (rc != 0) fprintf(stderr, "%s\n", zkl_last_error());
 *     zkl_lock_free(lock);
 *     zkl_client_free(client);
 *
 * It needs no other header, and can be included before or after <zookeeper/zookeeper.h>, which names
 * ZooKeeper's codes (ZOK, ZOPERATIONTIMEOUT, ...).
 *
 * Codes. A function that can fail returns 0 (ZOK), one of ZooKeeper's codes, or one of the few ZKL_*
 *   codes below -2000; zkl_strerror has words for all of them. After a failure zkl_last_error has one
 *   line about it, for this thread. Treat codes as an open set: a newer server may send others. Any
 *   function may return ZKL_PANIC.
 * Outputs are written only on success.
 * Ownership. What a function puts into an output is the program's, and is freed by the function of
 *   that type: once, in any order; each object keeps what it needs. All free functions take NULL.
 *   Strings that are returned belong to the object they were asked of, or to the library. What is
 *   passed in is copied before the function returns.
 * NULL for an object, an output or a string is ZBADARGUMENTS where nothing else is said; so are text
 *   that is not UTF-8 and paths that ZooKeeper does not allow. Pointers that are not NULL have to be
 *   good: objects that were not freed, strings that end, buffers of the length that is given.
 * Options structs begin with their size. One of a shorter, older header is taken; one of a newer
 *   header too, as long as what this library does not know is zero.
 * Threads. Every function may be called on any thread, also on one object by several threads at once,
 *   except that nobody may use an object while or after another thread frees it. Functions that block
 *   say so. In a callback of the C client (a watcher, a completion) on an adopted handle they return
 *   ZKL_WOULD_DEADLOCK, because the answer would have to come through that very thread.
 * Permissions. A session has to have READ, CREATE and DELETE on a queue's path, and READ on its claims;
 *   with the other strategies CREATE and DELETE on the znode above the path, and READ on the path.
 * Descriptors (zkl_attempt_fd, zkl_guard_fd, zkl_guard_state_fd) say when there is something to look at. They belong to
 *   their objects.
 * Callbacks (`done`, `lost`, `changed`, finalizers) run on a thread of zklock's, one for each client, one after
 *   the other. They may block, call any function and free any object, and must not throw.
 * Cancellation (pthread_cancel) is off while a thread is inside a function: the call ends as it would
 *   have, and the thread at its next cancellation point after that; a cleanup handler frees what the
 *   call has given. To end a call that waits, give it a limit, or call zkl_client_detach on another
 *   thread. Asynchronous cancellation must be off. Callbacks run with cancellation off: they must
 *   neither turn it on nor end their thread.
 * Memory. Where the system gives none, the process is ended by zklock (SIGABRT) or by the C client, which
 *   does not check all of its allocations; what can be reported is ZSYSTEMERROR or ZMARSHALLINGERROR, or a
 *   time limit that passes. A guard that says ZKL_HELD is held even so. Threads of zklock and what it keeps for the process
 *   stay until the end: for memory checkers, zkl_shutdown ends them.
 * The end of the process. When main returns or exit is called, what was freed, released or cancelled
 *   before and is not confirmed yet is waited for: up to a second. What no server has confirmed by then,
 *   and after any other end (_exit, quick_exit, a signal, exec), stays until the session times out; so
 *   does a lock that is still held, unless zkl_client_free or zkl_client_detach has ended its session.
 * fork. What was made before it stays the parent's. In the child every function returns ZINVALIDSTATE
 *   for it, at once (zkl_client_session_id 0), and so does zkl_client_adopt for a handle that was adopted
 *   before; the free functions free, and release nothing; strings, data and lists stay
 *   readable. A client that the child connects, or adopts on a handle that it has opened, works. A handle
 *   that the parent has opened is of no use in the child, not even to close it. A child that is made
 *   while another thread is inside a function, and goes on without exec, may find the C library's or the
 *   C client's locks held: that of the resolution of host names above all, which a handle of the
 *   program's goes through all the time, unless zoo_set_servers_resolution_delay(zh, -1) was called. The
 *   C client's descriptors are inherited, also across exec.
 */


#ifndef ZKLOCK_H
#define ZKLOCK_H

#include <stddef.h>
#include <stdint.h>

/* The version of this header; zkl_version() is the library's. */
#define ZKL_VERSION_MAJOR 0
#define ZKL_VERSION_MINOR 1
#define ZKL_VERSION_PATCH 0
#define ZKL_VERSION "0.1.0"
#define ZKL_VERSION_NUMBER 1000

/* Of the C client: <zookeeper/zookeeper.h> says what is in them. */
struct _zhandle;
struct ACL_vector;
struct Stat;

/* What options begin as: the defaults. */
#define ZKL_CLIENT_OPTIONS_INIT {sizeof(zkl_client_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
#define ZKL_LOCK_OPTIONS_INIT {sizeof(zkl_lock_options), 0, 0, 0, 0, 0, 0, 0}
#define ZKL_RECIPE_OPTIONS_INIT {sizeof(zkl_recipe_options), 0}


/**
 * Somebody holds the lock or is ahead in its queue (the functions named `try` only).
 */
#define ZKL_TAKEN -2001

/**
 * The acquire, or what else has waited for others, was cancelled by the program.
 */
#define ZKL_CANCELLED -2002

/**
 * The call would wait for the very thread that it was made on.
 */
#define ZKL_WOULD_DEADLOCK -2003

/**
 * A defect of zklock itself, caught before it could harm the program.
 */
#define ZKL_PANIC -2004

/**
 * The lock is no longer held, or the element no longer claimed: nothing was written, handed over or removed.
 */
#define ZKL_NOT_HELD -2005

/**
 * The attempt has not ended yet.
 */
#define ZKL_PENDING -2006

/**
 * It is not known whether it was done, and will not be told; zkl_last_error says why.
 */
#define ZKL_OUTCOME_UNKNOWN -2007

/**
 * A strategy: a fair queue, in which a release wakes one waiter. The default.
 */
#define ZKL_QUEUE 0

/**
 * A strategy: watches the holder's znode. Every release wakes every waiter, and none has a turn.
 */
#define ZKL_WATCH 1

/**
 * A strategy: asks again and again, with pauses from 2 ms to 100 ms. Needs no watch.
 */
#define ZKL_POLL 2

/**
 * How a lock is shared: not at all. The default.
 */
#define ZKL_EXCLUSIVE 0

/**
 * How a lock is shared: as a reader of a read/write lock. Readers hold together, and wait for the writers
 * before them. Curator's read/write lock on the same path excludes it, and is excluded by it.
 */
#define ZKL_READ 1

/**
 * How a lock is shared: as a writer of a read/write lock, which holds alone, in one queue with its readers.
 */
#define ZKL_WRITE 2

/**
 * How a lock is shared: as permits of a semaphore. Others hold the rest.
 */
#define ZKL_PERMITS 3

/**
 * How a lock is shared: as a reader of a read/write lock that may become a writer, by zkl_guard_upgrade. It holds with
 * readers, one such at a time.
 */
#define ZKL_UPGRADEABLE 4

/**
 * Which other libraries wait for a lock on its path: Curator, go-zookeeper, zookeeper-client and ZooKeeper's own recipes,
 * kazoo where it is given the pattern "-lock-". The default. The lock waits for all of them in any case.
 */
#define ZKL_INTEROP_MOST 0

/**
 * Which other libraries wait for a lock on its path: kazoo as it comes, too. A claim is two znodes, made and deleted by one
 * transaction each. Only with `ZKL_QUEUE` and `ZKL_EXCLUSIVE`.
 */
#define ZKL_INTEROP_ALL 1

/**
 * zkl_client_state: no server has taken the session yet.
 */
#define ZKL_CONNECTING 1

/**
 * zkl_client_state: a server is connected and the session lives.
 */
#define ZKL_CONNECTED 2

/**
 * zkl_client_state, zkl_guard_state: the connection is lost, the session may still be alive. Stop
 * writing under a lock.
 */
#define ZKL_SUSPENDED 3

/**
 * zkl_client_state: the session is over, or can't be trusted any more by the local clock. Its
 * locks are lost.
 */
#define ZKL_SESSION_LOST 4

/**
 * zkl_client_state: the client has been detached, or can't go on.
 */
#define ZKL_CLOSED 5

/**
 * zkl_client_can: who comes first is served first.
 */
#define ZKL_CAN_BE_FAIR 1

/**
 * zkl_client_can: tokens grow with every acquire, also after a crash of who held, of the store or of the machine.
 */
#define ZKL_CAN_KEEP_TOKENS 2

/**
 * zkl_client_can: read/write locks.
 */
#define ZKL_CAN_SHARE 4

/**
 * zkl_client_can: zkl_guard_upgrade and zkl_guard_downgrade.
 */
#define ZKL_CAN_UPGRADE 8

/**
 * zkl_client_can: semaphores.
 */
#define ZKL_CAN_COUNT 16

/**
 * zkl_client_can: several locks are claimed in one step; otherwise one after the other, in the order of their paths.
 */
#define ZKL_CAN_CLAIM_TOGETHER 32

/**
 * zkl_client_can: zkl_guard_set. Elsewhere, have what is written to compare the token.
 */
#define ZKL_CAN_GUARD_WRITES 64

/**
 * zkl_client_can: locks exclude processes from each other, not only the threads of one.
 */
#define ZKL_CAN_EXCLUDE_PROCESSES 128

/**
 * zkl_client_can: locks exclude machines from each other.
 */
#define ZKL_CAN_EXCLUDE_MACHINES 256

/**
 * zkl_client_can: it goes on, and what is held stays held, where a minority of its servers fails.
 */
#define ZKL_CAN_LOSE_SERVERS 512

/**
 * A timeout that never comes.
 */
#define ZKL_FOREVER -1

/**
 * zkl_guard_state: the lock is held, and no other client can acquire it now.
 */
#define ZKL_HELD 1

/**
 * zkl_guard_state: the lock is lost, and others may hold it. It stays so.
 */
#define ZKL_LOST 4

/**
 * zkl_guard_lost_reason, `lost`: the session expired, could not be trusted any more by the local
 * clock, or was ended by the program.
 */
#define ZKL_LOST_SESSION 1

/**
 * zkl_guard_lost_reason, `lost`: somebody deleted the lock's znode.
 */
#define ZKL_LOST_DELETED 2

/**
 * zkl_guard_lost_reason, `lost`: somebody broke the hold, as `zklock break` does.
 */
#define ZKL_LOST_BROKEN 3

/**
 * The priority of elements that are put by programs without priorities, such as those of zoo_queue.h.
 */
#define ZKL_DEFAULT_PRIORITY 128

/**
 * An acquire under way, or whatever else waits for others; see zkl_lock_acquire_async.
 */
typedef struct zkl_attempt zkl_attempt;

/**
 * A barrier: where it is set, everybody waits until it is removed; see zkl_barrier_new.
 */
typedef struct zkl_barrier zkl_barrier;

/**
 * A session of its own, a handle of the program's that was adopted, or another store than ZooKeeper; see
 * zkl_client_connect, zkl_client_adopt and zkl_store_connect.
 */
typedef struct zkl_client zkl_client;

/**
 * A list of contenders; see zkl_lock_holder and zkl_lock_contenders.
 */
typedef struct zkl_contenders zkl_contenders;

/**
 * A number that many clients read and change; see zkl_counter_new.
 */
typedef struct zkl_counter zkl_counter;

/**
 * An element of a queue that was taken; see zkl_queue_take.
 */
typedef struct zkl_delivery zkl_delivery;

/**
 * A barrier for a number of participants; see zkl_double_barrier_new.
 */
typedef struct zkl_double_barrier zkl_double_barrier;

/**
 * An election: of those who take part, one leads at a time; see zkl_election_new.
 */
typedef struct zkl_election zkl_election;

/**
 * That a participant has entered a double barrier; see zkl_double_barrier_enter.
 */
typedef struct zkl_entered zkl_entered;

/**
 * A group; see zkl_group_new.
 */
typedef struct zkl_group zkl_group;

/**
 * A lock that is held; see zkl_lock_acquire.
 */
typedef struct zkl_guard zkl_guard;

/**
 * A latch that is counted down; see zkl_latch_new.
 */
typedef struct zkl_latch zkl_latch;

/**
 * A lock on a path; see zkl_lock_new.
 */
typedef struct zkl_lock zkl_lock;

/**
 * A list of members; see zkl_group_members.
 */
typedef struct zkl_members zkl_members;

/**
 * That this program is a member of a group; see zkl_group_join.
 */
typedef struct zkl_membership zkl_membership;

/**
 * Several locks that are acquired together; see zkl_multi_lock_new.
 */
typedef struct zkl_multi_lock zkl_multi_lock;

/**
 * A queue of work; see zkl_queue_new.
 */
typedef struct zkl_queue zkl_queue;

/**
 * What changes is reported by a callback until this is freed; see zkl_election_observe and zkl_group_watch.
 */
typedef struct zkl_watch zkl_watch;

/**
 * How a client connects or adopts. It begins as the defaults:
 * `zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;`, then what differs is set.
 */
typedef struct {
    /**
     * `sizeof(zkl_client_options)`.
     */
    size_t size;
    /**
     * The session timeout to ask for: how long a lock outlives the crash of its holder; from 500 to
     * 86,400,000. 0: 10 s. The servers may grant another: zkl_client_session_timeout_ms. A
     * guard is lost when the servers have proven nothing for four to six tenths of it. Not for
     * `zkl_client_adopt`.
     */
    int session_timeout_ms;
    /**
     * How long `zkl_client_connect` may take in all. 0: 10 s. Not for `zkl_client_adopt`.
     */
    int connect_timeout_ms;
    /**
     * How long one operation may take before it ends with ZOPERATIONTIMEOUT, its outcome unknown.
     * 0: 15 s.
     */
    int operation_timeout_ms;
    /**
     * An identity for every session of the client, such as "digest". NULL: none. Not for
     * `zkl_client_adopt`: the handle's own identities count there.
     */
    const char *auth_scheme;
    /**
     * What belongs to it, such as "user:password"; `auth_secret_len` bytes, copied.
     */
    const void *auth_secret;
    /**
     * Length of `auth_secret` in bytes.
     */
    size_t auth_secret_len;
    /**
     * The servers' tickTime, where it is known. 0: half the session timeout, which is right wherever
     * the servers' minSessionTimeout is two ticks or more (the default); where it is less, the
     * tickTime has to be said here, or a guard may be lost too late. Never less than the servers'.
     */
    int tick_time_ms;
    /**
     * The most bytes of path, data and access control list in one request. 0: 1 MiB less 1 KiB, which
     * every server takes. A larger request is refused with ZBADARGUMENTS, because a server closes the
     * connection on one over its jute.maxbuffer. (The queue of zoo_queue.h asks the servers instead.)
     */
    size_t max_request;
    /**
     * TLS, at the servers' secureClientPort: the file with the authorities that sign their certificates, in PEM
     * form. NULL: no TLS. With it `tls_cert` and `tls_key` have to be given. The C client that is linked has to be
     * built with TLS (zookeeper_init_ssl); most are not, and connecting fails with ZBADARGUMENTS. Here and
     * below: not for `zkl_client_adopt`.
     */
    const char *tls_ca;
    /**
     * TLS: the file with the client's own certificate.
     */
    const char *tls_cert;
    /**
     * TLS: the file with the key of that certificate.
     */
    const char *tls_key;
    /**
     * TLS: the file whose first line is the password of the key. NULL: it has none.
     */
    const char *tls_key_password_file;
    /**
     * TLS: not 0: takes any certificate that the authorities have signed, whatever the server's name is. The C
     * client of an installed library verifies no names: without this it is refused.
     */
    int tls_any_host_name;
    /**
     * SASL: the user. NULL: none. The C client that is linked has to be built with SASL (zookeeper_init_sasl).
     */
    const char *sasl_user;
    /**
     * SASL: the file whose first line is the user's password.
     */
    const char *sasl_password_file;
    /**
     * SASL: the mechanism, such as "GSSAPI". NULL: "DIGEST-MD5", where there is a user.
     */
    const char *sasl_mechanism;
    /**
     * 1: locks with `ZKL_QUEUE` that are contended for are handed over by one write and one event, between clients that
     * all have this set. Each session gets an identity of its own, of the scheme "digest", which the servers have to
     * accept; `ZOO_CREATOR_ALL_ACL` names it as well. Others exclude each other all the same. Not for
     * `zkl_client_adopt`.
     */
    int announced_releases;
} zkl_client_options;

/**
 * How a lock is contended for. It begins as the defaults:
 * `zkl_lock_options options = ZKL_LOCK_OPTIONS_INIT;`, then what differs is set.
 */
typedef struct {
    /**
     * `sizeof(zkl_lock_options)`.
     */
    size_t size;
    /**
     * `ZKL_QUEUE`, `ZKL_WATCH` or `ZKL_POLL`; the same for everyone on one path.
     */
    int strategy;
    /**
     * What the owner calls itself, for people who look at who holds the lock: one line of up to
     * 256 characters. NULL: nothing. Copied.
     */
    const char *label;
    /**
     * Who may do what with the znodes of the lock: what the C client takes, such as
     * `&ZOO_CREATOR_ALL_ACL`. NULL: everyone may do everything. Copied.
     */
    const struct ACL_vector *acl;
    /**
     * `ZKL_EXCLUSIVE`, `ZKL_READ`, `ZKL_UPGRADEABLE`, `ZKL_WRITE` or `ZKL_PERMITS`; all but the first with `ZKL_QUEUE`
     * alone.
     */
    int sharing;
    /**
     * With `ZKL_PERMITS`: how many permits an acquire takes, together. 0: one. Otherwise 0.
     */
    int permits;
    /**
     * With `ZKL_PERMITS`: how many permits there are for all, where none has said so yet; at least 1. What the
     * semaphore's znode says counts more: see zkl_lock_set_limit. Otherwise 0.
     */
    int limit;
    /**
     * `ZKL_INTEROP_MOST` or `ZKL_INTEROP_ALL`. Programs of either exclude each other.
     */
    int interop;
} zkl_lock_options;

/**
 * Somebody who holds a lock or waits for it. Its strings belong to the list, and are never NULL.
 *
 * Anyone may have written what is in the claim's znode. Host, thread and label are lines of up to 256
 * characters that can be shown on a terminal: others than can be printed are spaces, those among them
 * that turn the direction of writing. The path is as ZooKeeper has it.
 */
typedef struct {
    /**
     * The claim's znode.
     */
    const char *path;
    /**
     * The session that the claim lives on.
     */
    int64_t session_id;
    /**
     * The fencing token, once it holds.
     */
    int64_t token;
    /**
     * When the claim was made, by the servers' clocks: milliseconds since the epoch. A holder that had
     * to wait holds for less: see `held_since_ms`.
     */
    int64_t since_ms;
    /**
     * Host name; empty where the claim is another library's.
     */
    const char *host;
    /**
     * Process id; 0 where the claim is another library's.
     */
    uint32_t pid;
    /**
     * The name of the thread, or its id (the kernel's, on Linux); empty where the claim is another
     * library's.
     */
    const char *thread;
    /**
     * What the owner calls itself; of another library's claim, the beginning of its data.
     */
    const char *label;
    /**
     * When it has come to hold the lock, by the servers' clocks as far as they show it: not before, in
     * milliseconds since the epoch; 0 for those who wait.
     */
    int64_t held_since_ms;
    /**
     * When it has come to hold the lock: not later; 0 for those who wait. In a queue that others have
     * left since, it is the time of the call.
     */
    int64_t held_since_latest_ms;
} zkl_contender;

/**
 * Told that somebody asks for the lock to be released, and why; `reason` is good until this returns. Must not throw.
 */
typedef void (*zkl_request_fn)(const char *reason, void *userdata);

/**
 * Told when a `userdata` is not needed any more: runs exactly once for each that was taken, after
 * the last callback that gets it, on zklock's callback thread. May be NULL.
 */
typedef void (*zkl_finalizer_fn)(void *userdata);

/**
 * Told how an acquire ended: `rc` as zkl_lock_acquire returns it, or ZKL_CANCELLED. With ZOK `guard`
 * is the program's, otherwise it is NULL. Must not throw.
 */
typedef void (*zkl_done_fn)(int rc, zkl_guard *guard, void *userdata);

/**
 * Told that a lock is lost: why (a ZKL_LOST_* reason). Must not throw.
 */
typedef void (*zkl_lost_fn)(int reason, void *userdata);

/**
 * Told who contends. With ZOK `contenders` is the program's: it is freed with zkl_contenders_free. Otherwise it is
 * NULL. Must not throw.
 */
typedef void (*zkl_contenders_fn)(int rc, zkl_contenders *contenders, void *userdata);

/**
 * Told how a write ended. With ZOK `stat` is the znode's new one, until this returns; otherwise it is NULL. Must not
 * throw.
 */
typedef void (*zkl_written_fn)(int rc, const struct Stat *stat, void *userdata);

/**
 * Told how an operation ended, by the code that its blocking twin returns. Must not throw.
 */
typedef void (*zkl_result_fn)(int rc, void *userdata);

/**
 * How a counter, a queue, a group, a latch or a barrier is made. It begins as the defaults:
 * `zkl_recipe_options options = ZKL_RECIPE_OPTIONS_INIT;`, then what differs is set. A path whose last name begins with
 * `zl-`, as those of zklock's own znodes do, is refused with ZBADARGUMENTS.
 */
typedef struct {
    /**
     * `sizeof(zkl_recipe_options)`.
     */
    size_t size;
    /**
     * Who may do what with the znodes that are made: what the C client takes, such as
     * `&ZOO_CREATOR_ALL_ACL`. NULL: everyone may do everything. Copied.
     */
    const struct ACL_vector *acl;
} zkl_recipe_options;

/**
 * Called with how a take ended: `rc` as zkl_queue_take returns it, or ZKL_CANCELLED. With ZOK `delivery` is the program's,
 * otherwise it is NULL. Must not throw.
 */
typedef void (*zkl_delivery_fn)(int rc, zkl_delivery *delivery, void *userdata);

/**
 * Called with the members. With ZOK `members` is the program's: it is freed with zkl_members_free. Otherwise it is NULL. Must
 * not throw.
 */
typedef void (*zkl_members_fn)(int rc, zkl_members *members, void *userdata);

/**
 * A member of a group. Its strings and data belong to the list. Anyone may have written them.
 */
typedef struct {
    /**
     * The name of its znode: the same for as long as it is a member, and never given again.
     */
    const char *id;
    /**
     * What it says of itself, not ended by a NUL.
     */
    const void *data;
    /**
     * How many bytes that are.
     */
    size_t len;
    /**
     * The session that it is on.
     */
    int64_t session_id;
    /**
     * The transaction that made its znode: those who join later have a larger one.
     */
    int64_t joined;
} zkl_member;

/**
 * Called with how an entering ended: `rc` as zkl_double_barrier_enter returns it, or ZKL_CANCELLED. With ZOK `entered` is the
 * program's, otherwise it is NULL. Must not throw.
 */
typedef void (*zkl_entered_fn)(int rc, zkl_entered *entered, void *userdata);

#ifdef __cplusplus
extern "C" {
#endif /* __cplusplus */

/**
 * The version of the library that the program runs with, such as `0.1.0`; `ZKL_VERSION` is the
 * header's.
 *
 * Any thread. Returns a string that lives as long as the program; never NULL.
 */
const char *zkl_version(void);

/**
 * The same as one number: major * 1000000 + minor * 1000 + patch. To be compared with
 * `ZKL_VERSION_NUMBER`, the header's.
 *
 * Any thread.
 */
int zkl_version_number(void);

/**
 * The version of ZooKeeper's C client that the library was built against, such as `3.8.0`.
 *
 * Any thread. Returns a string that lives as long as the program; never NULL.
 */
const char *zkl_c_client_version(void);

/**
 * What a code means, as one lowercase phrase: ZooKeeper's codes and zklock's.
 *
 * Any thread. Returns a string that lives as long as the program; never NULL, also for an unknown
 * code.
 */
const char *zkl_strerror(int code);

/**
 * Why the last function that failed on this thread did, with the path it was about: one line, for
 * people. Inside a `done` callback: why that acquire failed.
 *
 * Any thread. Returns a string that belongs to the library and is good until the next failure on
 * this thread; empty if nothing failed yet; never NULL.
 */
const char *zkl_last_error(void);

/**
 * Connects a session of its own and waits until a server has taken it, up to the connect timeout.
 *
 * `hosts` reads "host[:port][,host[:port]...][/chroot]"; the port defaults to 2181, IPv6 addresses
 * stand in brackets. `options` may be NULL: the defaults. Both are copied.
 *
 * After an expiry the client opens a new session by itself; the locks of the old one are lost.
 *
 * Any thread; blocks. On success `*client` is the program's: free it with zkl_client_free.
 *
 * ZOK; ZBADARGUMENTS for a NULL, hosts that can't be parsed, or bad options; ZOPERATIONTIMEOUT when
 * no server took the session in time, with what is wrong with each host in zkl_last_error; ZAUTHFAILED when
 * the identity was refused, -124 when the servers take only clients with one; ZSYSTEMERROR when there is no
 * thread or no descriptor to be had, with the limit in zkl_last_error; ZKL_WOULD_DEADLOCK inside a callback
 * of the C client.
 */
int zkl_client_connect(const char *hosts,
                       const zkl_client_options *options,
                       zkl_client **client);

/**
 * Works on a live handle of libzookeeper_mt that the program opened, connected or not, and goes on
 * using. The handle stays the program's: it is never closed by zklock, and its global watcher and
 * context stay as they are.
 *
 * - The client shares the handle's session, servers, chroot and identities. When that session is
 *   over, so is the client: zkl_client_follow takes it to the next handle.
 * - A `sync` goes to the server every tenth of the session timeout, to know that the session lives; and
 *   while a lock is held, a write that changes nothing every fifth.
 * - A session has one owner. A second handle on it (zookeeper_init with the client id of the first) can
 *   end it for both. Guards of the first say ZKL_HELD until a server closes their connection or refuses a
 *   request, usually for milliseconds; while they are cut off, for up to 0.95 of the session timeout.
 *   zkl_guard_token covers that.
 * - The program may free the client before or after zookeeper_close, in any order, from ordinary
 *   threads. When it closes the handle, everything on it is lost at once, and nothing of zklock
 *   touches it any more.
 * - Inside a callback of that handle zookeeper_close is allowed only after zkl_client_detach, or
 *   once the session has expired.
 * - What proves that the session lives comes through the handle's callbacks: a program that blocks
 *   them for longer than four tenths of the session timeout may lose its locks.
 * - A handle that is adopted inside one of its own callbacks is recognised after at most 2 seconds of
 *   waiting there (ZKL_WOULD_DEADLOCK). The completion of zoo_add_auth runs on a thread that can't
 *   be recognised: wait for nothing there.
 *
 * `zh` must be live until this returns. `options` may be NULL: the defaults; of its times only
 * operation_timeout_ms and tick_time_ms count here, and the others and auth_scheme have to be left out.
 *
 * Any thread, callbacks of the handle included; does not block: acquires wait for the connection. On
 * success `*client` is the program's: free it with zkl_client_free.
 *
 * ZOK; ZBADARGUMENTS for a NULL or bad options; ZINVALIDSTATE when the handle's session is over;
 * ZSYSTEMERROR when there is no thread to be had, with the limit in zkl_last_error.
 */
int zkl_client_adopt(struct _zhandle *zh,
                     const zkl_client_options *options,
                     zkl_client **client);

/**
 * Goes on with another handle of the program's, after an expiry say: what zkl_client_adopt did is done
 * again for `zh`, with the options that it was given, and the client's locks contend there from now on.
 *
 * What was made before stays where it was made. Guards of a session that is over stay lost, and what is
 * under way on it ends; free them as ever. Where the session before still lives, its guards stay held,
 * acquires under way go on there, and the handle is given back once those are gone.
 *
 * `zh` must be live until this returns. The handle before may be closed before or after this.
 *
 * Any thread, callbacks of either handle included; does not block: acquires wait for the connection.
 *
 * ZOK; ZBADARGUMENTS for a NULL, or a client with sessions of its own, which opens the next one by itself;
 * otherwise as zkl_client_adopt. On a failure the client stays as it was.
 */
int zkl_client_follow(const zkl_client *client,
                      struct _zhandle *zh);

/**
 * Lets go of an adopted handle, and of those before it, at once; or ends the client's own session. Its guards are lost,
 * acquires under way end with ZINVALIDSTATE or ZCLOSING, and its state is ZKL_CLOSED. It must still be freed.
 *
 * When this returns, nothing of zklock is inside an adopted handle or will touch it. What was held
 * on it stays in ZooKeeper until the handle's session ends: release guards first. Detaching again
 * does nothing.
 *
 * Any thread, callbacks included. If the client has its own session, this waits until a server has confirmed the end, up
 * to the operation timeout. Inside a callback of the C client the session ends in the background.
 *
 * ZOK: an adopted handle is free of zklock; of the client's own session, no lock is left (inside a callback of the C
 * client this is not known yet). ZCONNECTIONLOSS: no server has confirmed the end of the session, so its locks may stay
 * until it times out. ZBADARGUMENTS for NULL.
 */
int zkl_client_detach(const zkl_client *client);

/**
 * ZKL_CONNECTING, ZKL_CONNECTED, ZKL_SUSPENDED, ZKL_SESSION_LOST or ZKL_CLOSED, looked at now by the
 * local clock. Costs no request.
 *
 * Any thread. ZBADARGUMENTS for NULL.
 */
int zkl_client_state(const zkl_client *client);

/**
 * The session's id, as servers print it in hexadecimal; 0 while there is none, of a store other than ZooKeeper, and
 * for NULL.
 *
 * Any thread.
 */
int64_t zkl_client_session_id(const zkl_client *client);

/**
 * The session timeout that the server granted, or that the store was asked for, in milliseconds; 0 while there is no
 * session, and of `local:`.
 *
 * Any thread. ZBADARGUMENTS for NULL.
 */
int zkl_client_session_timeout_ms(const zkl_client *client);

/**
 * Frees the client. Locks, guards, attempts and recipes that were made of it may be freed before or after it: each keeps
 * what it needs. When the last of them is freed, the client's own session ends; an adopted handle is given back once the
 * claims that were released on it are gone. The call that frees the last waits for this, up to a second; the rest happens
 * in the background. To learn whether the session has ended, call zkl_client_detach first. A handle may be adopted any
 * number of times.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_client_free(zkl_client *client);

/**
 * Connects to the store with that address, whose locks are made, acquired and ended as those of ZooKeeper are:
 *
 * - "zookeeper://HOST:PORT,.../CHROOT": as zkl_client_connect;
 * - "redis://USER:PASSWORD@HOST:PORT/DATABASE", "postgres://..." and "mysql://..." (also MariaDB): a server;
 * - "sqlite:FILE": a file, for the processes of one machine;
 * - "local:": this process, whose threads it excludes, for tests; all of its clients are one, which is never closed.
 *
 * What the library was built without is refused by name. What a store can't do is refused where it is asked for; it is
 * known before by zkl_client_can. Counters, queues, groups, latches and barriers are ZooKeeper's alone; elections and locks
 * by key are locks, and every store has them. Of the options of a lock `acl` and `interop` count in ZooKeeper alone, and
 * elsewhere all strategies are fair queues. `docs/stores.md` says what each store promises.
 *
 * `options` may be NULL: the defaults. Where the store is not ZooKeeper only session_timeout_ms counts (how long a lock
 * outlives the crash of its holder, from 100 ms) and connect_timeout_ms, and the others have to be left out. Both are
 * copied.
 *
 * Any thread; blocks. On success `*client` is the program's: free it with zkl_client_free.
 *
 * ZOK; ZBADARGUMENTS for a NULL, what is no such address, a database that does not exist or is of another version, or
 * bad options; ZNOAUTH where the store does not take the user or the password; ZAPIERROR when a server can't be reached
 * for 3 s; ZOPERATIONTIMEOUT; ZSYSTEMERROR when there is no thread to be had; ZKL_WOULD_DEADLOCK inside a callback of
 * the C client; otherwise as zkl_client_connect. zkl_last_error shows no password.
 */
int zkl_store_connect(const char *address,
                      const zkl_client_options *options,
                      zkl_client **client);

/**
 * The name of the store that keeps a client's locks, as it stands in its address: "zookeeper", "redis", "postgres",
 * "mysql", "sqlite" or "local".
 *
 * Any thread. Returns a string that belongs to the library; NULL for NULL.
 */
const char *zkl_client_store(const zkl_client *client);

/**
 * What the store that keeps a client's locks can do: the sum of the ZKL_CAN_* that hold.
 *
 * Any thread. ZBADARGUMENTS for NULL.
 */
int zkl_client_can(const zkl_client *client);

/**
 * Makes a lock on a path. Sends nothing: what is missing of the path is made when the lock is
 * acquired. Every acquire contends for itself, also two of one program, of one session, of one
 * zkl_lock: a lock that is held is not acquired again by its holder, unless it is re-entrant: see
 * zkl_lock_reentrant.
 *
 * `path` is absolute, under the client's chroot; a lock whose last name begins with `zl-`, as those of zklock's own znodes
 * do, can be looked at, and its acquires fail with ZBADARGUMENTS. `options` may be NULL: a queue, no label, znodes
 * that everyone may change, one holder at a time. Both are copied.
 *
 * Any thread; does not block. On success `*lock` is the program's: free it with zkl_lock_free.
 *
 * ZOK; ZBADARGUMENTS for a NULL, a path that ZooKeeper does not allow, "/" with another strategy than
 * ZKL_QUEUE or for a semaphore, or bad options; ZINVALIDACL for an ACL that is empty or malformed.
 */
int zkl_lock_new(const zkl_client *client,
                 const char *path,
                 const zkl_lock_options *options,
                 zkl_lock **lock);

/**
 * The lock's path.
 *
 * Any thread. Returns a string that belongs to the lock; NULL for NULL.
 */
const char *zkl_lock_path(const zkl_lock *lock);

/**
 * Gives up the lock. Guards and attempts made from it go on. A guard that is held stays held.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_lock_free(zkl_lock *lock);

/**
 * Acquires the lock, waiting for it up to `timeout_ms` in all: ZKL_FOREVER waits as long as it
 * takes, 0 looks once.
 *
 * On connection loss it goes on: it waits for the next connection, looks up what became of its
 * claim, and keeps its place in the queue if the session survived. When it fails, no claim is left.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*guard` is the
 * program's: end it with zkl_guard_release or zkl_guard_free.
 *
 * ZOK; ZOPERATIONTIMEOUT when the time is over; ZBADARGUMENTS for a NULL or another negative
 * timeout; ZNODEEXISTS or ZNOCHILDRENFOREPHEMERALS when the path is something else than a lock of
 * this strategy; ZNOAUTH; ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED when the client is
 * closed and no session will follow; ZKL_WOULD_DEADLOCK inside a callback of the C client.
 */
int zkl_lock_acquire(const zkl_lock *lock,
                     int timeout_ms,
                     zkl_guard **guard);

/**
 * Acquires the lock if nobody is ahead: neither a holder nor, in a queue, a waiter. Waits only for
 * the servers' answers, up to the operation timeout.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*guard` is the
 * program's: end it with zkl_guard_release or zkl_guard_free.
 *
 * ZOK; ZKL_TAKEN; ZOPERATIONTIMEOUT when no server answers; otherwise as zkl_lock_acquire.
 */
int zkl_lock_try(const zkl_lock *lock, zkl_guard **guard);

/**
 * How many permits a semaphore has, for all who use it; where none has said so yet, what its options say.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks up to the operation timeout. Sets `*limit`.
 *
 * ZOK; ZBADARGUMENTS for a NULL, or a lock that is no semaphore; ZOPERATIONTIMEOUT when no server answers;
 * otherwise as zkl_lock_contenders.
 */
int zkl_lock_limit(const zkl_lock *lock,
                   int *limit);

/**
 * Sets how many permits a semaphore has, for all who use it. More are given to those who wait at once. When there are
 * fewer than are held, all who hold go on to, and others are let in when enough have released; an acquire of
 * more than there are fails with ZBADARGUMENTS.
 *
 * On connection loss it is repeated until it is certain.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks up to the operation timeout.
 *
 * ZOK; ZBADARGUMENTS for a NULL, a lock that is no semaphore, or a limit below 1; ZKL_OUTCOME_UNKNOWN; ZNOAUTH; otherwise as zkl_lock_contenders.
 */
int zkl_lock_set_limit(const zkl_lock *lock,
                       int limit);

/**
 * The same lock as a re-entrant one: a thread that holds it acquires it again at once, without a request, by each of the
 * functions that acquire; zkl_lock_acquire_async and zkl_lock_try_async do so for the thread that calls them. Other
 * threads wait, those of this process too. Where threads are not who holds (in an event loop, say), see
 * zkl_lock_as_owner.
 *
 * Each acquire gives a guard of its own, which is ended once, in any order and by any thread. All guards of a thread
 * have one token; each is notified of the loss; the last that is released or freed releases the lock, which others
 * return at once. While there are guards of a lock that was lost, an acquire gives ZKL_NOT_HELD: free them all first.
 *
 * Only what is made of one re-entrant lock knows of its holders: one zkl_lock for all threads, not one for each. A lock
 * that is re-entrant already gives another handle on it. Strategy, label, ACL and sharing are those of `lock`, which
 * stays as it is and contends beside it.
 *
 * Any thread; does not block. On success `*reentrant` is the program's: free it with zkl_lock_free.
 *
 * ZOK; ZBADARGUMENTS for a NULL.
 */
int zkl_lock_reentrant(const zkl_lock *lock,
                       zkl_lock **reentrant);

/**
 * A re-entrant lock as one more owner has it, who is no thread: a request, a task, a connection. Whoever acquires by
 * `*owner` acquires for that owner, from any thread. Owners exclude each other, and threads that acquire by
 * `reentrant`. Guards of it stay when it is freed.
 *
 * Any thread; does not block. On success `*owner` is the program's: free it with zkl_lock_free.
 *
 * ZOK; ZBADARGUMENTS for a NULL, or a lock that is not re-entrant.
 */
int zkl_lock_as_owner(const zkl_lock *reentrant,
                      zkl_lock **owner);

/**
 * How many guards the owner of this one has of the lock, and acquires that are about to give one: 1 of a lock that is
 * not re-entrant, 0 of a guard that is given up.
 *
 * Any thread. ZBADARGUMENTS for NULL.
 */
int zkl_guard_holds(const zkl_guard *guard);

/**
 * Asks a holder, of a list of zkl_lock_holder or zkl_lock_contenders, to release the lock. Nothing happens to it but
 * that its program hears of it, if it listens: zkl_guard_on_release_request. `reason` is one line of up to 256
 * characters. The session needs the permission WRITE on the claim's znode.
 *
 * On connection loss it is repeated until it is certain.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks up to the operation timeout.
 *
 * ZOK; ZNOTHING when that holder holds it no more; ZBADARGUMENTS for a NULL, or for a claim of another library, which
 * would not read it; ZKL_OUTCOME_UNKNOWN when no server has confirmed it in time; ZNOAUTH; otherwise as
 * zkl_lock_contenders.
 */
int zkl_lock_request_release(const zkl_lock *lock,
                             const zkl_contender *holder,
                             const char *reason);

/**
 * Breaks the hold of a holder, of a list of zkl_lock_holder or zkl_lock_contenders, and waits for up to `timeout_ms`
 * until its claim is gone. Its guard is ZKL_LOST, with ZKL_LOST_BROKEN, before another can hold the lock: its own
 * library deletes the claim after that, when its program ends the guard, and after `grace_ms` in any case. A holder that
 * can't be reached loses its session instead. The session needs the permission WRITE on the claim's znode.
 *
 * On connection loss it goes on, also with the next session.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK; ZNOTHING when that holder held it no more before; ZBADARGUMENTS for a NULL, a negative `grace_ms`, another
 * negative timeout, or a claim of another library, which would not read it; ZKL_OUTCOME_UNKNOWN when the time is over: the
 * hold may be broken later; ZNOAUTH; otherwise as zkl_lock_contenders.
 */
int zkl_lock_break_hold(const zkl_lock *lock,
                        const zkl_contender *holder,
                        const char *reason,
                        int grace_ms,
                        int timeout_ms);

/**
 * Asks for a call of `requested` whenever somebody asks for the lock to be released, as zkl_lock_request_release and
 * `zklock ask` do: on zklock's callback thread of the client, and at once if somebody has asked already. The lock stays
 * held, whatever is asked. The rules of zkl_guard_on_lost apply to `finalizer`, to what `requested` may do, and to the end of
 * the guard.
 *
 * Any thread, callbacks included; does not block.
 *
 * ZOK; ZBADARGUMENTS for a NULL guard or requested; ZSYSTEMERROR when there is no thread to be had.
 */
int zkl_guard_on_release_request(const zkl_guard *guard,
                                 zkl_request_fn requested,
                                 void *userdata,
                                 zkl_finalizer_fn finalizer);

/**
 * Begins to acquire the lock, and returns. `done` is called exactly once, on zklock's callback thread
 * of the client, with the outcome; `finalizer`, if there is one, after it. They may be called before
 * this returns. When this returns an error, neither is called.
 *
 * `done` may block and may call any function of zklock. Callbacks of one client come one after the
 * other. The attempt goes on when the lock and the client are freed; it ends by its outcome, by
 * zkl_attempt_cancel, or with ZINVALIDSTATE or ZCLOSING when the client is detached or the adopted
 * handle closed. On connection loss it goes on as zkl_lock_acquire does.
 *
 * `timeout_ms`: as in zkl_lock_acquire. `userdata` is passed on as it is. `attempt` may be NULL;
 * otherwise `*attempt`, written before `done` can run, is the program's: free it with
 * zkl_attempt_free.
 *
 * `done` may be NULL if `attempt` is not NULL and `finalizer` is. Nothing is called then: wait for the
 * descriptor of zkl_attempt_fd, and get the outcome from zkl_attempt_take.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK when it has begun; ZBADARGUMENTS for a NULL lock, a NULL done where it may not be, or a negative
 * timeout other than ZKL_FOREVER; ZSYSTEMERROR when there is no thread to be had. Everything else is
 * the outcome.
 */
int zkl_lock_acquire_async(const zkl_lock *lock,
                           int timeout_ms,
                           zkl_done_fn done,
                           void *userdata,
                           zkl_finalizer_fn finalizer,
                           zkl_attempt **attempt);

/**
 * A file descriptor that becomes readable (POLLIN) when the attempt has ended, for poll, epoll and event
 * loops: by its outcome, by its limit, by zkl_attempt_cancel, or with its client. It stays readable.
 *
 * It belongs to the attempt, is closed with it, and is the same at every call: the program must
 * neither read nor close it, and must take it out of its event loop before it frees the attempt. An
 * attempt with a `done` has one too, readable before `done` is called.
 *
 * Any thread, callbacks included; does not block.
 *
 * ZOK; ZBADARGUMENTS for a NULL; ZSYSTEMERROR when there is no descriptor to be had.
 */
int zkl_attempt_fd(const zkl_attempt *attempt,
                   int *fd);

/**
 * Takes the outcome of an acquire that was begun without a `done`, once. The attempt must still be freed.
 *
 * Any thread, callbacks included; does not block. With ZOK `*guard` is the program's: end it with
 * zkl_guard_release or zkl_guard_free.
 *
 * ZKL_PENDING while it has not ended; ZOK; ZKL_CANCELLED; ZNOTHING when the outcome was taken before;
 * ZBADARGUMENTS for a NULL, or an attempt with a `done`; otherwise as zkl_lock_acquire.
 */
int zkl_attempt_take(const zkl_attempt *attempt,
                     zkl_guard **guard);

/**
 * Gives an acquire up, or whatever else waits for others. After ZOK, the outcome is ZKL_CANCELLED, and no claim is
 * left. Does not wait for that.
 *
 * Any thread, callbacks included.
 *
 * ZOK, also when it was cancelled before; ZNOTHING when `done` has been called or is being called, or
 * the outcome was taken; ZBADARGUMENTS for NULL.
 */
int zkl_attempt_cancel(const zkl_attempt *attempt);

/**
 * Frees the handle on an attempt, and closes its descriptor. An attempt with a `done` goes on: this alone does not
 * cancel it. One without is cancelled, unless its outcome was taken. Does not wait, unless this was the last of its
 * client: see zkl_client_free.
 *
 * Any thread, callbacks included (its own `done` among them). NULL is allowed.
 */
void zkl_attempt_free(zkl_attempt *attempt);

/**
 * Who holds the lock: a list of one entry, or of none.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks up to the operation timeout. On
 * success `*contenders` is the program's: free it with zkl_contenders_free.
 *
 * ZOK; ZBADARGUMENTS for a NULL; ZOPERATIONTIMEOUT or ZCONNECTIONLOSS when no server answers; ZNOAUTH;
 * ZINVALIDSTATE, ZSESSIONEXPIRED or ZAUTHFAILED when the client is closed; ZKL_WOULD_DEADLOCK inside
 * a callback of the C client.
 */
int zkl_lock_holder(const zkl_lock *lock,
                    zkl_contenders **contenders);

/**
 * Who holds the lock, and behind it who waits, in their order. Waiters are known only in a queue:
 * those of the other strategies leave no znode.
 *
 * Threads, ownership and codes: as zkl_lock_holder.
 */
int zkl_lock_contenders(const zkl_lock *lock, zkl_contenders **contenders);

/**
 * How many entries the list has; 0 for NULL.
 *
 * Any thread.
 */
size_t zkl_contenders_count(const zkl_contenders *contenders);

/**
 * The entry at `index`, counted from 0; NULL beyond the end, and for NULL. It belongs to the list.
 *
 * Any thread.
 */
const zkl_contender *zkl_contenders_get(const zkl_contenders *contenders, size_t index);

/**
 * Frees the list, with its entries and their strings.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_contenders_free(zkl_contenders *contenders);

/**
 * ZKL_HELD, ZKL_SUSPENDED or ZKL_LOST, looked at now by the local clock. Costs no request.
 *
 * While it says ZKL_HELD, no other client holds the lock: it turns to ZKL_LOST before the servers can
 * let anyone else in (where nobody deletes the lock's znode by hand, and `tick_time_ms` of
 * `zkl_client_options` is heeded). But time passes between a look and the write that follows it. What must be safe even then is done with zkl_guard_token or zkl_guard_set.
 *
 * Any thread. ZBADARGUMENTS for NULL.
 */
int zkl_guard_state(const zkl_guard *guard);

/**
 * Why the lock is lost: ZKL_LOST_SESSION, ZKL_LOST_DELETED or ZKL_LOST_BROKEN; 0 when it is not lost. Looked at now by
 * the local clock.
 *
 * Any thread. ZBADARGUMENTS for NULL.
 */
int zkl_guard_lost_reason(const zkl_guard *guard);

/**
 * The fencing token: a number above 0 that grows with every acquire of this lock, whoever acquires it
 * (the czxid of the lock's znode). A store that remembers the largest token it has seen, and refuses
 * smaller ones, can't be written to by a holder that has lost the lock unnoticed.
 *
 * Any thread. ZBADARGUMENTS for NULL.
 */
int64_t zkl_guard_token(const zkl_guard *guard);

/**
 * The lock's path; of a multi-lock that of the first lock.
 *
 * Any thread. Returns a string that belongs to the guard, and stays as long as that; NULL for NULL.
 */
const char *zkl_guard_path(const zkl_guard *guard);

/**
 * Writes the path of the claim's znode, with a NUL, to `buffer`: as much of it as `size` bytes take. Returns the length
 * of the whole path without the NUL. An upgrade or a downgrade may change the path. It is that of the first lock of a
 * multi-lock, and empty for NULL and for a guard that was released.
 *
 * Any thread. `buffer` may be NULL if `size` is 0.
 *
 * # Safety
 * `buffer` has room for `size` bytes.
 */
size_t zkl_guard_claim_path(const zkl_guard *guard,
                            char *buffer,
                            size_t size);

/**
 * Asks for a call of `lost` when the lock is lost: at most once, on zklock's callback thread of the
 * client, never for a release, and at once if it is lost already. `finalizer`, if there is one, is
 * called once in any case, on that thread: after `lost`, or when the guard ends. When this returns an
 * error, neither is called.
 *
 * A lost session is reported before the servers can let anyone else in. That somebody deleted the znode
 * is reported only after the fact, and once the lock has been held for about 100 ms.
 *
 * `lost` may block and may call any function of zklock; it may free the guard. Callbacks of one client
 * come one after the other: one that blocks holds up those behind it. Once zkl_guard_release or
 * zkl_guard_free has been called, `lost` is not begun any more, but one that has begun may still run.
 * It may be asked for several times, each for itself.
 *
 * Any thread, callbacks included; does not block.
 *
 * ZOK; ZBADARGUMENTS for a NULL guard or lost; ZSYSTEMERROR when there is no thread to be had.
 */
int zkl_guard_on_lost(const zkl_guard *guard,
                      zkl_lost_fn lost,
                      void *userdata,
                      zkl_finalizer_fn finalizer);

/**
 * Waits until the lock is lost, up to `timeout_ms`: ZKL_FOREVER waits as long as it takes, 0 looks
 * once.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. Nobody may free or release the
 * guard meanwhile.
 *
 * ZOK when it is lost; ZOPERATIONTIMEOUT when it is not; ZBADARGUMENTS for NULL or another negative
 * timeout; ZKL_WOULD_DEADLOCK inside a callback of the C client, unless the timeout is 0.
 */
int zkl_guard_wait_lost(const zkl_guard *guard,
                        int timeout_ms);

/**
 * A file descriptor that becomes readable (POLLIN) when the lock is lost, for poll, epoll and event
 * loops. It belongs to the guard, is closed with it, and is the same at every call: the program must
 * neither read nor close it, and must take it out of its event loop before it ends the guard. See
 * zkl_guard_on_lost for when that is called.
 *
 * Any thread, callbacks included; does not block.
 *
 * ZOK; ZBADARGUMENTS for a NULL; ZSYSTEMERROR when there is no descriptor to be had.
 */
int zkl_guard_fd(const zkl_guard *guard,
                 int *fd);

/**
 * A file descriptor that becomes readable (POLLIN) with each change of the guard's state, and is so from the
 * beginning: zkl_guard_take_state gives the state, and makes it unreadable until the next change. It belongs to the
 * guard as that of zkl_guard_fd does.
 *
 * Any thread, callbacks included; does not block.
 *
 * ZOK; ZBADARGUMENTS for a NULL; ZSYSTEMERROR when there is no descriptor to be had.
 */
int zkl_guard_state_fd(const zkl_guard *guard,
                       int *fd);

/**
 * As zkl_guard_state; and the descriptor of zkl_guard_state_fd is readable again at the next change only.
 *
 * Any thread, callbacks included. ZBADARGUMENTS for NULL.
 */
int zkl_guard_take_state(const zkl_guard *guard);

/**
 * Replaces the data of a znode, in one transaction with the proof that the lock is still held: when
 * it is not, nothing is written. Waits for the outcome, up to the operation timeout.
 *
 * `path` is the znode to write, `data` its new data of `len` bytes (NULL only with 0). `version` is the
 * version its data must have, -1 for any. `stat` may be NULL; otherwise it gets the znode's new stat.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK; ZKL_NOT_HELD; ZNONODE when there is no such znode; ZBADVERSION; ZNOAUTH; ZBADARGUMENTS for a
 * NULL, a path that ZooKeeper does not allow, a version below -1, or more data than a request takes;
 * ZKL_WOULD_DEADLOCK inside a callback of the C client. ZKL_OUTCOME_UNKNOWN: read the
 * znode.
 */
int zkl_guard_set(const zkl_guard *guard,
                  const char *path,
                  const void *data,
                  size_t len,
                  int version,
                  struct Stat *stat);

/**
 * Releases the lock and waits until that is confirmed. Frees the guard, whatever it returns.
 *
 * The deletion of the lock's znode is repeated until it, or the session, is gone; without a
 * connection this waits for the next one, for no longer than the session can be trusted: it ends
 * within the session timeout, and at once when the lock is lost. To wait for less, use
 * zkl_guard_release_within; to wait for nothing, zkl_guard_free.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK, also for a leadership that was handed over; ZSESSIONEXPIRED when the session was lost before the release, and ZNONODE when somebody had
 * deleted the znode: others may have held the lock meanwhile. ZNOAUTH when the session has no DELETE
 * permission on the lock's directory: the lock stays until the session ends; a client with a session of
 * its own ends that, and opens another, as soon as it holds no other lock. ZINVALIDSTATE, ZCLOSING or
 * ZKL_OUTCOME_UNKNOWN when the client was detached. ZBADARGUMENTS for NULL. ZKL_WOULD_DEADLOCK inside a callback of the C client:
 * it is released in the background then.
 */
int zkl_guard_release(zkl_guard *guard);

/**
 * As zkl_guard_release, but waits no longer than `timeout_ms`: ZKL_FOREVER as zkl_guard_release, 0 not
 * at all. Frees the guard, whatever it returns.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * As zkl_guard_release, and ZKL_OUTCOME_UNKNOWN when no server has confirmed it in time: it goes on in
 * the background. ZBADARGUMENTS for another negative timeout: it is released in the background then.
 */
int zkl_guard_release_within(zkl_guard *guard,
                             int timeout_ms);

/**
 * Releases the lock in the background, and frees the guard: the deletion of the lock's znode is submitted
 * now, and repeated until it, or the session, is gone, for as long as the process lives; see "The end of
 * the process". Does not wait, unless this was the last of its client: see zkl_client_free.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_guard_free(zkl_guard *guard);

/**
 * What a guard of a read/write lock leaves to others now: ZKL_READ, ZKL_UPGRADEABLE or ZKL_WRITE; ZKL_EXCLUSIVE of any
 * other lock. Costs no request.
 *
 * Any thread. ZBADARGUMENTS for NULL; ZKL_NOT_HELD for a guard that is given up.
 */
int zkl_guard_access(const zkl_guard *guard);

/**
 * Turns the hold of an upgradeable reader (ZKL_UPGRADEABLE) into a writer's, without a moment in which it is not held.
 * Waits until the readers that hold have released, up to `timeout_ms`: ZKL_FOREVER waits as long as it takes. Nobody new comes in
 * meanwhile, neither readers that come later nor a writer that waited before. Of a writer it does nothing. The
 * fencing token stays what it is.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. Nobody may free or release the guard meanwhile.
 *
 * ZOK; ZOPERATIONTIMEOUT when the time is over: the hold is what it was, and nothing is left behind. ZKL_NOT_HELD when
 * the lock is lost; ZBADARGUMENTS for NULL, another negative timeout, a plain reader, another lock than a
 * read/write lock, and a guard that is one of several of a claim; ZINVALIDSTATE while another thread changes it; ZKL_WOULD_DEADLOCK
 * inside a callback of the C client; otherwise as zkl_lock_acquire.
 */
int zkl_guard_upgrade(const zkl_guard *guard,
                      int timeout_ms);

/**
 * Turns a writer's hold into an upgradeable reader's or a reader's, or an upgradeable reader's into a reader's, without a
 * moment in which it is not held: `to` is ZKL_UPGRADEABLE or ZKL_READ. It keeps its place in the queue: those
 * readers come in that wait directly behind it; a writer that waits is not passed. The fencing token stays what
 * it is.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks up to `timeout_ms`. Nobody may free or release the
 * guard meanwhile.
 *
 * ZOK, also when it is that already; ZKL_OUTCOME_UNKNOWN when no server has confirmed it in time: zkl_guard_access says what
 * it is. ZKL_NOT_HELD when the lock is lost; ZBADARGUMENTS for NULL, a negative timeout but ZKL_FOREVER, another `to`, of a reader
 * that is to become upgradeable, and otherwise as zkl_guard_upgrade.
 */
int zkl_guard_downgrade(const zkl_guard *guard,
                        int to,
                        int timeout_ms);

/**
 * As zkl_lock_try, without waiting: `done` is called exactly once, on zklock's callback thread of the client, with
 * what zkl_lock_try would have returned and given; `finalizer`, if there is one, after it. They may be called before
 * this returns. When this returns an error, neither is called.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK when it has begun; ZBADARGUMENTS for a NULL lock or done; ZSYSTEMERROR when there is no thread to be had.
 */
int zkl_lock_try_async(const zkl_lock *lock,
                       zkl_done_fn done,
                       void *userdata,
                       zkl_finalizer_fn finalizer);

/**
 * As zkl_lock_contenders, without waiting, and no more than the first `most` of them: 1 is the holder alone, as of
 * zkl_lock_holder. Of `done` and `finalizer` the same holds as of zkl_lock_try_async.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK when it has begun; ZBADARGUMENTS for a NULL lock or done; ZSYSTEMERROR when there is no thread to be had.
 */
int zkl_lock_contenders_async(const zkl_lock *lock,
                              size_t most,
                              zkl_contenders_fn done,
                              void *userdata,
                              zkl_finalizer_fn finalizer);

/**
 * As zkl_guard_set, without waiting: the write is submitted when this returns. Of `done` and `finalizer` the same
 * holds as of zkl_lock_try_async.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK when it has begun; ZBADARGUMENTS for a NULL guard, path or done, or a version below -1; ZSYSTEMERROR
 * when there is no thread to be had. Everything else is reported by `done`.
 */
int zkl_guard_set_async(const zkl_guard *guard,
                        const char *path,
                        const void *data,
                        size_t len,
                        int version,
                        zkl_written_fn done,
                        void *userdata,
                        zkl_finalizer_fn finalizer);

/**
 * As zkl_guard_release_within, without waiting: the release is submitted when this returns, and the guard freed, also
 * when this returns an error. Of `done` and `finalizer` the same holds as of zkl_lock_try_async.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK when it has begun; ZBADARGUMENTS for NULL or another negative timeout, ZSYSTEMERROR when there is no thread
 * to be had: it is released in the background then. Everything else is reported by `done`.
 */
int zkl_guard_release_async(zkl_guard *guard,
                            int timeout_ms,
                            zkl_result_fn done,
                            void *userdata,
                            zkl_finalizer_fn finalizer);

/**
 * Makes one of several locks, which are acquired together: all, or none. Sends nothing. They may be of any sharing,
 * re-entrant, or of a key; no two on one path, and all of one client. At least one.
 *
 * Locks in queues get all their claims by one transaction. So in every queue two that are acquired together, or one of
 * them alone, stand in the same order, whatever order they are given in: nobody can wait for each other. Locks with another
 * strategy, and re-entrant ones, are acquired before that, one after the other in the order of their paths.
 *
 * `locks` is an array of `count` locks, which are copied, and may be freed.
 *
 * Any thread; does not block. On success `*multi` is the program's: free it with zkl_multi_lock_free.
 *
 * ZOK; ZBADARGUMENTS for a NULL, also in the array, no locks, locks of several clients, or two on one path.
 * ZINVALIDSTATE in the child of a fork.
 */
int zkl_multi_lock_new(const zkl_lock *const *locks,
                       size_t count,
                       zkl_multi_lock **multi);

/**
 * Gives it up. Guards and attempts made from it go on.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_multi_lock_free(zkl_multi_lock *multi);

/**
 * Acquires all of the locks, up to `timeout_ms` in all, as zkl_lock_acquire does one. One guard stands for all: its
 * state is the worst of theirs, it is lost when one of them is, and zkl_guard_set writes only while all are held.
 * zkl_guard_token_of has the token of each.
 *
 * On connection loss it goes on; all claims are looked up, and all are there, or none. When it fails, no claim is
 * left. `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*guard` is the program's: end it with
 * zkl_guard_release or zkl_guard_free, which release all.
 *
 * ZOK; otherwise as zkl_lock_acquire, of any of the locks.
 */
int zkl_multi_lock_acquire(const zkl_multi_lock *multi,
                           int timeout_ms,
                           zkl_guard **guard);

/**
 * Acquires all of the locks if nobody is ahead at any. Waits only for the servers' answers, up to the operation
 * timeout. `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*guard` is the program's: end it with
 * zkl_guard_release or zkl_guard_free.
 *
 * ZOK; ZKL_TAKEN, and nothing is left; otherwise as zkl_lock_try, of any of the locks.
 */
int zkl_multi_lock_try(const zkl_multi_lock *multi,
                       zkl_guard **guard);

/**
 * Begins to acquire all of the locks, and returns. All else is as of zkl_lock_acquire_async, a NULL `done` included.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK when it has begun; otherwise as zkl_lock_acquire_async.
 */
int zkl_multi_lock_acquire_async(const zkl_multi_lock *multi,
                                 int timeout_ms,
                                 zkl_done_fn done,
                                 void *userdata,
                                 zkl_finalizer_fn finalizer,
                                 zkl_attempt **attempt);

/**
 * The number of locks that the guard covers: more than 1 only for a multi-lock, 0 for NULL.
 *
 * Any thread.
 */
size_t zkl_guard_locks(const zkl_guard *guard);

/**
 * The fencing token of one of the guard's locks, which are counted from 0 in the order in which zkl_multi_lock_new was
 * given them: see zkl_guard_token, which gives that of the first. Where all are in queues, all are the same: the number
 * of the transaction that made the claims.
 *
 * Any thread. ZBADARGUMENTS for NULL, and beyond the last.
 */
int64_t zkl_guard_token_of(const zkl_guard *guard,
                           size_t index);

/**
 * The path of one of the guard's locks: see zkl_guard_token_of.
 *
 * Any thread. Returns a string that belongs to the guard; NULL for NULL, and beyond the last.
 */
const char *zkl_guard_path_of(const zkl_guard *guard, size_t index);

/**
 * Makes the lock of a key, of which there may be very many below one path: an order or a user each. It is a lock as one of
 * zkl_lock_new, but nothing is left of it on the servers when nobody holds it or waits for it: its znode (`key-` and the
 * key, below `path`) is made and deleted each time, which costs some requests more. Sends nothing.
 *
 * `key` is `len` bytes of any kind (NULL only with 0). `path` is absolute, under the client's chroot, and has nothing but
 * such locks below it. `options` may be NULL; strategy and sharing have to be the defaults. All are copied.
 *
 * Any thread; does not block. On success `*lock` is the program's: free it with zkl_lock_free.
 *
 * ZOK; ZBADARGUMENTS for a NULL, a path that ZooKeeper does not allow, or bad options; ZINVALIDACL for an ACL that is empty
 * or malformed; ZINVALIDSTATE in the child of a fork. A path and a key that make more than a request takes are refused
 * when the lock is acquired, with ZBADARGUMENTS.
 */
int zkl_lock_of_key(const zkl_client *client,
                    const char *path,
                    const void *key,
                    size_t len,
                    const zkl_lock_options *options,
                    zkl_lock **lock);

/**
 * Ends the calls: none is begun any more, but one that has begun may still run. What was given for `userdata` is
 * finalized after that. Does not wait for it.
 *
 * Any thread, callbacks included (its own among them). NULL is allowed.
 */
void zkl_watch_free(zkl_watch *watch);

/**
 * Makes an election at a path. Sends nothing. Whoever campaigns takes part; the first to come leads, and the next one in
 * the order of their coming when it resigns, dies or loses its session. An election is a lock whose holder leads: that of
 * a zkl_lock in a queue with that path takes part, too.
 *
 * `path` is absolute, under the client's chroot. `options` may be NULL; of them `label` is what this participant says
 * of itself, and `acl` counts; strategy and sharing have to be the defaults. All are copied.
 *
 * Any thread; does not block. On success `*election` is the program's: free it with zkl_election_free.
 *
 * ZOK; ZBADARGUMENTS for a NULL, a path that ZooKeeper does not allow, or bad options; ZINVALIDACL for an ACL that is
 * empty or malformed. ZINVALIDSTATE in the child of a fork.
 */
int zkl_election_new(const zkl_client *client,
                     const char *path,
                     const zkl_lock_options *options,
                     zkl_election **election);

/**
 * Gives up the election. Who leads goes on to, and so do attempts and watches.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_election_free(zkl_election *election);

/**
 * Takes part until this participant leads, up to `timeout_ms` in all: ZKL_FOREVER waits as long as it takes, 0 looks
 * once.
 *
 * Who has the guard leads for as long as it says ZKL_HELD, which ends before another can lead. Its token is the term,
 * which is larger than that of every leader before; zkl_guard_on_lost calls, and zkl_guard_fd becomes readable, when the
 * leadership is lost; zkl_guard_set writes only while it leads; zkl_guard_release and zkl_guard_free resign.
 *
 * On connection loss it goes on, as zkl_lock_acquire. When it fails, it takes no part. `pthread_cancel` waits until it
 * has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*guard` is the program's: end it with
 * zkl_guard_release or zkl_guard_free.
 *
 * ZOK; otherwise as zkl_lock_acquire. ZINVALIDSTATE in the child of a fork.
 */
int zkl_election_campaign(const zkl_election *election,
                          int timeout_ms,
                          zkl_guard **guard);

/**
 * Begins to take part, and returns; `done` is called when this participant leads. All else is as of
 * zkl_lock_acquire_async, a NULL `done` included; zkl_attempt_cancel ends the participation.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK when it has begun; otherwise as zkl_lock_acquire_async.
 */
int zkl_election_campaign_async(const zkl_election *election,
                                int timeout_ms,
                                zkl_done_fn done,
                                void *userdata,
                                zkl_finalizer_fn finalizer,
                                zkl_attempt **attempt);

/**
 * Resigns in favour of a participant, of a list of zkl_election_participants, and waits up to `timeout_ms` until it
 * leads: the others whose turn it would be before give way to it, once each, and take part behind it. The guard stays the
 * program's, whatever this returns. Once it has resigned, the guard says ZKL_LOST, with 0 for the reason: `lost`
 * callbacks do not come, and zkl_guard_release gives ZOK.
 *
 * There are never two leaders, and terms grow, whatever fails: who leads is decided by the claims alone. Where the chosen
 * one dies or leaves, the next whose turn it is leads. Participants that acquire the lock itself, without an election, do
 * not give way.
 *
 * On connection loss it goes on while the session lives. `pthread_cancel` waits until it has ended. In the child of a
 * fork nothing is done.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. Nobody may free or release the guard meanwhile.
 *
 * ZOK when the chosen one leads. ZNOTHING when it has left: where zkl_guard_state says ZKL_HELD, it had left before, and
 * this one goes on to lead; otherwise the next one leads. ZKL_NOT_HELD when the leadership was lost before.
 * ZOPERATIONTIMEOUT when the time is over, and ZSESSIONEXPIRED, ZCLOSING or another failure of a guard that is ZKL_LOST:
 * the chosen one may come to lead yet. ZBADARGUMENTS for a NULL, a guard of something else, or another negative timeout;
 * otherwise as zkl_lock_acquire, and nothing was done.
 */
int zkl_election_hand_over(const zkl_election *election,
                           const zkl_guard *guard,
                           const zkl_contender *to,
                           int timeout_ms);

/**
 * As zkl_election_hand_over, without waiting: `done` is called exactly once, on zklock's callback thread of the client,
 * with what that would have returned; `finalizer`, if there is one, after it. They may be called before this returns.
 * When this returns an error, neither is called. The guard may be released or freed meanwhile.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK when it has begun; ZBADARGUMENTS for a NULL election, guard, to or done, a guard of something else, or another
 * negative timeout; ZKL_NOT_HELD for a guard that is given up; ZSYSTEMERROR when there is no thread to be had.
 * Everything else is reported by `done`.
 */
int zkl_election_hand_over_async(const zkl_election *election,
                                 const zkl_guard *guard,
                                 const zkl_contender *to,
                                 int timeout_ms,
                                 zkl_result_fn done,
                                 void *userdata,
                                 zkl_finalizer_fn finalizer);

/**
 * Who leads: a list of one entry, whose token is the term, or of none.
 *
 * Threads, ownership and codes: as zkl_lock_holder. `pthread_cancel` waits until it has ended; ZINVALIDSTATE in the child
 * of a fork.
 */
int zkl_election_leader(const zkl_election *election,
                        zkl_contenders **leader);

/**
 * Who takes part, in the order in which they will lead: the first of them does.
 *
 * Threads, ownership and codes: as zkl_lock_holder. `pthread_cancel` waits until it has ended; ZINVALIDSTATE in the child
 * of a fork.
 */
int zkl_election_participants(const zkl_election *election,
                              zkl_contenders **participants);

/**
 * Asks for a call of `changed` with who leads, now and whenever that has changed: a list of one entry, or of none, which
 * is the program's to free. It takes no part. A leader that came and went between two calls is left out; the next call
 * comes when the one before has returned. Of a hand-over it may show those for a moment who are passed by.
 *
 * Calls come on zklock's callback thread of the client until `*watch` is freed, which runs `finalizer`. On connection loss
 * they go on with the next connection or session. With another code than ZOK, and NULL for the list, it has ended: the
 * servers refuse it, or ZINVALIDSTATE, ZCLOSING or ZSESSIONEXPIRED, the client is closed; that of an adopted handle also
 * when its session is over (ask again after zkl_client_follow). `finalizer` runs after that, too.
 *
 * It keeps the client's session as a guard does, until it is freed. In the child of a fork nothing is called.
 *
 * Any thread, callbacks included; does not block. On success `*watch`, written before `changed` can run, is the program's:
 * end it with zkl_watch_free.
 *
 * ZOK; ZBADARGUMENTS for a NULL election, changed or watch; ZSYSTEMERROR when there is no thread to be had;
 * ZINVALIDSTATE in the child of a fork.
 */
int zkl_election_observe(const zkl_election *election,
                         zkl_contenders_fn changed,
                         void *userdata,
                         zkl_finalizer_fn finalizer,
                         zkl_watch **watch);

/**
 * Makes a counter at a path. Sends nothing. It is a persistent znode with the number in decimal digits; one that is
 * missing, or has no data, counts as 0. The first change makes it, and those above it.
 *
 * `path` is absolute, under the client's chroot. `options` may be NULL: the defaults. Both are copied.
 *
 * Any thread; does not block. On success `*counter` is the program's: free it with zkl_counter_free.
 *
 * ZOK; ZBADARGUMENTS for a NULL, a path that ZooKeeper does not allow, or bad options; ZINVALIDACL for an ACL that is
 * empty or malformed. ZINVALIDSTATE in the child of a fork.
 */
int zkl_counter_new(const zkl_client *client,
                    const char *path,
                    const zkl_recipe_options *options,
                    zkl_counter **counter);

/**
 * Frees the counter. Its number stays.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_counter_free(zkl_counter *counter);

/**
 * Reads the number; not older than the call. Waits up to `timeout_ms`, or ZKL_FOREVER.
 *
 * On connection loss it is read again. `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. Sets `*value`.
 *
 * ZOK; ZBADARGUMENTS for a NULL, another negative timeout, or a znode whose data are no number; ZOPERATIONTIMEOUT when no
 * server answers; ZNOAUTH; ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED when the client is closed, the first
 * also in the child of a fork; ZKL_WOULD_DEADLOCK inside a callback of the C client.
 */
int zkl_counter_get(const zkl_counter *counter,
                    int timeout_ms,
                    int64_t *value);

/**
 * Sets the number, whatever it was. Waits up to `timeout_ms`, or ZKL_FOREVER.
 *
 * On connection loss it waits for the next connection, and finds out there whether it was done: it is never done twice.
 * `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK. ZCONNECTIONLOSS, ZOPERATIONTIMEOUT and ZCLOSING leave it unknown whether it was done: the session ended before
 * that could be found out, no server was reached for long, the servers allow no znodes under /zklock/receipts, or the
 * time is over. ZBADVERSION when other clients were faster a hundred times, and nothing was done. Otherwise as
 * zkl_counter_get, and nothing was done.
 */
int zkl_counter_set(const zkl_counter *counter,
                    int64_t value,
                    int timeout_ms);

/**
 * Adds to the number, or subtracts, if that is negative. `after` may be NULL; otherwise it gets what it is after that.
 *
 * Threads, waiting and codes: as zkl_counter_set; ZBADARGUMENTS, and nothing was done, also where 64 bits do not hold the
 * sum.
 */
int zkl_counter_add(const zkl_counter *counter,
                    int64_t number,
                    int timeout_ms,
                    int64_t *after);

/**
 * As zkl_counter_add, but `before` gets what it was before that: a number that nobody else gets, where all add by this
 * with a positive one.
 */
int zkl_counter_get_and_add(const zkl_counter *counter,
                            int64_t number,
                            int timeout_ms,
                            int64_t *before);

/**
 * Sets the number to `value` if it is `expected`. Sets `*before` to what it was: it was set exactly if that is
 * `expected`.
 *
 * Threads, waiting and codes: as zkl_counter_set. ZOK also where it was another number, and nothing was done.
 */
int zkl_counter_compare_and_set(const zkl_counter *counter,
                                int64_t expected,
                                int64_t value,
                                int timeout_ms,
                                int64_t *before);

/**
 * Makes a queue of work at a path: each element that is put is delivered at least once, to one consumer at a time. Sends
 * nothing. Elements are persistent znodes, as zoo_queue.h has them; who works on one has a claim beside the queue (in
 * `zl-claims-NAME`). It is for hundreds of elements, not for a million.
 *
 * `path` is absolute, under the client's chroot. `options` may be NULL: the defaults. Both are copied.
 *
 * Any thread; does not block. On success `*queue` is the program's: free it with zkl_queue_free.
 *
 * ZOK; ZBADARGUMENTS for a NULL, a path that ZooKeeper does not allow, or bad options; ZINVALIDACL for an ACL that is
 * empty or malformed. ZINVALIDSTATE in the child of a fork.
 */
int zkl_queue_new(const zkl_client *client,
                  const char *path,
                  const zkl_recipe_options *options,
                  zkl_queue **queue);

/**
 * Frees the queue. Its elements stay, and so do deliveries and attempts.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_queue_free(zkl_queue *queue);

/**
 * Puts an element of `len` bytes (NULL only with 0): before all whose `priority` is a larger number, and behind those
 * that have the same. 0 to 255; ZKL_DEFAULT_PRIORITY where none matters. Waits up to `timeout_ms`, or ZKL_FOREVER.
 *
 * On connection loss it waits for the next connection, and finds out there whether it was done: nothing is put twice.
 * `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK. ZCONNECTIONLOSS, ZOPERATIONTIMEOUT and ZCLOSING leave it unknown whether it was put. ZBADARGUMENTS for a NULL,
 * another priority or negative timeout, or an element that is larger than a request takes; ZNOAUTH; ZINVALIDSTATE,
 * ZSESSIONEXPIRED or ZAUTHFAILED when the client is closed, the first also in the child of a fork; ZKL_WOULD_DEADLOCK
 * inside a callback of the C client: nothing was done.
 */
int zkl_queue_put(const zkl_queue *queue,
                  const void *data,
                  size_t len,
                  int priority,
                  int timeout_ms);

/**
 * The data of the element that is first, whether somebody works on it or not; it stays where it is. Up to `size` bytes are
 * copied to `buffer` (NULL only with 0); `*len` is how many it has. Waits up to `timeout_ms`, or ZKL_FOREVER.
 *
 * On connection loss it is read again. `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK; ZNOTHING when the queue is empty; ZBADARGUMENTS for a NULL or another negative timeout; ZOPERATIONTIMEOUT when no
 * server answers; ZNOAUTH; ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED when the client is closed, the first
 * also in the child of a fork; ZKL_WOULD_DEADLOCK inside a callback of the C client.
 */
int zkl_queue_peek(const zkl_queue *queue,
                   int timeout_ms,
                   void *buffer,
                   size_t size,
                   size_t *len);

/**
 * Takes the first element that nobody has claimed, waiting for it up to `timeout_ms`: ZKL_FOREVER waits as long as it
 * takes, 0 looks once.
 *
 * The element stays in the queue, claimed: zkl_delivery_done removes it; zkl_delivery_free, the loss of the session and
 * the end of the process give it to another consumer. So it may be worked on twice, by one after the other: see
 * zkl_delivery_guard.
 *
 * On connection loss it goes on with the next connection or session. When it fails, nothing is taken. `pthread_cancel`
 * waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*delivery` is the program's: end it with
 * zkl_delivery_done or zkl_delivery_free.
 *
 * ZOK; ZOPERATIONTIMEOUT when the time is over; ZBADARGUMENTS for a NULL or another negative timeout; ZNOAUTH;
 * ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED when the client is closed, the first also in the child of a
 * fork; ZKL_WOULD_DEADLOCK inside a callback of the C client.
 */
int zkl_queue_take(const zkl_queue *queue,
                   int timeout_ms,
                   zkl_delivery **delivery);

/**
 * Begins to take an element, and returns. `done` is called exactly once, on zklock's callback thread of the client, with
 * the outcome; `finalizer`, if there is one, after it. They may be called before this returns. When this returns an error,
 * neither is called.
 *
 * The attempt goes on when the queue and the client are freed; it ends by its outcome, by zkl_attempt_cancel, after which
 * nothing is taken, or with ZINVALIDSTATE or ZCLOSING when the client is detached or the adopted handle closed. On
 * connection loss it goes on as zkl_queue_take does. `attempt` may be NULL; otherwise `*attempt`, written before `done` can
 * run, is the program's: free it with zkl_attempt_free.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK when it has begun; ZBADARGUMENTS for a NULL queue or done, or a negative timeout other than ZKL_FOREVER;
 * ZSYSTEMERROR when there is no thread to be had. Everything else is reported by `done`.
 */
int zkl_queue_take_async(const zkl_queue *queue,
                         int timeout_ms,
                         zkl_delivery_fn done,
                         void *userdata,
                         zkl_finalizer_fn finalizer,
                         zkl_attempt **attempt);

/**
 * The element's data; `len` may be NULL, otherwise it gets how many bytes there are.
 *
 * Any thread. Returns bytes that belong to the delivery, not ended by a NUL; NULL for NULL.
 */
const void *zkl_delivery_data(const zkl_delivery *delivery, size_t *len);

/**
 * The path of the element.
 *
 * Any thread. Returns a string that belongs to the delivery; NULL for NULL.
 */
const char *zkl_delivery_path(const zkl_delivery *delivery);

/**
 * The claim on the element, as the guard of a lock: zkl_guard_state says whether the element may be another's by now,
 * zkl_guard_on_lost and zkl_guard_fd report that, before it is; zkl_guard_token grows with each delivery of the element,
 * so that a store can refuse what an earlier consumer writes; zkl_guard_set writes only while it is claimed.
 *
 * Any thread. The guard belongs to the delivery, ends with it, and must neither be released nor freed. NULL for NULL.
 */
const zkl_guard *zkl_delivery_guard(const zkl_delivery *delivery);

/**
 * Removes the element: it is done, and delivered to nobody any more. Waits for that up to `timeout_ms`, or ZKL_FOREVER.
 * Frees the delivery, whatever it returns.
 *
 * On connection loss it waits for the next connection, and finds out there whether it was removed. `pthread_cancel` waits
 * until it has ended. In the child of a fork it only frees.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK. ZKL_NOT_HELD when the claim was lost before: it is delivered again. ZNONODE when another program has removed it,
 * ZBADVERSION when one has changed it. ZKL_OUTCOME_UNKNOWN: if it was not removed, it is delivered again. ZBADARGUMENTS for NULL, or another negative timeout, and
 * ZKL_WOULD_DEADLOCK inside a callback of the C client: it is delivered again. ZINVALIDSTATE in the child of a fork.
 */
int zkl_delivery_done(zkl_delivery *delivery,
                      int timeout_ms);

/**
 * As zkl_delivery_done, without waiting: the removal is submitted when this returns, and the delivery freed, also when this
 * returns an error. `done` is called exactly once, on zklock's callback thread of the client, with what zkl_delivery_done
 * would have returned; `finalizer`, if there is one, after it. They may be called before this returns. When this returns
 * an error, neither is called.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK when it has begun; ZBADARGUMENTS for a NULL delivery or done, or another negative timeout, ZSYSTEMERROR when there is
 * no thread to be had: it is delivered again. Everything else is reported by `done`.
 */
int zkl_delivery_done_async(zkl_delivery *delivery,
                            int timeout_ms,
                            zkl_result_fn done,
                            void *userdata,
                            zkl_finalizer_fn finalizer);

/**
 * Gives the element back, in the background: another consumer takes it. Frees the delivery. Does not wait, unless this was
 * the last of its client: see zkl_client_free. In the child of a fork it only frees.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_delivery_free(zkl_delivery *delivery);

/**
 * Makes a group at a path: who joins is seen by all for as long as it lives. Sends nothing. Members are ephemeral znodes
 * below the path, as kazoo's `Party` has them.
 *
 * `path` is absolute, under the client's chroot. `options` may be NULL: the defaults. Both are copied.
 *
 * Any thread; does not block. On success `*group` is the program's: free it with zkl_group_free.
 *
 * ZOK; ZBADARGUMENTS for a NULL, a path that ZooKeeper does not allow, or bad options; ZINVALIDACL for an ACL that is
 * empty or malformed. ZINVALIDSTATE in the child of a fork.
 */
int zkl_group_new(const zkl_client *client,
                  const char *path,
                  const zkl_recipe_options *options,
                  zkl_group **group);

/**
 * Frees the group. Its members stay, and so do watches.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_group_free(zkl_group *group);

/**
 * Joins the group, with `len` bytes of data (NULL only with 0) that all can read. Waits up to `timeout_ms`, or
 * ZKL_FOREVER. After its session has ended the member joins again in the next one, and so it does when somebody has
 * deleted its znode, under the same id; on an adopted handle it ends with the session.
 *
 * On connection loss it waits for the next connection, and finds out there whether it has joined. When it fails, no member
 * is left. `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*membership` is the program's: end it
 * with zkl_membership_leave or zkl_membership_free. It keeps the client's session as a guard does.
 *
 * ZOK; ZOPERATIONTIMEOUT when the time is over; ZBADARGUMENTS for a NULL, another negative timeout, or more data than a
 * request takes; ZNOAUTH; ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED when the client is closed, the first
 * also in the child of a fork; ZKL_WOULD_DEADLOCK inside a callback of the C client.
 */
int zkl_group_join(const zkl_group *group,
                   const void *data,
                   size_t len,
                   int timeout_ms,
                   zkl_membership **membership);

/**
 * What the member is called in the group: see `zkl_member`.
 *
 * Any thread. Returns a string that belongs to the membership; NULL for NULL.
 */
const char *zkl_membership_id(const zkl_membership *membership);

/**
 * The path of the member's znode.
 *
 * Any thread. Returns a string that belongs to the membership; NULL for NULL.
 */
const char *zkl_membership_path(const zkl_membership *membership);

/**
 * 1 while it is certainly a member, by the local clock, 0 while it is not: after a loss of the session until it has joined
 * again. Costs no request.
 *
 * Any thread. ZBADARGUMENTS for NULL, ZINVALIDSTATE in the child of a fork.
 */
int zkl_membership_is_member(const zkl_membership *membership);

/**
 * Leaves the group, and waits up to `timeout_ms`, or ZKL_FOREVER, until its znode is gone. Frees the membership, whatever
 * it returns. On connection loss the deletion is repeated until the znode, or the session, is gone. `pthread_cancel` waits
 * until it has ended. In the child of a fork it only frees.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK; ZOPERATIONTIMEOUT when no server has confirmed it in time, and ZKL_WOULD_DEADLOCK inside a callback of the C client,
 * or ZBADARGUMENTS for another negative timeout: it leaves in the background. ZBADARGUMENTS for NULL. ZINVALIDSTATE in the
 * child of a fork.
 */
int zkl_membership_leave(zkl_membership *membership,
                         int timeout_ms);

/**
 * Leaves the group in the background, and frees the membership. Does not wait, unless this was the last of its client: see
 * zkl_client_free. In the child of a fork it only frees.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_membership_free(zkl_membership *membership);

/**
 * Who are members now, in the order in which they have joined: none where nobody has. Waits up to `timeout_ms`, or
 * ZKL_FOREVER. It costs a listing, and a read for each.
 *
 * On connection loss it asks again. `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*members` is the program's: free it with
 * zkl_members_free.
 *
 * ZOK; ZOPERATIONTIMEOUT when no server answers in time; otherwise as zkl_group_join.
 */
int zkl_group_members(const zkl_group *group,
                      int timeout_ms,
                      zkl_members **members);

/**
 * Asks for a call of `changed` with the members, now and whenever others are members: a list, which is the program's to
 * free. Who came and went between two calls is left out, and so is a member that has only got another session. The next
 * call comes when the one before has returned. It costs one watch, one listing with each change, and a read for each new
 * member.
 *
 * Of the thread, of connection loss, of the end, of `finalizer`, of `*watch`, of the codes and of a fork the same holds as
 * of zkl_election_observe.
 */
int zkl_group_watch(const zkl_group *group,
                    zkl_members_fn changed,
                    void *userdata,
                    zkl_finalizer_fn finalizer,
                    zkl_watch **watch);

/**
 * How many entries the list has; 0 for NULL.
 *
 * Any thread.
 */
size_t zkl_members_count(const zkl_members *members);

/**
 * The entry at `index`, counted from 0; NULL beyond the end, and for NULL. It belongs to the list.
 *
 * Any thread.
 */
const zkl_member *zkl_members_get(const zkl_members *members, size_t index);

/**
 * Frees the list, with its entries, their strings and data.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_members_free(zkl_members *members);

/**
 * Makes a latch at a path: it is set to a number of events, counted down once for each, and opens at zero. It opens once,
 * and stays open. Sends nothing. It is a persistent znode with what is left in decimal digits.
 *
 * `path` is absolute, under the client's chroot. `options` may be NULL: the defaults. Both are copied.
 *
 * Any thread; does not block. On success `*latch` is the program's: free it with zkl_latch_free.
 *
 * ZOK; ZBADARGUMENTS for a NULL, a path that ZooKeeper does not allow, or bad options; ZINVALIDACL for an ACL that is
 * empty or malformed. ZINVALIDSTATE in the child of a fork.
 */
int zkl_latch_new(const zkl_client *client,
                  const char *path,
                  const zkl_recipe_options *options,
                  zkl_latch **latch);

/**
 * Frees the latch, which stays as it is for all. Attempts go on.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_latch_free(zkl_latch *latch);

/**
 * Sets it to a number of events, unless it is set already; a latch of none is open at once. `left` may be NULL; otherwise
 * it gets what is left to be counted. Waits up to `timeout_ms`, or ZKL_FOREVER.
 *
 * On connection loss it waits for the next connection, and finds out there whether it was done: nothing is counted twice.
 * `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK. ZCONNECTIONLOSS, ZOPERATIONTIMEOUT and ZCLOSING leave it unknown whether it was done. ZBADARGUMENTS for a NULL,
 * another negative timeout, or a path at which something else is; ZNOAUTH; ZINVALIDSTATE, ZSESSIONEXPIRED or ZAUTHFAILED
 * when the client is closed, the first also in the child of a fork; ZKL_WOULD_DEADLOCK inside a callback of the C client:
 * nothing was done.
 */
int zkl_latch_set(const zkl_latch *latch,
                  uint32_t events,
                  int timeout_ms,
                  uint32_t *left);

/**
 * Counts one event; at zero it opens, and counting on does nothing. `left` may be NULL; otherwise it gets what is left.
 *
 * Threads, waiting and codes: as zkl_latch_set, and ZNONODE when nobody has set it: nothing was done.
 */
int zkl_latch_count_down(const zkl_latch *latch,
                         int timeout_ms,
                         uint32_t *left);

/**
 * What is left to be counted; not older than the call. Sets `*left`. On connection loss it is read again.
 *
 * Threads and waiting: as zkl_latch_set.
 *
 * ZOK; ZNONODE when nobody has set it; ZOPERATIONTIMEOUT when no server answers; otherwise as zkl_latch_set.
 */
int zkl_latch_left(const zkl_latch *latch,
                   int timeout_ms,
                   uint32_t *left);

/**
 * Waits until it is open, up to `timeout_ms`, also where nobody has set it yet: ZKL_FOREVER waits as long as it takes, 0
 * looks once.
 *
 * On connection loss it goes on with the next connection or session. `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK when it is open; ZOPERATIONTIMEOUT when it is not; ZBADARGUMENTS for NULL or another negative timeout; ZNOAUTH;
 * ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED when the client is closed, the first also in the child of a
 * fork; ZKL_WOULD_DEADLOCK inside a callback of the C client.
 */
int zkl_latch_wait(const zkl_latch *latch,
                   int timeout_ms);

/**
 * Begins to wait until it is open, and returns: `done` is called exactly once, with what zkl_latch_wait would have
 * returned, or ZKL_CANCELLED. All else is as of zkl_queue_take_async.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK when it has begun; ZBADARGUMENTS for a NULL latch or done, or a negative timeout other than ZKL_FOREVER;
 * ZSYSTEMERROR when there is no thread to be had. Everything else is reported by `done`.
 */
int zkl_latch_wait_async(const zkl_latch *latch,
                         int timeout_ms,
                         zkl_result_fn done,
                         void *userdata,
                         zkl_finalizer_fn finalizer,
                         zkl_attempt **attempt);

/**
 * Makes a barrier at a path. Sends nothing. It is set while there is a persistent znode, which stays when the program
 * ends, as Curator and kazoo have it.
 *
 * `path` is absolute, under the client's chroot. `options` may be NULL: the defaults. Both are copied.
 *
 * Any thread; does not block. On success `*barrier` is the program's: free it with zkl_barrier_free.
 *
 * ZOK; ZBADARGUMENTS for a NULL, a path that ZooKeeper does not allow, or bad options; ZINVALIDACL for an ACL that is
 * empty or malformed. ZINVALIDSTATE in the child of a fork.
 */
int zkl_barrier_new(const zkl_client *client,
                    const char *path,
                    const zkl_recipe_options *options,
                    zkl_barrier **barrier);

/**
 * Frees the barrier, which stays as it is for all. Attempts go on.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_barrier_free(zkl_barrier *barrier);

/**
 * Sets it, and makes the znodes above it where they are missing. That it is set already is no error. Waits up to
 * `timeout_ms`, or ZKL_FOREVER.
 *
 * On connection loss it waits for the next connection, and finds out there whether it was done: it is never done twice.
 * `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK. ZCONNECTIONLOSS, ZOPERATIONTIMEOUT and ZCLOSING leave it unknown whether it was done. ZBADARGUMENTS for NULL or
 * another negative timeout; ZNOAUTH; ZINVALIDSTATE, ZSESSIONEXPIRED or ZAUTHFAILED when the client is closed, the first
 * also in the child of a fork; ZKL_WOULD_DEADLOCK inside a callback of the C client: nothing was done.
 */
int zkl_barrier_set(const zkl_barrier *barrier,
                    int timeout_ms);

/**
 * Removes it: everybody who waits goes on. That it is not set is no error.
 *
 * Threads, waiting and codes: as zkl_barrier_set.
 */
int zkl_barrier_remove(const zkl_barrier *barrier, int timeout_ms);

/**
 * Waits until it is not set, up to `timeout_ms`: ZKL_FOREVER waits as long as it takes, 0 looks once.
 *
 * On connection loss it goes on with the next connection or session. `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK when it is not set; ZOPERATIONTIMEOUT when it is, or no server answers; ZBADARGUMENTS for NULL or another negative
 * timeout; ZNOAUTH; ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED when the client is closed, the first also in
 * the child of a fork; ZKL_WOULD_DEADLOCK inside a callback of the C client.
 */
int zkl_barrier_pass(const zkl_barrier *barrier,
                     int timeout_ms);

/**
 * Begins to wait until it is not set, and returns: `done` is called exactly once, with what zkl_barrier_pass would have
 * returned, or ZKL_CANCELLED. All else is as of zkl_queue_take_async.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK when it has begun; ZBADARGUMENTS for a NULL barrier or done, or a negative timeout other than ZKL_FOREVER;
 * ZSYSTEMERROR when there is no thread to be had. Everything else is reported by `done`.
 */
int zkl_barrier_pass_async(const zkl_barrier *barrier,
                           int timeout_ms,
                           zkl_result_fn done,
                           void *userdata,
                           zkl_finalizer_fn finalizer,
                           zkl_attempt **attempt);

/**
 * Makes a barrier at a path for so many participants, 1 to 65535, of which everyone has to say the same number: they enter
 * when all are there, and leave when all are done; then the next ones can enter. Sends nothing. A participant whose process
 * or session ends has left.
 *
 * `path` is absolute, under the client's chroot. `options` may be NULL: the defaults. Both are copied.
 *
 * Any thread; does not block. On success `*barrier` is the program's: free it with zkl_double_barrier_free.
 *
 * ZOK; ZBADARGUMENTS for a NULL, another number, a path that ZooKeeper does not allow, or bad options; ZINVALIDACL for an
 * ACL that is empty or malformed. ZINVALIDSTATE in the child of a fork.
 */
int zkl_double_barrier_new(const zkl_client *client,
                           const char *path,
                           int participants,
                           const zkl_recipe_options *options,
                           zkl_double_barrier **barrier);

/**
 * Frees the barrier. Who has entered stays, and attempts go on.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_double_barrier_free(zkl_double_barrier *barrier);

/**
 * Waits up to `timeout_ms`, or ZKL_FOREVER, until as many are there as are wanted; where a round is under way, until all of
 * that have left.
 *
 * On connection loss it goes on with the next connection or session. When it fails, it has not entered, and nothing is
 * left. `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*entered` is the program's: end it with
 * zkl_entered_leave or zkl_entered_free.
 *
 * ZOK; ZOPERATIONTIMEOUT when the time is over; ZBADARGUMENTS for a NULL or another negative timeout; ZNOAUTH;
 * ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED when the client is closed, the first also in the child of a
 * fork; ZKL_WOULD_DEADLOCK inside a callback of the C client.
 */
int zkl_double_barrier_enter(const zkl_double_barrier *barrier,
                             int timeout_ms,
                             zkl_entered **entered);

/**
 * Begins to enter, and returns: `done` is called exactly once, with what zkl_double_barrier_enter would have returned and
 * given, or with ZKL_CANCELLED. All else is as of zkl_queue_take_async.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK when it has begun; ZBADARGUMENTS for a NULL barrier or done, or a negative timeout other than ZKL_FOREVER;
 * ZSYSTEMERROR when there is no thread to be had. Everything else is reported by `done`.
 */
int zkl_double_barrier_enter_async(const zkl_double_barrier *barrier,
                                   int timeout_ms,
                                   zkl_entered_fn done,
                                   void *userdata,
                                   zkl_finalizer_fn finalizer,
                                   zkl_attempt **attempt);

/**
 * Leaves, and waits up to `timeout_ms`, or ZKL_FOREVER, until all who have entered with it have left. Frees what is given,
 * whatever it returns. On connection loss it goes on with the next connection or session. `pthread_cancel` waits until it
 * has ended. In the child of a fork it only frees.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK; ZOPERATIONTIMEOUT when the time is over, and others are there yet, or no server answers; ZBADARGUMENTS for NULL or
 * another negative timeout; ZNOAUTH; ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED when the client is closed, ZINVALIDSTATE also
 * in the child of a fork; ZKL_WOULD_DEADLOCK inside a callback of the C client. It has left in any case, or leaves in the
 * background.
 */
int zkl_entered_leave(zkl_entered *entered,
                      int timeout_ms);

/**
 * As zkl_entered_leave, without waiting: what is given is freed when this returns, also when it returns an error. `done` is
 * called exactly once, on zklock's callback thread of the client, with what zkl_entered_leave would have returned;
 * `finalizer`, if there is one, after it. They may be called before this returns. When this returns an error, neither is
 * called.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK when it has begun; ZBADARGUMENTS for a NULL entered or done, or another negative timeout, ZSYSTEMERROR when there is
 * no thread to be had: it leaves in the background. Everything else is reported by `done`.
 */
int zkl_entered_leave_async(zkl_entered *entered,
                            int timeout_ms,
                            zkl_result_fn done,
                            void *userdata,
                            zkl_finalizer_fn finalizer);

/**
 * Leaves in the background, and frees what is given. Does not wait, unless this was the last of its client: see
 * zkl_client_free. In the child of a fork it only frees.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_entered_free(zkl_entered *entered);

/**
 * Ends the threads of zklock, and frees what it keeps for the process. A program calls this before its end if its
 * memory is checked: see zklock.supp, which is installed with the library.
 *
 * Free all objects first: clients, locks, guards, attempts, recipes. The call waits up to 15 seconds for work in the
 * background: ends of sessions, releases, callbacks. No other thread may be inside a function of zklock meanwhile. A
 * second call does nothing. The program can make clients again later, and then calls this once more.
 *
 * Any thread, but for callbacks; blocks.
 *
 * ZOK when no thread of zklock is left; ZINVALIDSTATE when an object is not freed, or a program of zoo_lock.h or
 * zoo_queue.h has not closed its handle; ZOPERATIONTIMEOUT when a thread still works, which zkl_last_error names;
 * ZKL_WOULD_DEADLOCK inside a callback. After a failure everything works as before.
 */
int zkl_shutdown(void);

#ifdef __cplusplus
}  // extern "C"
#endif  /* __cplusplus */

#endif  /* ZKLOCK_H */
