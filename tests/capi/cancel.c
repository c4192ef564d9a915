/* Threads that are cancelled inside zklock: the call ends as it would have, then the thread does. */
#include "check.h"

#include <sched.h>

#include <zoo_lock.h>
#include <zoo_queue.h>

/* A thread inside a call, and how that ended. */
typedef struct caller {
    pthread_t thread;
    pthread_mutex_t mutex;
    int is_inside, was_cancelled, rc, length;
    const zkl_lock *lock;
    const zkl_guard *guard;
    zkl_guard *acquired;
    zkr_queue_t *queue;
    char data[16];
    const zkl_multi_lock *multi;
    const zkl_election *election;
    const zkl_counter *counter;
    const zkl_queue *work;
    zkl_delivery *delivery;
    const zkl_latch *latch;
    const zkl_double_barrier *barrier;
    zkl_entered *entered;
    zkl_membership *membership;
} caller;

static int state_now(void)
{
    int state;
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state) == 0);
    CHECK(pthread_setcancelstate(state, NULL) == 0);
    return state;
}

static void note_the_end(void *of)
{
    caller *c = of;
    c->was_cancelled = 1;
}

static void start(caller *c, void *(*body)(void *))
{
    CHECK(pthread_mutex_init(&c->mutex, NULL) == 0);
    c->rc = 12345;
    CHECK(pthread_create(&c->thread, NULL, body, c) == 0);
}

static void go_inside(caller *c)
{
    pthread_mutex_lock(&c->mutex);
    c->is_inside = 1;
    pthread_mutex_unlock(&c->mutex);
}

static int is_inside(caller *c)
{
    pthread_mutex_lock(&c->mutex);
    int inside = c->is_inside;
    pthread_mutex_unlock(&c->mutex);
    return inside;
}

/* Cancels the thread while it waits in its call, which goes on. */
static void cancel(caller *c)
{
    UNTIL(is_inside(c));
    pause_ms(100);
    CHECK(pthread_cancel(c->thread) == 0);
    pause_ms(100);
}

/* The call ended with `rc`, and the thread behind it. */
static void expect_end(caller *c, int rc)
{
    void *result = NULL;
    CHECK(pthread_join(c->thread, &result) == 0);
    CHECK(result == PTHREAD_CANCELED && c->was_cancelled);
    if (c->rc != rc)
        fprintf(stderr, "the call gave %d\n", c->rc);
    CHECK(c->rc == rc);
}

/* A body that calls once and can be cancelled after that, but not before. */
#define BODY(name, call)                                                              \
    static void *name(void *of)                                                       \
    {                                                                                 \
        caller *c = of;                                                               \
        pthread_cleanup_push(note_the_end, c);                                        \
        go_inside(c);                                                                 \
        c->rc = (call);                                                               \
        CHECK(state_now() == PTHREAD_CANCEL_ENABLE);                                  \
        for (;;)                                                                      \
            pause_ms(1000);                                                           \
        pthread_cleanup_pop(0);                                                       \
        return NULL;                                                                  \
    }

BODY(acquires, zkl_lock_acquire(c->lock, TIMEOUT_MS, &c->acquired))
BODY(acquires_briefly, zkl_lock_acquire(c->lock, 400, &c->acquired))
BODY(acquires_for_ever, zkl_lock_acquire(c->lock, ZKL_FOREVER, &c->acquired))
BODY(waits_for_the_loss, zkl_guard_wait_lost(c->guard, 400))
BODY(writes, zkl_guard_set(c->guard, "/data", "new", 3, -1, NULL))
BODY(acquires_several, zkl_multi_lock_acquire(c->multi, TIMEOUT_MS, &c->acquired))
BODY(campaigns, zkl_election_campaign(c->election, TIMEOUT_MS, &c->acquired))
BODY(adds, zkl_counter_add(c->counter, 1, TIMEOUT_MS, NULL))
BODY(takes_work, zkl_queue_take(c->work, TIMEOUT_MS, &c->delivery))
BODY(is_done, zkl_delivery_done(c->delivery, TIMEOUT_MS))
BODY(waits_for_the_latch, zkl_latch_wait(c->latch, 400))
BODY(enters, zkl_double_barrier_enter(c->barrier, 400, &c->entered))
BODY(leaves, zkl_membership_leave(c->membership, TIMEOUT_MS))
BODY(takes, zkr_queue_take(NULL, c->queue, c->data, &c->length))

