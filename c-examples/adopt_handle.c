/*
 * A program adds a lock to its zhandle_t, which has a global watcher and a watch on a znode. The handle
 * works as before. After an expiry the program opens another handle, and the lock follows.
 *
 * Build:  cc adopt_handle.c $(pkg-config --cflags --libs zklock) -o adopt_handle
 * Run:    ./adopt_handle 127.0.0.1:2181
 */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <zklock.h>
#include <zookeeper.h>

enum { TIMEOUT_SECONDS = 30 };

/* The callbacks report to the main thread. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int connected;
    int node_events;
    int answers;
} news = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0};

static void note(int *what)
{
    pthread_mutex_lock(&news.mutex);
    *what += 1;
    pthread_cond_broadcast(&news.changed);
    pthread_mutex_unlock(&news.mutex);
}

/* Waits until `*what` has reached `count`. */
static void await(const char *name, const int *what, int count)
{
    struct timespec until;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += TIMEOUT_SECONDS;
    pthread_mutex_lock(&news.mutex);
    while (*what < count && rc == 0) {
        rc = pthread_cond_timedwait(&news.changed, &news.mutex, &until);
    }
    pthread_mutex_unlock(&news.mutex);
    if (rc != 0) {
        fprintf(stderr, "waited in vain for %s\n", name);
        exit(1);
    }
}

/* The program's callbacks, unchanged. */

static void global_watcher(zhandle_t *zh, int type, int state, const char *path, void *context)
{
    (void)zh, (void)path, (void)context;
    if (type == ZOO_SESSION_EVENT && state == ZOO_CONNECTED_STATE) {
        note(&news.connected);
    }
}

static void node_watcher(zhandle_t *zh, int type, int state, const char *path, void *context)
{
    (void)zh, (void)state, (void)context;
    if (type == ZOO_CHANGED_EVENT) {
        printf("watch: %s has changed\n", path);
        note(&news.node_events);
    }
}

static void set_is_done(int rc, const struct Stat *stat, const void *data)
{
    (void)data;
    if (rc == ZOK) {
        printf("answer: version %d\n", stat->version);
        note(&news.answers);
    }
}

/* Ends the program unless a zoo_* function succeeded. */
static void zoo(const char *what, int rc)
{
    if (rc != ZOK) {
        fprintf(stderr, "%s: %s\n", what, zerror(rc));
        exit(1);
    }
}

/* The same for zklock's functions, which give a reason. */
static void zkl(const char *what, int rc)
{
    if (rc != ZOK) {
        fprintf(stderr, "%s: %s (%s)\n", what, zkl_strerror(rc), zkl_last_error());
        exit(1);
    }
}

int main(int argc, char **argv)
{
    zhandle_t *zh, *next;
    zkl_client *client;
    zkl_lock *lock;
    zkl_guard *guard;
    struct Stat stat;
    char node[64], lock_path[64], data[16];
    int length = sizeof data;

    if (argc != 2) {
        fprintf(stderr, "usage: %s HOSTS\n", argv[0]);
        return 2;
    }
    snprintf(node, sizeof node, "/adopt-handle-%ld", (long)getpid());
    snprintf(lock_path, sizeof lock_path, "/locks/adopt-handle-%ld", (long)getpid());
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);

    /* Before: a program with its handle. */
    zh = zookeeper_init(argv[1], global_watcher, 10000, NULL, NULL, 0);
    if (zh == NULL) {
        perror("zookeeper_init");
        return 1;
    }
    await("the connection", &news.connected, 1);
    zoo("zoo_create", zoo_create(zh, node, "one", 3, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0));
    zoo("zoo_wexists", zoo_wexists(zh, node, node_watcher, NULL, &stat));

    /* New: it lends the handle to zklock. */
    zkl("zkl_client_adopt", zkl_client_adopt(zh, NULL, &client));
    zkl("zkl_lock_new", zkl_lock_new(client, lock_path, NULL, &lock));
    zkl("zkl_lock_acquire", zkl_lock_acquire(lock, TIMEOUT_SECONDS * 1000, &guard));
    printf("lock: held as %s\n", zkl_guard_path(guard));

    /* Synchronous calls, asynchronous calls and watches work as before. */
    zoo("zoo_set", zoo_set(zh, node, "two", 3, -1));
    await("the watch", &news.node_events, 1);
    zoo("zoo_aset", zoo_aset(zh, node, "three", 5, -1, set_is_done, NULL));
    await("the answer", &news.answers, 1);

    zkl("zkl_guard_release", zkl_guard_release(guard));
    printf("lock: released\n");
    zoo("zoo_get", zoo_get(zh, node, 0, data, &length, &stat));
    printf("data: %.*s\n", length, data);

    /* After an expiry the program opens its next handle. One call moves the client and its locks there. The program
     * still closes the old handle. */
    next = zookeeper_init(argv[1], global_watcher, 10000, NULL, NULL, 0);
    if (next == NULL) {
        perror("zookeeper_init");
        return 1;
    }
    await("the next connection", &news.connected, 2);
    zkl("zkl_client_follow", zkl_client_follow(client, next));
    zoo("zookeeper_close", zookeeper_close(zh));
    zkl("zkl_lock_acquire", zkl_lock_acquire(lock, TIMEOUT_SECONDS * 1000, &guard));
    printf("lock: held as %s\n", zkl_guard_path(guard));
    zkl("zkl_guard_release", zkl_guard_release(guard));
    zkl_lock_free(lock);
    zkl_client_free(client);

    /* Nothing of zklock is left. */
    zoo_delete(next, lock_path, -1); /* the empty directory of the queue */
    zoo("zookeeper_close", zookeeper_close(next));
    return news.node_events == 1 && length == 5 && memcmp(data, "three", 5) == 0 ? 0 : 1;
}
