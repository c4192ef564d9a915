/*
 * zoo_lock.h: a lock on a path in ZooKeeper, for programs written against the C recipe. Structs and
 * functions are those of the recipe, so a program needs no change. Link with -lzklock.
 *
 *     zkr_lock_mutex_t mutex;
 *     zkr_lock_init_cb(&mutex, zh, "/locks/invoices", &ZOO_OPEN_ACL_UNSAFE, changed, data);
 *     zkr_lock_lock(&mutex);          // takes a place in the queue; does not wait for the lock
 *     ...                             // changed(0, data): the lock is ours; or call zkr_lock_isowner()
 *     zkr_lock_unlock(&mutex);        // changed(1, data): the lock is not ours any more
 *     zkr_lock_destroy(&mutex);
 *
 * <zklock.h> has more for new programs: calls that wait, with or without a limit, fencing tokens, and
 * descriptors for event loops.
 *
 * The handle.  `zh` is the program's handle of the multithreaded client, connected or not. zklock never
 *   closes it, and leaves its watcher and context alone. The program may close it at any time. Its
 *   mutexes are then lost without a completion. A completion that is running continues; to wait for it,
 *   unlock or destroy the mutex first. Inside a callback of the handle, close it only after its session
 *   has expired; otherwise close it on another thread.
 *   If a session expires, completion(1) reports that to its mutexes, even after the handle was closed.
 *   Keep `cbdata` until then, or until the mutex is unlocked or destroyed on an ordinary thread.
 *   A session has one owner. A second handle with the client id of the first can end the session for
 *   both. A mutex may notice that a fifth of the session timeout later.
 * Its callbacks.  The proofs that the session lives come through them. If the program blocks them for
 *   longer than four tenths of the session timeout, it may lose its locks.
 * The struct.  The program may read its fields. From the first zkr_lock_lock() on, it may copy the struct
 *   by value and use the copy as the same mutex. While the mutex waits, keep the struct of
 *   zkr_lock_lock() in place: another thread writes `id`, `ownerid` and `isOwner`. Once the mutex owns
 *   the lock, only functions that get the struct write to it. `path` and `acl` are borrowed until
 *   destroy. The strings of `id` and `ownerid` stay until the second zkr_lock_lock() after this one, or
 *   until destroy.
 * Names.  Claims have the names of the recipe: x-<session in 16 hexadecimal digits>-<sequence number>.
 *   Programs with the recipe and programs with this library exclude each other on one path.
 * Failures.  After a lost reply, a server restart or a moved session, the place in the queue is looked
 *   up. It is never taken twice and never left behind. When the session of a mutex expires, or can no
 *   longer be proved alive, the mutex is lost before another client can own the lock.
 * Threads.  Every function may be called on any thread, also in completions and callbacks of the handle.
 *   There, zkr_lock_lock() and zkr_lock_unlock() do not wait for the server. If a handle is first used
 *   inside one of its callbacks, zklock notices that after at most 2 seconds. The completion of
 *   zoo_add_auth() runs on a thread that cannot be recognised: lock nothing there.
 * Cancellation.  pthread_cancel() is off while a thread is inside a function or a completion, and takes
 *   effect afterwards. A completion must not turn it on or end its thread. No function here waits longer
 *   than 15 seconds for servers.
 * Memory.  If memory runs out, a signal ends the process, or zkr_lock_error() returns ZSYSTEMERROR or
 *   ZMARSHALLINGERROR. A mutex that owns the lock owns it even then.
 * The end of the process.  When main() returns or exit() is called, the process waits up to a second for
 *   unconfirmed unlocks and destroys. Claims that are unconfirmed then stay until the session times out.
 *   So does a lock that is still held, and everything after any other end of the process.
 * fork().  A mutex, its handle and its lock belong to the parent. In the child zkr_lock_lock() does
 *   nothing and runs no completion. zkr_lock_error() and zkr_lock_unlock() return ZINVALIDSTATE at once,
 *   and zkr_lock_isowner() returns 0. zkr_lock_destroy() frees, and releases nothing. The child can
 *   initialise a mutex on a handle that it has opened itself.
 * Statuses.  0 (ZOK) or a negative code of ZooKeeper; zkl_last_error() in <zklock.h> says more.
 *   zkr_lock_lock() always returns 0, because programs read its result in two ways. Since ZooKeeper
 *   3.4.14 and 3.5.5 the result is a status. Before, it was 1 if the mutex owned the lock, and else 0.
 *     If your program reads a status, do nothing. completion(1) and zkr_lock_error() report failures.
 *     To have them in the result too, define ZKR_LOCK_RETURNS_ERRORS before this header.
 *     If your program reads ownership, link it with -lzoolock-owner, ahead of any other library of
 *     zklock. Or define ZKR_LOCK_RETURNS_OWNER before this header. If the program has its own header,
 *     compile it with -Dzkr_lock_lock=zkr_lock_lock_owner. Otherwise it always reads "not owner".
 *     -lzoolock-owner applies to the whole process.
 */
