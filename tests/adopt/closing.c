/*
 * Handles that are adopted, and closed by the program at every possible moment.
 *
 *   closing HOSTS cycles COUNT     one thread, in every order of free and close
 *   closing HOSTS racing COUNT     closed while other threads are inside zklock
 */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zklock.h>
#include <zookeeper.h>

enum { TIMEOUT_MS = 60000, THREADS = 6, ORDERS = 9 };

#define CHECK(what) check(what, #what, __LINE__)

static void check(int holds, const char *what, int line)
{
    if (!holds) {
        fprintf(stderr, "closing.c:%d: %s (%s)\n", line, what, zkl_last_error());
        exit(1);
    }
}

static void pause_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static zhandle_t *open_handle(const char *hosts)
{
    zhandle_t *zh = zookeeper_init(hosts, NULL, 60000, NULL, NULL, 0);
    CHECK(zh != NULL);
    return zh;
}

/* What callbacks were told. */
struct told {
    pthread_mutex_t mutex;
    int done, finalized;
};

static void done(int rc, zkl_guard *guard, void *userdata)
{
    struct told *told = userdata;
    CHECK((rc == ZOK) == (guard != NULL));
    zkl_guard_free(guard);
    pthread_mutex_lock(&told->mutex);
    told->done++;
    pthread_mutex_unlock(&told->mutex);
}

static void finalized(void *userdata)
{
    struct told *told = userdata;
    pthread_mutex_lock(&told->mutex);
    told->finalized++;
    pthread_mutex_unlock(&told->mutex);
}

static void await_finalized(struct told *told)
{
    int tries, is_over = 0;
    for (tries = 0; tries < TIMEOUT_MS / 5 && !is_over; tries++) {
        pthread_mutex_lock(&told->mutex);
        is_over = told->finalized > 0;
        CHECK(told->done <= 1 && told->finalized <= 1 && told->finalized <= told->done);
        pthread_mutex_unlock(&told->mutex);
        if (!is_over) {
            pause_ms(5);
        }
    }
    CHECK(is_over);
}

static void one_cycle(const char *hosts, long number)
{
    struct told told = {PTHREAD_MUTEX_INITIALIZER, 0, 0};
    zhandle_t *zh = open_handle(hosts);
    int order = (int)(number % ORDERS);
    char path[48];
    zkl_client *client;
    zkl_lock *lock;
    zkl_guard *guard = NULL;

    CHECK(zkl_client_adopt(zh, NULL, &client) == ZOK);
    /* One each: a handle that is closed while it has no connection leaves its session, and the claim
       on it, to the session's timeout. */
    snprintf(path, sizeof path, "/locks/cycle-%ld", number);
    CHECK(zkl_lock_new(client, path, NULL, &lock) == ZOK);
    switch (order) {
    case 0: /* at once, not even connected: nobody may notice, for the C client can swallow the news */
        CHECK(zookeeper_close(zh) == ZOK);
        CHECK(zkl_lock_acquire(lock, 1, &guard) != ZOK);
        CHECK(zkl_client_detach(client) == ZOK);
        break;
    case 1: /* freed first */
        zkl_lock_free(lock);
        zkl_client_free(client);
        CHECK(zookeeper_close(zh) == ZOK);
        return;
    case 2: /* while it holds */
        CHECK(zkl_lock_acquire(lock, TIMEOUT_MS, &guard) == ZOK);
        CHECK(zookeeper_close(zh) == ZOK);
        CHECK(zkl_guard_state(guard) == ZKL_LOST);
        CHECK(zkl_guard_release(guard) != ZOK);
        break;
    case 3: /* with an acquire on its way, which is told of it */
        CHECK(zkl_lock_acquire(lock, TIMEOUT_MS, &guard) == ZOK);
        CHECK(zkl_lock_acquire_async(lock, TIMEOUT_MS, done, &told, finalized, NULL) == ZOK);
        CHECK(zookeeper_close(zh) == ZOK);
        await_finalized(&told);
        zkl_guard_free(guard);
        break;
    case 4: /* after a detach */
        CHECK(zkl_lock_acquire(lock, TIMEOUT_MS, &guard) == ZOK);
        CHECK(zkl_guard_release(guard) == ZOK);
        CHECK(zkl_client_detach(client) == ZOK);
        CHECK(zookeeper_close(zh) == ZOK);
        break;
    case 5: /* right after a release in the background */
        CHECK(zkl_lock_acquire(lock, TIMEOUT_MS, &guard) == ZOK);
        zkl_guard_free(guard);
        CHECK(zookeeper_close(zh) == ZOK);
        break;
    case 6: /* everything is freed while it holds, the guard last, and after the handle */
        CHECK(zkl_lock_acquire(lock, TIMEOUT_MS, &guard) == ZOK);
        zkl_lock_free(lock);
        zkl_client_free(client);
        CHECK(zookeeper_close(zh) == ZOK);
        CHECK(zkl_guard_state(guard) == ZKL_LOST);
        zkl_guard_free(guard);
        return;
    case 7: /* with an acquire on its way on a handle that is not even connected */
        CHECK(zkl_lock_acquire_async(lock, TIMEOUT_MS, done, &told, finalized, NULL) == ZOK);
        CHECK(zookeeper_close(zh) == ZOK);
        CHECK(zkl_client_detach(client) == ZOK);
        await_finalized(&told);
        break;
    default: /* adopted a second time, beside the first */
    {
        zkl_client *other;
        CHECK(zkl_client_adopt(zh, NULL, &other) == ZOK);
        CHECK(zkl_lock_acquire(lock, TIMEOUT_MS, &guard) == ZOK);
        CHECK(zookeeper_close(zh) == ZOK);
        CHECK(zkl_client_state(client) == ZKL_CLOSED);
        CHECK(zkl_client_state(other) == ZKL_CLOSED);
        zkl_client_free(other);
        zkl_guard_free(guard);
    }
    }
    CHECK(zkl_client_state(client) == ZKL_CLOSED);
    CHECK(zkl_lock_acquire(lock, TIMEOUT_MS, &guard) != ZOK);
    zkl_lock_free(lock);
    zkl_client_free(client);
}

