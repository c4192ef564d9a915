/*
 * Work that stops when the lock is lost. It shows two ways to learn of the loss: a descriptor for
 * poll() or an event loop, and a callback. One of them is enough.
 *
 * The program deletes the lock's znode itself after a while, as an operator could.
 *
 * Build:  cc on_lost.c $(pkg-config --cflags --libs zklock) -o on_lost
 * Run:    ./on_lost 127.0.0.1:2181
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <zklock.h>
#include <zookeeper.h>

enum { TIMEOUT_MS = 30000, PIECE_MS = 50, PIECES_BEFORE_THE_LOSS = 10, PIECES = 600 };

/* What the callbacks get as their userdata. */
struct worker {
    const char *name;
    int reason; /* 0: not lost */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int finished;
};

/* Runs on one of zklock's threads, at most once. */
static void on_lost(int reason, void *userdata)
{
    struct worker *worker = userdata;
    printf("callback: the lock of %s is lost: %s\n", worker->name,
           reason == ZKL_LOST_DELETED ? "its znode was deleted" : "the session has ended");
    worker->reason = reason;
}

/* Runs exactly once, after on_lost or instead of it. Afterwards the worker may be freed. */
static void finished(void *userdata)
{
    struct worker *worker = userdata;
    pthread_mutex_lock(&worker->mutex);
    worker->finished = 1;
    pthread_cond_signal(&worker->changed);
    pthread_mutex_unlock(&worker->mutex);
}

static int wait_until_finished(struct worker *worker)
{
    struct timespec until;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += TIMEOUT_MS / 1000;
    pthread_mutex_lock(&worker->mutex);
    while (!worker->finished && rc == 0) {
        rc = pthread_cond_timedwait(&worker->changed, &worker->mutex, &until);
    }
    pthread_mutex_unlock(&worker->mutex);
    return rc;
}

static void zkl(const char *what, int rc)
{
    if (rc != ZOK) {
        fprintf(stderr, "%s: %s (%s)\n", what, zkl_strerror(rc), zkl_last_error());
        exit(1);
    }
}

int main(int argc, char **argv)
{
    struct worker worker = {"the nightly run", 0, PTHREAD_MUTEX_INITIALIZER,
                            PTHREAD_COND_INITIALIZER, 0};
    struct pollfd lost = {-1, POLLIN, 0};
    zhandle_t *zh;
    zkl_client *client;
    zkl_lock *lock;
    zkl_guard *guard;
    char lock_path[64];
    int done, rc = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: %s HOSTS\n", argv[0]);
        return 2;
    }
    snprintf(lock_path, sizeof lock_path, "/locks/on-lost-%ld", (long)getpid());
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);

    zh = zookeeper_init(argv[1], NULL, 10000, NULL, NULL, 0);
    if (zh == NULL) {
        perror("zookeeper_init");
        return 1;
    }
    zkl("zkl_client_adopt", zkl_client_adopt(zh, NULL, &client));
    zkl("zkl_lock_new", zkl_lock_new(client, lock_path, NULL, &lock));
    zkl("zkl_lock_acquire", zkl_lock_acquire(lock, TIMEOUT_MS, &guard));
    zkl("zkl_guard_on_lost", zkl_guard_on_lost(guard, on_lost, &worker, finished));
    /* The descriptor belongs to the guard: poll it, but do not read or close it. */
    zkl("zkl_guard_fd", zkl_guard_fd(guard, &lost.fd));

    for (done = 0; done < PIECES; done++) {
        if (done == PIECES_BEFORE_THE_LOSS) {
            char claim[256];
            zkl_guard_claim_path(guard, claim, sizeof claim);
            rc = zoo_delete(zh, claim, -1);
            if (rc != ZOK) {
                fprintf(stderr, "zoo_delete: %s\n", zerror(rc));
                return 1;
            }
        }
        /* An event loop polls its other descriptors here too. The wait stands for a piece of work. */
        rc = poll(&lost, 1, PIECE_MS);
        if (rc < 0 && errno != EINTR) {
            perror("poll");
            return 1;
        }
        if (rc > 0) {
            break;
        }
    }
    printf("poll: stopped after %d pieces of work\n", done);

    /* Programs without poll() wait like this. It returns at once now. */
    zkl("zkl_guard_wait_lost", zkl_guard_wait_lost(guard, TIMEOUT_MS));

    /* The callback runs at about the same time as poll() returns, but never after the guard is freed. */
    if (wait_until_finished(&worker) != 0) {
        fprintf(stderr, "the callback did not come\n");
        return 1;
    }
    zkl_guard_free(guard);
    zkl_lock_free(lock);
    zkl_client_free(client);
    zoo_delete(zh, lock_path, -1); /* the empty directory of the queue */
    zookeeper_close(zh);
    return worker.reason == ZKL_LOST_DELETED ? 0 : 1;
}