#ifndef ZKLOCK_ZOO_LOCK_H
#define ZKLOCK_ZOO_LOCK_H

#include <pthread.h>

#if defined(__has_include)
#if __has_include(<zookeeper/zookeeper.h>)
#include <zookeeper/zookeeper.h>
#else
#include <zookeeper.h>
#endif
#else
#include <zookeeper.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Reports a change of a mutex. `rc` is 0 when the mutex owns the lock. It is 1 when the mutex no longer
 * owns it, no longer waits for it, or could not start to wait. The completion runs inside zkr_lock_lock()
 * or zkr_lock_unlock(), or on a thread of zklock. It may call any function of this header. It may block,
 * unless it runs in a call that was made inside a callback of the handle.
 */
typedef void (*zkr_lock_completion)(int rc, void *cbdata);

struct zkr_lock_mutex {
    zhandle_t *zh;
    char *path;                     /* the lock's path: claims are its children */
    struct ACL_vector *acl;         /* of created znodes; NULL: all clients may do everything */
    char *id;                       /* the name of this mutex's claim; NULL while it has none */
    void *cbdata;
    zkr_lock_completion completion; /* may be NULL */
    pthread_mutex_t pmutex;         /* used by the library */
    int isOwner;                    /* as of the last change; prefer zkr_lock_isowner() */
    char *ownerid;                  /* the name of the first claim, when last looked at */
};

typedef struct zkr_lock_mutex zkr_lock_mutex_t;

/*
 * Fills the struct, as zkr_lock_init_cb() without a completion. Sends nothing.
 * Returns 0, or ZBADARGUMENTS if `mutex`, `zh` or `path` is NULL.
 */
int zkr_lock_init(zkr_lock_mutex_t *mutex, zhandle_t *zh, char *path, struct ACL_vector *acl);

/* As zkr_lock_init(), with a completion and its argument. */
int zkr_lock_init_cb(zkr_lock_mutex_t *mutex, zhandle_t *zh, char *path, struct ACL_vector *acl,
                     zkr_lock_completion completion, void *cbdata);

/*
 * Takes a place in the queue for the lock, unless the mutex has one already. Returns when the place is
 * known, and does not wait for the lock itself. Creates missing parts of the path.
 *
 * If no claim is ahead, completion(0) runs inside this call. Otherwise it runs later, when the mutex owns
 * the lock. A second call while the mutex waits or owns keeps the place, and runs no completion.
 *
 * If the mutex cannot have a place, completion(1) runs inside this call, once. (Not inside completion(1)
 * of this mutex, because a completion that locks again would never end.) zkr_lock_error() returns the
 * reason, zkl_last_error() the details. For NULL or an uninitialised mutex there is no completion to run.
 *
 * If no server answers within 15 seconds, it returns and continues to try. Inside a callback of the
 * handle it returns at once, and the rest happens later. Even there, the completion runs inside this call
 * for refused arguments and for a handle that cannot be used.
 *
 * Always returns 0: see "Statuses" above.
 */
int zkr_lock_lock(zkr_lock_mutex_t *mutex);

