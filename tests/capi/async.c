/* Acquires that tell their outcome by a callback, and what callbacks may do. */
#include "check.h"

static void the_outcome_is_told_once_and_then_the_userdata_is_finished(zkl_lock *lock)
{
    told t;
    told_init(&t);
    zkl_attempt *attempt = NULL;
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &t, finalize, &attempt));
    UNTIL(told_finalized(&t) == 1);
    CHECK(t.calls == 1 && t.result == OK && !t.thread_is_main);
    CHECK(zkl_guard_state(t.guard) == ZKL_HELD);
    GIVES(NOTHING, zkl_attempt_cancel(attempt));
    zkl_attempt_free(attempt);

    /* Taken: once by a deadline, once by a look. */
    told late[2];
    for (int i = 0; i < 2; i++) {
        told_init(&late[i]);
        GIVES(OK, zkl_lock_acquire_async(lock, 50 * i, tell_done, &late[i], finalize, NULL));
    }
    for (int i = 0; i < 2; i++) {
        UNTIL(told_finalized(&late[i]) == 1);
        CHECK(late[i].calls == 1 && late[i].result == TIMEOUT && late[i].guard == NULL);
        CHECK(strstr(late[i].why, "acquire") != NULL);
    }
    GIVES(OK, zkl_guard_release(t.guard));
    CHECK(told_calls(&t) == 1);
}

static void an_acquire_that_was_refused_tells_nothing(zkl_lock *lock)
{
    told t;
    told_init(&t);
    zkl_attempt *const untouched = (zkl_attempt *)&t;
    zkl_attempt *attempt = untouched;
    GIVES(BAD_ARGUMENTS, zkl_lock_acquire_async(lock, 0, NULL, &t, finalize, &attempt));
    GIVES(BAD_ARGUMENTS, zkl_lock_acquire_async(lock, -2, tell_done, &t, finalize, &attempt));
    GIVES(BAD_ARGUMENTS, zkl_lock_acquire_async(NULL, 0, tell_done, &t, finalize, &attempt));
    CHECK(attempt == untouched);
    /* What comes later comes after what would have come. */
    told next;
    told_init(&next);
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &next, NULL, NULL));
    UNTIL(told_calls(&next) == 1);
    CHECK(t.calls == 0 && t.finalized == 0);
    GIVES(OK, zkl_guard_release(next.guard));
}

static void cancelling(zkl_lock *lock)
{
    zkl_guard *held = acquired(lock);
    told cancelled, freed;
    told_init(&cancelled);
    told_init(&freed);
    zkl_attempt *attempt = NULL;
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &cancelled, finalize, &attempt));
    UNTIL(contenders_of(lock) == 2);
    GIVES(OK, zkl_attempt_cancel(attempt));
    UNTIL(told_finalized(&cancelled) == 1);
    CHECK(cancelled.calls == 1 && cancelled.result == ZKL_CANCELLED && cancelled.guard == NULL);
    GIVES(NOTHING, zkl_attempt_cancel(attempt));
    zkl_attempt_free(attempt);
    UNTIL(contenders_of(lock) == 1);

    /* Freeing the handle on an attempt leaves the attempt alone. */
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &freed, finalize, &attempt));
    zkl_attempt_free(attempt);
    GIVES(OK, zkl_guard_release(held));
    UNTIL(told_finalized(&freed) == 1);
    CHECK(freed.result == OK);
    GIVES(OK, zkl_guard_release(freed.guard));

    /* Whoever comes first, the program learns the truth, and nothing is left. */
    for (int i = 0; i < 50; i++) {
        told raced;
        told_init(&raced);
        GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &raced, finalize, &attempt));
        if (i % 2)
            pause_ms(i % 5);
        int late = zkl_attempt_cancel(attempt);
        CHECK(late == OK || late == NOTHING);
        UNTIL(told_finalized(&raced) == 1);
        CHECK(raced.calls == 1 && raced.result == (late ? OK : ZKL_CANCELLED));
        zkl_guard_free(raced.guard);
        zkl_attempt_free(attempt);
    }
    UNTIL(contenders_of(lock) == 0);
}

