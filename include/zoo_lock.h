/*
 * A lock on a path in ZooKeeper, for programs that were written against the C recipe of that name:
 * the same struct, the same functions, nothing to change in the program. Link with -lzklock.
 *
 *     zkr_lock_mutex_t mutex;
 *     zkr_lock_init_cb(&mutex, zh, "/locks/invoices", &ZOO_OPEN_ACL_UNSAFE, changed, data);
 *     zkr_lock_lock(&mutex);          // takes a place in the queue; does not wait for the lock
 *     ...                             // changed(0, data): it is ours, or ask zkr_lock_isowner()
 *     zkr_lock_unlock(&mutex);        // changed(1, data): it is not ours any more
 *     zkr_lock_destroy(&mutex);
 *
 * New programs have more in <zklock.h>: calls that wait, with and without a limit, fencing tokens,
 * a descriptor to poll.
 *
 * The handle.  `zh` is the program's, made by the multithreaded client, connected or not. It is never
 *   closed here, its watcher and context stay the program's. The program may close it at any time:
 *   its mutexes are lost then, without a completion (one that is running goes on: unlock or destroy
 *   the mutex first, which waits for it). Inside a callback of the handle it may be closed once its
 *   session has expired; otherwise close it on another thread. A mutex whose session has expired is
 *   told so by completion(1), also after the handle was closed: `cbdata` stays until then, or until
 *   the mutex was unlocked or destroyed on an ordinary thread.
 *   A session has one owner: a second handle on the same session, made with the client id of the
 *   first, can end it for both, and a mutex may learn of that a fifth of the session timeout later.
 * Its callbacks.  What proves that the session lives comes through them: a program that blocks them
 *   for longer than four tenths of the session timeout may lose its locks.
 * The struct.  The program may read its fields, copy it by value, and use the copy as the same mutex
 *   from the first zkr_lock_lock() on. While it waits for the lock, the struct that was given to
 *   zkr_lock_lock() stays in place: `id`, `ownerid` and `isOwner` are written by another thread.
 *   From the moment it owns the lock, only the functions that get the struct write to it.
 *   `path` and `acl` are borrowed until destroy. The strings behind `id` and `ownerid` stay until
 *   the next zkr_lock_lock() but one, or destroy.
 * Names.  Claims are called x-<session in 16 hexadecimal digits>-<sequence number>, as the recipe's:
 *   programs with the recipe and programs with this library exclude each other on one path.
 * Failures.  A reply that is lost, a server that restarts, a session that moves: the place in the
 *   queue is looked up again, never taken twice, and never left behind. A mutex whose session has
 *   expired, or can't be proved alive any more, is lost before another client can have the lock.
 * Threads.  Every function may be called on any thread, also inside completions and inside the
 *   callbacks of the handle; there zkr_lock_lock() and zkr_lock_unlock() do not wait for the server.
 *   (A handle that is used for the first time inside one of its callbacks is recognised after at most
 *   2 seconds. The completion of zoo_add_auth() runs on a thread that can't be recognised: lock
 *   nothing there.)
 * Cancellation.  pthread_cancel() is off while a thread is inside a function, and in completions, which
 *   must neither turn it on nor end their thread: what was asked for meanwhile happens afterwards. No
 *   function here waits longer than 15 seconds for servers.
 * Memory.  Where the system gives none, the process ends by a signal, or zkr_lock_error() says
 *   ZSYSTEMERROR or ZMARSHALLINGERROR. A mutex that owns the lock owns it even so.
 * The end of the process.  When main() returns or exit() is called, what was unlocked or destroyed before
 *   and is not confirmed yet is waited for: up to a second. What no server has confirmed by then, and
 *   after any other end, stays until the session times out; so does a lock that is still held.
 * fork().  A mutex, its handle and its lock stay the parent's. In the child zkr_lock_lock() does nothing
 *   for it and runs no completion, zkr_lock_error() and zkr_lock_unlock() return ZINVALIDSTATE, at once,
 *   zkr_lock_isowner() returns 0, and zkr_lock_destroy() frees and releases nothing. A mutex that the
 *   child initialises on a handle that it has opened works.
 * Statuses.  0 (ZOK) or one of ZooKeeper's negative codes; zkl_last_error() in <zklock.h> says more.
 *   zkr_lock_lock() returns 0 always, because programs read its result in two ways. Since ZooKeeper
 *   3.4.14 and 3.5.5 it is a status; before, it was 1 when the mutex owned the lock, and 0 otherwise.
 *     If the program reads a status, nothing is to be done. completion(1) or zkr_lock_error() report a
 *     failure; with ZKR_LOCK_RETURNS_ERRORS defined before this header, the result does too.
 *     If the program reads ownership, it is linked with -lzoolock-owner, ahead of any other library of
 *     zklock's, or is compiled with ZKR_LOCK_RETURNS_OWNER defined before this header, or, where it
 *     has a header of its own, with -Dzkr_lock_lock=zkr_lock_lock_owner. Otherwise it never believes
 *     that it owns. -lzoolock-owner holds for the whole process.
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
 * Tells what has happened to a mutex: `rc` is 0 when it has the lock, and 1 when it has it no more (or
 * waits for it no more, or could not begin to). Runs on the thread that calls zkr_lock_lock() or
 * zkr_lock_unlock(), inside that call, or on a thread of zklock's. It may call any function of this
 * header, and may block, unless it runs in a call that was made inside a callback of the handle.
 */
typedef void (*zkr_lock_completion)(int rc, void *cbdata);

