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
 * It needs no other header. Include it before or after <zookeeper/zookeeper.h>, which names
 * ZooKeeper's codes (ZOK, ZOPERATIONTIMEOUT, ...).
 *
 * Codes. A function that can fail returns 0 (ZOK), a code of ZooKeeper, or one of the few ZKL_* codes
 *   below -2000. zkl_strerror has words for all of them. After an error zkl_last_error has one line about
 *   it, for this thread. The set is open: a newer server may send other codes. Any function may return
 *   ZKL_PANIC.
 * Outputs are written only on success.
 * Ownership. The program owns the objects that it gets as outputs. Free each once, with the function of
 *   its type, in any order; each object keeps what it needs. All free functions accept NULL. Returned
 *   strings belong to their object or to the library. Arguments are copied before the function returns.
 * NULL for an object, an output or a string gives ZBADARGUMENTS, unless stated otherwise. So does text
 *   that is not UTF-8, and a path that ZooKeeper does not allow. Other pointers must be valid: objects that
 *   are not freed, terminated strings, buffers of the given length.
 * Negative timeouts other than ZKL_FOREVER give ZBADARGUMENTS.
 * Options structs begin with their size. One of an older, shorter header is accepted. So is one of a
 *   newer header, if everything that this library does not know is zero.
 * Threads. Every function may be called on any thread, and by several threads on one object. But do not
 *   use an object while or after another thread frees it. Functions that block say so. In a callback of
 *   the C client (a watcher, a completion) on an adopted handle they return ZKL_WOULD_DEADLOCK. The
 *   answer would have to come through that thread.
 * Permissions. A session needs READ, CREATE and DELETE on a queue's path, and READ on its claims. With
 *   the other strategies it needs CREATE and DELETE on the znode above the path, and READ on the path.
 * Descriptors (zkl_attempt_fd, zkl_guard_fd, zkl_guard_state_fd) belong to their objects. They become
 *   readable when there is something to look at.
 * Callbacks (`done`, `lost`, `changed`, finalizers) run one after the other on a thread of zklock, one
 *   for each client. They may block, call any function and free any object. They must not throw.
 * Cancellation (pthread_cancel) is off while a thread is inside a function. The call ends normally, and
 *   the thread at its next cancellation point; a cleanup handler frees the result of the call. To end a
 *   waiting call, give it a limit, or call zkl_client_detach on another thread. Asynchronous cancellation
 *   must be off. Callbacks run with cancellation off. They must not turn it on or end their thread.
 * Memory. If memory runs out, zklock ends the process (SIGABRT), or the C client does, which does not
 *   check all of its allocations. Otherwise the error is ZSYSTEMERROR, ZMARSHALLINGERROR or a time limit.
 *   A guard that is ZKL_HELD is held even then. Threads and process-wide data of zklock stay until the
 *   end of the process: for memory checkers, zkl_shutdown frees them.
 * The end of the process. When main returns or exit is called, the process waits up to a second for
 *   unconfirmed releases and cancellations. Claims that are unconfirmed then stay until the session times
 *   out. So does everything after any other end (_exit, quick_exit, a signal, exec). So does a lock that
 *   is still held, unless zkl_client_free or zkl_client_detach has ended its session.
 * fork. Objects belong to the process that made them. In the child every function returns ZINVALIDSTATE
 *   for them, at once (zkl_client_session_id: 0). So does zkl_client_adopt for a handle that was adopted
 *   before. The free functions free, and release nothing. Strings, data and lists stay readable. The child
 *   can connect a client, or adopt a handle that it has opened itself. It cannot use or even close a
 *   handle of the parent. At a fork, another thread may be inside a function. Then a child without exec
 *   may find locks of the C library or the C client held, above all those for resolving host names. A
 *   handle of the program resolves names all the time, unless zoo_set_servers_resolution_delay(zh, -1) was
 *   called. The C client's descriptors are inherited, also across exec.
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

/* Types of the C client, defined in <zookeeper/zookeeper.h>. */
struct _zhandle;
struct ACL_vector;
struct Stat;

/* The default options. */
#define ZKL_CLIENT_OPTIONS_INIT {sizeof(zkl_client_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
#define ZKL_LOCK_OPTIONS_INIT {sizeof(zkl_lock_options), 0, 0, 0, 0, 0, 0, 0}
#define ZKL_RECIPE_OPTIONS_INIT {sizeof(zkl_recipe_options), 0}


/**
 * Another contender is ahead: a holder or, in a queue, a waiter (functions named `try` only).
 */
#define ZKL_TAKEN -2001

/**
 * The program cancelled the acquire or other wait.
 */
#define ZKL_CANCELLED -2002

/**
 * The call would wait for its own thread.
 */
#define ZKL_WOULD_DEADLOCK -2003

/**
 * A defect of zklock, caught before it could harm the program.
 */
#define ZKL_PANIC -2004

/**
 * The lock is no longer held, or the element no longer claimed. Nothing was written, handed over or removed.
 */
#define ZKL_NOT_HELD -2005

/**
 * The attempt has not ended yet.
 */
#define ZKL_PENDING -2006

/**
 * The outcome is unknown, and will stay unknown; zkl_last_error says why.
 */
#define ZKL_OUTCOME_UNKNOWN -2007

/**
 * There was no connection, and the call does not wait for one. Nothing was sent; try again.
 */
#define ZKL_NOT_CONNECTED -2008

/**
 * A strategy: a fair queue, in which a release wakes one waiter. The default.
 */
#define ZKL_QUEUE 0

/**
 * A strategy: watches the holder's znode. Every release wakes every waiter, in no order.
 */
#define ZKL_WATCH 1

/**
 * A strategy: retries with pauses from 2 ms to 100 ms. Needs no watch.
 */
#define ZKL_POLL 2

/**
 * How a lock is shared: not at all. The default.
 */
#define ZKL_EXCLUSIVE 0

/**
 * How a lock is shared: as a reader of a read/write lock. Readers hold together and wait for earlier writers.
 * Curator's read/write lock and this one exclude each other on one path.
 */
#define ZKL_READ 1

/**
 * How a lock is shared: as a writer of a read/write lock. It holds alone, in one queue with the readers.
 */
#define ZKL_WRITE 2

/**
 * How a lock is shared: as permits of a semaphore. Others hold the rest.
 */
#define ZKL_PERMITS 3

/**
 * How a lock is shared: as a reader that zkl_guard_upgrade can turn into a writer. It holds together with readers.
 * Only one at a time is upgradeable.
 */
#define ZKL_UPGRADEABLE 4

/**
 * Which other libraries wait for a lock on its path: Curator, go-zookeeper, zookeeper-client and ZooKeeper's own
 * recipes, and kazoo with the pattern "-lock-". The default. The lock itself waits for all of them in any case.
 */
#define ZKL_INTEROP_MOST 0

/**
 * Which other libraries wait for a lock on its path: also kazoo without a setting. A claim is two znodes; one
 * transaction creates them, and another deletes them. Only with `ZKL_QUEUE` and `ZKL_EXCLUSIVE`.
 */
#define ZKL_INTEROP_ALL 1

/**
 * zkl_client_state: no server has accepted the session yet.
 */
#define ZKL_CONNECTING 1

/**
 * zkl_client_state: a server is connected, and the session is alive.
 */
#define ZKL_CONNECTED 2

/**
 * zkl_client_state, zkl_guard_state: the connection is lost, and the session may still be alive. Stop writing under a
 * lock.
 */
#define ZKL_SUSPENDED 3

/**
 * zkl_client_state: the session is over, or the local clock no longer proves it alive. Its locks are lost.
 */
#define ZKL_SESSION_LOST 4

/**
 * zkl_client_state: the client has been detached, or cannot continue.
 */
#define ZKL_CLOSED 5

/**
 * zkl_client_can: clients are served in the order in which they come.
 */
#define ZKL_CAN_BE_FAIR 1

/**
 * zkl_client_can: tokens grow with every acquire, even after a crash of the holder, the store or the machine.
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
 * zkl_client_can: several locks are claimed in one step. Otherwise they are claimed one after the other, in the order
 * of their paths.
 */
#define ZKL_CAN_CLAIM_TOGETHER 32

/**
 * zkl_client_can: zkl_guard_set. With other stores, have the target compare tokens.
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
 * zkl_client_can: it continues to work, and locks stay held, if a minority of its servers fails.
 */
#define ZKL_CAN_LOSE_SERVERS 512

/**
 * No limit.
 */
#define ZKL_FOREVER -1

/**
 * zkl_guard_state: the lock is held, and no other client can acquire it now.
 */
#define ZKL_HELD 1

/**
 * zkl_guard_state: the lock is lost for good, and others may hold it.
 */
#define ZKL_LOST 4

/**
 * zkl_guard_lost_reason, `lost`: the session expired, was ended by the program, or the local clock no longer proves it
 * alive.
 */
#define ZKL_LOST_SESSION 1

/**
 * zkl_guard_lost_reason, `lost`: another client deleted the lock's znode.
 */
#define ZKL_LOST_DELETED 2

/**
 * zkl_guard_lost_reason, `lost`: another client broke the hold, as `zklock break` does.
 */
#define ZKL_LOST_BROKEN 3

/**
 * The priority of elements from programs without priorities, such as those of zoo_queue.h.
 */
#define ZKL_DEFAULT_PRIORITY 128

/**
 * A pending acquire or other wait; see zkl_lock_acquire_async.
 */
typedef struct zkl_attempt zkl_attempt;

/**
 * A barrier: while it is set, clients wait until it is removed; see zkl_barrier_new.
 */
typedef struct zkl_barrier zkl_barrier;

/**
 * A client with its own session, with an adopted handle of the program, or of another store; see zkl_client_connect,
 * zkl_client_adopt and zkl_store_connect.
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
 * An election: one participant leads at a time; see zkl_election_new.
 */
typedef struct zkl_election zkl_election;

/**
 * A participant that has entered a double barrier; see zkl_double_barrier_enter.
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
 * The program's membership in a group; see zkl_group_join.
 */
typedef struct zkl_membership zkl_membership;

/**
 * Several locks that are acquired together; see zkl_multi_lock_new.
 */
typedef struct zkl_multi_lock zkl_multi_lock;

/**
 * A work queue; see zkl_queue_new.
 */
typedef struct zkl_queue zkl_queue;

/**
 * A watch with a callback, until it is freed; see zkl_election_observe and zkl_group_watch.
 */
typedef struct zkl_watch zkl_watch;

/**
 * Options of a client. Start from the defaults, then set what differs: `zkl_client_options options =
 * ZKL_CLIENT_OPTIONS_INIT;`.
 */
