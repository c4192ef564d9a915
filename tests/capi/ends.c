/* A process that ends right after it has given something up, without waiting for that and without
 * freeing anything else. What it has done is its third argument; the claims were below /locks/end. */
#include "check.h"

#include <unistd.h>

#include <zoo_lock.h>

static zkl_lock *lock;

static zkl_client *on_a_handle(void)
{
    zhandle_t *zh = zookeeper_init(hosts, NULL, session_timeout_ms, NULL, NULL, 0);
    CHECK(zh != NULL);
    zkl_client *client = NULL;
    GIVES(OK, zkl_client_adopt(zh, NULL, &client));
    return client;
}

static void *end(void *unused)
{
    (void)unused;
    exit(0);
}

static void tell_done_and_stay(int rc, zkl_guard *guard, void *userdata)
{
    tell_done(rc, guard, userdata);
    pause_ms(10000);
}

static void a_guard_is_freed(void)
{
    zkl_guard_free(acquired(lock));
}

static void a_guard_is_freed_elsewhere(void)
{
    zkl_guard *guard = acquired(lock);
    char path[64];
    /* It dies with the session only. */
    snprintf(path, sizeof path, "/locks/other-%ld", (long)getpid());
    zkl_lock *other = lock_on(connected(), path);
    zkl_guard *held = acquired(other);
    pthread_t thread;
    zkl_guard_free(guard);
    CHECK(pthread_create(&thread, NULL, end, NULL) == 0);
    zkl_guard_wait_lost(held, ZKL_FOREVER);
}

static void a_release_is_not_waited_for(void)
{
    int rc = zkl_guard_release_within(acquired(lock), 0);
    CHECK(rc == OK || rc == ZKL_OUTCOME_UNKNOWN);
}

static void an_acquire_is_cancelled(void)
{
    zkl_guard *guard = acquired(lock);
    zkl_attempt *attempt = NULL;
    told t;
    told_init(&t);
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &t, NULL, &attempt));
    UNTIL(contenders_of(lock) == 2);
    GIVES(OK, zkl_attempt_cancel(attempt));
    zkl_guard_free(guard);
    /* What the callback would write to is gone otherwise. */
    UNTIL(told_calls(&t) == 1);
}

static void an_acquire_is_cancelled_at_once(void)
{
    static told t;
    zkl_attempt *attempt = NULL;
    told_init(&t);
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &t, NULL, &attempt));
    /* Before the claim is sent, on its way, behind it: by chance. */
    pause_ms(getpid() % 8);
    if (zkl_attempt_cancel(attempt) == NOTHING) {
        UNTIL(told_calls(&t) == 1);
        zkl_guard_free(t.guard);
    }
}

static void done_while_another_is_cancelled(int rc, zkl_guard *guard, void *userdata)
{
    zkl_attempt *attempt = NULL;
    CHECK(rc == OK);
    zkl_guard_free(guard);
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done_and_stay, userdata, NULL, &attempt));
    UNTIL(contenders_of(lock) == 1);
    /* It holds, and its outcome stands behind this callback. */
    pause_ms(100);
    GIVES(OK, zkl_attempt_cancel(attempt));
    /* Released now: the callback thread is this one. */
    UNTIL(contenders_of(lock) == 0);
}

static void an_acquire_is_cancelled_that_has_its_outcome(void)
{
    static told t;
    char path[64];
    told_init(&t);
    snprintf(path, sizeof path, "/locks/other-%ld", (long)getpid());
    zkl_client *client = connected();
    lock = lock_on(client, "/locks/end");
    zkl_lock *other = lock_on(client, path);
    GIVES(OK, zkl_lock_acquire_async(other, ZKL_FOREVER, done_while_another_is_cancelled, &t, NULL, NULL));
    UNTIL(told_calls(&t) == 1);
}

static void an_acquire_is_too_late(void)
{
    zkl_guard *guard = acquired(lock), *none = NULL;
    GIVES(TIMEOUT, zkl_lock_acquire(lock, 3, &none));
    zkl_guard_free(guard);
}

/* Of one lock that is shared, so that all claims are where they are counted. */
static void a_client_is_closed_right_after_its_guards(void)
{
    static const int counts[] = {1, 20, 200};
    static zkl_guard *guards[200];
    const int count = counts[getpid() % 3];
    zkl_lock_options options = ZKL_LOCK_OPTIONS_INIT;
    options.sharing = ZKL_READ;
    zkl_client *client = connected();
    GIVES(OK, zkl_lock_new(client, "/locks/end", &options, &lock));
    for (int i = 0; i < count; i++)
        guards[i] = acquired(lock);
    for (int i = 0; i < count; i++)
        zkl_guard_free(guards[i]);
    zkl_lock_free(lock);
    /* That says so: the end of this process must not have to. */
    GIVES(OK, zkl_client_detach(client));
    _exit(0);
}

static void mutexes_are_destroyed(void)
{
    static zkr_lock_mutex_t owner, waiter;
    static char path[] = "/locks/end";
    zhandle_t *zh = zookeeper_init(hosts, NULL, session_timeout_ms, NULL, NULL, 0);
    CHECK(zh != NULL);
    GIVES(OK, zkr_lock_init(&owner, zh, path, NULL));
    GIVES(OK, zkr_lock_init(&waiter, zh, path, NULL));
    zkr_lock_lock(&owner);
    UNTIL(zkr_lock_isowner(&owner));
    zkr_lock_lock(&waiter);
    GIVES(OK, zkr_lock_destroy(&waiter));
    GIVES(OK, zkr_lock_destroy(&owner));
}

#define STATE(name, client)                                                           \
    if (strcmp(argv[3], #name) == 0) {                                                \
        lock = lock_on(client, "/locks/end");                                         \
        name();                                                                       \
        return 0;                                                                     \
    }

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    begin(3, argv);
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    STATE(a_guard_is_freed, connected())
    if (strcmp(argv[3], "a_guard_on_a_handle_is_freed") == 0) {
        lock = lock_on(on_a_handle(), "/locks/end");
        a_guard_is_freed();
        return 0;
    }
    STATE(a_guard_is_freed_elsewhere, connected())
    STATE(a_release_is_not_waited_for, on_a_handle())
    STATE(an_acquire_is_cancelled, connected())
    STATE(an_acquire_is_cancelled_at_once, on_a_handle())
    STATE(an_acquire_is_cancelled_that_has_its_outcome, connected())
    STATE(an_acquire_is_too_late, connected())
    if (strcmp(argv[3], "a_client_is_closed_right_after_its_guards") == 0)
        a_client_is_closed_right_after_its_guards();
    STATE(mutexes_are_destroyed, connected())
    return 2;
}
