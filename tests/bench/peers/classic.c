/* The recipe of ZooKeeper's documentation, on the C client: create a sequential ephemeral child, list, watch the
 * one before by exists, list again when it is gone, delete. Every waiter is a thread with a session of its own. */
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

/* Finds who is just before us; leaves `before` empty if nobody is. */
static void find_before(struct waiter *waiter, const char *own, char *before, size_t size) {
    struct String_vector children;
    const char *found = NULL;
    int rc = zoo_get_children(waiter->zh, waiter->path, 0, &children);
    if (rc != ZOK) die("zoo_get_children", rc);
    for (int i = 0; i < children.count; i++) {
        const char *name = children.data[i];
        if (strcmp(name, own) < 0 && (found == NULL || strcmp(name, found) > 0)) found = name;
    }
    before[0] = 0;
    if (found != NULL) snprintf(before, size, "%s/%s", waiter->path, found);
    deallocate_String_vector(&children);
}

static void acquire(struct waiter *waiter, char *own, size_t size) {
    char prefix[512], before[512];
    snprintf(prefix, sizeof prefix, "%s/lock-", waiter->path);
    int rc = zoo_create(waiter->zh, prefix, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE, own,
                        (int)size);
    if (rc != ZOK) die("zoo_create", rc);
    for (;;) {
        find_before(waiter, strrchr(own, '/') + 1, before, sizeof before);
        if (before[0] == 0) return;
        waiter->fired = 0;
        rc = zoo_wexists(waiter->zh, before, gone, waiter, NULL);
        if (rc == ZNONODE) continue;
        if (rc != ZOK) die("zoo_wexists", rc);
        pthread_mutex_lock(&waiter->lock);
        while (!waiter->fired) pthread_cond_wait(&waiter->woken, &waiter->lock);
        pthread_mutex_unlock(&waiter->lock);
    }
}

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
        int rc = zoo_delete(waiter->zh, own, -1);
        if (rc != ZOK) die("zoo_delete", rc);
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
