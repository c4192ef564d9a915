/*
 * The program's own threads use a handle with zoo_* calls, synchronous and asynchronous, and with
 * watches, while others use locks on it. Everything must come as often as without zklock.
 *
 *   busy HOSTS ROUNDS
 *
 * Half way it prints "break the connection", and waits until its global watcher has heard of that.
 */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zklock.h>
#include <zookeeper.h>

enum { TIMEOUT_SECONDS = 90, THREADS_OF_EACH = 2 };

#define CHECK(what) check(what, #what, __LINE__)

static void check(int holds, const char *what, int line)
{
    if (!holds) {
        fprintf(stderr, "busy.c:%d: %s (%s)\n", line, what, zkl_last_error());
        exit(1);
    }
}

static zhandle_t *zh;
static zkl_client *client;
static long rounds;

static pthread_mutex_t news = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long connects, disconnects, global_node_events;

static void note(long *what)
{
    pthread_mutex_lock(&news);
    *what += 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&news);
}

static int await(const long *what, long count)
{
    struct timespec until;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += TIMEOUT_SECONDS;
    pthread_mutex_lock(&news);
    while (*what < count && rc == 0) {
        rc = pthread_cond_timedwait(&changed, &news, &until);
    }
    rc = *what == count;
    pthread_mutex_unlock(&news);
    return rc;
}

static void global_watcher(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    (void)path;
    CHECK(context == &connects && zoo_get_context(handle) == context);
    if (type != ZOO_SESSION_EVENT) {
        note(&global_node_events);
    } else if (state == ZOO_CONNECTED_STATE) {
        note(&connects);
    } else {
        note(&disconnects);
    }
}

/* A thread of the program's with a node of its own. */
struct own {
    pthread_t thread;
    char node[32];
    long events, strange_events, answers, wrong_answers;
};

static void make_node(struct own *own, const char *kind, int number)
{
    memset(own, 0, sizeof *own);
    snprintf(own->node, sizeof own->node, "/%s-%d", kind, number);
    CHECK(zoo_create(zh, own->node, "0", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0) == ZOK);
}

static void *synchronously(void *argument)
{
    struct own *own = argument;
    long i;

    for (i = 0; i < rounds; i++) {
        char data[16], back[16];
        int length = sizeof back, written = snprintf(data, sizeof data, "%ld", i);
        struct Stat stat;

        CHECK(zoo_set(zh, own->node, data, written, -1) == ZOK);
        CHECK(zoo_get(zh, own->node, 0, back, &length, &stat) == ZOK);
        CHECK(length == written && memcmp(data, back, (size_t)length) == 0);
    }
    return NULL;
}

static void answer(int rc, const struct Stat *stat, const void *data)
{
    struct own *own = (struct own *)data;
    /* In the order of the requests: each one makes the next version. */
    if (rc != ZOK || stat->version % rounds != (own->answers + 1) % rounds) {
        note(&own->wrong_answers);
    }
    note(&own->answers);
}

static void *asynchronously(void *argument)
{
    struct own *own = argument;
    long i;

    for (i = 0; i < rounds; i++) {
        CHECK(zoo_aset(zh, own->node, "x", 1, -1, answer, own) == ZOK);
    }
    CHECK(await(&own->answers, rounds) && own->wrong_answers == 0);
    return NULL;
}

static void node_watcher(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    struct own *own = context;

    (void)state;
    CHECK(handle == zh);
    if (type == ZOO_CHANGED_EVENT && strcmp(path, own->node) == 0) {
        note(&own->events);
    } else if (type != ZOO_SESSION_EVENT) {
        note(&own->strange_events);
    }
}

static void *watching(void *argument)
{
    struct own *own = argument;
    struct Stat stat;
    long i;

    for (i = 0; i < rounds; i++) {
        CHECK(zoo_wexists(zh, own->node, node_watcher, own, &stat) == ZOK);
        CHECK(zoo_set(zh, own->node, "x", 1, -1) == ZOK);
        CHECK(await(&own->events, i + 1));
    }
    CHECK(own->events == rounds && own->strange_events == 0);
    return NULL;
}