/* Everything at once, inside a callback. */
struct inner {
    told outer, nested;
    zkl_client *client;
    zkl_lock *lock;
    zkl_attempt *attempt;
};

static void call_everything(int rc, zkl_guard *guard, void *userdata)
{
    struct inner *inner = userdata;
    CHECK(rc == OK && zkl_guard_state(guard) == ZKL_HELD);
    GIVES(OK, zkl_guard_on_lost(guard, tell_lost, &inner->nested, finalize));
    zkl_lock *other = lock_on(inner->client, "/inside");
    zkl_guard *second = acquired(other);
    GIVES(ZKL_TAKEN, zkl_lock_try(other, &(zkl_guard *){NULL}));
    CHECK(contenders_of(other) == 1);
    GIVES(TIMEOUT, zkl_guard_wait_lost(second, 10));
    GIVES(OK, zkl_guard_set(second, "/data", "inside", 6, -1, NULL));
    GIVES(OK, zkl_guard_release(second));
    zkl_lock_free(other);
    zkl_client *client = connected();
    zkl_client_free(client);
    zkl_attempt_free(inner->attempt);
    zkl_guard_free(guard);
    zkl_lock_free(inner->lock);
    zkl_client_free(inner->client);
    tell(&inner->outer, rc, NULL);
}

static void finish_inner(void *userdata)
{
    finalize(&((struct inner *)userdata)->outer);
}

static void a_callback_calls_everything_and_frees_the_last_of_its_client(void)
{
    static struct inner inner;
    told_init(&inner.outer);
    told_init(&inner.nested);
    ask("create /data");
    inner.client = connected();
    inner.lock = lock_on(inner.client, "/outside");
    /* Held by another, so that the attempt is written before it is used. */
    zkl_client *other = connected();
    zkl_lock *same = lock_on(other, "/outside");
    zkl_guard *guard = acquired(same);
    GIVES(OK, zkl_lock_acquire_async(inner.lock, ZKL_FOREVER, call_everything, &inner,
                                     finish_inner, &inner.attempt));
    GIVES(OK, zkl_guard_release(guard));
    UNTIL(told_finalized(&inner.outer) == 1);
    UNTIL(told_finalized(&inner.nested) == 1);
    CHECK(inner.nested.calls == 0);
    /* Its session is gone, and the lock free. */
    guard = acquired(same);
    GIVES(OK, zkl_guard_release(guard));
    zkl_lock_free(same);
    zkl_client_free(other);
}

static void give_back(int rc, zkl_guard *guard, void *userdata)
{
    tell_done(rc, guard, userdata);
    zkl_guard_free(guard);
}

static void many_attempts_take_turns(zkl_lock *lock)
{
    enum { MANY = 50 };
    static told t[MANY];
    for (int i = 0; i < MANY; i++) {
        told_init(&t[i]);
        GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, give_back, &t[i], finalize, NULL));
    }
    for (int i = 0; i < MANY; i++) {
        UNTIL(told_finalized(&t[i]) == 1);
        CHECK(t[i].calls == 1 && t[i].result == OK);
    }
}

static void attempts_end_with_their_client(void)
{
    zkl_client *client = connected();
    zkl_lock *lock = lock_on(client, "/ended");
    zkl_guard *guard = acquired(lock);
    told waiting, later;
    told_init(&waiting);
    told_init(&later);
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &waiting, finalize, NULL));
    GIVES(OK, zkl_client_detach(client));
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &later, finalize, NULL));
    UNTIL(told_finalized(&waiting) == 1 && told_finalized(&later) == 1);
    CHECK(waiting.calls == 1);
    CLOSED(waiting);
    CHECK(later.calls == 1);
    CLOSED(later);
    zkl_guard_free(guard);
    zkl_lock_free(lock);
    zkl_client_free(client);
}