static void a_waiter_is_cancelled(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, "/locks/cancel");
    zkl_guard *guard = acquired(lock);
    caller gets = {.lock = lock}, gives_up = {.lock = lock}, watches = {.guard = guard};
    start(&gives_up, acquires_briefly);
    cancel(&gives_up);
    expect_end(&gives_up, TIMEOUT);
    start(&watches, waits_for_the_loss);
    cancel(&watches);
    expect_end(&watches, TIMEOUT);
    start(&gets, acquires);
    cancel(&gets);
    GIVES(OK, zkl_guard_release(guard));
    expect_end(&gets, OK);
    /* It is the program's, as always. */
    CHECK(zkl_guard_state(gets.acquired) == ZKL_HELD);
    GIVES(OK, zkl_guard_release(gets.acquired));
    CHECK(contenders_of(lock) == 0);
    zkl_lock_free(lock);
}

/* What was to be given is given, and the program's. */
static void recipes_end_as_they_would_have(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, "/elections/cancel");
    zkl_guard *guard = acquired(lock);
    zkl_multi_lock *multi = NULL;
    zkl_election *election = NULL;
    zkl_counter *counter = NULL;
    zkl_queue *work = NULL;
    zkl_latch *latch = NULL;
    zkl_double_barrier *barrier = NULL;
    zkl_group *group = NULL;
    zkl_membership *membership = NULL;
    const zkl_lock *locks[] = {lock};
    GIVES(OK, zkl_multi_lock_new(locks, 1, &multi));
    GIVES(OK, zkl_election_new(client, "/elections/cancel", NULL, &election));
    GIVES(OK, zkl_counter_new(client, "/counters/cancel", NULL, &counter));
    GIVES(OK, zkl_queue_new(client, "/queues/cancel", NULL, &work));
    GIVES(OK, zkl_latch_new(client, "/latches/cancel", NULL, &latch));
    GIVES(OK, zkl_double_barrier_new(client, "/barriers/cancel", 2, NULL, &barrier));
    GIVES(OK, zkl_group_new(client, "/groups/cancel", NULL, &group));
    GIVES(OK, zkl_group_join(group, NULL, 0, TIMEOUT_MS, &membership));

    caller several = {.multi = multi}, campaign = {.election = election}, take = {.work = work},
           opens = {.latch = latch}, enter = {.barrier = barrier};
    start(&several, acquires_several);
    cancel(&several);
    start(&campaign, campaigns);
    cancel(&campaign);
    GIVES(OK, zkl_guard_release(guard));
    expect_end(&several, OK);
    GIVES(OK, zkl_guard_release(several.acquired));
    expect_end(&campaign, OK);
    CHECK(zkl_guard_state(campaign.acquired) == ZKL_HELD);
    GIVES(OK, zkl_guard_release(campaign.acquired));
    CHECK(contenders_of(lock) == 0);

    start(&take, takes_work);
    cancel(&take);
    GIVES(OK, zkl_queue_put(work, "job", 3, ZKL_DEFAULT_PRIORITY, TIMEOUT_MS));
    expect_end(&take, OK);
    start(&opens, waits_for_the_latch);
    cancel(&opens);
    expect_end(&opens, TIMEOUT);
    start(&enter, enters);
    cancel(&enter);
    expect_end(&enter, TIMEOUT);
    CHECK(enter.entered == NULL);

    /* Replies are on the way for as long as the network is slow. */
    caller add = {.counter = counter}, done = {.delivery = take.delivery}, leave = {.membership = membership};
    ask("slow 500");
    start(&add, adds);
    cancel(&add);
    start(&done, is_done);
    cancel(&done);
    start(&leave, leaves);
    cancel(&leave);
    ask("slow 0");
    expect_end(&add, OK);
    expect_end(&done, OK);
    expect_end(&leave, OK);
    int64_t value = 0;
    GIVES(OK, zkl_counter_get(counter, TIMEOUT_MS, &value));
    CHECK(value == 1);
    GIVES(TIMEOUT, zkl_queue_take(work, 0, &take.delivery));
    zkl_members *members = NULL;
    GIVES(OK, zkl_group_members(group, TIMEOUT_MS, &members));
    CHECK(zkl_members_count(members) == 0);
    zkl_members_free(members);

    zkl_multi_lock_free(multi);
    zkl_election_free(election);
    zkl_counter_free(counter);
    zkl_queue_free(work);
    zkl_latch_free(latch);
    zkl_double_barrier_free(barrier);
    zkl_group_free(group);
    zkl_lock_free(lock);
}

/* Its reply is on the way for as long as the network stands still. */
static void a_write_is_cancelled(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, "/locks/write");
    zkl_guard *guard = acquired(lock);
    caller c = {.guard = guard};
    ask("slow 500");
    start(&c, writes);
    cancel(&c);
    ask("slow 0");
    expect_end(&c, OK);
    CHECK(strcmp(ask("get /data"), "new") == 0);
    GIVES(OK, zkl_guard_release(guard));
    zkl_lock_free(lock);
}

