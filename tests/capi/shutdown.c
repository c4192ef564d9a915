/* What zkl_shutdown ends and frees, and when it can't. At its end nothing of zklock is left. */
#include "check.h"

#include <zoo_lock.h>

static void nothing_was_begun(void)
{
    GIVES(OK, zkl_shutdown());
    GIVES(OK, zkl_shutdown());
}

static void each_object_has_to_be_freed(void)
{
    zkl_client *client = connected();
    GIVES(INVALID_STATE, zkl_shutdown());
    CHECK(strstr(zkl_last_error(), "not freed") != NULL);
    zkl_lock *lock = lock_on(client, "/lock");
    zkl_guard *guard = acquired(lock);
    zkl_client_free(client);
    GIVES(INVALID_STATE, zkl_shutdown());
    zkl_lock_free(lock);
    GIVES(INVALID_STATE, zkl_shutdown());
    /* It works as before. */
    CHECK(zkl_guard_state(guard) == ZKL_HELD);
    GIVES(OK, zkl_guard_release(guard));
    GIVES(OK, zkl_shutdown());
    GIVES(OK, zkl_shutdown());
}

/* Many guards are freed, and nothing waits for their releases but the shutdown. */
static void what_goes_on_in_the_background_is_waited_for(void)
{
    enum { MANY = 20 };
    zkl_guard *guards[MANY];
    zkl_client *client = connected();
    for (int i = 0; i < MANY; i++) {
        char path[32];
        snprintf(path, sizeof path, "/many/%d", i);
        zkl_lock *lock = lock_on(client, path);
        guards[i] = acquired(lock);
        zkl_lock_free(lock);
    }
    for (int i = 0; i < MANY; i++)
        zkl_guard_free(guards[i]);
    zkl_client_free(client);
    GIVES(OK, zkl_shutdown());
    CHECK(strcmp(ask("children /many/0"), "0") == 0);
}

/* An acquire that was given up, and a release, still go on when all objects are freed. */
static void what_the_program_has_freed_is_not_asked_for(void)
{
    for (int i = 0; i < 20; i++) {
        zkl_client *client = connected();
        zkl_lock *lock = lock_on(client, "/given-up");
        zkl_guard *guard = acquired(lock);
        zkl_attempt *attempt = NULL;
        told waited, released;
        told_init(&waited);
        told_init(&released);
        GIVES(OK,
              zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &waited, finalize, &attempt));
        zkl_lock_free(lock);
        zkl_client_free(client);
        GIVES(OK, zkl_attempt_cancel(attempt));
        zkl_attempt_free(attempt);
        GIVES(OK, zkl_guard_release_async(guard, ZKL_FOREVER, tell_rc, &released, finalize));
        GIVES(OK, zkl_shutdown());
        CHECK(told_finalized(&waited) == 1 && told_finalized(&released) == 1);
    }
}

static int inside;

static void shuts_down(int rc, zkl_guard *guard, void *userdata)
{
    inside = zkl_shutdown();
    tell_done(rc, guard, userdata);
}

static void a_callback_does_not_wait_for_itself(void)
{
    zkl_client *client = connected();
    zkl_lock *lock = lock_on(client, "/inside");
    told t;
    told_init(&t);
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, shuts_down, &t, finalize, NULL));
    UNTIL(told_finalized(&t) == 1);
    CHECK(inside == ZKL_WOULD_DEADLOCK);
    zkl_guard_free(t.guard);
    zkl_lock_free(lock);
    zkl_client_free(client);
    GIVES(OK, zkl_shutdown());
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void waits_at_the_gate(int rc, zkl_guard *guard, void *userdata)
{
    zkl_guard_free(guard);
    tell_done(rc, guard, userdata);
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
}

static void a_callback_that_does_not_end_is_named(void)
{
    zkl_client *client = connected();
    zkl_lock *lock = lock_on(client, "/gate");
    told t;
    told_init(&t);
    pthread_mutex_lock(&gate);
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, waits_at_the_gate, &t, finalize, NULL));
    UNTIL(told_calls(&t) == 1);
    zkl_lock_free(lock);
    zkl_client_free(client);
    GIVES(TIMEOUT, zkl_shutdown());
    CHECK(strstr(zkl_last_error(), "zklock-callback") != NULL);
    pthread_mutex_unlock(&gate);
    GIVES(OK, zkl_shutdown());
    CHECK(told_finalized(&t) == 1);
}

static void a_handle_of_the_program_stays_the_programs(void)
{
    zhandle_t *zh = zookeeper_init(hosts, NULL, session_timeout_ms, NULL, NULL, 0);
    zkl_client *client = NULL;
    CHECK(zh != NULL);
    GIVES(OK, zkl_client_adopt(zh, NULL, &client));
    zkl_lock *lock = lock_on(client, "/adopted");
    GIVES(OK, zkl_guard_release(acquired(lock)));
    zkl_lock_free(lock);
    zkl_client_free(client);
    GIVES(OK, zkl_shutdown());
    struct Stat stat;
    CHECK(zoo_exists(zh, "/adopted", 0, &stat) == ZOK);
    CHECK(zookeeper_close(zh) == ZOK);
}

/* Programs of the recipes have no client to free. */
static void recipes_last_until_their_handle_is_closed(void)
{
    zhandle_t *zh = zookeeper_init(hosts, NULL, session_timeout_ms, NULL, NULL, 0);
    char path[] = "/recipe";
    zkr_lock_mutex_t mutex;
    CHECK(zh != NULL && zkr_lock_init(&mutex, zh, path, &ZOO_OPEN_ACL_UNSAFE) == 0);
    CHECK(zkr_lock_lock(&mutex) == 0);
    UNTIL(zkr_lock_isowner(&mutex));
    GIVES(INVALID_STATE, zkl_shutdown());
    CHECK(zkr_lock_unlock(&mutex) == 0 && zkr_lock_destroy(&mutex) == 0);
    GIVES(INVALID_STATE, zkl_shutdown());
    CHECK(zookeeper_close(zh) == ZOK);
    GIVES(OK, zkl_shutdown());
}

static void another_store_has_threads_too(void)
{
    zkl_client *client = NULL;
    GIVES(OK, zkl_store_connect("local:", NULL, &client));
    zkl_lock *lock = lock_on(client, "/local");
    zkl_guard *guard = acquired(lock), *none = NULL;
    GIVES(TIMEOUT, zkl_lock_acquire(lock, 10, &none));
    GIVES(OK, zkl_guard_release(guard));
    zkl_lock_free(lock);
    zkl_client_free(client);
    GIVES(OK, zkl_shutdown());
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    nothing_was_begun();
    each_object_has_to_be_freed();
    what_goes_on_in_the_background_is_waited_for();
    what_the_program_has_freed_is_not_asked_for();
    a_callback_does_not_wait_for_itself();
    a_callback_that_does_not_end_is_named();
    a_handle_of_the_program_stays_the_programs();
    recipes_last_until_their_handle_is_closed();
    another_store_has_threads_too();
    return 0;
}
