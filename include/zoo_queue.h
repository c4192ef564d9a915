/*
 * zoo_queue.h: a distributed queue on ZooKeeper, for programs written against the C recipe.
 *
 * Part of zklock; link with -lzklock (or -lzooqueue). The types and functions are those of the
 * recipe that comes with ZooKeeper's source, so a program needs no change; what they do wrong there
 * they do right here, and old and new programs may share one queue.
 *
 *     zkr_queue_t queue;
 *     zkr_queue_init(&queue, zh, (char *)"/jobs", &ZOO_OPEN_ACL_UNSAFE);
 *     zkr_queue_offer(&queue, "hello", 5);
 *     char job[1000];
 *     int length = sizeof job;
 *     if (zkr_queue_take(zh, &queue, job, &length) == ZOK)
 *         printf("%.*s\n", length, job);
 *     zkr_queue_destroy(&queue);
 *
 * The queue
 *   An element is a znode "qn-" + sequence number under the queue's path; its data are the
 *   program's bytes, unchanged. Elements come in the order of their numbers. Other children of the
 *   path are left alone and not counted. The path's parent must exist.
 *
 * Lost replies
 *   An element is neither lost nor doubled when a connection breaks or a server restarts: each
 *   change goes in a transaction with a small znode of the session under /zklock/receipts, which
 *   tells afterwards whether the change was made. The functions wait for the connection to come
 *   back, and find that out, before they return. They can't where
 *   - the session ends meanwhile;
 *   - its identities may not create znodes there (an operator can create /zklock/receipts for them).
 *     When they may later, the next change notices, or one a second later;
 *   - there is no room for it: see below.
 *   Then, and only then, they return ZCONNECTIONLOSS.
 *
 * Sizes
 *   An element may have as many bytes as with the recipe: what path and acl leave of the servers'
 *   jute.maxbuffer, 1,048,575 bytes unless they are set otherwise. Beside an element of the last 650
 *   bytes below that there is no room for the small znode. A larger one is sent too, for the servers
 *   may be set to take it. Those that are not close the connection, for everyone on the handle: after
 *   three times it is ZBADARGUMENTS. (A setting over 1,048,575 has to leave room for the small znode:
 *   150 bytes, and twice as many as the handle's chroot has. A chroot of more than 256 bytes shortens
 *   what can be offered by that.)
 *
 * Deleting a queue
 *   The path's znode may be deleted when it is empty, also while programs work on it, and is made
 *   anew by offer and take. If the znode was made otherwise, twice, and a consumer was held up from
 *   before the one was deleted until the other has as many elements, between its reading of an
 *   element and the deletion, that can hit an element of the same name in the other. So leave it to
 *   offer and take to make it.
 *
 * Codes of the functions that talk to servers
 *   ZOK               done
 *   ZCONNECTIONLOSS   it is not known whether it was done, and can't be found out; zkl_last_error()
 *                     of zklock.h names the znode in question
 *   Any other code: nothing was done.
 *   ZMARSHALLINGERROR the buffer is too small (element, remove, take)
 *   ZBADARGUMENTS     a NULL, a length or a path that can't be ("/" is no queue); more data than the
 *                     servers take
 *   ZOPERATIONTIMEOUT no connection, or no answer, for the session timeout and 15 seconds more
 *   ZSESSIONEXPIRED, ZINVALIDSTATE, ZAUTHFAILED   the handle can't be used any more
 *   ZNONODE           the parent of the queue's path is missing
 *   ZNOAUTH, ZINVALIDACL   refused by access control; acl is NULL or empty where a znode is made
 *   -2003 (ZKL_WOULD_DEADLOCK)   called inside a callback of libzookeeper_mt: the function would
 *                     wait for the very thread it runs on
 *   After any code but ZOK, zkl_last_error() tells more.
 *
 * Threads
 *   All functions but init and destroy may be called from any number of threads at once, with one
 *   struct or copies of it, but not inside callbacks of the handle.
 *   pthread_cancel() is off while a thread is inside a function; what was asked for meanwhile happens
 *   afterwards, when the element that was taken is in the buffer. A zkr_queue_take that waits for an
 *   element is ended by closing the handle on another thread: it returns ZINVALIDSTATE.
 *
 * fork()
 *   A queue and its handle stay the parent's: in the child the functions return ZINVALIDSTATE for it, at
 *   once, and zkr_queue_destroy frees it. A queue that the child initialises on a handle that it has
 *   opened works.
 *
 * The handle
 *   Any live handle of libzookeeper_mt, connected or not. It stays the program's: its watcher and
 *   context are not touched, and it is never closed here. Close it from an ordinary thread, when no
 *   function below is running, but for a zkr_queue_take that waits for an element.
 */
