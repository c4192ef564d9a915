/*
 * zoo_queue.h: a distributed queue on ZooKeeper, for programs written against the C recipe.
 *
 * Part of zklock; link with -lzklock (or -lzooqueue). Types and functions are those of the recipe in
 * ZooKeeper's source, so a program needs no change. They do not have the recipe's defects, and old and
 * new programs may share one queue.
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
 *   An element is a znode "qn-" + sequence number under the queue's path. Its data is the program's
 *   bytes, unchanged. Elements are taken in the order of their numbers. Other children of the path are
 *   ignored. The path's parent must exist.
 *
 * Lost replies
 *   A broken connection or a server restart neither loses nor doubles an element. Each change is one
 *   transaction with a small znode of the session under /zklock/receipts, which proves afterwards
 *   whether the change was made. The functions wait for the next connection and look that up before they
 *   return. They return ZCONNECTIONLOSS only if they cannot:
 *   - the session ends meanwhile;
 *   - the session may not create znodes there (an operator can create /zklock/receipts for it). If it
 *     may later, the next change uses that, or one a second later;
 *   - there is no room for the small znode: see below.
 *
 * Sizes
 *   An element may be as large as with the recipe: the servers' jute.maxbuffer (by default 1,048,575
 *   bytes) without path and acl. In the last 650 bytes below that, there is no room for the small znode.
 *   A larger element is sent too, because the servers may accept it. Servers that do not accept it close
 *   the connection, for all users of the handle. After three times the function returns ZBADARGUMENTS.
 *   (A setting over 1,048,575 must leave room for the small znode: 150 bytes, and twice the length of
 *   the handle's chroot. A chroot of more than 256 bytes reduces the size of elements accordingly.)
 *
 * Deleting a queue
 *   The path's znode may be deleted when it is empty, even while programs use it; offer and take recreate
 *   it. Let only them create it. If anything else recreates it, a slow consumer can delete the wrong
 *   element. That takes two such recreations, and as many elements again, between the consumer's read of
 *   an element and its deletion. Then the consumer deletes the new element of the same name.
 *
 * Codes of the functions that talk to servers
 *   ZOK               done
 *   ZCONNECTIONLOSS   the outcome is unknown and cannot be looked up; zkl_last_error() of zklock.h names
 *                     the znode in question
 *   Any other code: nothing was done.
 *   ZMARSHALLINGERROR the buffer is too small (element, remove, take)
 *   ZBADARGUMENTS     a NULL, an invalid length or path ("/" is no queue), or more data than the servers
 *                     accept
 *   ZOPERATIONTIMEOUT no connection, or no answer, for the session timeout and 15 seconds more
 *   ZSESSIONEXPIRED, ZINVALIDSTATE, ZAUTHFAILED   the handle cannot be used any more
 *   ZNONODE           the parent of the queue's path is missing
 *   ZNOAUTH, ZINVALIDACL   refused by access control; acl is NULL or empty where a znode is created
 *   -2003 (ZKL_WOULD_DEADLOCK)   called inside a callback of libzookeeper_mt: the function would wait
 *                     for its own thread
 *   After any code but ZOK, zkl_last_error() says more.
 *
 * Threads
 *   Any number of threads may call the functions at once, with one struct or copies of it. The exceptions
 *   are init and destroy. Do not call the functions inside callbacks of the handle.
 *   pthread_cancel() is off while a thread is inside a function. It takes effect afterwards, when the
 *   taken element is in the buffer. To end a zkr_queue_take that waits for an element, close the handle on
 *   another thread: it returns ZINVALIDSTATE.
 *
 * fork()
 *   A queue and its handle belong to the parent. In the child the functions return ZINVALIDSTATE at once,
 *   and zkr_queue_destroy frees the queue. The child can initialise a queue on a handle that it has opened
 *   itself.
 *
 * The handle
 *   Any live handle of libzookeeper_mt, connected or not. It stays the program's: zklock never closes it,
 *   and leaves its watcher and context alone. Close it on an ordinary thread when no function below is
 *   running, except a zkr_queue_take that waits for an element.
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
 * A queue, filled by zkr_queue_init. The fields may be read. A copy by value works like the original
 * until that is destroyed.
 */
