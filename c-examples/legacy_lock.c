/*
 * A program written against the lock recipe that ZooKeeper's source ships: zoo_lock.h and
 * zookeeper.h, and nothing else. It needs no change to be linked with zklock.
 *
 * Two contenders, with a handle each, want the lock on one path. The first gets it, the second waits
 * for its turn, and their completion callbacks notify both.
 *
 * Build:  cc legacy_lock.c $(pkg-config --cflags --libs zklock) -o legacy_lock
 * Run:    ./legacy_lock 127.0.0.1:2181
 */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <zookeeper.h>
#include <zoo_lock.h>

enum { TIMEOUT_SECONDS = 30 };

struct contender {
    const char *name;
    zhandle_t *zh;
    zkr_lock_mutex_t mutex;
    int locked;   /* completions with 0 */
    int unlocked; /* completions with 1 */
};

static pthread_mutex_t news = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* Called with 0 when the lock is acquired and with 1 when it is released. */
static void completion(int rc, void *cbdata)
{
    struct contender *contender = cbdata;
    printf("%s: %s\n", contender->name, rc == 0 ? "acquired" : "released");
    pthread_mutex_lock(&news);
    if (rc == 0) {
        contender->locked++;
    } else {
        contender->unlocked++;
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&news);
}

static void await(const int *what, int count)
{
    struct timespec until;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += TIMEOUT_SECONDS;
    pthread_mutex_lock(&news);
    while (*what < count && rc == 0) {
        rc = pthread_cond_timedwait(&changed, &news, &until);
    }
    pthread_mutex_unlock(&news);
    if (rc != 0) {
        fprintf(stderr, "waited in vain for a completion\n");
        exit(1);
    }
}

static void check(const char *what, int rc)
{
    if (rc != ZOK) {
        fprintf(stderr, "%s: %s\n", what, zerror(rc));
        exit(1);
    }
}

static void expect(const char *what, int holds)
{
    if (!holds) {
        fprintf(stderr, "unexpected: %s\n", what);
        exit(1);
    }
}

static void start(struct contender *contender, const char *name, const char *hosts, char *path)
{
    memset(contender, 0, sizeof *contender);
    contender->name = name;
    contender->zh = zookeeper_init(hosts, NULL, 10000, NULL, NULL, 0);
    if (contender->zh == NULL) {
        perror("zookeeper_init");
        exit(1);
    }
    check("zkr_lock_init_cb", zkr_lock_init_cb(&contender->mutex, contender->zh, path,
                                               &ZOO_OPEN_ACL_UNSAFE, completion, contender));
    /*
     * Waits until its place in the queue is known, not until it owns. Always 0: completion(1) reports a
     * failure. zkr_lock_error(&contender->mutex) gives the reason.
     */
    check("zkr_lock_lock", zkr_lock_lock(&contender->mutex));
    printf("%s: in the line as %s\n", name, contender->mutex.id);
}

int main(int argc, char **argv)
{
    static struct contender first, second;
    char path[64];

    if (argc != 2) {
        fprintf(stderr, "usage: %s HOSTS\n", argv[0]);
        return 2;
    }
    snprintf(path, sizeof path, "/legacy-lock-%ld", (long)getpid());
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);

    start(&first, "first", argv[1], path);
    await(&first.locked, 1);
    expect("the first owns", zkr_lock_isowner(&first.mutex));

    start(&second, "second", argv[1], path);
    expect("the second waits", !zkr_lock_isowner(&second.mutex));
    /* Waiters see the owner's znode. */
    expect("the owner's id", strcmp(zkr_lock_getid(&second.mutex), first.mutex.id) == 0);

    check("zkr_lock_unlock", zkr_lock_unlock(&first.mutex));
    await(&first.unlocked, 1);
    expect("the first owns no more", !zkr_lock_isowner(&first.mutex));
    await(&second.locked, 1);
    expect("the second owns", zkr_lock_isowner(&second.mutex));

    check("zkr_lock_unlock", zkr_lock_unlock(&second.mutex));
    await(&second.unlocked, 1);

    check("zkr_lock_destroy", zkr_lock_destroy(&first.mutex));
    check("zkr_lock_destroy", zkr_lock_destroy(&second.mutex));
    check("zoo_delete", zoo_delete(first.zh, path, -1));
    check("zookeeper_close", zookeeper_close(first.zh));
    check("zookeeper_close", zookeeper_close(second.zh));
    return 0;
}
