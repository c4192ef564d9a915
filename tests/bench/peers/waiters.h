/* Threads that contend for one lock, each with a session of its own. A program says how one is acquired and released. */
#ifndef WAITERS_H
#define WAITERS_H

#include "peer.h"

static _Atomic int64_t last_release;

struct waiter {
    zhandle_t *zh;
    const char *path;
    int alone;
    int64_t every, next;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    int fired;
};

static void gone(zhandle_t *zh, int type, int state, const char *path, void *context) {
    struct waiter *waiter = context;
    (void)zh, (void)state, (void)path;
    if (type == ZOO_SESSION_EVENT) return;
    pthread_mutex_lock(&waiter->lock);
    waiter->fired = 1;
    pthread_cond_signal(&waiter->woken);
    pthread_mutex_unlock(&waiter->lock);
}

static void wait_for_event(struct waiter *waiter) {
    pthread_mutex_lock(&waiter->lock);
    while (!waiter->fired) pthread_cond_wait(&waiter->woken, &waiter->lock);
    pthread_mutex_unlock(&waiter->lock);
}

/* Makes a claim; `own` is its path. */
static void claim(struct waiter *waiter, char *own, size_t size) {
    char prefix[512];
    snprintf(prefix, sizeof prefix, "%s/lock-", waiter->path);
    int rc = zoo_create(waiter->zh, prefix, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE, own,
                        (int)size);
    if (rc != ZOK) die("zoo_create", rc);
}

static void acquire(struct waiter *waiter, char *own, size_t size);
static void release(struct waiter *waiter, const char *own);

static void *contend(void *data) {
    struct waiter *waiter = data;
    char own[512];
    while (phase != OVER) {
        if (waiter->every > 0) wait_until(waiter->next += waiter->every);
        int64_t asked = waiter->every > 0 ? waiter->next : now_nanos();
        acquire(waiter, own, sizeof own);
        int64_t got = now_nanos(), since = waiter->alone ? asked : last_release;
        if (since >= asked) record(got - since);
        acquisitions++;
        last_release = now_nanos();
        release(waiter, own);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    int number = atoi(argv[3]);
    struct waiter *waiters = calloc((size_t)number, sizeof *waiters);
    pthread_t *threads = calloc((size_t)number, sizeof *threads);
    if (waiters == NULL || threads == NULL) return 1;
    for (int i = 0; i < number; i++) {
        waiters[i].zh = connected(argv[1]);
        waiters[i].path = argv[2];
        waiters[i].every = interval();
        waiters[i].next = now_nanos() + waiters[i].every * i / number;
        waiters[i].alone = number == 1 || waiters[i].every > 0;
        pthread_mutex_init(&waiters[i].lock, NULL);
        pthread_cond_init(&waiters[i].woken, NULL);
    }
    for (int i = 0; i < number; i++) {
        if (pthread_create(&threads[i], NULL, contend, &waiters[i]) != 0) return 1;
    }
    struct window window = measure(atof(argv[4]));
    for (int i = 0; i < number; i++) pthread_join(threads[i], NULL);
    print_result(window);
    for (int i = 0; i < number; i++) zookeeper_close(waiters[i].zh);
    return 0;
}

#endif