/* A blocked call is ended by another thread: the client is detached. */
static void a_cancelled_waiter_is_ended_by_a_detach(void)
{
    zkl_client *client = connected();
    zkl_lock *lock = lock_on(client, "/locks/detach");
    zkl_guard *guard = acquired(lock);
    caller c = {.lock = lock};
    start(&c, acquires_for_ever);
    cancel(&c);
    GIVES(OK, zkl_client_detach(client));
    void *result = NULL;
    CHECK(pthread_join(c.thread, &result) == 0 && result == PTHREAD_CANCELED);
    CHECK(c.rc == INVALID_STATE || c.rc == CLOSING);
    zkl_guard_free(guard);
    zkl_lock_free(lock);
    zkl_client_free(client);
}

static zhandle_t *opened(void)
{
    zhandle_t *zh = zookeeper_init(hosts, NULL, session_timeout_ms, NULL, NULL, 0);
    CHECK(zh != NULL);
    return zh;
}

static char path[] = "/jobs", lock_path[] = "/locks/recipe";

static void a_consumer_is_cancelled(void)
{
    zhandle_t *zh = opened();
    zkr_queue_t queue;
    GIVES(OK, zkr_queue_init(&queue, zh, path, &ZOO_OPEN_ACL_UNSAFE));
    caller c = {.queue = &queue, .length = sizeof c.data};
    start(&c, takes);
    cancel(&c);
    GIVES(OK, zkr_queue_offer(&queue, "job", 3));
    expect_end(&c, OK);
    CHECK(c.length == 3 && memcmp(c.data, "job", 3) == 0);

    /* It is ended by the end of the handle, too. */
    caller ended = {.queue = &queue, .length = sizeof ended.data};
    start(&ended, takes);
    cancel(&ended);
    CHECK(zookeeper_close(zh) == ZOK);
    expect_end(&ended, INVALID_STATE);
    zkr_queue_destroy(&queue);
}

static int state_of_completion = -1;

static void completes(int rc, void *data)
{
    (void)data;
    if (rc == 0)
        state_of_completion = state_now();
}

static void *locks(void *of)
{
    caller *c = of;
    zkr_lock_mutex_t mutex;
    zhandle_t *zh = opened();
    GIVES(OK, zkr_lock_init_cb(&mutex, zh, lock_path, &ZOO_OPEN_ACL_UNSAFE, completes, NULL));
    pthread_cleanup_push(note_the_end, c);
    /* Asked for before the call: it does not happen inside. */
    CHECK(pthread_cancel(pthread_self()) == 0);
    zkr_lock_lock(&mutex);
    /* Nothing here that it could end in. */
    while (!zkr_lock_isowner(&mutex))
        sched_yield();
    c->rc = zkr_lock_unlock(&mutex);
    zkr_lock_destroy(&mutex);
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL) == 0);
    CHECK(zookeeper_close(zh) == ZOK);
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL) == 0);
    pthread_testcancel();
    pthread_cleanup_pop(0);
    return NULL;
}

static void a_mutex_of_the_recipe_is_locked_by_a_cancelled_thread(void)
{
    caller c = {.rc = 0};
    start(&c, locks);
    expect_end(&c, OK);
    CHECK(state_of_completion == PTHREAD_CANCEL_DISABLE);
}

static int state_of_callback = -1;

static void done(int rc, zkl_guard *guard, void *userdata)
{
    state_of_callback = state_now();
    tell(userdata, rc, guard);
}

static void callbacks_run_with_cancellation_off(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, "/locks/callback");
    told t;
    told_init(&t);
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, done, &t, finalize, NULL));
    UNTIL(told_finalized(&t) == 1);
    CHECK(t.result == OK && state_of_callback == PTHREAD_CANCEL_DISABLE);
    GIVES(OK, zkl_guard_release(t.guard));
    zkl_lock_free(lock);
}

static void a_thread_that_has_cancellation_off_keeps_it_off(zkl_client *client)
{
    int before;
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before) == 0);
    zkl_lock *lock = lock_on(client, "/locks/off");
    zkl_guard *guard = acquired(lock);
    CHECK(state_now() == PTHREAD_CANCEL_DISABLE);
    GIVES(OK, zkl_guard_release(guard));
    zkl_lock_free(lock);
    CHECK(state_now() == PTHREAD_CANCEL_DISABLE);
    CHECK(pthread_setcancelstate(before, NULL) == 0);
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    ask("create /data");
    zkl_client *client = connected();
    a_waiter_is_cancelled(client);
    a_write_is_cancelled(client);
    recipes_end_as_they_would_have(client);
    callbacks_run_with_cancellation_off(client);
    a_thread_that_has_cancellation_off_keeps_it_off(client);
    a_cancelled_waiter_is_ended_by_a_detach();
    a_consumer_is_cancelled();
    a_mutex_of_the_recipe_is_locked_by_a_cancelled_thread();
    CHECK(state_now() == PTHREAD_CANCEL_ENABLE);
    zkl_client_free(client);
    return 0;
}
