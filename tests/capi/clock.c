/* What rests on the local clock: these cases wait for longer than a session timeout. */
#include "check.h"

static void a_cut_link_is_lost_by_the_local_clock(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, "/cut");
    zkl_guard *guard = acquired(lock);
    told t;
    told_init(&t);
    int fd = -1;
    GIVES(OK, zkl_guard_on_lost(guard, tell_lost, &t, finalize));
    GIVES(OK, zkl_guard_fd(guard, &fd));
    ask("cut");
    GIVES(OK, zkl_guard_wait_lost(guard, TIMEOUT_MS));
    CHECK(zkl_guard_state(guard) == ZKL_LOST);
    CHECK(is_readable(fd, TIMEOUT_MS));
    UNTIL(told_finalized(&t) == 1);
    CHECK(t.calls == 1 && t.result == ZKL_LOST_SESSION);
    GIVES(ZKL_NOT_HELD, zkl_guard_set(guard, "/data", "lost", 4, -1, NULL));
    ask("heal");
    GIVES(EXPIRED, zkl_guard_release(guard));
    UNTIL(zkl_client_state(client) == ZKL_CONNECTED);
    zkl_lock_free(lock);
}

static pthread_mutex_t stop = PTHREAD_MUTEX_INITIALIZER;

static void block(int rc, zkl_guard *guard, void *userdata)
{
    CHECK(rc == OK);
    tell(userdata, rc, guard);
    pthread_mutex_lock(&stop);
    pthread_mutex_unlock(&stop);
}

static void a_callback_that_blocks_costs_no_lock(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, "/blocked"), *behind = lock_on(client, "/behind");
    told blocked, waiting;
    told_init(&blocked);
    told_init(&waiting);
    pthread_mutex_lock(&stop);
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, block, &blocked, finalize, NULL));
    UNTIL(told_calls(&blocked) == 1);
    GIVES(OK, zkl_lock_acquire_async(behind, ZKL_FOREVER, tell_done, &waiting, NULL, NULL));
    /* Longer than the session would live if nobody proved that it does. */
    GIVES(TIMEOUT, zkl_guard_wait_lost(blocked.guard, session_timeout_ms + 200));
    CHECK(zkl_guard_state(blocked.guard) == ZKL_HELD);
    CHECK(told_calls(&waiting) == 0 && told_finalized(&blocked) == 0);
    pthread_mutex_unlock(&stop);
    UNTIL(told_calls(&waiting) == 1);
    CHECK(told_finalized(&blocked) == 1);
    GIVES(OK, zkl_guard_release(blocked.guard));
    GIVES(OK, zkl_guard_release(waiting.guard));
    zkl_lock_free(lock);
    zkl_lock_free(behind);
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    ask("create /data");
    zkl_client *client = connected();
    a_callback_that_blocks_costs_no_lock(client);
    a_cut_link_is_lost_by_the_local_clock(client);
    zkl_client_free(client);
    return 0;
}