/*
 * Why the mutex has no place in the queue. 0 if zkr_lock_lock() was not called yet. 0 also if its last
 * call succeeded and the place or the lock was not lost since. Otherwise the reason, until zkr_lock_lock()
 * takes a place again, even after zkr_lock_unlock():
 *   ZBADARGUMENTS             NULL, an uninitialised or destroyed mutex, an invalid path
 *   ZINVALIDACL, ZNOAUTH      refused by access control
 *   ZNOCHILDRENFOREPHEMERALS  something other than a lock is at the path
 *   ZSESSIONEXPIRED           the session has expired, or can no longer be proved alive
 *   ZAUTHFAILED, ZINVALIDSTATE   the handle cannot be used, or was closed
 *   ZNONODE                   another client deleted the owner's claim
 *   -2004 (ZKL_PANIC)         a defect of zklock
 *   or another code of the servers.
 * zkl_last_error() on the same thread then says more. Sends nothing.
 */
int zkr_lock_error(zkr_lock_mutex_t *mutex);

/*
 * As zkr_lock_lock(), but returns 1 if the mutex owns the lock at the end of the call. Otherwise, and
 * after a failure, it returns 0. A second call keeps the place in the queue.
 */
int zkr_lock_lock_owner(zkr_lock_mutex_t *mutex);

/*
 * Releases the lock, or leaves the queue. The claim's deletion is repeated until the claim or the session
 * is gone. This waits for it, except inside a callback of the handle. Then completion(1) runs inside this
 * call, unless it ran when the lock was lost. This also waits for a completion that runs on another thread.
 *
 * Returns
 *   0                  released, or lost before (zkr_lock_error() tells why); inside a callback of the
 *                      handle also when it is not confirmed yet
 *   ZNOAUTH            the session may not delete the claim, which stays until the session ends
 *                      (the path's ACL must give DELETE)
 *   ZSYSTEMERROR       the mutex is not locked
 *   ZBADARGUMENTS      as above
 *   ZOPERATIONTIMEOUT  no server has confirmed the deletion within 15 seconds. It continues, without a
 *                      completion yet. Call again to wait again.
 */
int zkr_lock_unlock(zkr_lock_mutex_t *mutex);

/* Replaces the completion. */
void zkr_lock_setcallback(zkr_lock_mutex_t *mutex, zkr_lock_completion completion);

/* The completion; NULL if there is none. */
zkr_lock_completion zkr_lock_getcallback(zkr_lock_mutex_t *mutex);

/*
 * Frees the mutex. If it owns the lock or waits for it, the lock or the place is released in the
 * background, without a completion. It waits for a completion that runs on another thread. Without this
 * call a few kilobytes stay allocated, nothing else.
 * Returns 0, or ZBADARGUMENTS.
 */
int zkr_lock_destroy(zkr_lock_mutex_t *mutex);

/* The path of the mutex; NULL if it is not initialised. */
char *zkr_lock_getpath(zkr_lock_mutex_t *mutex);

/*
 * 1 if the mutex owns the lock at this moment, by the local clock; otherwise 0. Updates `id`, `ownerid`
 * and `isOwner`. Sends nothing.
 */
int zkr_lock_isowner(zkr_lock_mutex_t *mutex);

/* The name of the claim that was first in the queue when last looked at (`ownerid`), or NULL. */
char *zkr_lock_getid(zkr_lock_mutex_t *mutex);

/* For a program that reads ownership: see "Statuses" above. */
#ifdef ZKR_LOCK_RETURNS_OWNER
#ifdef ZKR_LOCK_RETURNS_ERRORS
#error "zkr_lock_lock() returns ownership or errors, not both"
#endif
#define zkr_lock_lock zkr_lock_lock_owner
#endif

/*
 * For a program that reads a status: 0, or the code of zkr_lock_error() after the call. The completion
 * runs as usual, and must not free the struct inside the call.
 */
#ifdef ZKR_LOCK_RETURNS_ERRORS
/* C89 has only this name for it. */
static __inline__ int zkr_lock_lock_or_error(zkr_lock_mutex_t *mutex)
{
    zkr_lock_lock(mutex);
    return zkr_lock_error(mutex);
}
#define zkr_lock_lock zkr_lock_lock_or_error
#endif

#ifdef __cplusplus
}
#endif

#endif
