/* A program without descriptors or threads to spare: what needs one says so at once, everything else
 * works, and all of it works again when there are some. */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/resource.h>

#include <zoo_lock.h>
#include <zoo_queue.h>

/* How many threads may be started yet; below 0: any number. Those of all libraries come by here. */
static volatile int threads_left = -1;

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    static union {
        void *found;
        create_fn *call;
    } create;
    if (create.found == NULL)
        create.found = dlsym(RTLD_NEXT, "pthread_create");
    if (threads_left == 0)
        return EAGAIN;
    if (threads_left > 0)
        threads_left--;
    return create.call(thread, attributes, run, argument);
}

static rlim_t limit_descriptors(rlim_t most)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = most;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    return before;
}

static zhandle_t *opened(void)
{
    zhandle_t *zh = zookeeper_init(hosts, NULL, session_timeout_ms, NULL, NULL, 0);
    CHECK(zh != NULL);
    UNTIL(zoo_state(zh) == ZOO_CONNECTED_STATE);
    return zh;
}

static void a_lock_works(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, "/scarce");
    zkl_guard *guard = acquired(lock), *second = NULL;
    GIVES(TIMEOUT, zkl_lock_acquire(lock, 50, &second));
    GIVES(OK, zkl_guard_release(guard));
    zkl_lock_free(lock);
}

static void the_recipes_work(zhandle_t *zh)
{
    static char locks[] = "/locks", elements[] = "/elements";
    zkr_lock_mutex_t mutex;
    GIVES(OK, zkr_lock_init(&mutex, zh, locks, &ZOO_OPEN_ACL_UNSAFE));
    CHECK(zkr_lock_lock(&mutex) == 0);
    GIVES(OK, zkr_lock_error(&mutex));
    UNTIL(zkr_lock_isowner(&mutex));
    GIVES(OK, zkr_lock_unlock(&mutex));
    GIVES(OK, zkr_lock_destroy(&mutex));
    zkr_queue_t queue;
    GIVES(OK, zkr_queue_init(&queue, zh, elements, &ZOO_OPEN_ACL_UNSAFE));
    GIVES(OK, zkr_queue_offer(&queue, "x", 1));
    char taken[8];
    int size = sizeof taken;
    GIVES(OK, zkr_queue_remove(&queue, taken, &size));
    CHECK(size == 1 && taken[0] == 'x');
    zkr_queue_destroy(&queue);
}

static void nothing_needs_a_descriptor_but_the_guards_own(void)
{
    zhandle_t *zh = opened();
    rlim_t before = limit_descriptors(3);
    zkl_client *client = NULL;
    GIVES(OK, zkl_client_adopt(zh, NULL, &client));
    a_lock_works(client);
    the_recipes_work(zh);
    zkl_lock *lock = lock_on(client, "/scarce");
    zkl_guard *guard = acquired(lock);
    told t;
    told_init(&t);
    GIVES(OK, zkl_guard_on_lost(guard, tell_lost, &t, finalize));
    int fd = -1;
    GIVES(SYSTEM_ERROR, zkl_guard_fd(guard, &fd));
    CHECK(strstr(zkl_last_error(), "(ulimit -n) is 3") != NULL);
    zkl_client *other = NULL;
    GIVES(SYSTEM_ERROR, zkl_client_connect(hosts, NULL, &other));
    CHECK(strstr(zkl_last_error(), "(ulimit -n) is 3") != NULL);
    limit_descriptors(before);
    GIVES(OK, zkl_guard_fd(guard, &fd));
    ask("expire %lld", (long long)zkl_client_session_id(client));
    CHECK(is_readable(fd, TIMEOUT_MS));
    UNTIL(told_calls(&t) == 1 && told_finalized(&t) == 1);
    zkl_guard_free(guard);
    zkl_lock_free(lock);
    zkl_client_free(client);
    zookeeper_close(zh);
}

/* Adopts while so many threads more can be had; whether that was enough. */
static int adopts_with(zhandle_t *zh, int threads)
{
    zkl_client *client = NULL;
    threads_left = threads;
    int rc = zkl_client_adopt(zh, NULL, &client);
    threads_left = -1;
    if (rc == OK) {
        a_lock_works(client);
        zkl_client_free(client);
        return 1;
    }
    CHECK(rc == SYSTEM_ERROR && strstr(zkl_last_error(), "(ulimit -u) is") != NULL);
    return 0;
}

/* Locks as the recipe does while so many threads more can be had; whether that was enough. */
static int locks_with(zhandle_t *zh, int threads)
{
    static char path[] = "/threads";
    zkr_lock_mutex_t mutex;
    GIVES(OK, zkr_lock_init(&mutex, zh, path, &ZOO_OPEN_ACL_UNSAFE));
    threads_left = threads;
    CHECK(zkr_lock_lock(&mutex) == 0);
    threads_left = -1;
    int rc = zkr_lock_error(&mutex);
    CHECK(rc == OK || (rc == SYSTEM_ERROR && strstr(zkl_last_error(), "(ulimit -u) is") != NULL));
    if (rc != OK)
        CHECK(zkr_lock_lock(&mutex) == 0);
    UNTIL(zkr_lock_isowner(&mutex));
    GIVES(OK, zkr_lock_unlock(&mutex));
    GIVES(OK, zkr_lock_destroy(&mutex));
    return rc == OK;
}

static void what_lacks_a_thread_says_so_and_works_later(void)
{
    enum { MOST = 8 };
    int adopted = 0, locked = 0;
    for (int threads = 0; threads <= MOST; threads++) {
        zhandle_t *zh = opened();
        adopted += adopts_with(zh, threads);
        zookeeper_close(zh);
        zh = opened();
        locked += locks_with(zh, threads);
        zookeeper_close(zh);
    }
    CHECK(adopted > 0 && adopted <= MOST && locked > 0 && locked <= MOST);
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    /* First, for the thread that drives all sessions is started once. */
    what_lacks_a_thread_says_so_and_works_later();
    nothing_needs_a_descriptor_but_the_guards_own();
    return 0;
}