#ifndef ZKLOCK_ZOO_QUEUE_H
#define ZKLOCK_ZOO_QUEUE_H

#if defined(__has_include)
#if __has_include(<zookeeper/zookeeper.h>)
#include <zookeeper/zookeeper.h>
#else
#include <zookeeper.h>
#endif
#else
#include <zookeeper.h>
#endif
#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A queue, filled by zkr_queue_init. The fields may be read. A copy by value is as good as the
 * original as long as that is not destroyed.
 */
struct zkr_queue {
    zhandle_t *zh;             /* as given: borrowed */
    char *path;                /* as given: borrowed, must live as long as the struct is used */
    struct ACL_vector *acl;    /* as given: borrowed, likewise */
    pthread_mutex_t pmutex;    /* not used any more */
    char *node_name;           /* "qn-" */
    int node_name_length;      /* 3 */
    char *cached_create_path;  /* path + "/qn-"; freed by zkr_queue_destroy */
};

typedef struct zkr_queue zkr_queue_t;

/*
 * Fills the struct. Nothing is sent, and the handle need not be connected.
 *
 * queue: memory for the struct, whatever is in it.
 * zh, path, acl: kept, not copied. acl is what elements, and the queue's own znode if it is
 * missing, are created with; a program that only calls element and remove may give NULL.
 *
 * Returns ZOK; ZBADARGUMENTS when queue, zh or path is NULL or path is not UTF-8; ZSYSTEMERROR when
 * there is no memory. Except with a NULL queue the struct is filled also then, so that the other
 * functions refuse it.
 */
int zkr_queue_init(zkr_queue_t *queue, zhandle_t *zh, char *path, struct ACL_vector *acl);

/*
 * Adds an element at the end of the queue; makes the queue's znode if it is missing.
 *
 * data, buffer_len: the element's bytes, copied before the function returns. NULL with a length of
 * -1 or 0, and any data with a length of -1, make an element without data.
 *
 * On connection loss it waits, and returns once it is known that the element is in the queue
 * exactly once. ZCONNECTIONLOSS: the element may be in the queue, once, or not.
 */
int zkr_queue_offer(zkr_queue_t *queue, const char *data, int buffer_len);

/*
 * Reads the element at the head of the queue, and leaves it there.
 *
 * buffer: receives its data, on ZOK only. May be NULL if *buffer_len is 0.
 * buffer_len: before the call, the size of the buffer. After it:
 *   ZOK                 how many bytes the element has: 0 for one without data, which is an element
 *                       all the same; -1: the queue is empty, or does not exist
 *   ZMARSHALLINGERROR   how many bytes the buffer needs; nothing was written into it. Another
 *                       consumer may take that element before the next call
 *   any other code      -1
 *
 * On connection loss it waits and reads again.
 */
int zkr_queue_element(zkr_queue_t *queue, char *buffer, int *buffer_len);

/*
 * Takes the element at the head of the queue. Does not wait for one.
 *
 * buffer, buffer_len: as for zkr_queue_element. An element that does not fit stays in the queue, at
 * the head. Where several consumers want one element, one gets it, the others get those after it.
 *
 * On connection loss it waits until it is known who took the element. ZCONNECTIONLOSS: one element
 * may have been removed, and its data are not delivered: look for the znode that zkl_last_error()
 * names; if it is still there, nothing was removed.
 */
int zkr_queue_remove(zkr_queue_t *queue, char *buffer, int *buffer_len);

/*
 * Takes the element at the head of the queue; waits until there is one. Makes the queue's znode if
 * it is missing.
 *
 * zh: not looked at; the queue's own handle is used.
 * buffer, buffer_len: as for zkr_queue_remove, except that the queue is never reported empty.
 *
 * On connection loss it goes on waiting. It returns a code when the session is over, and
 * ZOPERATIONTIMEOUT when that can't be found out because no server is reached for too long.
 * ZCONNECTIONLOSS as for zkr_queue_remove.
 */
int zkr_queue_take(zhandle_t *zh, zkr_queue_t *queue, char *buffer, int *buffer_len);

/*
 * Frees what zkr_queue_init made. Nothing is sent: the queue and its elements stay on the servers.
 * NULL is no error, nor is a second call. Of a struct and its copies only one is destroyed.
 */
void zkr_queue_destroy(zkr_queue_t *queue);

#ifdef __cplusplus
}
#endif

#endif