typedef struct {
    /**
     * `sizeof(zkl_client_options)`.
     */
    size_t size;
    /**
     * The session timeout to request, from 500 to 86,400,000. 0: 10 s. A lock outlives a crash of its holder by this
     * time. The servers may grant another: zkl_client_session_timeout_ms. The guard of a client that is cut off is lost
     * before this time has passed: after 0.4 of it at the earliest. Not for `zkl_client_adopt`.
     */
    int session_timeout_ms;
    /**
     * How long `zkl_client_connect` may take in total. 0: 10 s. Not for `zkl_client_adopt`.
     */
    int connect_timeout_ms;
    /**
     * How long one operation may take. Then it ends with ZOPERATIONTIMEOUT and an unknown outcome. 0: 15 s.
     */
    int operation_timeout_ms;
    /**
     * The scheme of an identity for every session of the client, such as "digest". NULL: none. Not for
     * `zkl_client_adopt`, which uses the identities of the handle.
     */
    const char *auth_scheme;
    /**
     * The identity, such as "user:password": `auth_secret_len` bytes. Copied.
     */
    const void *auth_secret;
    /**
     * Length of `auth_secret` in bytes.
     */
    size_t auth_secret_len;
    /**
     * The servers' tickTime, if known. 0: half the session timeout. That is right if the servers' minSessionTimeout is
     * two ticks or more (the default). If it is less, you must set the tickTime, or a guard may be lost too late.
     * Never give less than the servers'.
     */
    int tick_time_ms;
    /**
     * The limit for path, data and access control list of one request, in bytes. 0: 1 MiB less 1 KiB, which every
     * server takes. A larger request is refused with ZBADARGUMENTS, because a server closes the connection if a
     * request exceeds its jute.maxbuffer. (The queue of zoo_queue.h asks the servers instead.)
     */
    size_t max_request;
    /**
     * TLS, at the servers' secureClientPort: the PEM file with the authorities of their certificates, and with their
     * revocation lists if you have any. NULL: no TLS. The linked C client must be built with TLS (zookeeper_init_ssl);
     * most are not, and connecting fails with ZBADARGUMENTS. In other stores than ZooKeeper (`zkl_store_connect`), zklock
     * must be built with TLS to them, and revocation lists, the password of the key and tls_any_host_name are refused.
     * This and the following fields are not for `zkl_client_adopt`.
     */
    const char *tls_ca;
    /**
     * TLS: the file with the client's own certificate. NULL: none, if the linked C client is compiled by zklock.
     */
    const char *tls_cert;
    /**
     * TLS: the file with the key of that certificate.
     */
    const char *tls_key;
    /**
     * TLS: the file with the password of the key in its first line. NULL: no password.
     */
    const char *tls_key_password_file;
    /**
     * TLS: if not 0, accepts any certificate of the authorities, whatever the server's name is. The C client of an
     * installed library verifies no names, so TLS is refused without this.
     */
    int tls_any_host_name;
    /**
     * SASL: the user. NULL: none. The linked C client must be built with SASL (zookeeper_init_sasl).
     */
    const char *sasl_user;
    /**
     * SASL: the file with the user's password in its first line.
     */
    const char *sasl_password_file;
    /**
     * SASL: the mechanism, such as "GSSAPI". NULL: "DIGEST-MD5" if there is a user.
     */
    const char *sasl_mechanism;
    /**
     * 1: who waits for a lock with `ZKL_QUEUE` asks the servers once more after each release. 0: it holds by the event
     * of the release, if the holder's session has an identity of the scheme "digest" that nobody else has. zklock adds
     * one to each session that it opens, if the servers accept the scheme. Both exclude each other. An adopted handle
     * gets none.
     */
    int unannounced_releases;
} zkl_client_options;

/**
 * Options of a lock. Start from the defaults, then set what differs: `zkl_lock_options options =
 * ZKL_LOCK_OPTIONS_INIT;`.
 */
typedef struct {
    /**
     * `sizeof(zkl_lock_options)`.
     */
    size_t size;
    /**
     * `ZKL_QUEUE`, `ZKL_WATCH` or `ZKL_POLL`. All users of one path must use the same strategy.
     */
    int strategy;
    /**
     * A name for the owner, shown to people who look at the lock: one line of up to 256 characters. NULL: none.
     * Copied.
     */
    const char *label;
    /**
     * The ACL of the lock's znodes, as the C client takes it, such as `&ZOO_CREATOR_ALL_ACL`. NULL: all clients may do
     * everything. Copied.
     */
    const struct ACL_vector *acl;
    /**
     * `ZKL_EXCLUSIVE`, `ZKL_READ`, `ZKL_UPGRADEABLE`, `ZKL_WRITE` or `ZKL_PERMITS`; all but the first only with
     * `ZKL_QUEUE`.
     */
    int sharing;
    /**
     * With `ZKL_PERMITS`: how many permits one acquire takes. 0: one. Otherwise 0.
     */
    int permits;
    /**
     * With `ZKL_PERMITS`: the number of permits, at least 1. It counts only if the semaphore's znode has none yet: see
     * zkl_lock_set_limit. Otherwise 0.
     */
    int limit;
    /**
     * `ZKL_INTEROP_MOST` or `ZKL_INTEROP_ALL`. Programs with either exclude each other.
     */
    int interop;
} zkl_lock_options;

/**
 * A client that holds a lock or waits for it. The list owns its strings, which are never NULL.
 *
 * Any client may have written this data. Host, thread and label are single lines of up to 256 characters that are safe
 * to show on a terminal: spaces replace unprintable characters and those that change the writing direction. The path
 * is as in ZooKeeper.
 */
typedef struct {
    /**
     * The claim's znode.
     */
    const char *path;
    /**
     * The session of the claim.
     */
    int64_t session_id;
    /**
     * The fencing token, once it holds the lock.
     */
    int64_t token;
    /**
     * When the claim was made, by the servers' clocks: milliseconds since the epoch. A holder that had to wait has
     * held for less: see `held_since_ms`.
     */
    int64_t since_ms;
    /**
     * The host name; empty if the claim is another library's.
     */
    const char *host;
    /**
     * The process id; 0 if the claim is another library's.
     */
    uint32_t pid;
    /**
     * The name of the thread, or else its id (the kernel's, on Linux); empty if the claim is another library's.
     */
    const char *thread;
    /**
     * The owner's label. If the claim is another library's, the beginning of its data.
     */
    const char *label;
    /**
     * The earliest time at which the hold can have begun, by the servers' clocks: milliseconds since the epoch. 0 for
     * a waiter.
     */
    int64_t held_since_ms;
    /**
     * The latest time at which the hold can have begun. 0 for a waiter. It is the time of the call if claims have left
     * the queue since.
     */
    int64_t held_since_latest_ms;
} zkl_contender;

/**
 * Called when another client asks for a release; `reason` is valid until this returns. Must not throw.
 */
typedef void (*zkl_request_fn)(const char *reason, void *userdata);

/**
 * Told when a `userdata` is not needed any more: runs exactly once for each that was taken, after
 * the last callback that gets it, on zklock's callback thread. May be NULL.
 */
typedef void (*zkl_finalizer_fn)(void *userdata);

/**
 * The outcome of an acquire: `rc` as from zkl_lock_acquire, or ZKL_CANCELLED. With ZOK `guard` is the program's;
 * otherwise it is NULL. Must not throw.
 */
typedef void (*zkl_done_fn)(int rc, zkl_guard *guard, void *userdata);

/**
 * Called when a lock is lost; `reason` is a ZKL_LOST_* reason. Must not throw.
 */
typedef void (*zkl_lost_fn)(int reason, void *userdata);

/**
 * The contenders. With ZOK `contenders` is the program's: free it with zkl_contenders_free. Otherwise it is NULL. Must
 * not throw.
 */
typedef void (*zkl_contenders_fn)(int rc, zkl_contenders *contenders, void *userdata);

/**
 * The outcome of a write. With ZOK `stat` is the znode's new stat, valid until this returns; otherwise it is NULL.
 * Must not throw.
 */
typedef void (*zkl_written_fn)(int rc, const struct Stat *stat, void *userdata);

/**
 * The outcome of an operation: the code that its blocking variant returns. Must not throw.
 */
typedef void (*zkl_result_fn)(int rc, void *userdata);

/**
 * Options of a counter, queue, group, latch or barrier. Start from the defaults, then set what differs:
 * `zkl_recipe_options options = ZKL_RECIPE_OPTIONS_INIT;`. Names that begin with `zl-` are reserved: a recipe on such
 * a path is refused with ZBADARGUMENTS.
 */
typedef struct {
    /**
     * `sizeof(zkl_recipe_options)`.
     */
    size_t size;
    /**
     * The ACL of the znodes that it creates, as the C client takes it, such as `&ZOO_CREATOR_ALL_ACL`. NULL: all
     * clients may do everything. Copied.
     */
    const struct ACL_vector *acl;
} zkl_recipe_options;

/**
 * The outcome of a take: `rc` as from zkl_queue_take, or ZKL_CANCELLED. With ZOK `delivery` is the program's;
 * otherwise it is NULL. Must not throw.
 */
typedef void (*zkl_delivery_fn)(int rc, zkl_delivery *delivery, void *userdata);

/**
 * The members. With ZOK `members` is the program's: free it with zkl_members_free. Otherwise it is NULL. Must not
 * throw.
 */
typedef void (*zkl_members_fn)(int rc, zkl_members *members, void *userdata);

/**
 * A member of a group. The list owns its strings and data. Any client may have written them.
 */
typedef struct {
    /**
     * The name of its znode. It stays the same during the membership and is never reused.
     */
    const char *id;
    /**
     * The data that it joined with, without a terminating NUL.
     */
    const void *data;
    /**
     * The length of `data` in bytes.
     */
    size_t len;
    /**
     * The session of its znode.
     */
    int64_t session_id;
    /**
     * The transaction that created its znode. Later members have a larger one.
     */
    int64_t joined;
} zkl_member;

/**
 * The outcome of an enter: `rc` as from zkl_double_barrier_enter, or ZKL_CANCELLED. With ZOK `entered` is the
 * program's; otherwise it is NULL. Must not throw.
 */
typedef void (*zkl_entered_fn)(int rc, zkl_entered *entered, void *userdata);