/* A thread that contends for the lock of a strategy. */
struct contender {
    pthread_t thread;
    int strategy;
};

static volatile long held[3]; /* by strategy; protected by its lock alone */

static void *contending(void *argument)
{
    struct contender *me = argument;
    zkl_lock_options options = ZKL_LOCK_OPTIONS_INIT;
    char path[32];
    zkl_lock *lock;
    long i;

    options.strategy = me->strategy;
    snprintf(path, sizeof path, "/locks/busy-%d", me->strategy);
    CHECK(zkl_lock_new(client, path, &options, &lock) == ZOK);
    for (i = 0; i < rounds / 5 + 1; i++) {
        zkl_guard *guard;
        long before;

        CHECK(zkl_lock_acquire(lock, TIMEOUT_SECONDS * 1000, &guard) == ZOK);
        before = held[me->strategy];
        CHECK(zkl_guard_set(guard, "/fenced", "x", 1, -1, NULL) == ZOK);
        CHECK(held[me->strategy] == before);
        held[me->strategy] = before + 1;
        CHECK(zkl_guard_release(guard) == ZOK);
    }
    zkl_lock_free(lock);
    return NULL;
}

static void everybody_works(void)
{
    static struct own own[3][THREADS_OF_EACH];
    static struct contender contenders[3][THREADS_OF_EACH];
    static void *(*const kinds[3])(void *) = {synchronously, asynchronously, watching};
    static const char *const names[3] = {"sync", "async", "watch"};
    int kind, i;

    held[0] = held[1] = held[2] = 0;
    for (kind = 0; kind < 3; kind++) {
        for (i = 0; i < THREADS_OF_EACH; i++) {
            struct own *one = &own[kind][i];
            struct contender *other = &contenders[kind][i];

            make_node(one, names[kind], i);
            other->strategy = kind;
            CHECK(pthread_create(&one->thread, NULL, kinds[kind], one) == 0);
            CHECK(pthread_create(&other->thread, NULL, contending, other) == 0);
        }
    }
    for (kind = 0; kind < 3; kind++) {
        for (i = 0; i < THREADS_OF_EACH; i++) {
            pthread_join(own[kind][i].thread, NULL);
            pthread_join(contenders[kind][i].thread, NULL);
            CHECK(zoo_delete(zh, own[kind][i].node, -1) == ZOK);
        }
        CHECK(held[kind] == THREADS_OF_EACH * (rounds / 5 + 1));
    }
}

static void is_connected(int rc, const struct Stat *stat, const void *data)
{
    (void)stat;
    if (rc == ZOK) {
        note((long *)data);
    }
}

int main(int argc, char **argv)
{
    static long answers;

    CHECK(argc == 3 && (rounds = atol(argv[2])) > 0);
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zh = zookeeper_init(argv[1], global_watcher, 60000, NULL, &connects, 0);
    CHECK(zh != NULL && await(&connects, 1));
    CHECK(zoo_create(zh, "/fenced", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0) == ZOK);
    CHECK(zkl_client_adopt(zh, NULL, &client) == ZOK);

    everybody_works();
    CHECK(connects == 1 && disconnects == 0 && global_node_events == 0);

    puts("break the connection");
    fflush(stdout);
    CHECK(await(&connects, 2) && disconnects == 1);
    everybody_works();
    CHECK(connects == 2 && disconnects == 1 && global_node_events == 0);

    zkl_client_free(client);
    /* The handle is as it was. */
    CHECK(zoo_get_context(zh) == &connects);
    CHECK(zoo_aexists(zh, "/fenced", 0, is_connected, &answers) == ZOK && await(&answers, 1));
    CHECK(zookeeper_close(zh) == ZOK);
    return 0;
}