static void an_attempt_goes_on_when_everything_else_is_freed(void)
{
    zkl_client *client = connected(), *other = connected();
    zkl_lock *lock = lock_on(client, "/alone"), *same = lock_on(other, "/alone");
    zkl_guard *guard = acquired(same);
    told t;
    told_init(&t);
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &t, finalize, NULL));
    zkl_lock_free(lock);
    zkl_client_free(client);
    GIVES(OK, zkl_guard_release(guard));
    UNTIL(told_finalized(&t) == 1);
    CHECK(t.result == OK && contenders_of(same) == 1);
    GIVES(OK, zkl_guard_release(t.guard));
    zkl_lock_free(same);
    zkl_client_free(other);
}

/* What has told its outcome, once, and is finished with. */
#define TOLD(t, wanted)                                                               \
    do {                                                                              \
        UNTIL(told_finalized(&(t)) == 1);                                             \
        CHECK((t).calls == 1 && !(t).thread_is_main);                                 \
        GIVES(wanted, (t).result);                                                    \
    } while (0)

static void each_operation_tells_what_its_blocking_twin_returns(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, "/twins");
    told t[12];
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        told_init(&t[i]);
    GIVES(OK, zkl_lock_contenders_async(lock, 1, tell_contenders, &t[0], finalize));
    TOLD(t[0], 0);
    GIVES(OK, zkl_lock_try_async(lock, tell_done, &t[1], finalize));
    TOLD(t[1], OK);
    zkl_guard *guard = t[1].guard;
    GIVES(OK, zkl_lock_try_async(lock, tell_done, &t[2], finalize));
    TOLD(t[2], ZKL_TAKEN);
    CHECK(strstr(t[2].why, "/twins") != NULL);
    told waiting;
    told_init(&waiting);
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &waiting, finalize, NULL));
    UNTIL(contenders_of(lock) == 2);
    GIVES(OK, zkl_lock_contenders_async(lock, 1, tell_contenders, &t[3], finalize));
    GIVES(OK, zkl_lock_contenders_async(lock, 100, tell_contenders, &t[4], finalize));
    TOLD(t[3], 1);
    TOLD(t[4], 2);

    ask("create /twin");
    GIVES(OK, zkl_guard_set_async(guard, "/twin", "one", 3, 0, tell_written, &t[5], finalize));
    TOLD(t[5], 1);
    CHECK(strcmp(ask("get /twin"), "one") == 0);
    GIVES(OK, zkl_guard_set_async(guard, "/twin", "two", 3, 0, tell_written, &t[6], finalize));
    TOLD(t[6], BAD_VERSION);

    /* Submitted by now, so in this order. */
    GIVES(OK, zkl_guard_set_async(guard, "/twin", "last", 4, -1, tell_written, &t[7], finalize));
    GIVES(OK, zkl_guard_release_async(guard, ZKL_FOREVER, tell_rc, &t[8], finalize));
    TOLD(t[7], 2);
    TOLD(t[8], OK);
    CHECK(strcmp(ask("get /twin"), "last") == 0);

    UNTIL(told_finalized(&waiting) == 1);
    ask("delete %s", claim_of(waiting.guard));
    GIVES(OK, zkl_guard_set_async(waiting.guard, "/twin", "late", 4, -1, tell_written, &t[9], finalize));
    TOLD(t[9], ZKL_NOT_HELD);
    GIVES(OK, zkl_guard_release_async(waiting.guard, 0, tell_rc, &t[10], finalize));
    UNTIL(told_finalized(&t[10]) == 1);
    CHECK(t[10].result == NO_NODE || t[10].result == ZKL_OUTCOME_UNKNOWN);
    GIVES(BAD_ARGUMENTS, zkl_guard_release_async(acquired(lock), -2, tell_rc, &t[11], finalize));
    UNTIL(contenders_of(lock) == 0);
    CHECK(t[11].calls == 0 && t[11].finalized == 0);
    zkl_lock_free(lock);
}