#ifdef __cplusplus
extern "C" {
#endif /* __cplusplus */

/**
 * The version of the library at run time, such as `0.1.0`. `ZKL_VERSION` is that of the header.
 *
 * Any thread. The string lives as long as the program; never NULL.
 */
const char *zkl_version(void);

/**
 * The same as a number: major * 1000000 + minor * 1000 + patch. Compare it with `ZKL_VERSION_NUMBER` of the header.
 *
 * Any thread.
 */
int zkl_version_number(void);

/**
 * The version of ZooKeeper's C client that the library was built against, such as `3.8.0`.
 *
 * Any thread. The string lives as long as the program; never NULL.
 */
const char *zkl_c_client_version(void);

/**
 * The meaning of a code of ZooKeeper or zklock, as a lowercase phrase.
 *
 * Any thread. The string lives as long as the program. Never NULL, even for an unknown code.
 */
const char *zkl_strerror(int code);

/**
 * The error of the last failed function on this thread: one line, for people. Inside a `done` callback,
 * the error of that operation.
 *
 * Any thread. The library owns the string, which is valid until the next failure on this thread. Empty if nothing has
 * failed yet; never NULL.
 */
const char *zkl_last_error(void);

/**
 * Connects with a new session, and waits until a server has accepted it, up to the connect timeout.
 *
 * `hosts` is "host[:port][,host[:port]...][/chroot]". The default port is 2181. Put IPv6 addresses in brackets.
 * `options` may be NULL: the defaults. Both are copied.
 *
 * After an expiry the client opens a new session. The locks of the old one are lost.
 *
 * Any thread; blocks. On success `*client` is the program's: free it with zkl_client_free.
 *
 * ZOK. ZBADARGUMENTS: an argument is NULL, `hosts` cannot be parsed, or options are invalid. ZOPERATIONTIMEOUT: no
 * server accepted the session in time; zkl_last_error says what is wrong with each host. ZAUTHFAILED: the servers
 * refused the identity. -124: the servers accept only clients that authenticate. ZSYSTEMERROR: no thread or descriptor
 * is available; zkl_last_error names the limit. ZKL_WOULD_DEADLOCK: inside a callback of the C client.
 */
int zkl_client_connect(const char *hosts,
                       const zkl_client_options *options,
                       zkl_client **client);

/**
 * Works on a live handle of libzookeeper_mt that the program opened, connected or not, and continues to use. zklock
 * never closes the handle, and leaves its global watcher and context alone.
 *
 * - The client shares the handle's session, servers, chroot and identities. It ends with that session: to continue on
 *   the next handle, call zkl_client_follow.
 * - To prove the session, zklock sends a `sync` every tenth of the session timeout. While a lock is held, it also
 *   sends a write that changes nothing every fifth.
 * - A session has one owner. A second handle on it (zookeeper_init with the client id of the first) can end it for
 *   both. Guards of the first stay ZKL_HELD until a server closes their connection or refuses a request, usually for
 *   milliseconds. If they are cut off, that takes up to 0.95 of the session timeout. zkl_guard_token covers that.
 * - The program may free the client before or after zookeeper_close, from ordinary threads. When it closes the handle,
 *   everything on it is lost at once, and zklock no longer touches the handle.
 * - Inside a callback of that handle, zookeeper_close is allowed only after zkl_client_detach, or once the session has
 *   expired.
 * - The proofs of the session come through the handle's callbacks. If the program blocks them for longer than four
 *   tenths of the session timeout, it may lose its locks.
 * - If a handle is adopted inside one of its own callbacks, a wait there fails with ZKL_WOULD_DEADLOCK after at most 2
 *   seconds. If it is adopted before it is connected, do not wait in the callback that reports its first connection:
 *   after twice the session timeout and 2 seconds, such a wait ends the use of the handle. The completion of
 *   zoo_add_auth runs on a thread that cannot be recognised: wait for nothing there.
 *
 * `zh` must be live until this returns. `options` may be NULL: the defaults. Of its times only operation_timeout_ms
 * and tick_time_ms apply. Leave out the others and auth_scheme.
 *
 * Any thread, callbacks of the handle included; does not block: acquires wait for the connection. On success `*client`
 * is the program's: free it with zkl_client_free.
 *
 * ZOK. ZBADARGUMENTS: an argument is NULL, or options are invalid. ZINVALIDSTATE: the handle's session is over.
 * ZSYSTEMERROR: no thread is available; zkl_last_error names the limit.
 */
int zkl_client_adopt(struct _zhandle *zh,
                     const zkl_client_options *options,
                     zkl_client **client);

/**
 * Continues on another handle of the program, for example after an expiry: adopts `zh` with the same options as in
 * zkl_client_adopt. The client's locks contend there from now on.
 *
 * Existing objects stay on their handle. If its session is over, guards stay lost and waits end; free them as usual.
 * If it still lives, guards stay held and pending acquires continue there. The old handle is given back once they are
 * gone.
 *
 * `zh` must be live until this returns. The old handle may be closed before or after this.
 *
 * Any thread, callbacks of either handle included; does not block: acquires wait for the connection.
 *
 * ZOK. ZBADARGUMENTS: an argument is NULL, or the client has its own session, which it replaces itself. Otherwise as
 * zkl_client_adopt. After an error the client is unchanged.
 */
int zkl_client_follow(const zkl_client *client,
                      struct _zhandle *zh);

/**
 * Detaches at once from the adopted handle and earlier ones, or ends the client's own session. Its guards are lost,
 * pending acquires end with ZINVALIDSTATE or ZCLOSING, and its state is ZKL_CLOSED. It must still be freed.
 *
 * When this returns, zklock is not inside an adopted handle and will not touch it again. The znodes of locks that were
 * held on it, and of acquires that waited, stay in ZooKeeper until the handle's session ends, and block others: release
 * guards and cancel attempts first. A second call does nothing.
 *
 * Any thread, callbacks included. If the client has its own session, this waits until a server has confirmed the end,
 * up to the operation timeout. Inside a callback of the C client the session ends in the background.
 *
 * ZOK: an adopted handle is free of zklock. With the client's own session, no lock is left (inside a callback of the C
 * client this is not known yet). ZCONNECTIONLOSS: no server has confirmed the end of the session, so its locks may
 * stay until it times out. ZBADARGUMENTS: NULL.
 */
int zkl_client_detach(const zkl_client *client);

/**
 * The client's state by the local clock at this moment: ZKL_CONNECTING, ZKL_CONNECTED, ZKL_SUSPENDED, ZKL_SESSION_LOST
 * or ZKL_CLOSED. Costs no request.
 *
 * Any thread. ZBADARGUMENTS: NULL.
 */
int zkl_client_state(const zkl_client *client);

/**
 * The session's id, which servers print in hexadecimal. 0 if there is no session, for another store than ZooKeeper,
 * and for NULL.
 *
 * Any thread.
 */
int64_t zkl_client_session_id(const zkl_client *client);

/**
 * The session timeout that the server granted or the store was asked for, in milliseconds. 0 while there is no
 * session, and for `local:`.
 *
 * Any thread. ZBADARGUMENTS: NULL.
 */
int zkl_client_session_timeout_ms(const zkl_client *client);

/**
 * Frees the client. Its locks, guards, attempts and recipes may be freed before or after it: each keeps what it needs.
 *
 * When the last of them is freed, the client's own session ends. An adopted handle is given back once the released
 * claims on it are gone. The call that frees the last object waits for this, up to a second; the rest happens in the
 * background. To learn whether the session has ended, call zkl_client_detach first. A handle may be adopted any number
 * of times.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_client_free(zkl_client *client);

/**
 * Connects to the store with that address. Its locks work as those of ZooKeeper:
 *
 * - "zookeeper://HOST:PORT,.../CHROOT": as zkl_client_connect;
 * - "redis://USER:PASSWORD@HOST:PORT/DATABASE" (with TLS "rediss://..."), "postgres://..." and "mysql://..." (also
 *   MariaDB): a server;
 * - "sqlite:FILE": a file, for the processes of one machine;
 * - "local:": the threads of this process, for tests. All its clients are one, which is never closed.
 *
 * If the library was built without a store, it is refused by name. A missing ability is refused where it is used;
 * zkl_client_can tells before. Counters, queues, groups, latches and barriers need ZooKeeper. Elections and locks by
 * key work on every store. The lock options `acl` and `interop` apply to ZooKeeper only; elsewhere all strategies are
 * fair queues. `docs/stores.md` says what each store promises.
 *
 * `options` may be NULL: the defaults. Without ZooKeeper only session_timeout_ms (how long a lock outlives a crash of
 * its holder, from 100 ms), connect_timeout_ms, tls_ca, tls_cert and tls_key apply. Leave out the others. All are copied.
 *
 * Any thread; blocks. On success `*client` is the program's: free it with zkl_client_free.
 *
 * ZOK. ZBADARGUMENTS: an argument is NULL, the address or options are invalid, or the database does not exist or has
 * another version. ZNOAUTH: the store refuses the user or the password. ZAPIERROR: a server cannot be reached for 3 s.
 * ZOPERATIONTIMEOUT: nor within connect_timeout_ms. ZSYSTEMERROR: no thread is available. ZKL_WOULD_DEADLOCK: inside a
 * callback of the C client. Otherwise as zkl_client_connect. zkl_last_error shows no password.
 */
int zkl_store_connect(const char *address,
                      const zkl_client_options *options,
                      zkl_client **client);

/**
 * The name of a client's store, as in its address: "zookeeper", "redis", "postgres", "mysql", "sqlite" or "local".
 *
 * Any thread. The library owns the string; NULL for NULL.
 */
const char *zkl_client_store(const zkl_client *client);

/**
 * The abilities of a client's store: the sum of its ZKL_CAN_*.
 *
 * Any thread. ZBADARGUMENTS: NULL.
 */
int zkl_client_can(const zkl_client *client);

/**
 * Makes a lock on a path. Sends nothing; an acquire creates the missing parts of the path. All acquires exclude each
 * other, even those of one program, session or zkl_lock. A holder cannot acquire the lock again, unless it is
 * re-entrant: see zkl_lock_reentrant.
 *
 * `path` is absolute, under the client's chroot. Names that begin with `zl-` are reserved: such a lock can be looked
 * at, but an acquire fails with ZBADARGUMENTS. `options` may be NULL: a queue, no label, znodes that all clients may
 * change, one holder at a time. Both are copied.
 *
 * Any thread; does not block. On success `*lock` is the program's: free it with zkl_lock_free.
 *
 * ZOK. ZBADARGUMENTS: an argument is NULL, ZooKeeper does not allow the path, or options are invalid. The path is "/"
 * with another strategy than ZKL_QUEUE, or for a semaphore. ZINVALIDACL: the ACL is empty or malformed.
 */
int zkl_lock_new(const zkl_client *client,
                 const char *path,
                 const zkl_lock_options *options,
                 zkl_lock **lock);

/**
 * The lock's path.
 *
 * Any thread. The lock owns the string; NULL for NULL.
 */
const char *zkl_lock_path(const zkl_lock *lock);

/**
 * Frees the lock. Its guards stay held, and its attempts continue.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_lock_free(zkl_lock *lock);

/**
 * Acquires the lock, and waits up to `timeout_ms` in total: ZKL_FOREVER waits without a limit. With 0 it fails with
 * ZOPERATIONTIMEOUT if another client holds the lock; zkl_lock_try gives ZKL_TAKEN then.
 *
 * On connection loss it waits for the next connection and looks up its claim. If the session survived, it keeps its
 * place in the queue. After an error no claim is left.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*guard` is the program's: end it
 * with zkl_guard_release or zkl_guard_free.
 *
 * ZOK. ZOPERATIONTIMEOUT: the time has passed. ZBADARGUMENTS: an argument is NULL, or another negative timeout.
 * ZNODEEXISTS or ZNOCHILDRENFOREPHEMERALS: something other than a lock of this strategy is at the path. ZNOAUTH.
 * ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED: the client is closed, and no session will follow.
 * ZKL_WOULD_DEADLOCK: inside a callback of the C client.
 */
int zkl_lock_acquire(const zkl_lock *lock,
                     int timeout_ms,
                     zkl_guard **guard);

/**
 * Acquires the lock if no other contender is ahead: no holder and, in a queue, no waiter. Waits only for the servers'
 * answers, up to the operation timeout.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*guard` is the program's: end it
 * with zkl_guard_release or zkl_guard_free.
 *
 * ZOK. ZKL_TAKEN. ZOPERATIONTIMEOUT: no server answers. Otherwise as zkl_lock_acquire.
 */
int zkl_lock_try(const zkl_lock *lock,
                 zkl_guard **guard);

/**
 * The number of permits of a semaphore, for all clients: the stored one, or else that of the lock's options.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks up to the operation timeout. Sets `*limit`.
 *
 * ZOK. ZBADARGUMENTS: an argument is NULL, or the lock is no semaphore. ZOPERATIONTIMEOUT: no server answers.
 * Otherwise as zkl_lock_contenders.
 */
int zkl_lock_limit(const zkl_lock *lock,
                   int *limit);

/**
 * Sets the number of permits of a semaphore, for all clients. A larger limit serves waiters at once. A smaller limit
 * takes nothing from holders; waiters are served once enough holders have released. An acquire of more permits than
 * exist fails with ZBADARGUMENTS.
 *
 * On connection loss it is repeated until the outcome is certain.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks up to the operation timeout.
 *
 * ZOK. ZBADARGUMENTS: NULL, the lock is no semaphore, or the limit is below 1. ZKL_OUTCOME_UNKNOWN. ZNOAUTH. Otherwise
 * as zkl_lock_contenders.
 */
int zkl_lock_set_limit(const zkl_lock *lock,
                       int limit);

/**
 * The same lock, made re-entrant. A thread that holds it can acquire it again at once, without a request. Any acquire
 * function does that; zkl_lock_acquire_async and zkl_lock_try_async act for the calling thread. Other threads wait,
 * also those of this process. If threads are not the owners (in an event loop, for example), see zkl_lock_as_owner.
 *
 * Each acquire gives its own guard. End each guard once, in any order and on any thread. All guards of a thread share
 * one token, and each reports the loss. The last one that is released or freed releases the lock; the others return at
 * once. If the lock is lost, an acquire gives ZKL_NOT_HELD until all of the thread's guards are freed.
 *
 * Only handles made from one re-entrant lock know each other's holders: use one zkl_lock for all threads, not one for
 * each. A lock that is already re-entrant gives another handle on it. Strategy, label, ACL and sharing are those of
 * `lock`, which stays unchanged and contends with it.
 *
 * Any thread; does not block. On success `*reentrant` is the program's: free it with zkl_lock_free.
 *
 * ZOK. ZBADARGUMENTS: an argument is NULL.
 */
int zkl_lock_reentrant(const zkl_lock *lock,
                       zkl_lock **reentrant);

/**
 * A re-entrant lock for one more owner that is not a thread: a request, a task, a connection. Acquires with `*owner`
 * act for that owner, on any thread. Owners exclude each other, and threads that acquire with `reentrant`. Guards stay
 * when `*owner` is freed.
 *
 * Any thread; does not block. On success `*owner` is the program's: free it with zkl_lock_free.
 *
 * ZOK. ZBADARGUMENTS: an argument is NULL, or the lock is not re-entrant.
 */
int zkl_lock_as_owner(const zkl_lock *reentrant,
                      zkl_lock **owner);

/**
 * How many guards the owner of this one has of the lock, pending acquires included. 1 for a lock that is not
 * re-entrant.
 *
 * Any thread. ZBADARGUMENTS: NULL.
 */
int zkl_guard_holds(const zkl_guard *guard);

/**
 * Asks a holder from zkl_lock_holder or zkl_lock_contenders to release the lock. Its program is told, if it listens
 * with zkl_guard_on_release_request; nothing else happens. `reason` is one line of up to 256 characters. The session
 * needs WRITE on the lock's path if the holder announces its release, otherwise on the claim's znode.
 *
 * On connection loss it is repeated until the outcome is certain.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks up to the operation timeout.
 *
 * ZOK. ZNOTHING: that holder no longer holds the lock. ZBADARGUMENTS: an argument is NULL, or the claim is another
 * library's, which would not read it. ZKL_OUTCOME_UNKNOWN: no server confirmed it in time. ZNOAUTH. Otherwise as
 * zkl_lock_contenders.
 */
int zkl_lock_request_release(const zkl_lock *lock,
                             const zkl_contender *holder,
                             const char *reason);

/**
 * Takes the lock from a holder from zkl_lock_holder or zkl_lock_contenders, and waits up to `timeout_ms` until its
 * claim is gone. The holder's guard is ZKL_LOST, with ZKL_LOST_BROKEN, before another client can hold the lock. Then
 * its own library deletes the claim: when its program ends the guard, or after `grace_ms`. A holder that cannot be
 * reached loses its session instead. The session needs WRITE on the lock's path if the holder announces its release,
 * otherwise on the claim's znode.
 *
 * On connection loss it continues, also in the next session.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK. ZNOTHING: that holder no longer held the lock. ZBADARGUMENTS: an argument is NULL, `grace_ms` is negative,
 * another negative timeout, or the claim is another library's, which would not read it. ZKL_OUTCOME_UNKNOWN: the time
 * has passed, and the hold may still be broken later. ZNOAUTH. Otherwise as zkl_lock_contenders.
 */
int zkl_lock_break_hold(const zkl_lock *lock,
                        const zkl_contender *holder,
                        const char *reason,
                        int grace_ms,
                        int timeout_ms);

/**
 * Registers `requested`. zklock calls it on the client's callback thread each time another client asks for a release,
 * as zkl_lock_request_release and `zklock ask` do. If a client has asked already, zklock calls it at once. Requests do
 * not end the hold. For `finalizer`, for what `requested` may do, and for the end of the guard, the rules of
 * zkl_guard_on_lost apply.
 *
 * Any thread, callbacks included; does not block.
 *
 * ZOK. ZBADARGUMENTS: `guard` or `requested` is NULL. ZSYSTEMERROR: no thread is available.
 */
int zkl_guard_on_release_request(const zkl_guard *guard,
                                 zkl_request_fn requested,
                                 void *userdata,
                                 zkl_finalizer_fn finalizer);

/**
 * Starts to acquire the lock and returns. zklock calls `done` exactly once with the outcome, on the client's callback
 * thread, and then `finalizer`, if it is not NULL. Both may run before this returns. If this returns an error, neither
 * is called.
 *
 * `done` may block and may call any function of zklock. Callbacks of one client run one after the other. The attempt
 * continues when the lock and the client are freed. It ends with its outcome or by zkl_attempt_cancel. If the client
 * is detached or the adopted handle closed, it ends with ZINVALIDSTATE or ZCLOSING. On connection loss it behaves as
 * zkl_lock_acquire.
 *
 * `timeout_ms`: as in zkl_lock_acquire. `userdata` is passed on unchanged. `attempt` may be NULL. Otherwise `*attempt`
 * is written before `done` can run, and is the program's: free it with zkl_attempt_free.
 *
 * `done` may be NULL if `attempt` is not NULL and `finalizer` is. Then nothing is called: wait for the descriptor of
 * zkl_attempt_fd, and get the outcome from zkl_attempt_take.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK: it has started. ZBADARGUMENTS: `lock` is NULL, `done` is NULL where it must not be, or the timeout is negative
 * and not ZKL_FOREVER. ZSYSTEMERROR: no thread is available. Everything else is the outcome.
 */
int zkl_lock_acquire_async(const zkl_lock *lock,
                           int timeout_ms,
                           zkl_done_fn done,
                           void *userdata,
                           zkl_finalizer_fn finalizer,
                           zkl_attempt **attempt);

/**
 * A file descriptor that becomes readable (POLLIN) when the attempt has ended in any way: for poll, epoll and event
 * loops. It stays readable.
 *
 * The attempt owns it and closes it. Each call gives the same one. Do not read or close it, and take it out of the
 * event loop before you free the attempt. An attempt with a `done` has one too; it is readable before `done` is
 * called.
 *
 * Any thread, callbacks included; does not block.
 *
 * ZOK. ZBADARGUMENTS: an argument is NULL. ZSYSTEMERROR: no descriptor is available.
 */
int zkl_attempt_fd(const zkl_attempt *attempt,
                   int *fd);

/**
 * Takes the outcome of an acquire without a `done`, once. The attempt must still be freed.
 *
 * Any thread, callbacks included; does not block. With ZOK `*guard` is the program's: end it with zkl_guard_release or
 * zkl_guard_free.
 *
 * ZOK. ZKL_PENDING: it has not ended. ZKL_CANCELLED. ZNOTHING: the outcome was taken before. ZBADARGUMENTS: an
 * argument is NULL, or the attempt has a `done`. Otherwise as zkl_lock_acquire.
 */
int zkl_attempt_take(const zkl_attempt *attempt,
                     zkl_guard **guard);

/**
 * Cancels an acquire or other wait. After ZOK, the outcome is ZKL_CANCELLED, and no claim is left. Does not wait for
 * that.
 *
 * Any thread, callbacks included.
 *
 * ZOK, also if it was cancelled before. ZNOTHING: `done` has started, or the outcome was taken. ZBADARGUMENTS: NULL.
 */
int zkl_attempt_cancel(const zkl_attempt *attempt);

/**
 * Frees the attempt and closes its descriptor. An attempt with a `done` continues; this does not cancel it. One
 * without is cancelled, unless its outcome was taken. Waits only if this was the last object of its client: see
 * zkl_client_free.
 *
 * Any thread, callbacks included (its own `done` among them). NULL is allowed.
 */
void zkl_attempt_free(zkl_attempt *attempt);

/**
 * The holder: a list of one entry, or an empty one.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks up to the operation timeout. On success
 * `*contenders` is the program's: free it with zkl_contenders_free.
 *
 * ZOK. ZBADARGUMENTS: an argument is NULL. ZOPERATIONTIMEOUT or ZCONNECTIONLOSS: no server answers. ZNOAUTH.
 * ZINVALIDSTATE, ZSESSIONEXPIRED or ZAUTHFAILED: the client is closed. ZKL_WOULD_DEADLOCK: inside a callback of the C
 * client.
 */
int zkl_lock_holder(const zkl_lock *lock,
                    zkl_contenders **contenders);

/**
 * The contenders in their order: holders first, then waiters. Waiters are known only in a queue, because waiters of
 * the other strategies have no znode.
 *
 * Threads, ownership and codes: as zkl_lock_holder.
 */
int zkl_lock_contenders(const zkl_lock *lock,
                        zkl_contenders **contenders);

/**
 * The number of entries; 0 for NULL.
 *
 * Any thread.
 */
size_t zkl_contenders_count(const zkl_contenders *contenders);

/**
 * The entry at `index`, from 0. NULL beyond the end and for NULL. The list owns it.
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
 * ZKL_HELD, ZKL_SUSPENDED or ZKL_LOST, by the local clock at this moment. Costs no request.
 *
 * While it is ZKL_HELD, no other client holds the lock: it becomes ZKL_LOST before the servers can admit another
 * client. That requires that nobody deletes the lock's znode by hand, and that `tick_time_ms` of `zkl_client_options`
 * is right. But time passes between a check and the write that follows. To be safe even then, use zkl_guard_token or
 * zkl_guard_set.
 *
 * Any thread. ZBADARGUMENTS: NULL.
 */
int zkl_guard_state(const zkl_guard *guard);

/**
 * Why the lock is lost, by the local clock at this moment: ZKL_LOST_SESSION, ZKL_LOST_DELETED or ZKL_LOST_BROKEN. 0 if
 * it is not lost.
 *
 * Any thread. ZBADARGUMENTS: NULL.
 */
int zkl_guard_lost_reason(const zkl_guard *guard);

/**
 * The fencing token: a number above 0 that grows with every acquire of this lock, by any client (the czxid of the
 * lock's znode). If a store remembers the largest token and rejects smaller ones, a holder that has lost the lock
 * cannot write to it.
 *
 * Any thread. ZBADARGUMENTS: NULL.
 */
int64_t zkl_guard_token(const zkl_guard *guard);

/**
 * The lock's path; for a multi-lock, the path of the first lock.
 *
 * Any thread. The guard owns the string; NULL for NULL.
 */
const char *zkl_guard_path(const zkl_guard *guard);

/**
 * Writes the path of the claim's znode to `buffer`, with a NUL and cut off at `size` bytes. Returns the length of the
 * whole path without the NUL. An upgrade or a downgrade may change the path. For a multi-lock, it is the claim
 * of the lock whose path sorts first. It is empty for NULL.
 *
 * Any thread. `buffer` has room for `size` bytes, or is NULL: then nothing is written.
 */
size_t zkl_guard_claim_path(const zkl_guard *guard,
                            char *buffer,
                            size_t size);

/**
 * Registers `lost`, which zklock calls when the lock is lost: at most once, on the client's callback thread, and at
 * once if the lock is lost already. A release does not call it. `finalizer`, if it is not NULL, runs once in any case,
 * on that thread: after `lost`, or when the guard ends. If this returns an error, neither is called.
 *
 * A lost session is reported before the servers can admit another client. A deletion of the znode by another client is
 * reported only afterwards, and only once the lock has been held for about 100 ms.
 *
 * `lost` may block, call any function of zklock and free the guard. Callbacks of one client run one after the other,
 * so one that blocks delays the next. zkl_guard_release and zkl_guard_free take the registration back: `lost` does not
 * start after them, even for an earlier loss, but one that has started may still run. Several registrations are
 * independent.
 *
 * Any thread, callbacks included; does not block.
 *
 * ZOK. ZBADARGUMENTS: `guard` or `lost` is NULL. ZSYSTEMERROR: no thread is available.
 */
int zkl_guard_on_lost(const zkl_guard *guard,
                      zkl_lost_fn lost,
                      void *userdata,
                      zkl_finalizer_fn finalizer);

/**
 * Waits until the lock is lost, up to `timeout_ms`: ZKL_FOREVER waits without a limit, 0 checks once.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. Do not free or release the guard meanwhile.
 *
 * ZOK: the lock is lost. ZOPERATIONTIMEOUT: it is not. ZBADARGUMENTS: NULL, or another negative timeout.
 * ZKL_WOULD_DEADLOCK: inside a callback of the C client, unless the timeout is 0.
 */
int zkl_guard_wait_lost(const zkl_guard *guard,
                        int timeout_ms);

/**
 * A file descriptor that becomes readable (POLLIN) when the lock is lost: for poll, epoll and event loops. The guard
 * owns it and closes it. Each call gives the same one. Do not read or close it, and take it out of the event loop
 * before you end the guard. It reports the same losses as zkl_guard_on_lost.
 *
 * Any thread, callbacks included; does not block.
 *
 * ZOK. ZBADARGUMENTS: an argument is NULL. ZSYSTEMERROR: no descriptor is available.
 */
int zkl_guard_fd(const zkl_guard *guard,
                 int *fd);

/**
 * A file descriptor that becomes readable (POLLIN) with each change of the guard's state; it is readable from the
 * start. zkl_guard_take_state gives the state and makes it unreadable until the next change. Ownership: as
 * zkl_guard_fd.
 *
 * Any thread, callbacks included; does not block.
 *
 * ZOK. ZBADARGUMENTS: an argument is NULL. ZSYSTEMERROR: no descriptor is available.
 */
int zkl_guard_state_fd(const zkl_guard *guard,
                       int *fd);

/**
 * As zkl_guard_state. The descriptor of zkl_guard_state_fd becomes unreadable until the next change.
 *
 * Any thread, callbacks included. ZBADARGUMENTS: NULL.
 */
int zkl_guard_take_state(const zkl_guard *guard);

/**
 * Replaces the data of a znode in one transaction with the check that the lock is still held: if it is not, nothing is
 * written. Waits for the outcome, up to the operation timeout.
 *
 * `path` is the znode to write, `data` its new data of `len` bytes (NULL only with 0). `version` is the version that
 * its data must have, or -1 for any. `stat` may be NULL; otherwise it gets the znode's new stat.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK. ZKL_NOT_HELD. ZNONODE: the znode does not exist. ZBADVERSION. ZNOAUTH. ZBADARGUMENTS: an argument is NULL,
 * ZooKeeper does not allow the path, the version is below -1, or the data exceeds a request. ZKL_WOULD_DEADLOCK:
 * inside a callback of the C client. ZKL_NOT_CONNECTED: try again. ZKL_OUTCOME_UNKNOWN: read the znode.
 */
int zkl_guard_set(const zkl_guard *guard,
                  const char *path,
                  const void *data,
                  size_t len,
                  int version,
                  struct Stat *stat);

/**
 * Releases the lock and waits for the confirmation. Frees the guard, whatever it returns.
 *
 * The deletion of the lock's znode is repeated until the znode or the session is gone. Without a connection this waits
 * for the next one, as long as the session can be trusted: it ends within the session timeout, and at once if the lock
 * is lost. To wait for less, use zkl_guard_release_within; not to wait, zkl_guard_free.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK, also for a leadership that was handed over. ZSESSIONEXPIRED: before the release, the session was lost or
 * somebody broke the hold. ZNONODE: another client deleted the znode. After either, others may have held the lock.
 * ZNOAUTH: the session may not DELETE in the lock's directory, so the lock stays until the session ends. A client with
 * its own session replaces it as soon as it holds no other lock. ZINVALIDSTATE, ZCLOSING or ZKL_OUTCOME_UNKNOWN: the
 * client was detached. ZBADARGUMENTS: NULL. ZKL_WOULD_DEADLOCK: inside a callback of the C client; the lock is
 * released in the background.
 */
int zkl_guard_release(zkl_guard *guard);

/**
 * As zkl_guard_release, but waits at most `timeout_ms`: ZKL_FOREVER as zkl_guard_release, 0 not at all. Frees the
 * guard, whatever it returns.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * As zkl_guard_release, and ZKL_OUTCOME_UNKNOWN: no server confirmed it in time, and it continues in the background.
 * ZBADARGUMENTS also for another negative timeout: the lock is released in the background.
 */
int zkl_guard_release_within(zkl_guard *guard,
                             int timeout_ms);

/**
 * Releases the lock in the background, and frees the guard. The deletion of the lock's znode is submitted now. It is
 * repeated until the znode or the session is gone, as long as the process lives; see "The end of the process". Waits
 * only if this was the last object of its client: see zkl_client_free.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_guard_free(zkl_guard *guard);

/**
 * How a read/write lock is held now: ZKL_READ, ZKL_UPGRADEABLE or ZKL_WRITE. ZKL_EXCLUSIVE for
 * any other lock. Costs no request.
 *
 * Any thread. ZBADARGUMENTS: NULL.
 */
int zkl_guard_access(const zkl_guard *guard);

/**
 * Turns an upgradeable hold (ZKL_UPGRADEABLE) into a writer's without releasing it. Waits up to `timeout_ms`, or
 * ZKL_FOREVER, until the present readers have released. Meanwhile no other client is admitted: neither later readers
 * nor waiting writers. For a writer it does nothing. The fencing token stays the same.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. Do not free or release the guard meanwhile.
 *
 * ZOK. ZOPERATIONTIMEOUT: the time has passed. The hold is unchanged, and nothing is left behind. ZKL_NOT_HELD: the
 * lock is lost. ZBADARGUMENTS: NULL, another negative timeout, a plain reader, a lock that is not a read/write lock,
 * or one of several guards of a claim. ZINVALIDSTATE: another thread is changing it. ZKL_WOULD_DEADLOCK: inside a
 * callback of the C client. Otherwise as zkl_lock_acquire.
 */
int zkl_guard_upgrade(const zkl_guard *guard,
                      int timeout_ms);

/**
 * Turns a writer's hold into an upgradeable one or a reader's, or an upgradeable hold into a reader's, without
 * releasing it: `to` is ZKL_UPGRADEABLE or ZKL_READ. It keeps its place in the queue. Readers directly behind it are
 * admitted. No reader passes a waiting writer. The fencing token stays the same.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks up to `timeout_ms`. Do not free or release the
 * guard meanwhile.
 *
 * ZOK, also if the hold already is as wanted. ZKL_OUTCOME_UNKNOWN: no server confirmed it in time; zkl_guard_access
 * gives the present kind. ZKL_NOT_HELD: the lock is lost. ZBADARGUMENTS: NULL, another negative timeout, another `to`,
 * or a reader that is to become upgradeable. Otherwise as zkl_guard_upgrade.
 */
int zkl_guard_downgrade(const zkl_guard *guard,
                        int to,
                        int timeout_ms);

/**
 * As zkl_lock_try, but does not wait. zklock calls `done` exactly once with the result of zkl_lock_try, on the
 * client's callback thread, and then `finalizer`, if it is not NULL. Both may run before this returns. If this returns
 * an error, neither is called.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK: it has started. ZBADARGUMENTS: `lock` or `done` is NULL. ZSYSTEMERROR: no thread is available.
 */
int zkl_lock_try_async(const zkl_lock *lock,
                       zkl_done_fn done,
                       void *userdata,
                       zkl_finalizer_fn finalizer);

/**
 * As zkl_lock_contenders, but does not wait, and gives at most the first `most` contenders: with 1 the holder alone,
 * as zkl_lock_holder. `done` and `finalizer`: as in zkl_lock_try_async.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK: it has started. ZBADARGUMENTS: `lock` or `done` is NULL. ZSYSTEMERROR: no thread is available.
 */
int zkl_lock_contenders_async(const zkl_lock *lock,
                              size_t most,
                              zkl_contenders_fn done,
                              void *userdata,
                              zkl_finalizer_fn finalizer);

/**
 * As zkl_guard_set, but does not wait: the write is submitted when this returns. `done` and `finalizer`: as in
 * zkl_lock_try_async.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK: it has started. ZBADARGUMENTS: `guard`, `path` or `done` is NULL, or the version is below -1. ZSYSTEMERROR: no
 * thread is available. `done` reports everything else.
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
 * As zkl_guard_release_within, but does not wait. When this returns, the release is submitted and the guard freed,
 * even after an error. `done` and `finalizer`: as in zkl_lock_try_async.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK: it has started. ZBADARGUMENTS: an argument is NULL, or the timeout is negative and not ZKL_FOREVER.
 * ZSYSTEMERROR: no thread is available. After an error the lock is released in the background. `done` reports
 * everything else.
 */
int zkl_guard_release_async(zkl_guard *guard,
                            int timeout_ms,
                            zkl_result_fn done,
                            void *userdata,
                            zkl_finalizer_fn finalizer);

/**
 * Makes a multi-lock: several locks that are acquired together, all or none. Sends nothing. The locks may have any
 * sharing, be re-entrant, or be of a key. There must be at least one, all of one client, and no two on one path.
 *
 * Queues get all claims in one transaction. So two multi-locks have the same order in every queue that they share, and
 * cannot deadlock. Locks with another strategy, and re-entrant ones, are acquired before, one after the other in the
 * order of their paths.
 *
 * `locks` is an array of `count` locks. They are copied, and may be freed.
 *
 * Any thread; does not block. On success `*multi` is the program's: free it with zkl_multi_lock_free.
 *
 * ZOK. ZBADARGUMENTS: an argument or a lock is NULL, there are no locks, they are of several clients, or two are on
 * one path. ZINVALIDSTATE: in the child of a fork.
 */
int zkl_multi_lock_new(const zkl_lock *const *locks,
                       size_t count,
                       zkl_multi_lock **multi);

/**
 * Frees the multi-lock. Its guards stay held, and its attempts continue.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_multi_lock_free(zkl_multi_lock *multi);

/**
 * Acquires all locks, up to `timeout_ms` in total, as zkl_lock_acquire does one. One guard covers them. Its state is
 * the worst of theirs, and it is lost when one of them is. zkl_guard_set writes only while all are held.
 * zkl_guard_token_of gives the token of each.
 *
 * On connection loss it continues and looks up its claims: all exist, or none. After an error no claim is left.
 * `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*guard` is the program's: end it
 * with zkl_guard_release or zkl_guard_free, which release all.
 *
 * ZOK; otherwise as zkl_lock_acquire, for any of the locks.
 */
int zkl_multi_lock_acquire(const zkl_multi_lock *multi,
                           int timeout_ms,
                           zkl_guard **guard);

/**
 * Acquires all locks if no other contender is ahead at any. Waits only for the servers' answers, up to the operation
 * timeout. `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*guard` is the program's: end it
 * with zkl_guard_release or zkl_guard_free.
 *
 * ZOK. ZKL_TAKEN: nothing is left. Otherwise as zkl_lock_try, for any of the locks.
 */
int zkl_multi_lock_try(const zkl_multi_lock *multi,
                       zkl_guard **guard);

/**
 * As zkl_multi_lock_acquire, but does not wait. Otherwise as zkl_lock_acquire_async, a NULL `done` included.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK: it has started; otherwise as zkl_lock_acquire_async.
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
 * The fencing token of one of the guard's locks, counted from 0 in the order of zkl_multi_lock_new. zkl_guard_token
 * gives that of the first. If all locks are queues, all tokens are the same: the number of the transaction that made
 * the claims.
 *
 * Any thread. ZBADARGUMENTS: NULL, or beyond the last.
 */
int64_t zkl_guard_token_of(const zkl_guard *guard,
                           size_t index);

/**
 * The path of one of the guard's locks: see zkl_guard_token_of.
 *
 * Any thread. The guard owns the string; NULL for NULL, and beyond the last.
 */
const char *zkl_guard_path_of(const zkl_guard *guard, size_t index);

/**
 * Makes the lock of a key: for many short-lived locks below one path, such as one for each order or user. It works as
 * a lock of zkl_lock_new, but leaves nothing on the servers when no client holds it or waits for it. Its znode (`key-`
 * and the key, below `path`) is created and deleted each time, which costs some more requests. Sends nothing.
 *
 * `key` is any `len` bytes (NULL only with 0). `path` is absolute, under the client's chroot. Keep other znodes away
 * from it. `options` may be NULL; strategy, sharing and interop must be the defaults. All are copied.
 *
 * Any thread; does not block. On success `*lock` is the program's: free it with zkl_lock_free.
 *
 * ZOK. ZBADARGUMENTS: an argument is NULL, ZooKeeper does not allow the path, or options are invalid. ZINVALIDACL: the
 * ACL is empty or malformed. ZINVALIDSTATE: in the child of a fork. If path and key together exceed a request, the
 * acquire fails with ZBADARGUMENTS.
 */
int zkl_lock_of_key(const zkl_client *client,
                    const char *path,
                    const void *key,
                    size_t len,
                    const zkl_lock_options *options,
                    zkl_lock **lock);

/**
 * Ends the calls. None is started any more, but one that has started may still run. Then the finalizer of `userdata`
 * runs. Does not wait for it.
 *
 * Any thread, callbacks included (its own among them). NULL is allowed.
 */
void zkl_watch_free(zkl_watch *watch);

/**
 * Makes an election at a path. Sends nothing. A participant joins by zkl_election_campaign. The first to join leads.
 * When it resigns, dies or loses its session, the next one leads, in the order in which they joined. An election is a
 * lock, and its holder leads. A client that acquires a zkl_lock in a queue with that path takes part too.
 *
 * `path` is absolute, under the client's chroot. `options` may be NULL. Its `label` describes this participant, and
 * `acl` applies; strategy and sharing must be the defaults. All are copied.
 *
 * Any thread; does not block. On success `*election` is the program's: free it with zkl_election_free.
 *
 * ZOK. ZBADARGUMENTS: an argument is NULL, ZooKeeper does not allow the path, or options are invalid. ZINVALIDACL: the
 * ACL is empty or malformed. ZINVALIDSTATE: in the child of a fork.
 */
int zkl_election_new(const zkl_client *client,
                     const char *path,
                     const zkl_lock_options *options,
                     zkl_election **election);

/**
 * Frees the election. Leaders, attempts and watches continue.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_election_free(zkl_election *election);

/**
 * Takes part until this participant leads, up to `timeout_ms` in total: ZKL_FOREVER waits without a limit, 0 checks
 * once.
 *
 * It leads while its guard is ZKL_HELD, which ends before another can lead. zkl_guard_token is the term, and larger
 * than that of every earlier leader. zkl_guard_on_lost and zkl_guard_fd report a loss of the leadership. zkl_guard_set
 * writes only while it leads. zkl_guard_release and zkl_guard_free resign.
 *
 * On connection loss it continues, as zkl_lock_acquire. After an error it does not take part. `pthread_cancel` waits
 * until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*guard` is the program's: end it
 * with zkl_guard_release or zkl_guard_free.
 *
 * ZOK; otherwise as zkl_lock_acquire. ZINVALIDSTATE: in the child of a fork.
 */
int zkl_election_campaign(const zkl_election *election,
                          int timeout_ms,
                          zkl_guard **guard);

/**
 * As zkl_election_campaign, but does not wait. zklock calls `done` when this participant leads. Otherwise as
 * zkl_lock_acquire_async, a NULL `done` included. zkl_attempt_cancel ends the participation.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK: it has started; otherwise as zkl_lock_acquire_async.
 */
int zkl_election_campaign_async(const zkl_election *election,
                                int timeout_ms,
                                zkl_done_fn done,
                                void *userdata,
                                zkl_finalizer_fn finalizer,
                                zkl_attempt **attempt);

/**
 * Resigns in favour of a participant from zkl_election_participants, and waits up to `timeout_ms` until it leads.
 * Participants with an earlier turn give way to it, once each, and queue behind it. The guard stays the program's,
 * whatever this returns. Once it has resigned, the guard is ZKL_LOST with reason 0. Then `lost` callbacks are not
 * called, and zkl_guard_release gives ZOK.
 *
 * There are never two leaders, and terms grow, whatever fails: the claims alone decide who leads. If the chosen
 * participant dies or leaves, the next one leads. Participants that acquire the lock itself, without an election, do
 * not give way.
 *
 * On connection loss it continues while the session lives. `pthread_cancel` waits until it has ended. In the child of
 * a fork nothing is done.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. Do not free or release the guard meanwhile.
 *
 * ZOK: the chosen participant leads. ZNOTHING: it has left the election. If zkl_guard_state is ZKL_HELD, it had left
 * before, and this one still leads; otherwise the next one leads. ZKL_NOT_HELD: the leadership was lost before.
 * ZKL_OUTCOME_UNKNOWN: the time has passed, or the session or the client was over meanwhile. The chosen participant may
 * still lead later; zkl_guard_state tells whether this one has resigned. ZBADARGUMENTS: an argument is NULL, a guard of
 * something else, or another negative timeout. Otherwise as zkl_lock_acquire; nothing was done.
 */
int zkl_election_hand_over(const zkl_election *election,
                           const zkl_guard *guard,
                           const zkl_contender *to,
                           int timeout_ms);

/**
 * As zkl_election_hand_over, but does not wait. zklock calls `done` exactly once with its result, on the client's
 * callback thread, and then `finalizer`, if it is not NULL. Both may run before this returns. If this returns an
 * error, neither is called. The guard may be released or freed meanwhile.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK: it has started. ZBADARGUMENTS: `election`, `guard`, `to` or `done` is NULL, a guard of something else, or
 * another negative timeout. ZSYSTEMERROR: no thread is available. `done` reports
 * everything else.
 */
int zkl_election_hand_over_async(const zkl_election *election,
                                 const zkl_guard *guard,
                                 const zkl_contender *to,
                                 int timeout_ms,
                                 zkl_result_fn done,
                                 void *userdata,
                                 zkl_finalizer_fn finalizer);

/**
 * The leader: a list of one entry, with the term as its token, or an empty one.
 *
 * Threads, ownership and codes: as zkl_lock_holder. `pthread_cancel` waits until it has ended. ZINVALIDSTATE: in the
 * child of a fork.
 */
int zkl_election_leader(const zkl_election *election,
                        zkl_contenders **leader);

/**
 * The participants in the order in which they will lead. The first one leads.
 *
 * Threads, ownership and codes: as zkl_lock_holder. `pthread_cancel` waits until it has ended. ZINVALIDSTATE: in the
 * child of a fork.
 */
int zkl_election_participants(const zkl_election *election,
                              zkl_contenders **participants);

/**
 * Watches the leader without taking part. zklock calls `changed` with the leader, now and at each change: a list of
 * one entry or an empty one, which the program frees. A leader that comes and goes between two calls is left out. The
 * next call comes after the previous one has returned. During a hand-over it may briefly show participants that give
 * way.
 *
 * Calls run on the client's callback thread until `*watch` is freed; then `finalizer` runs. On connection loss they
 * continue with the next connection or session. A code other than ZOK, with NULL for the list, is the last call, and
 * `finalizer` follows it too. Either the servers refuse, or the client is closed (ZINVALIDSTATE, ZCLOSING or
 * ZSESSIONEXPIRED). A client of an adopted handle also ends with its session: watch again after zkl_client_follow.
 *
 * Until it is freed, it keeps the client's session, as a guard does. In the child of a fork nothing is called.
 *
 * Any thread, callbacks included; does not block. On success `*watch` is written before `changed` can run, and is the
 * program's: end it with zkl_watch_free.
 *
 * ZOK. ZBADARGUMENTS: `election`, `changed` or `watch` is NULL. ZSYSTEMERROR: no thread is available. ZINVALIDSTATE:
 * in the child of a fork.
 */
int zkl_election_observe(const zkl_election *election,
                         zkl_contenders_fn changed,
                         void *userdata,
                         zkl_finalizer_fn finalizer,
                         zkl_watch **watch);

/**
 * Makes a counter at a path. Sends nothing. It is a persistent znode with the number in decimal digits. A missing
 * znode, or one without data, counts as 0. The first change creates it and its parents.
 *
 * `path` is absolute, under the client's chroot. `options` may be NULL: the defaults. Both are copied.
 *
 * Any thread; does not block. On success `*counter` is the program's: free it with zkl_counter_free.
 *
 * ZOK. ZBADARGUMENTS: an argument is NULL, ZooKeeper does not allow the path, or options are invalid. ZINVALIDACL: the
 * ACL is empty or malformed. ZINVALIDSTATE: in the child of a fork.
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
 * Reads the number, with all changes made before the call, into `*value`. Waits up to `timeout_ms`, or ZKL_FOREVER.
 *
 * On connection loss it is read again. `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK. ZBADARGUMENTS: an argument is NULL, another negative timeout, or the znode's data is no number.
 * ZOPERATIONTIMEOUT: no server answers. ZNOAUTH. ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED: the client
 * is closed; ZINVALIDSTATE also in the child of a fork. ZKL_WOULD_DEADLOCK: inside a callback of the C client.
 */
int zkl_counter_get(const zkl_counter *counter,
                    int timeout_ms,
                    int64_t *value);

/**
 * Sets the number. Waits up to `timeout_ms`, or ZKL_FOREVER.
 *
 * On connection loss it waits for the next connection and looks up there whether it was done. It is never done twice.
 * `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK. ZCONNECTIONLOSS, ZOPERATIONTIMEOUT and ZCLOSING: the outcome is unknown. The session ended before the look-up,
 * no server was reached in time, the servers allow no znodes under /zklock/receipts, or the time is up. ZBADVERSION:
 * other clients were faster a hundred times; nothing was done. Otherwise as zkl_counter_get; nothing was done.
 */
int zkl_counter_set(const zkl_counter *counter,
                    int64_t value,
                    int timeout_ms);

/**
 * Adds a number (subtracts a negative one). `after` may be NULL; otherwise it gets the new value.
 *
 * Threads, waiting and codes: as zkl_counter_set. ZBADARGUMENTS also if the sum exceeds 64 bits; nothing was done.
 */
int zkl_counter_add(const zkl_counter *counter,
                    int64_t number,
                    int timeout_ms,
                    int64_t *after);

/**
 * As zkl_counter_add, but `before` gets the old value. If all clients use this function with positive numbers, each
 * old value is unique.
 */
int zkl_counter_get_and_add(const zkl_counter *counter,
                            int64_t number,
                            int timeout_ms,
                            int64_t *before);

/**
 * Sets the number to `value` if it is `expected`. `*before` gets the old value: the number was set exactly if that is
 * `expected`.
 *
 * Threads, waiting and codes: as zkl_counter_set. ZOK also if the number was another one and nothing was done.
 */
int zkl_counter_compare_and_set(const zkl_counter *counter,
                                int64_t expected,
                                int64_t value,
                                int timeout_ms,
                                int64_t *before);

/**
 * Makes a work queue at a path: each element is delivered at least once, to one consumer at a time. Sends nothing.
 * Elements are persistent znodes, as in zoo_queue.h. A consumer's claim is beside the queue (in `zl-claims-NAME`). Use
 * it for hundreds of elements, not for a million.
 *
 * `path` is absolute, under the client's chroot. `options` may be NULL: the defaults. Both are copied.
 *
 * Any thread; does not block. On success `*queue` is the program's: free it with zkl_queue_free.
 *
 * ZOK. ZBADARGUMENTS: an argument is NULL, ZooKeeper does not allow the path, or options are invalid. ZINVALIDACL: the
 * ACL is empty or malformed. ZINVALIDSTATE: in the child of a fork.
 */
int zkl_queue_new(const zkl_client *client,
                  const char *path,
                  const zkl_recipe_options *options,
                  zkl_queue **queue);

/**
 * Frees the queue. Its elements, deliveries and attempts stay.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_queue_free(zkl_queue *queue);

/**
 * Puts an element of `len` bytes (NULL only with 0). `priority` is 0 to 255, with 0 delivered first; use
 * ZKL_DEFAULT_PRIORITY if it does not matter. The element goes behind those of the same priority. Waits up to
 * `timeout_ms`, or ZKL_FOREVER.
 *
 * On connection loss it waits for the next connection and looks up there whether it was done. Nothing is put twice.
 * `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK. ZCONNECTIONLOSS, ZOPERATIONTIMEOUT and ZCLOSING: the outcome is unknown. After the others nothing was done:
 * ZBADARGUMENTS: an argument is NULL, another priority or negative timeout, or the element exceeds a request. ZNOAUTH.
 * ZINVALIDSTATE, ZSESSIONEXPIRED or ZAUTHFAILED: the client is closed; ZINVALIDSTATE also in the child of a fork.
 * ZKL_WOULD_DEADLOCK: inside a callback of the C client.
 */
int zkl_queue_put(const zkl_queue *queue,
                  const void *data,
                  size_t len,
                  int priority,
                  int timeout_ms);

/**
 * Copies the data of the first element, claimed or not, without taking it: up to `size` bytes to `buffer` (NULL only
 * with 0). `*len` gets its full length. Waits up to `timeout_ms`, or ZKL_FOREVER.
 *
 * On connection loss it is read again. `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK. ZNOTHING: the queue is empty. ZBADARGUMENTS: an argument is NULL, or another negative timeout.
 * ZOPERATIONTIMEOUT: no server answers. ZNOAUTH. ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED: the client
 * is closed; ZINVALIDSTATE also in the child of a fork. ZKL_WOULD_DEADLOCK: inside a callback of the C client.
 */
int zkl_queue_peek(const zkl_queue *queue,
                   int timeout_ms,
                   void *buffer,
                   size_t size,
                   size_t *len);

/**
 * Takes the first unclaimed element, and waits for one up to `timeout_ms`: ZKL_FOREVER waits without a limit, 0 checks
 * once.
 *
 * The element stays in the queue, claimed, until zkl_delivery_done removes it. zkl_delivery_free, the loss of the
 * session and the end of the process give it to another consumer. So the work may be done twice, one after the other:
 * see zkl_delivery_guard.
 *
 * On connection loss it continues on the next connection or session. After an error nothing is taken. `pthread_cancel`
 * waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*delivery` is the program's: end it
 * with zkl_delivery_done or zkl_delivery_free.
 *
 * ZOK. ZOPERATIONTIMEOUT: the time has passed. ZBADARGUMENTS: an argument is NULL, or another negative timeout.
 * ZNOAUTH. ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED: the client is closed; ZINVALIDSTATE also in the
 * child of a fork. ZKL_WOULD_DEADLOCK: inside a callback of the C client.
 */
int zkl_queue_take(const zkl_queue *queue,
                   int timeout_ms,
                   zkl_delivery **delivery);

/**
 * Starts to take an element and returns. zklock calls `done` exactly once with the outcome, on the client's callback
 * thread, and then `finalizer`, if it is not NULL. Both may run before this returns. If this returns an error, neither
 * is called.
 *
 * The attempt continues when the queue and the client are freed. It ends with its outcome, or by zkl_attempt_cancel,
 * which takes nothing. If the client is detached or the adopted handle closed, it ends with ZINVALIDSTATE or ZCLOSING.
 * On connection loss it behaves as zkl_queue_take. `attempt` may be NULL. Otherwise `*attempt` is written before
 * `done` can run, and is the program's: free it with zkl_attempt_free.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK: it has started. ZBADARGUMENTS: `queue` or `done` is NULL, or the timeout is negative and not ZKL_FOREVER.
 * ZSYSTEMERROR: no thread is available. `done` reports everything else.
 */
int zkl_queue_take_async(const zkl_queue *queue,
                         int timeout_ms,
                         zkl_delivery_fn done,
                         void *userdata,
                         zkl_finalizer_fn finalizer,
                         zkl_attempt **attempt);

/**
 * The element's data. `len` may be NULL; otherwise it gets the number of bytes.
 *
 * Any thread. The delivery owns the bytes, which have no terminating NUL; NULL for NULL.
 */
const void *zkl_delivery_data(const zkl_delivery *delivery, size_t *len);

/**
 * The path of the element.
 *
 * Any thread. The delivery owns the string; NULL for NULL.
 */
const char *zkl_delivery_path(const zkl_delivery *delivery);

/**
 * The claim on the element, as the guard of a lock. zkl_guard_state tells whether another consumer may have the
 * element by now. zkl_guard_on_lost and zkl_guard_fd report that before it happens. zkl_guard_token grows with each
 * delivery of the element, so a store can reject writes of an earlier consumer. zkl_guard_set writes only while the
 * element is claimed.
 *
 * Any thread. The delivery owns the guard and ends it: do not release or free it. NULL for NULL.
 */
const zkl_guard *zkl_delivery_guard(const zkl_delivery *delivery);

/**
 * Removes the element: it is done and will not be delivered again. Waits up to `timeout_ms`, or ZKL_FOREVER. Frees the
 * delivery, whatever it returns.
 *
 * On connection loss it waits for the next connection and looks up there whether it was removed. `pthread_cancel`
 * waits until it has ended. In the child of a fork it only frees.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK. ZKL_NOT_HELD: the claim was lost before, and the element is delivered again. ZNONODE: another program has
 * removed it. ZBADVERSION: another program has changed it. ZKL_OUTCOME_UNKNOWN: if it was not removed, it is delivered
 * again. ZBADARGUMENTS: NULL, or another negative timeout. ZKL_WOULD_DEADLOCK: inside a callback of the C client.
 * After either, it is delivered again. ZINVALIDSTATE: in the child of a fork.
 */
int zkl_delivery_done(zkl_delivery *delivery,
                      int timeout_ms);

/**
 * As zkl_delivery_done, but does not wait. When this returns, the removal is submitted and the delivery freed, even
 * after an error. zklock calls `done` exactly once with the result of zkl_delivery_done, on the client's callback
 * thread, and then `finalizer`, if it is not NULL. Both may run before this returns. If this returns an error, neither
 * is called.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK: it has started. ZBADARGUMENTS: `delivery` or `done` is NULL, or another negative timeout. ZSYSTEMERROR: no
 * thread is available. After an error the element is delivered again. `done` reports everything else.
 */
int zkl_delivery_done_async(zkl_delivery *delivery,
                            int timeout_ms,
                            zkl_result_fn done,
                            void *userdata,
                            zkl_finalizer_fn finalizer);

/**
 * Gives the element back in the background: another consumer takes it. Frees the delivery. Waits only if this was the
 * last object of its client: see zkl_client_free. In the child of a fork it only frees.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_delivery_free(zkl_delivery *delivery);

/**
 * Makes a group at a path: all clients can see its members as long as they live. Sends nothing. Members are ephemeral
 * znodes below the path, as in kazoo's `Party`.
 *
 * `path` is absolute, under the client's chroot. `options` may be NULL: the defaults. Both are copied.
 *
 * Any thread; does not block. On success `*group` is the program's: free it with zkl_group_free.
 *
 * ZOK. ZBADARGUMENTS: an argument is NULL, ZooKeeper does not allow the path, or options are invalid. ZINVALIDACL: the
 * ACL is empty or malformed. ZINVALIDSTATE: in the child of a fork.
 */
int zkl_group_new(const zkl_client *client,
                  const char *path,
                  const zkl_recipe_options *options,
                  zkl_group **group);

/**
 * Frees the group. Members and watches stay.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_group_free(zkl_group *group);

/**
 * Joins the group, with `len` bytes of data (NULL only with 0) that all clients can read. Waits up to `timeout_ms`, or
 * ZKL_FOREVER. After its session has ended, the member joins again in the next session, with the same id. It does the
 * same if another client deletes its znode. On an adopted handle it ends with the session.
 *
 * On connection loss it waits for the next connection and looks up there whether it has joined. After an error no
 * member is left. `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*membership` is the program's: end
 * it with zkl_membership_leave or zkl_membership_free. It keeps the client's session, as a guard does.
 *
 * ZOK. ZOPERATIONTIMEOUT: the time has passed. ZBADARGUMENTS: an argument is NULL, another negative timeout, or the
 * data exceeds a request. ZNOAUTH. ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED: the client is closed;
 * ZINVALIDSTATE also in the child of a fork. ZKL_WOULD_DEADLOCK: inside a callback of the C client.
 */
int zkl_group_join(const zkl_group *group,
                   const void *data,
                   size_t len,
                   int timeout_ms,
                   zkl_membership **membership);

/**
 * The member's id in the group: see `zkl_member`.
 *
 * Any thread. The membership owns the string; NULL for NULL.
 */
const char *zkl_membership_id(const zkl_membership *membership);

/**
 * The path of the member's znode.
 *
 * Any thread. The membership owns the string; NULL for NULL.
 */
const char *zkl_membership_path(const zkl_membership *membership);

/**
 * 1 while it is a member, by the local clock; otherwise 0. After a loss of the session it is 0 until it has joined
 * again. Costs no request. It says less than a guard: a leader that others have replaced without its knowledge vouches
 * for a session that they have ended, for a few seconds.
 *
 * Any thread. ZBADARGUMENTS: NULL. ZINVALIDSTATE: in the child of a fork.
 */
int zkl_membership_is_member(const zkl_membership *membership);

/**
 * Leaves the group, and waits up to `timeout_ms`, or ZKL_FOREVER, until its znode is gone. Frees the membership,
 * whatever it returns. On connection loss the deletion is repeated until the znode or the session is gone.
 * `pthread_cancel` waits until it has ended. In the child of a fork it only frees.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK: its znode is gone. ZOPERATIONTIMEOUT: no server confirmed it in time. ZNOAUTH: the session may not delete it, and
 * it stays until the session ends. ZCONNECTIONLOSS: the client was detached or closed meanwhile, and no server has
 * confirmed the end of its session. ZKL_WOULD_DEADLOCK: inside a callback of the C client. ZBADARGUMENTS: NULL, or
 * another negative timeout. After an error it leaves in the background. ZINVALIDSTATE: in the child of a fork.
 */
int zkl_membership_leave(zkl_membership *membership,
                         int timeout_ms);

/**
 * Leaves the group in the background, and frees the membership. Waits only if this was the last object of its client:
 * see zkl_client_free. In the child of a fork it only frees.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_membership_free(zkl_membership *membership);

/**
 * The present members in the order in which they joined; empty if no member has joined yet. Waits up to `timeout_ms`,
 * or ZKL_FOREVER. It costs a listing, and a read for each member.
 *
 * On connection loss it asks again. `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*members` is the program's: free it
 * with zkl_members_free.
 *
 * ZOK. ZOPERATIONTIMEOUT: no server answers in time. Otherwise as zkl_group_join.
 */
int zkl_group_members(const zkl_group *group,
                      int timeout_ms,
                      zkl_members **members);

/**
 * Watches the members. zklock calls `changed` with them, now and at each change: a list, which the program frees.
 * Members that come and go between two calls are left out. A member that joined again in another session is a change
 * only if its place has changed. The next call comes after the previous one has returned. It costs one watch, one
 * listing for each change, and one read for each new member; if one came and went between two looks, one read for each
 * member.
 *
 * Thread, connection loss, end, `finalizer`, `*watch`, codes and fork: as zkl_election_observe.
 */
int zkl_group_watch(const zkl_group *group,
                    zkl_members_fn changed,
                    void *userdata,
                    zkl_finalizer_fn finalizer,
                    zkl_watch **watch);

/**
 * The number of entries; 0 for NULL.
 *
 * Any thread.
 */
size_t zkl_members_count(const zkl_members *members);

/**
 * The entry at `index`, from 0. NULL beyond the end and for NULL. The list owns it.
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
 * Makes a latch at a path: set to a number of events, counted down once for each event, open at zero. It opens once
 * and stays open. Sends nothing. It is a persistent znode with the remaining count in decimal digits.
 *
 * `path` is absolute, under the client's chroot. `options` may be NULL: the defaults. Both are copied.
 *
 * Any thread; does not block. On success `*latch` is the program's: free it with zkl_latch_free.
 *
 * ZOK. ZBADARGUMENTS: an argument is NULL, ZooKeeper does not allow the path, or options are invalid. ZINVALIDACL: the
 * ACL is empty or malformed. ZINVALIDSTATE: in the child of a fork.
 */
int zkl_latch_new(const zkl_client *client,
                  const char *path,
                  const zkl_recipe_options *options,
                  zkl_latch **latch);

/**
 * Frees the object. The latch itself does not change. Attempts continue.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_latch_free(zkl_latch *latch);

/**
 * Sets the latch to a number of events, unless it is already set. With 0 events it is open at once. `left` may be
 * NULL; otherwise it gets the remaining count. Waits up to `timeout_ms`, or ZKL_FOREVER.
 *
 * On connection loss it waits for the next connection and looks up there whether it was done. Nothing is counted
 * twice. `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK. ZCONNECTIONLOSS, ZOPERATIONTIMEOUT and ZCLOSING: the outcome is unknown. After the others nothing was done:
 * ZBADARGUMENTS: an argument is NULL, another negative timeout, or the znode at the path is no latch. ZNOAUTH.
 * ZINVALIDSTATE, ZSESSIONEXPIRED or ZAUTHFAILED: the client is closed; ZINVALIDSTATE also in the child of a fork.
 * ZKL_WOULD_DEADLOCK: inside a callback of the C client.
 */
int zkl_latch_set(const zkl_latch *latch,
                  uint32_t events,
                  int timeout_ms,
                  uint32_t *left);

/**
 * Counts one event. At zero the latch opens, and further counts do nothing. `left` may be NULL; otherwise it gets the
 * remaining count.
 *
 * Threads, waiting and codes: as zkl_latch_set. ZNONODE: the latch was never set; nothing was done.
 */
int zkl_latch_count_down(const zkl_latch *latch,
                         int timeout_ms,
                         uint32_t *left);

/**
 * Reads the remaining count, with all changes made before the call, into `*left`. On connection loss it is read again.
 *
 * Threads and waiting: as zkl_latch_set.
 *
 * ZOK. ZNONODE: the latch was never set. ZOPERATIONTIMEOUT: no server answers. Otherwise as zkl_latch_set.
 */
int zkl_latch_left(const zkl_latch *latch,
                   int timeout_ms,
                   uint32_t *left);

/**
 * Waits until the latch is open, up to `timeout_ms`: ZKL_FOREVER waits without a limit, 0 checks once. It also waits
 * if the latch is not set yet.
 *
 * On connection loss it continues on the next connection or session. `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK: the latch is open. ZOPERATIONTIMEOUT: it is not. ZBADARGUMENTS: NULL, or another negative timeout. ZNOAUTH.
 * ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED: the client is closed; ZINVALIDSTATE also in the child of a
 * fork. ZKL_WOULD_DEADLOCK: inside a callback of the C client.
 */
int zkl_latch_wait(const zkl_latch *latch,
                   int timeout_ms);

/**
 * As zkl_latch_wait, but does not wait. zklock calls `done` exactly once with its result, or with ZKL_CANCELLED.
 * Otherwise as zkl_queue_take_async.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK: it has started. ZBADARGUMENTS: `latch` or `done` is NULL, or the timeout is negative and not ZKL_FOREVER.
 * ZSYSTEMERROR: no thread is available. `done` reports everything else.
 */
int zkl_latch_wait_async(const zkl_latch *latch,
                         int timeout_ms,
                         zkl_result_fn done,
                         void *userdata,
                         zkl_finalizer_fn finalizer,
                         zkl_attempt **attempt);

/**
 * Makes a barrier at a path. Sends nothing. The barrier is set while a persistent znode exists at the path, as in
 * Curator and kazoo. It stays set when the program ends.
 *
 * `path` is absolute, under the client's chroot. `options` may be NULL: the defaults. Both are copied.
 *
 * Any thread; does not block. On success `*barrier` is the program's: free it with zkl_barrier_free.
 *
 * ZOK. ZBADARGUMENTS: an argument is NULL, ZooKeeper does not allow the path, or options are invalid. ZINVALIDACL: the
 * ACL is empty or malformed. ZINVALIDSTATE: in the child of a fork.
 */
int zkl_barrier_new(const zkl_client *client,
                    const char *path,
                    const zkl_recipe_options *options,
                    zkl_barrier **barrier);

/**
 * Frees the object. The barrier itself does not change. Attempts continue.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_barrier_free(zkl_barrier *barrier);

/**
 * Sets the barrier, and creates missing parents. If it is already set, it succeeds. Waits up to `timeout_ms`, or
 * ZKL_FOREVER.
 *
 * On connection loss it waits for the next connection and looks up there whether it was done. It is never done twice.
 * `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK. ZCONNECTIONLOSS, ZOPERATIONTIMEOUT and ZCLOSING: the outcome is unknown. After the others nothing was done:
 * ZBADARGUMENTS: NULL, or another negative timeout. ZNOAUTH. ZINVALIDSTATE, ZSESSIONEXPIRED or ZAUTHFAILED: the client
 * is closed; ZINVALIDSTATE also in the child of a fork. ZKL_WOULD_DEADLOCK: inside a callback of the C client.
 */
int zkl_barrier_set(const zkl_barrier *barrier,
                    int timeout_ms);

/**
 * Removes the barrier: all waiters pass. If it is not set, it succeeds.
 *
 * Threads, waiting and codes: as zkl_barrier_set.
 */
int zkl_barrier_remove(const zkl_barrier *barrier, int timeout_ms);

/**
 * Waits until the barrier is not set, up to `timeout_ms`: ZKL_FOREVER waits without a limit, 0 checks once.
 *
 * On connection loss it continues on the next connection or session. `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * ZOK: the barrier is not set. ZOPERATIONTIMEOUT: it is set, or no server answers. ZBADARGUMENTS: NULL, or another
 * negative timeout. ZNOAUTH. ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED: the client is closed;
 * ZINVALIDSTATE also in the child of a fork. ZKL_WOULD_DEADLOCK: inside a callback of the C client.
 */
int zkl_barrier_pass(const zkl_barrier *barrier,
                     int timeout_ms);

/**
 * As zkl_barrier_pass, but does not wait. zklock calls `done` exactly once with its result, or with ZKL_CANCELLED.
 * Otherwise as zkl_queue_take_async.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK: it has started. ZBADARGUMENTS: `barrier` or `done` is NULL, or the timeout is negative and not ZKL_FOREVER.
 * ZSYSTEMERROR: no thread is available. `done` reports everything else.
 */
int zkl_barrier_pass_async(const zkl_barrier *barrier,
                           int timeout_ms,
                           zkl_result_fn done,
                           void *userdata,
                           zkl_finalizer_fn finalizer,
                           zkl_attempt **attempt);

/**
 * Makes a barrier at a path for 1 to 65535 participants; all must give the same number. They enter when all are there,
 * and leave when all are done. Then the next round can enter. Sends nothing. A participant with an ended process or
 * session has left.
 *
 * `path` is absolute, under the client's chroot. `options` may be NULL: the defaults. Both are copied.
 *
 * Any thread; does not block. On success `*barrier` is the program's: free it with zkl_double_barrier_free.
 *
 * ZOK. ZBADARGUMENTS: an argument is NULL, another number, ZooKeeper does not allow the path, or options are invalid.
 * ZINVALIDACL: the ACL is empty or malformed. ZINVALIDSTATE: in the child of a fork.
 */
int zkl_double_barrier_new(const zkl_client *client,
                           const char *path,
                           int participants,
                           const zkl_recipe_options *options,
                           zkl_double_barrier **barrier);

/**
 * Frees the object. Participants that have entered stay, and attempts continue.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_double_barrier_free(zkl_double_barrier *barrier);

/**
 * Waits up to `timeout_ms`, or ZKL_FOREVER, until all participants are there. If a round is in progress, it also waits
 * until all of that round have left.
 *
 * On connection loss it continues on the next connection or session. After an error it has not entered, and nothing is
 * left behind. `pthread_cancel` waits until it has ended.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*entered` is the program's: end it
 * with zkl_entered_leave or zkl_entered_free.
 *
 * ZOK. ZOPERATIONTIMEOUT: the time has passed. ZBADARGUMENTS: an argument is NULL, or another negative timeout.
 * ZNOAUTH. ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED: the client is closed; ZINVALIDSTATE also in the
 * child of a fork. ZKL_WOULD_DEADLOCK: inside a callback of the C client.
 */
int zkl_double_barrier_enter(const zkl_double_barrier *barrier,
                             int timeout_ms,
                             zkl_entered **entered);

/**
 * As zkl_double_barrier_enter, but does not wait. zklock calls `done` exactly once with its result, or with
 * ZKL_CANCELLED. Otherwise as zkl_queue_take_async.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK: it has started. ZBADARGUMENTS: `barrier` or `done` is NULL, or the timeout is negative and not ZKL_FOREVER.
 * ZSYSTEMERROR: no thread is available. `done` reports everything else.
 */
int zkl_double_barrier_enter_async(const zkl_double_barrier *barrier,
                                   int timeout_ms,
                                   zkl_entered_fn done,
                                   void *userdata,
                                   zkl_finalizer_fn finalizer,
                                   zkl_attempt **attempt);

/**
 * Leaves, and waits up to `timeout_ms`, or ZKL_FOREVER, until all of its round have left. Frees `entered`, whatever it
 * returns. On connection loss it continues on the next connection or session. `pthread_cancel` waits until it has
 * ended. In the child of a fork it only frees.
 *
 * Any thread, `done` and `lost` callbacks of zklock included; blocks.
 *
 * In any case it has left, or leaves in the background. ZOK. ZOPERATIONTIMEOUT: others are still there, or no server
 * answers. ZBADARGUMENTS: NULL, or another negative timeout. ZNOAUTH. ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or
 * ZAUTHFAILED: the client is closed; ZINVALIDSTATE also in the child of a fork. ZKL_WOULD_DEADLOCK: inside a callback
 * of the C client.
 */
int zkl_entered_leave(zkl_entered *entered,
                      int timeout_ms);

/**
 * As zkl_entered_leave, but does not wait. When this returns, `entered` is freed, even after an error. zklock calls
 * `done` exactly once with the result of zkl_entered_leave, on the client's callback thread, and then `finalizer`, if
 * it is not NULL. Both may run before this returns. If this returns an error, neither is called.
 *
 * Any thread, callbacks of the C client included; does not block.
 *
 * ZOK: it has started. ZBADARGUMENTS: `entered` or `done` is NULL, or another negative timeout. ZSYSTEMERROR: no
 * thread is available. After an error it leaves in the background. `done` reports everything else.
 */
int zkl_entered_leave_async(zkl_entered *entered,
                            int timeout_ms,
                            zkl_result_fn done,
                            void *userdata,
                            zkl_finalizer_fn finalizer);

/**
 * Leaves in the background, and frees `entered`. Waits only if this was the last object of its client: see
 * zkl_client_free. In the child of a fork it only frees.
 *
 * Any thread, callbacks included. NULL is allowed.
 */
void zkl_entered_free(zkl_entered *entered);

/**
 * Ends the threads of zklock, and frees what it keeps for the process. Call this before the end of the program if its
 * memory is checked: see zklock.supp, which is installed with the library.
 *
 * Free all objects first: clients, locks, guards, attempts, recipes. The call waits up to 15 seconds for background
 * work: ends of sessions, releases, callbacks. No other thread may be inside a function of zklock meanwhile. A second
 * call does nothing. The program may make clients again later; then call this again at the end.
 *
 * Any thread except callbacks; blocks.
 *
 * ZOK: no thread of zklock is left. ZINVALIDSTATE: an object is not freed, or a program of zoo_lock.h or zoo_queue.h
 * has not closed its handle. ZOPERATIONTIMEOUT: a thread still works; zkl_last_error names it. ZKL_WOULD_DEADLOCK:
 * inside a callback. After an error everything works as before.
 */
int zkl_shutdown(void);

#ifdef __cplusplus
}  // extern "C"
#endif  /* __cplusplus */

#endif  /* ZKLOCK_H */