struct zkr_lock_mutex {
    zhandle_t *zh;
    char *path;                     /* the lock's path: claims are its children */
    struct ACL_vector *acl;         /* of what is created; NULL: everyone may do everything */
    char *id;                       /* the name of this mutex's claim; NULL while it has none */
    void *cbdata;
    zkr_lock_completion completion; /* may be NULL */
    pthread_mutex_t pmutex;         /* not for programs: the library keeps its own mark in it */
    int isOwner;                    /* as of the last change; zkr_lock_isowner() knows better */
    char *ownerid;                  /* the name of the claim that is first, when last looked at */
};

typedef struct zkr_lock_mutex zkr_lock_mutex_t;

/*
 * Fills the struct. Nothing is sent. The same as zkr_lock_init_cb() without a completion.
 * Returns 0, or ZBADARGUMENTS if `mutex`, `zh` or `path` is NULL.
 */
int zkr_lock_init(zkr_lock_mutex_t *mutex, zhandle_t *zh, char *path, struct ACL_vector *acl);

/* As zkr_lock_init(), with a completion and what it gets. */
int zkr_lock_init_cb(zkr_lock_mutex_t *mutex, zhandle_t *zh, char *path, struct ACL_vector *acl,
                     zkr_lock_completion completion, void *cbdata);

/*
 * Takes a place in the queue for the lock, unless the mutex has one already, and returns when the
 * place is known; it does not wait for the lock itself. What is missing of the path is created.
 *
 * If nobody is ahead, completion(0) runs inside this call. Otherwise it runs later, when the lock is
 * ours. Called again while the mutex waits or owns, it keeps the place, and calls no completion.
 *
 * If the mutex can't have a place in the queue, completion(1) runs inside this call, once. (Not if
 * this was called inside completion(1) of this mutex: a completion that locks again would never end.)
 * zkr_lock_error() returns the reason, zkl_last_error() the whole of it. For NULL, and for a mutex that
 * was not initialised, there is no completion to run.
 *
 * When no server answers within 15 seconds it returns and goes on trying. Inside a callback of the
 * handle it returns at once, and everything else happens later; of arguments that are refused, and
 * of a handle that can't be used, the completion runs inside this call all the same.
 *
 * Returns 0, always: see "Statuses" above.
 */
int zkr_lock_lock(zkr_lock_mutex_t *mutex);

/*
 * Why the mutex has no place in the queue: 0 if its last zkr_lock_lock() did not fail and the place,
 * or the lock, was not lost since, or if there was no zkr_lock_lock() yet. Otherwise the reason, until
 * the next zkr_lock_lock() takes a place, also after zkr_lock_unlock():
 *   ZBADARGUMENTS             NULL, a mutex that was not initialised or was destroyed, a bad path
 *   ZINVALIDACL, ZNOAUTH      refused by access control
 *   ZNOCHILDRENFOREPHEMERALS  the path is something else
 *   ZSESSIONEXPIRED           the session has expired, or can't be proved alive any more
 *   ZAUTHFAILED, ZINVALIDSTATE   the handle can't be used, or was closed
 *   ZNONODE                   somebody deleted the claim of the owner
 *   -2004 (ZKL_PANIC)         a defect of zklock
 *   or another code of the servers'.
 * zkl_last_error() on the same thread then says more. Sends nothing.
 */
int zkr_lock_error(zkr_lock_mutex_t *mutex);

/*
 * As zkr_lock_lock(), but returns 1 if the mutex owns the lock at the end of the call, else 0, also on
 * failures. Called again, it keeps the place in the queue and says whether it is our turn.
 */
int zkr_lock_lock_owner(zkr_lock_mutex_t *mutex);

/*
 * Gives the lock, or the place in the queue, back: a mutex that waited will not get the lock later.
 * The claim's deletion is repeated until it, or the session, is gone; this waits for it, whether the
 * mutex owned or waited, but not inside a callback of the handle. Then completion(1) runs, inside this call, unless it has run
 * when the lock was lost. It waits for a completion that runs on another thread.
 *
 * Returns 0; ZNOAUTH if the session may not delete the claim of an owner, which then stays until the
 * session ends (the path's ACL has to give DELETE); ZSYSTEMERROR if the mutex is not locked; ZBADARGUMENTS as above; ZOPERATIONTIMEOUT when
 * no server has confirmed the deletion within 15 seconds: it goes on, without a completion yet, and
 * another call waits again.
 */
int zkr_lock_unlock(zkr_lock_mutex_t *mutex);

/* Replaces the completion. */
void zkr_lock_setcallback(zkr_lock_mutex_t *mutex, zkr_lock_completion completion);

/* The completion; NULL if there is none. */
zkr_lock_completion zkr_lock_getcallback(zkr_lock_mutex_t *mutex);

/*
 * Frees what the mutex has. If it waits for the lock or owns it, that is given back in the
 * background, without a completion; one that runs on another thread is waited for. Not calling it
 * costs a few kilobytes, nothing else.
 * Returns 0, or ZBADARGUMENTS.
 */
int zkr_lock_destroy(zkr_lock_mutex_t *mutex);

/* The path that was given to init; NULL if the mutex is not initialised. */
char *zkr_lock_getpath(zkr_lock_mutex_t *mutex);

/*
 * 1 if the mutex owns the lock now, judged by the local clock, else 0. Brings `id`, `ownerid` and
 * `isOwner` up to date. Sends nothing.
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
 * is run as always, and must not free the struct inside the call.
 */
#ifdef ZKR_LOCK_RETURNS_ERRORS
/* C89 knows it by this name only. */
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