struct zkr_queue {
    zhandle_t *zh;             /* as given: borrowed */
    char *path;                /* as given: borrowed, must live as long as the struct is used */
    struct ACL_vector *acl;    /* as given: borrowed, likewise */
    pthread_mutex_t pmutex;    /* unused */
    char *node_name;           /* "qn-" */
    int node_name_length;      /* 3 */
    char *cached_create_path;  /* path + "/qn-"; freed by zkr_queue_destroy */
};

typedef struct zkr_queue zkr_queue_t;

/*
 * Fills the struct. Sends nothing; the handle need not be connected.
 *
 * queue: memory for the struct, with any content.
 * zh, path, acl: kept, not copied. acl is the ACL of elements, and of the queue's znode if that is
 * missing. A program that only calls element and remove may pass NULL.
 *
 * Returns ZOK; ZBADARGUMENTS if queue, zh or path is NULL or path is not UTF-8; ZSYSTEMERROR if there is
 * no memory. After an error the struct is filled too (unless queue is NULL), and the other functions
 * refuse it.
 */
int zkr_queue_init(zkr_queue_t *queue, zhandle_t *zh, char *path, struct ACL_vector *acl);

/*
 * Adds an element at the end of the queue. Creates the queue's znode if it is missing.
 *
 * data, buffer_len: the element's bytes, copied before the function returns. A length of -1, or NULL with
 * a length of 0, makes an element without data.
 *
 * On connection loss it waits until the element is known to be in the queue exactly once.
 * ZCONNECTIONLOSS: the element may be in the queue, once, or not.
 */
int zkr_queue_offer(zkr_queue_t *queue, const char *data, int buffer_len);

/*
 * Reads the element at the head of the queue and leaves it there.
 *
 * buffer: receives its data, on ZOK only. May be NULL if *buffer_len is 0.
 * buffer_len: before the call, the size of the buffer. After it:
 *   ZOK                 the length of the element; 0 for an element without data; -1 if the queue is
 *                       empty or does not exist
 *   ZMARSHALLINGERROR   the length that the buffer needs; nothing was written into it. Another consumer
 *                       may take that element before the next call
 *   any other code      -1
 *
 * On connection loss it waits and reads again.
 */
int zkr_queue_element(zkr_queue_t *queue, char *buffer, int *buffer_len);

/*
 * Takes the element at the head of the queue. Does not wait for one.
 *
 * buffer, buffer_len: as for zkr_queue_element. An element that does not fit stays at the head of the
 * queue. If several consumers want one element, one of them gets it, and the others get later ones.
 *
 * On connection loss it waits until it knows which consumer took the element. ZCONNECTIONLOSS: one element
 * may be removed without its data being delivered. Look for the znode that zkl_last_error() names: if it
 * still exists, nothing was removed.
 */
int zkr_queue_remove(zkr_queue_t *queue, char *buffer, int *buffer_len);

/*
 * Takes the element at the head of the queue, and waits until there is one. Creates the queue's znode if
 * it is missing.
 *
 * zh: ignored; the queue's own handle is used.
 * buffer, buffer_len: as for zkr_queue_remove, but the queue is never reported empty.
 *
 * On connection loss it continues to wait. It returns a code when the session is over, or
 * ZOPERATIONTIMEOUT when no server is reached for too long. ZCONNECTIONLOSS: as for zkr_queue_remove.
 */
int zkr_queue_take(zhandle_t *zh, zkr_queue_t *queue, char *buffer, int *buffer_len);

/*
 * Frees the struct's memory. Sends nothing: the queue and its elements stay on the servers. NULL and a
 * second call are allowed. Destroy only one of a struct and its copies.
 */
void zkr_queue_destroy(zkr_queue_t *queue);

#ifdef __cplusplus
}
#endif

#endif