static void operations_end_with_their_client(void)
{
    zkl_client *client = connected();
    zkl_lock *lock = lock_on(client, "/ended");
    zkl_guard *guard = acquired(lock);
    told t[4];
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        told_init(&t[i]);
    GIVES(OK, zkl_client_detach(client));
    GIVES(OK, zkl_lock_try_async(lock, tell_done, &t[0], finalize));
    GIVES(OK, zkl_lock_contenders_async(lock, 1, tell_contenders, &t[1], finalize));
    GIVES(OK, zkl_guard_set_async(guard, "/data", "x", 1, -1, tell_written, &t[2], finalize));
    GIVES(OK, zkl_guard_release_async(guard, ZKL_FOREVER, tell_rc, &t[3], finalize));
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        UNTIL(told_finalized(&t[i]) == 1);
        CHECK(t[i].calls == 1 && t[i].result != OK);
    }
    zkl_lock_free(lock);
    zkl_client_free(client);
}

static void *detaches(void *client)
{
    GIVES(OK, zkl_client_detach(client));
    return NULL;
}

/* What was under way when its client ended: whether it was done is not known, and nobody waits for ever. */
static void operations_under_way_when_their_client_ends_are_closing(void)
{
    zkl_client *client = connected();
    zkl_lock *lock = lock_on(client, "/under-way"), *held = lock_on(client, "/under-way-held");
    zkl_guard *guard = acquired(held), *released = acquired(lock);
    told t[5];
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        told_init(&t[i]);
    /* Nothing is answered from here on. */
    ask("cut");
    GIVES(OK, zkl_lock_try_async(lock, tell_done, &t[0], finalize));
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &t[1], finalize, NULL));
    GIVES(OK, zkl_lock_contenders_async(lock, 1, tell_contenders, &t[2], finalize));
    GIVES(OK, zkl_guard_set_async(guard, "/data", "x", 1, -1, tell_written, &t[3], finalize));
    GIVES(OK, zkl_guard_release_async(released, ZKL_FOREVER, tell_rc, &t[4], finalize));
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        CHECK(told_finalized(&t[i]) == 0);
    pthread_t detaching;
    CHECK(pthread_create(&detaching, NULL, detaches, client) == 0);
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        UNTIL(told_finalized(&t[i]) == 1);
    /* The end of the session is confirmed once a server can be reached. */
    ask("heal");
    CHECK(pthread_join(detaching, NULL) == 0);
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        CHECK(t[i].calls == 1);
    CLOSED(t[0]);
    CLOSED(t[1]);
    CLOSED(t[2]);
    /* Of writes the program has to know that they may have been done. */
    GIVES(ZKL_OUTCOME_UNKNOWN, t[3].result);
    GIVES(ZKL_OUTCOME_UNKNOWN, t[4].result);
    CHECK(t[0].guard == NULL && t[1].guard == NULL);
    zkl_guard_free(guard);
    zkl_lock_free(lock);
    zkl_lock_free(held);
    zkl_client_free(client);
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    zkl_client *client = connected();
    zkl_lock *lock = lock_on(client, "/lock");
    the_outcome_is_told_once_and_then_the_userdata_is_finished(lock);
    an_acquire_that_was_refused_tells_nothing(lock);
    cancelling(lock);
    many_attempts_take_turns(lock);
    zkl_lock_free(lock);
    each_operation_tells_what_its_blocking_twin_returns(client);
    zkl_client_free(client);
    operations_end_with_their_client();
    operations_under_way_when_their_client_ends_are_closing();
    a_callback_calls_everything_and_frees_the_last_of_its_client();
    attempts_end_with_their_client();
    an_attempt_goes_on_when_everything_else_is_freed();
    return 0;
}