/* Threads that use everything until they are told that it is over. */

struct racer {
    pthread_t thread;
    int number;
    zkl_client *client;
    long calls;
};

static int is_over(int rc)
{
    return rc == ZINVALIDSTATE || rc == ZCLOSING || rc == ZSESSIONEXPIRED;
}

static void *race(void *argument)
{
    struct racer *me = argument;
    zkl_lock_options options = ZKL_LOCK_OPTIONS_INIT;
    char path[32];
    zkl_lock *lock;
    int rc = ZOK;

    options.strategy = me->number % 3;
    snprintf(path, sizeof path, "/locks/racing-%d", options.strategy);
    CHECK(zkl_lock_new(me->client, path, &options, &lock) == ZOK);
    while (!is_over(rc)) {
        zkl_guard *guard = NULL;
        zkl_contenders *contenders = NULL;

        CHECK(zkl_client_state(me->client) > 0);
        rc = me->calls % 2 == 0 ? zkl_lock_acquire(lock, TIMEOUT_MS, &guard)
                                : zkl_lock_try(lock, &guard);
        CHECK(rc == ZOK || rc == ZKL_TAKEN || is_over(rc));
        if (rc == ZOK) {
            int set = zkl_guard_set(guard, "/zookeeper", "", 0, 1000000, NULL);
            /* The version is wrong, so that it fails in any case. */
            CHECK(set != ZOK);
            rc = me->number % 2 == 0 ? zkl_guard_release(guard) : ZOK;
            if (me->number % 2 != 0) {
                zkl_guard_free(guard);
            }
        }
        if (!is_over(rc) && zkl_lock_contenders(lock, &contenders) == ZOK) {
            zkl_contenders_free(contenders);
        }
        me->calls++;
    }
    zkl_lock_free(lock);
    return NULL;
}

static void one_race(const char *hosts, long number)
{
    static struct racer racers[THREADS];
    zhandle_t *zh = open_handle(hosts);
    zkl_client *client;
    int i;

    CHECK(zkl_client_adopt(zh, NULL, &client) == ZOK);
    /* Before that the C client can swallow the news of a close: see the cycles. */
    for (i = 0; i < TIMEOUT_MS && zkl_client_state(client) != ZKL_CONNECTED; i++) {
        pause_ms(1);
    }
    CHECK(zkl_client_state(client) == ZKL_CONNECTED);
    for (i = 0; i < THREADS; i++) {
        racers[i] = (struct racer){.number = i, .client = client};
        CHECK(pthread_create(&racers[i].thread, NULL, race, &racers[i]) == 0);
    }
    /* At another moment each time; how long it really takes does not matter. */
    pause_ms(number * 7 % 100);
    CHECK(zookeeper_close(zh) == ZOK);
    for (i = 0; i < THREADS; i++) {
        pthread_join(racers[i].thread, NULL);
    }
    CHECK(zkl_client_state(client) == ZKL_CLOSED);
    zkl_client_free(client);
}

int main(int argc, char **argv)
{
    long count = argc == 4 ? atol(argv[3]) : 0, i;

    CHECK(count > 0);
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    for (i = 0; i < count; i++) {
        if (strcmp(argv[2], "cycles") == 0) {
            one_cycle(argv[1], i);
        } else {
            one_race(argv[1], i);
        }
    }
    return 0;
}
