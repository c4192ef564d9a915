/*
 * A pool of threads on one session. Jobs of one account run one after the other, across all machines; jobs of
 * different accounts run in parallel. Each account has its own lock path.
 *
 * Build:  cc thread_pool.c $(pkg-config --cflags --libs zklock) -o thread_pool
 * Run:    ./thread_pool 127.0.0.1:2181
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zklock.h>
#include <zookeeper.h>

enum { THREADS = 4, JOBS = 40, ACCOUNTS = 8, TIMEOUT_MS = 30000 };

static zkl_client *client;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int next_job;
static int busy[ACCOUNTS];
static int at_once, most_at_once, clashes;

static void check(const char *what, int rc)
{
    if (rc != ZOK) {
        fprintf(stderr, "%s: %s\n", what, zkl_last_error());
        exit(1);
    }
}

static int take_job(void)
{
    pthread_mutex_lock(&mutex);
    int job = next_job < JOBS ? next_job++ : -1;
    pthread_mutex_unlock(&mutex);
    return job;
}

/* Begins or ends work for an account, and counts how many threads do so at the same time. */
static void book(int account, int change)
{
    pthread_mutex_lock(&mutex);
    busy[account] += change;
    clashes += busy[account] > 1;
    at_once += change;
    if (at_once > most_at_once)
        most_at_once = at_once;
    pthread_mutex_unlock(&mutex);
}

static void *serve(void *unused)
{
    (void)unused;
    for (int job = take_job(); job >= 0; job = take_job()) {
        int account = job % ACCOUNTS;
        char path[64];
        zkl_lock *lock = NULL;
        zkl_guard *guard = NULL;
        snprintf(path, sizeof path, "/locks/accounts/%d", account);
        check("lock", zkl_lock_new(client, path, NULL, &lock));
        check("acquire", zkl_lock_acquire(lock, TIMEOUT_MS, &guard));
        book(account, 1);
        book(account, -1);
        /* Released in the background, so the next job starts at once. */
        zkl_guard_free(guard);
        zkl_lock_free(lock);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s HOSTS\n", argv[0]);
        return 2;
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    check("connect", zkl_client_connect(argv[1], NULL, &client));
    pthread_t threads[THREADS];
    for (int n = 0; n < THREADS; n++) {
        int rc = pthread_create(&threads[n], NULL, serve, NULL);
        if (rc != 0) {
            fprintf(stderr, "a thread: %s\n", strerror(rc));
            return 1;
        }
    }
    for (int n = 0; n < THREADS; n++)
        pthread_join(threads[n], NULL);
    zkl_client_free(client);
    printf("%d jobs by %d threads, at most %d at once, clashes: %d\n", JOBS, THREADS, most_at_once, clashes);
    return clashes == 0 ? 0 : 1;
}
