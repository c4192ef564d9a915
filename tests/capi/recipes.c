/* Counters, queues, groups, latches, barriers and locks by key. */
#include "check.h"

/* A call on a thread of its own. */
typedef struct caller {
    pthread_t thread;
    void *on;
    int rc;
    int64_t count;
    void *given;
} caller;

static void start(caller *c, void *(*body)(void *), void *on)
{
    memset(c, 0, sizeof *c);
    c->rc = 12345;
    c->on = on;
    CHECK(pthread_create(&c->thread, NULL, body, c) == 0);
}

static void end(caller *c, int rc)
{
    CHECK(pthread_join(c->thread, NULL) == 0);
    if (c->rc != rc)
        fprintf(stderr, "the call gave %d\n", c->rc);
    CHECK(c->rc == rc);
}

/* What a callback was given beside its code. */
typedef struct given {
    told told;
    void *object;
} given;

static void given_init(given *g)
{
    told_init(&g->told);
    g->object = NULL;
}

static void give(given *g, int rc, void *object)
{
    CHECK((rc == 0) == (object != NULL));
    pthread_mutex_lock(&g->told.mutex);
    g->object = object;
    pthread_mutex_unlock(&g->told.mutex);
    tell(&g->told, rc, NULL);
}

static void tell_delivery(int rc, zkl_delivery *delivery, void *userdata)
{
    give(userdata, rc, delivery);
}

static void tell_entered(int rc, zkl_entered *entered, void *userdata)
{
    give(userdata, rc, entered);
}

static zkl_counter *counter_at(zkl_client *client, const char *path)
{
    zkl_counter *counter = NULL;
    GIVES(OK, zkl_counter_new(client, path, NULL, &counter));
    return counter;
}

static int64_t value_of(zkl_counter *counter)
{
    int64_t value = -1;
    GIVES(OK, zkl_counter_get(counter, ZKL_FOREVER, &value));
    return value;
}

static void a_counter_is_changed_and_read(zkl_client *client)
{
    zkl_counter *counter = counter_at(client, "/counters/jobs");
    int64_t number = -1;
    CHECK(value_of(counter) == 0);
    GIVES(OK, zkl_counter_add(counter, 40, TIMEOUT_MS, &number));
    CHECK(number == 40);
    GIVES(OK, zkl_counter_add(counter, 3, TIMEOUT_MS, NULL));
    GIVES(OK, zkl_counter_get_and_add(counter, -1, TIMEOUT_MS, &number));
    CHECK(number == 43 && value_of(counter) == 42);
    GIVES(OK, zkl_counter_compare_and_set(counter, 7, 8, TIMEOUT_MS, &number));
    CHECK(number == 42 && value_of(counter) == 42);
    GIVES(OK, zkl_counter_compare_and_set(counter, 42, INT64_MAX, TIMEOUT_MS, &number));
    CHECK(number == 42 && value_of(counter) == INT64_MAX);
    number = 5;
    GIVES(BAD_ARGUMENTS, zkl_counter_add(counter, 1, TIMEOUT_MS, &number));
    CHECK(number == 5 && value_of(counter) == INT64_MAX);
    GIVES(OK, zkl_counter_set(counter, -7, TIMEOUT_MS));
    CHECK(value_of(counter) == -7 && strcmp(ask("get /counters/jobs"), "-7") == 0);
    zkl_counter_free(counter);
}

enum { ADDITIONS = 40 };

static void *adds(void *of)
{
    caller *c = of;
    for (int i = 0; i < ADDITIONS; i++) {
        c->rc = zkl_counter_add(c->on, 1, ZKL_FOREVER, NULL);
        if (c->rc != OK)
            break;
    }
    return NULL;
}

/* Each reset loses whatever is on its way: a request, or its reply. */
static void nothing_is_added_twice_or_left_out_when_replies_are_lost(zkl_client *client)
{
    zkl_counter *counter = counter_at(client, "/counters/lost");
    CHECK(value_of(counter) == 0);
    caller c[2];
    start(&c[0], adds, counter);
    start(&c[1], adds, counter);
    for (int i = 0; i < 6; i++) {
        int64_t before = value_of(counter);
        UNTIL(value_of(counter) > before || value_of(counter) == 2 * ADDITIONS);
        ask("reset");
    }
    end(&c[0], OK);
    end(&c[1], OK);
    CHECK(value_of(counter) == 2 * ADDITIONS);
    zkl_counter_free(counter);
}

/* The network stands still: what was sent may arrive yet. */
static void a_change_without_an_answer_is_unknown(zkl_client *client)
{
    zkl_counter *counter = counter_at(client, "/counters/late");
    zkl_queue *queue = NULL;
    zkl_barrier *barrier = NULL;
    zkl_latch *latch = NULL;
    uint32_t left = 4711;
    int64_t value = 4711;
    GIVES(OK, zkl_queue_new(client, "/queues/late", NULL, &queue));
    GIVES(OK, zkl_barrier_new(client, "/barriers/late", NULL, &barrier));
    GIVES(OK, zkl_latch_new(client, "/latches/late", NULL, &latch));
    GIVES(OK, zkl_counter_set(counter, 0, TIMEOUT_MS));
    ask("cut");
    GIVES(TIMEOUT, zkl_counter_add(counter, 1, 100, &value));
    GIVES(TIMEOUT, zkl_counter_set(counter, 0, 0));
    GIVES(TIMEOUT, zkl_counter_get(counter, 100, &value));
    GIVES(TIMEOUT, zkl_queue_put(queue, "x", 1, ZKL_DEFAULT_PRIORITY, 100));
    GIVES(TIMEOUT, zkl_barrier_set(barrier, 100));
    GIVES(TIMEOUT, zkl_latch_set(latch, 1, 100, &left));
    CHECK(value == 4711 && left == 4711);
    ask("heal");
    UNTIL(zkl_client_state(client) == ZKL_CONNECTED);
    value = value_of(counter);
    CHECK(value == 0 || value == 1);
    zkl_counter_free(counter);
    zkl_queue_free(queue);
    zkl_barrier_free(barrier);
    zkl_latch_free(latch);
}

static zkl_queue *queue_at(zkl_client *client, const char *path)
{
    zkl_queue *queue = NULL;
    GIVES(OK, zkl_queue_new(client, path, NULL, &queue));
    return queue;
}

static void put(zkl_queue *queue, const char *text, int priority)
{
    GIVES(OK, zkl_queue_put(queue, text, strlen(text), priority, TIMEOUT_MS));
}

static int is_text(const zkl_delivery *delivery, const char *text)
{
    size_t len = 4711;
    const void *data = zkl_delivery_data(delivery, &len);
    return len == strlen(text) && memcmp(data, text, len) == 0;
}

static zkl_delivery *taken(zkl_queue *queue, const char *text)
{
    zkl_delivery *delivery = NULL;
    GIVES(OK, zkl_queue_take(queue, TIMEOUT_MS, &delivery));
    CHECK(is_text(delivery, text));
    return delivery;
}

static void elements_are_taken_in_order_and_delivered_again_unless_they_are_done(zkl_client *client)
{
    zkl_queue *queue = queue_at(client, "/queues/jobs");
    zkl_delivery *delivery = NULL, *other = NULL;
    char buffer[8] = "-------";
    size_t len = 4711;
    GIVES(TIMEOUT, zkl_queue_take(queue, 0, &delivery));
    GIVES(TIMEOUT, zkl_queue_take(queue, 100, &delivery));
    GIVES(NOTHING, zkl_queue_peek(queue, TIMEOUT_MS, buffer, sizeof buffer, &len));
    CHECK(delivery == NULL && len == 4711);
    put(queue, "later", 200);
    put(queue, "first", ZKL_DEFAULT_PRIORITY);
    put(queue, "second", ZKL_DEFAULT_PRIORITY);
    put(queue, "urgent", 0);

    GIVES(OK, zkl_queue_peek(queue, TIMEOUT_MS, buffer, 3, &len));
    CHECK(len == 6 && strcmp(buffer, "urg----") == 0);
    GIVES(OK, zkl_queue_peek(queue, TIMEOUT_MS, NULL, 0, &len));
    CHECK(len == 6);

    delivery = taken(queue, "urgent");
    GIVES(OK, zkl_delivery_done(delivery, TIMEOUT_MS));
    delivery = taken(queue, "first");
    CHECK(strncmp(zkl_delivery_path(delivery), "/queues/jobs/qn-", 16) == 0);
    const zkl_guard *guard = zkl_delivery_guard(delivery);
    int64_t token = zkl_guard_token(guard);
    CHECK(token > 0 && zkl_guard_state(guard) == ZKL_HELD && zkl_guard_locks(guard) == 1);
    GIVES(OK, zkl_guard_set(guard, "/data", "claimed", 7, -1, NULL));
    /* Claimed, it is another's turn; given back, it is the first again, with a larger token. */
    other = taken(queue, "second");
    zkl_delivery_free(delivery);
    UNTIL(strcmp(ask("children /queues/zl-claims-jobs"), "1") == 0);
    delivery = taken(queue, "first");
    CHECK(zkl_guard_token(zkl_delivery_guard(delivery)) > token);
    GIVES(OK, zkl_delivery_done(delivery, ZKL_FOREVER));
    told done;
    told_init(&done);
    GIVES(OK, zkl_delivery_done_async(other, ZKL_FOREVER, tell_rc, &done, finalize));
    UNTIL(told_finalized(&done) == 1);
    CHECK(done.result == OK);
    GIVES(OK, zkl_delivery_done(taken(queue, "later"), TIMEOUT_MS));
    CHECK(strcmp(ask("children /queues/jobs"), "0") == 0);

    /* No data are data. */
    GIVES(OK, zkl_queue_put(queue, NULL, 0, ZKL_DEFAULT_PRIORITY, TIMEOUT_MS));
    GIVES(OK, zkl_delivery_done(taken(queue, ""), TIMEOUT_MS));

    /* Another program has removed it. */
    put(queue, "removed", ZKL_DEFAULT_PRIORITY);
    delivery = taken(queue, "removed");
    ask("delete %s", zkl_delivery_path(delivery));
    GIVES(NO_NODE, zkl_delivery_done(delivery, TIMEOUT_MS));
    zkl_queue_free(queue);
}

static void *takes(void *of)
{
    caller *c = of;
    c->rc = zkl_queue_take(c->on, ZKL_FOREVER, (zkl_delivery **)&c->given);
    return NULL;
}

static void a_take_waits_and_is_cancelled(zkl_client *client)
{
    zkl_queue *queue = queue_at(client, "/queues/waited");
    caller c;
    given waits, cancelled;
    given_init(&waits);
    given_init(&cancelled);
    start(&c, takes, queue);
    put(queue, "one", ZKL_DEFAULT_PRIORITY);
    end(&c, OK);
    zkl_attempt *attempt = NULL;
    GIVES(OK, zkl_queue_take_async(queue, ZKL_FOREVER, tell_delivery, &cancelled, finalize, &attempt));
    CHECK(told_calls(&cancelled.told) == 0);
    GIVES(OK, zkl_attempt_cancel(attempt));
    UNTIL(told_finalized(&cancelled.told) == 1);
    CHECK(cancelled.told.result == ZKL_CANCELLED && cancelled.object == NULL);
    zkl_attempt_free(attempt);
    GIVES(OK, zkl_queue_take_async(queue, ZKL_FOREVER, tell_delivery, &waits, finalize, NULL));
    /* What was cancelled takes nothing: this is given back, and comes to who waits. */
    zkl_delivery_free(c.given);
    UNTIL(told_finalized(&waits.told) == 1);
    CHECK(waits.told.result == OK && is_text(waits.object, "one"));
    given none;
    given_init(&none);
    GIVES(OK, zkl_queue_take_async(queue, 0, tell_delivery, &none, finalize, NULL));
    UNTIL(told_finalized(&none.told) == 1);
    CHECK(none.told.result == TIMEOUT);
    GIVES(OK, zkl_delivery_done(waits.object, TIMEOUT_MS));

    /* Whoever comes first, nothing is lost. */
    for (int i = 0; i < 20; i++) {
        given raced;
        given_init(&raced);
        put(queue, "raced", ZKL_DEFAULT_PRIORITY);
        GIVES(OK, zkl_queue_take_async(queue, ZKL_FOREVER, tell_delivery, &raced, finalize, &attempt));
        if (i % 2)
            pause_ms(i % 5);
        zkl_attempt_cancel(attempt);
        zkl_attempt_free(attempt);
        UNTIL(told_finalized(&raced.told) == 1);
        CHECK(raced.told.result == OK || raced.told.result == ZKL_CANCELLED);
        zkl_delivery_free(raced.object);
        GIVES(OK, zkl_delivery_done(taken(queue, "raced"), TIMEOUT_MS));
    }
    zkl_queue_free(queue);
}

static void an_element_whose_consumer_has_lost_its_session_is_delivered_again(zkl_client *client)
{
    zkl_client *second = connected();
    zkl_queue *mine = queue_at(client, "/queues/expiry"), *others = queue_at(second, "/queues/expiry");
    put(mine, "job", ZKL_DEFAULT_PRIORITY);
    zkl_delivery *delivery = taken(mine, "job"), *again = NULL;
    const zkl_guard *guard = zkl_delivery_guard(delivery);
    told lost;
    told_init(&lost);
    int fd = -1;
    GIVES(OK, zkl_guard_on_lost(guard, tell_lost, &lost, finalize));
    GIVES(OK, zkl_guard_fd(guard, &fd));
    GIVES(TIMEOUT, zkl_queue_take(others, 0, &again));
    ask("expire %lld", (long long)zkl_client_session_id(client));
    again = taken(others, "job");
    CHECK(is_readable(fd, TIMEOUT_MS) && zkl_guard_state(guard) == ZKL_LOST);
    UNTIL(told_finalized(&lost) == 1);
    CHECK(lost.result == ZKL_LOST_SESSION);
    CHECK(zkl_guard_token(zkl_delivery_guard(again)) > zkl_guard_token(guard));
    GIVES(ZKL_NOT_HELD, zkl_delivery_done(delivery, TIMEOUT_MS));
    GIVES(OK, zkl_delivery_done(again, TIMEOUT_MS));
    zkl_queue_free(mine);
    zkl_queue_free(others);
    zkl_client_free(second);
}

/* The members that were seen last. */
typedef struct seen {
    told told;
    size_t count;
    char first[64], data[64];
} seen;

static void see(int rc, zkl_members *members, void *userdata)
{
    seen *s = userdata;
    CHECK((rc == 0) == (members != NULL));
    pthread_mutex_lock(&s->told.mutex);
    CHECK(s->told.finalized == 0);
    s->told.calls++;
    s->told.result = rc;
    s->count = zkl_members_count(members);
    if (s->count > 0) {
        const zkl_member *first = zkl_members_get(members, 0);
        snprintf(s->first, sizeof s->first, "%s", first->id);
        snprintf(s->data, sizeof s->data, "%.*s", (int)first->len, (const char *)first->data);
    }
    pthread_mutex_unlock(&s->told.mutex);
    zkl_members_free(members);
}

static int sees(seen *s, size_t count, const char *first)
{
    pthread_mutex_lock(&s->told.mutex);
    int so = s->told.calls > 0 && s->count == count && (first == NULL || strcmp(s->first, first) == 0);
    pthread_mutex_unlock(&s->told.mutex);
    return so;
}

static void members_come_and_go_and_come_again(zkl_client *client)
{
    zkl_client *watcher = connected();
    zkl_group *group = NULL, *watched = NULL;
    zkl_membership *me = NULL, *other = NULL;
    zkl_watch *watch = NULL;
    zkl_members *members = NULL;
    seen seen = {.count = 4711};
    told_init(&seen.told);
    GIVES(OK, zkl_group_new(client, "/groups/workers", NULL, &group));
    GIVES(OK, zkl_group_new(watcher, "/groups/workers", NULL, &watched));
    GIVES(OK, zkl_group_watch(watched, see, &seen, finalize, &watch));
    UNTIL(sees(&seen, 0, NULL));
    GIVES(OK, zkl_group_join(group, "10.0.0.7:8000", 13, TIMEOUT_MS, &me));
    UNTIL(sees(&seen, 1, zkl_membership_id(me)));
    CHECK(strcmp(seen.data, "10.0.0.7:8000") == 0 && zkl_membership_is_member(me) == 1);
    GIVES(OK, zkl_group_join(group, NULL, 0, TIMEOUT_MS, &other));
    UNTIL(sees(&seen, 2, zkl_membership_id(me)));
    GIVES(OK, zkl_group_members(watched, TIMEOUT_MS, &members));
    CHECK(zkl_members_count(members) == 2 && zkl_members_get(members, 2) == NULL);
    const zkl_member *first = zkl_members_get(members, 0), *second = zkl_members_get(members, 1);
    CHECK(strcmp(first->id, zkl_membership_id(me)) == 0 && strcmp(second->id, zkl_membership_id(other)) == 0);
    CHECK(first->len == 13 && memcmp(first->data, "10.0.0.7:8000", 13) == 0 && second->len == 0);
    CHECK(first->session_id == zkl_client_session_id(client) && first->joined < second->joined);
    zkl_members_free(members);
    char path[256];
    snprintf(path, sizeof path, "%s", zkl_membership_path(me));
    CHECK(strcmp(ask("get %s", path), "10.0.0.7:8000") == 0);
    GIVES(OK, zkl_membership_leave(other, TIMEOUT_MS));
    UNTIL(sees(&seen, 1, zkl_membership_id(me)));

    /* Its session ends: it comes again, under the same id. */
    int64_t session = zkl_client_session_id(client);
    ask("expire %lld", (long long)session);
    UNTIL(zkl_client_session_id(client) != session && zkl_membership_is_member(me) == 1);
    UNTIL(sees(&seen, 1, zkl_membership_id(me)));
    GIVES(OK, zkl_group_members(watched, TIMEOUT_MS, &members));
    CHECK(zkl_members_count(members) == 1);
    CHECK(strcmp(zkl_members_get(members, 0)->id, zkl_membership_id(me)) == 0);
    CHECK(zkl_members_get(members, 0)->session_id == zkl_client_session_id(client));
    zkl_members_free(members);
    zkl_membership_free(me);
    UNTIL(sees(&seen, 0, NULL));
    zkl_watch_free(watch);
    UNTIL(told_finalized(&seen.told) == 1);
    CHECK(seen.told.result == OK);

    /* The watch of a client that is detached ends, and says so. */
    struct seen closed = {.count = 4711};
    told_init(&closed.told);
    GIVES(OK, zkl_group_watch(watched, see, &closed, finalize, &watch));
    UNTIL(sees(&closed, 0, NULL));
    GIVES(OK, zkl_client_detach(watcher));
    UNTIL(told_finalized(&closed.told) == 1);
    CLOSED(closed.told);
    zkl_watch_free(watch);
    zkl_group_free(group);
    zkl_group_free(watched);
    zkl_client_free(watcher);
}

/* A callback that is slow piles nothing up: it is called with what is so by then. */
static int is_held_up = 1;
static pthread_mutex_t hold = PTHREAD_MUTEX_INITIALIZER;

static void see_slowly(int rc, zkl_members *members, void *userdata)
{
    see(rc, members, userdata);
    for (int held_up = 1; held_up; pause_ms(5)) {
        pthread_mutex_lock(&hold);
        held_up = is_held_up;
        pthread_mutex_unlock(&hold);
    }
}

static void a_slow_callback_is_called_with_what_is_so_by_then(zkl_client *client)
{
    zkl_client *watcher = connected();
    zkl_group *group = NULL, *watched = NULL;
    zkl_membership *member[12];
    zkl_watch *watch = NULL;
    seen seen = {.count = 4711};
    told_init(&seen.told);
    GIVES(OK, zkl_group_new(client, "/groups/slow", NULL, &group));
    GIVES(OK, zkl_group_new(watcher, "/groups/slow", NULL, &watched));
    GIVES(OK, zkl_group_watch(watched, see_slowly, &seen, finalize, &watch));
    UNTIL(told_calls(&seen.told) == 1);
    for (int i = 0; i < 12; i++) {
        GIVES(OK, zkl_group_join(group, NULL, 0, TIMEOUT_MS, &member[i]));
        pause_ms(10);
    }
    CHECK(told_calls(&seen.told) == 1);
    pthread_mutex_lock(&hold);
    is_held_up = 0;
    pthread_mutex_unlock(&hold);
    UNTIL(sees(&seen, 12, zkl_membership_id(member[0])));
    CHECK(told_calls(&seen.told) <= 3);
    for (int i = 0; i < 12; i++)
        zkl_membership_free(member[i]);
    zkl_watch_free(watch);
    UNTIL(told_finalized(&seen.told) == 1);
    zkl_group_free(group);
    zkl_group_free(watched);
    zkl_client_free(watcher);
}

static void hold_up(int rc, zkl_contenders *contenders, void *userdata)
{
    zkl_contenders_free(contenders);
    tell(userdata, rc, NULL);
    for (int held_up = 1; held_up; pause_ms(5)) {
        pthread_mutex_lock(&hold);
        held_up = is_held_up;
        pthread_mutex_unlock(&hold);
    }
}

/* Its call is queued behind another callback when the watch is freed. */
static void a_watch_that_was_freed_is_not_called_any_more(zkl_client *client)
{
    zkl_client *watcher = connected();
    zkl_lock *lock = lock_on(watcher, "/locks/held-up");
    zkl_group *group = NULL, *watched = NULL;
    zkl_membership *member = NULL;
    zkl_watch *watch = NULL;
    seen seen = {.count = 4711};
    told held_up;
    told_init(&seen.told);
    told_init(&held_up);
    GIVES(OK, zkl_group_new(client, "/groups/freed", NULL, &group));
    GIVES(OK, zkl_group_new(watcher, "/groups/freed", NULL, &watched));
    pthread_mutex_lock(&hold);
    is_held_up = 1;
    pthread_mutex_unlock(&hold);
    GIVES(OK, zkl_lock_contenders_async(lock, 1, hold_up, &held_up, finalize));
    UNTIL(told_calls(&held_up) == 1);
    GIVES(OK, zkl_group_watch(watched, see, &seen, finalize, &watch));
    GIVES(OK, zkl_group_join(group, NULL, 0, TIMEOUT_MS, &member));
    /* What it costs to find out who is there, and some more. */
    for (int i = 0; i < 20; i++) {
        zkl_members *members = NULL;
        GIVES(OK, zkl_group_members(watched, TIMEOUT_MS, &members));
        CHECK(zkl_members_count(members) == 1);
        zkl_members_free(members);
    }
    zkl_watch_free(watch);
    CHECK(told_calls(&seen.told) == 0 && told_finalized(&seen.told) == 0);
    pthread_mutex_lock(&hold);
    is_held_up = 0;
    pthread_mutex_unlock(&hold);
    UNTIL(told_finalized(&seen.told) == 1 && told_finalized(&held_up) == 1);
    CHECK(seen.told.calls == 0);
    zkl_membership_free(member);
    zkl_group_free(group);
    zkl_group_free(watched);
    zkl_lock_free(lock);
    zkl_client_free(watcher);
}

static void *waits_for_the_latch(void *of)
{
    caller *c = of;
    c->rc = zkl_latch_wait(c->on, ZKL_FOREVER);
    return NULL;
}

static void a_latch_opens_when_all_has_happened(zkl_client *client)
{
    zkl_latch *latch = NULL;
    uint32_t left = 4711;
    GIVES(OK, zkl_latch_new(client, "/latches/nightly", NULL, &latch));
    GIVES(NO_NODE, zkl_latch_count_down(latch, TIMEOUT_MS, &left));
    GIVES(NO_NODE, zkl_latch_left(latch, TIMEOUT_MS, &left));
    GIVES(TIMEOUT, zkl_latch_wait(latch, 0));
    CHECK(left == 4711);
    caller c;
    told opened, cancelled, now;
    told_init(&opened);
    told_init(&cancelled);
    told_init(&now);
    zkl_attempt *attempt = NULL;
    start(&c, waits_for_the_latch, latch);
    GIVES(OK, zkl_latch_wait_async(latch, ZKL_FOREVER, tell_rc, &opened, finalize, NULL));
    GIVES(OK, zkl_latch_wait_async(latch, ZKL_FOREVER, tell_rc, &cancelled, finalize, &attempt));
    GIVES(OK, zkl_latch_set(latch, 2, TIMEOUT_MS, &left));
    CHECK(left == 2);
    GIVES(OK, zkl_latch_set(latch, 7, TIMEOUT_MS, &left));
    CHECK(left == 2);
    GIVES(OK, zkl_latch_count_down(latch, TIMEOUT_MS, &left));
    CHECK(left == 1);
    GIVES(TIMEOUT, zkl_latch_wait(latch, 0));
    GIVES(TIMEOUT, zkl_latch_wait(latch, 100));
    GIVES(OK, zkl_attempt_cancel(attempt));
    UNTIL(told_finalized(&cancelled) == 1);
    CHECK(cancelled.result == ZKL_CANCELLED && told_calls(&opened) == 0);
    zkl_attempt_free(attempt);
    GIVES(OK, zkl_latch_left(latch, TIMEOUT_MS, &left));
    CHECK(left == 1);
    GIVES(OK, zkl_latch_count_down(latch, TIMEOUT_MS, NULL));
    end(&c, OK);
    UNTIL(told_finalized(&opened) == 1);
    CHECK(opened.result == OK);
    GIVES(OK, zkl_latch_wait(latch, 0));
    GIVES(OK, zkl_latch_wait(latch, ZKL_FOREVER));
    GIVES(OK, zkl_latch_wait_async(latch, 0, tell_rc, &now, finalize, NULL));
    UNTIL(told_finalized(&now) == 1);
    CHECK(now.result == OK);
    GIVES(OK, zkl_latch_count_down(latch, TIMEOUT_MS, &left));
    CHECK(left == 0);
    zkl_latch_free(latch);
}

static void a_barrier_holds_up_until_it_is_removed(zkl_client *client)
{
    zkl_barrier *barrier = NULL;
    told passed, late;
    told_init(&passed);
    told_init(&late);
    GIVES(OK, zkl_barrier_new(client, "/barriers/maintenance", NULL, &barrier));
    GIVES(OK, zkl_barrier_pass(barrier, 0));
    GIVES(OK, zkl_barrier_pass(barrier, ZKL_FOREVER));
    GIVES(OK, zkl_barrier_set(barrier, TIMEOUT_MS));
    GIVES(OK, zkl_barrier_set(barrier, TIMEOUT_MS));
    GIVES(TIMEOUT, zkl_barrier_pass(barrier, 0));
    GIVES(TIMEOUT, zkl_barrier_pass(barrier, 100));
    GIVES(OK, zkl_barrier_pass_async(barrier, 50, tell_rc, &late, finalize, NULL));
    GIVES(OK, zkl_barrier_pass_async(barrier, ZKL_FOREVER, tell_rc, &passed, finalize, NULL));
    UNTIL(told_finalized(&late) == 1);
    CHECK(late.result == TIMEOUT && told_calls(&passed) == 0);
    GIVES(OK, zkl_barrier_remove(barrier, TIMEOUT_MS));
    UNTIL(told_finalized(&passed) == 1);
    CHECK(passed.result == OK);
    GIVES(OK, zkl_barrier_remove(barrier, TIMEOUT_MS));
    GIVES(OK, zkl_barrier_pass(barrier, 0));
    zkl_barrier_free(barrier);
}

static void *leaves(void *of)
{
    caller *c = of;
    c->rc = zkl_entered_leave(c->on, ZKL_FOREVER);
    return NULL;
}

static void participants_enter_together_and_leave_together(zkl_client *client)
{
    zkl_double_barrier *barrier = NULL;
    zkl_entered *entered = NULL;
    given other;
    told left;
    given_init(&other);
    told_init(&left);
    GIVES(OK, zkl_double_barrier_new(client, "/barriers/step", 2, NULL, &barrier));
    GIVES(TIMEOUT, zkl_double_barrier_enter(barrier, 200, &entered));
    CHECK(entered == NULL);
    UNTIL(strcmp(ask("children /barriers/step"), "0") == 0);
    given cancelled;
    given_init(&cancelled);
    zkl_attempt *attempt = NULL;
    GIVES(OK, zkl_double_barrier_enter_async(barrier, ZKL_FOREVER, tell_entered, &cancelled, finalize, &attempt));
    UNTIL(strcmp(ask("children /barriers/step"), "1") == 0);
    GIVES(OK, zkl_attempt_cancel(attempt));
    UNTIL(told_finalized(&cancelled.told) == 1);
    CHECK(cancelled.told.result == ZKL_CANCELLED);
    zkl_attempt_free(attempt);
    UNTIL(strcmp(ask("children /barriers/step"), "0") == 0);

    GIVES(OK, zkl_double_barrier_enter_async(barrier, ZKL_FOREVER, tell_entered, &other, finalize, NULL));
    UNTIL(strcmp(ask("children /barriers/step"), "1") == 0);
    CHECK(told_calls(&other.told) == 0);
    GIVES(OK, zkl_double_barrier_enter(barrier, TIMEOUT_MS, &entered));
    UNTIL(told_finalized(&other.told) == 1);
    CHECK(other.told.result == OK);
    caller c;
    start(&c, leaves, entered);
    GIVES(OK, zkl_entered_leave_async(other.object, ZKL_FOREVER, tell_rc, &left, finalize));
    end(&c, OK);
    UNTIL(told_finalized(&left) == 1);
    CHECK(left.result == OK);

    /* Who leaves alone has left, and does not wait for ever. */
    given_init(&other);
    GIVES(OK, zkl_double_barrier_enter_async(barrier, ZKL_FOREVER, tell_entered, &other, finalize, NULL));
    GIVES(OK, zkl_double_barrier_enter(barrier, TIMEOUT_MS, &entered));
    UNTIL(told_finalized(&other.told) == 1);
    GIVES(TIMEOUT, zkl_entered_leave(entered, 100));
    zkl_entered_free(other.object);
    UNTIL(strcmp(ask("children /barriers/step"), "0") == 0);
    zkl_double_barrier_free(barrier);
}

static void nothing_is_left_of_the_lock_of_a_key(zkl_client *client)
{
    zkl_lock *lock = NULL, *same = NULL;
    zkl_lock_options options = ZKL_LOCK_OPTIONS_INIT;
    zkl_guard *none = NULL;
    options.label = "order";
    GIVES(OK, zkl_lock_of_key(client, "/orders", "2026/4711", 9, &options, &lock));
    GIVES(OK, zkl_lock_of_key(client, "/orders", "2026/4711", 9, NULL, &same));
    CHECK(strcmp(zkl_lock_path(lock), "/orders/key-2026%2f4711") == 0);
    zkl_guard *guard = acquired(lock);
    GIVES(ZKL_TAKEN, zkl_lock_try(same, &none));
    zkl_contenders *list = NULL;
    GIVES(OK, zkl_lock_holder(same, &list));
    CHECK(strcmp(zkl_contenders_get(list, 0)->label, "order") == 0);
    zkl_contenders_free(list);
    CHECK(strcmp(ask("children /orders"), "1") == 0);
    GIVES(OK, zkl_guard_release(guard));
    UNTIL(strcmp(ask("children /orders"), "0") == 0);
    zkl_lock_free(lock);
    zkl_lock_free(same);
}

/* What waits goes on when its objects are freed, and ends with its client. */
static void what_waits_ends_with_its_client(void)
{
    zkl_client *client = connected();
    zkl_queue *queue = queue_at(client, "/queues/ends");
    zkl_latch *latch = NULL;
    zkl_double_barrier *barrier = NULL;
    given take, enter;
    told open;
    given_init(&take);
    given_init(&enter);
    told_init(&open);
    GIVES(OK, zkl_latch_new(client, "/latches/ends", NULL, &latch));
    GIVES(OK, zkl_double_barrier_new(client, "/barriers/ends", 2, NULL, &barrier));
    GIVES(OK, zkl_queue_take_async(queue, ZKL_FOREVER, tell_delivery, &take, finalize, NULL));
    GIVES(OK, zkl_latch_wait_async(latch, ZKL_FOREVER, tell_rc, &open, finalize, NULL));
    GIVES(OK, zkl_double_barrier_enter_async(barrier, ZKL_FOREVER, tell_entered, &enter, finalize, NULL));
    zkl_queue_free(queue);
    zkl_latch_free(latch);
    zkl_double_barrier_free(barrier);
    GIVES(OK, zkl_client_detach(client));
    UNTIL(told_finalized(&take.told) == 1 && told_finalized(&open) == 1 && told_finalized(&enter.told) == 1);
    CLOSED(take.told);
    CLOSED(open);
    CLOSED(enter.told);
    zkl_client_free(client);
}

static zhandle_t *opened(void)
{
    zhandle_t *zh = zookeeper_init(hosts, NULL, session_timeout_ms, NULL, NULL, 0);
    CHECK(zh != NULL);
    return zh;
}

/* Recipes go where their client goes, and what waits on a handle that was left is detached with it. */
static void recipes_follow_their_client(void)
{
    zhandle_t *first = opened(), *second = opened();
    zkl_client *client = NULL;
    zkl_latch *latch = NULL;
    told open;
    told_init(&open);
    GIVES(OK, zkl_client_adopt(first, NULL, &client));
    zkl_counter *counter = counter_at(client, "/counters/follows");
    GIVES(OK, zkl_counter_set(counter, 1, TIMEOUT_MS));
    GIVES(OK, zkl_latch_new(client, "/latches/follows", NULL, &latch));
    GIVES(OK, zkl_latch_wait_async(latch, ZKL_FOREVER, tell_rc, &open, finalize, NULL));
    GIVES(OK, zkl_client_follow(client, second));
    zkl_latch_free(latch);
    CHECK(value_of(counter) == 1 && told_calls(&open) == 0);
    /* The attempt is on the first: detached from both, nothing of zklock is there any more. */
    GIVES(OK, zkl_client_detach(client));
    UNTIL(told_finalized(&open) == 1);
    CLOSED(open);
    CHECK(zookeeper_close(first) == ZOK);
    CHECK(zookeeper_close(second) == ZOK);
    GIVES(INVALID_STATE, zkl_counter_set(counter, 2, TIMEOUT_MS));
    zkl_counter_free(counter);
    zkl_client_free(client);
}

/* On a thread of the C client's: nothing that would wait for an answer that has to come through it. */
typedef struct inside {
    told told;
    zkl_client *client;
    zkl_counter *counter;
    zkl_queue *queue;
    zkl_delivery *delivery;
    zkl_election *election;
    zkl_latch *latch;
    zkl_group *group;
    zkl_membership *membership;
    zkl_double_barrier *barrier;
    zkl_entered *entered;
    told opens;
} inside;

static void waits_for_nothing(int rc, const struct Stat *stat, const void *data)
{
    inside *in = (inside *)data;
    int64_t value = 4711;
    zkl_delivery *delivery = NULL;
    zkl_guard *guard = NULL;
    zkl_members *members = NULL;
    zkl_entered *entered = NULL;
    (void)rc;
    (void)stat;
    GIVES(ZKL_WOULD_DEADLOCK, zkl_counter_get(in->counter, ZKL_FOREVER, &value));
    GIVES(ZKL_WOULD_DEADLOCK, zkl_counter_add(in->counter, 1, ZKL_FOREVER, &value));
    GIVES(ZKL_WOULD_DEADLOCK, zkl_queue_take(in->queue, ZKL_FOREVER, &delivery));
    GIVES(ZKL_WOULD_DEADLOCK, zkl_delivery_done(in->delivery, ZKL_FOREVER));
    GIVES(ZKL_WOULD_DEADLOCK, zkl_election_campaign(in->election, ZKL_FOREVER, &guard));
    GIVES(ZKL_WOULD_DEADLOCK, zkl_latch_wait(in->latch, ZKL_FOREVER));
    GIVES(ZKL_WOULD_DEADLOCK, zkl_group_members(in->group, ZKL_FOREVER, &members));
    GIVES(ZKL_WOULD_DEADLOCK, zkl_membership_leave(in->membership, ZKL_FOREVER));
    GIVES(ZKL_WOULD_DEADLOCK, zkl_double_barrier_enter(in->barrier, ZKL_FOREVER, &entered));
    GIVES(ZKL_WOULD_DEADLOCK, zkl_entered_leave(in->entered, ZKL_FOREVER));
    CHECK(value == 4711 && delivery == NULL && guard == NULL && members == NULL && entered == NULL);
    GIVES(OK, zkl_latch_wait_async(in->latch, 0, tell_rc, &in->opens, finalize, NULL));
    tell(&in->told, OK, NULL);
}

static void nothing_waits_inside_a_callback_of_the_c_client(void)
{
    zhandle_t *zh = opened();
    inside in;
    memset(&in, 0, sizeof in);
    told_init(&in.told);
    told_init(&in.opens);
    GIVES(OK, zkl_client_adopt(zh, NULL, &in.client));
    in.counter = counter_at(in.client, "/counters/inside");
    in.queue = queue_at(in.client, "/queues/inside");
    GIVES(OK, zkl_election_new(in.client, "/elections/inside", NULL, &in.election));
    GIVES(OK, zkl_latch_new(in.client, "/latches/inside", NULL, &in.latch));
    GIVES(OK, zkl_group_new(in.client, "/groups/inside", NULL, &in.group));
    GIVES(OK, zkl_double_barrier_new(in.client, "/barriers/inside", 1, NULL, &in.barrier));
    put(in.queue, "job", ZKL_DEFAULT_PRIORITY);
    in.delivery = taken(in.queue, "job");
    GIVES(OK, zkl_group_join(in.group, NULL, 0, TIMEOUT_MS, &in.membership));
    GIVES(OK, zkl_double_barrier_enter(in.barrier, TIMEOUT_MS, &in.entered));
    CHECK(zoo_aexists(zh, "/data", 0, waits_for_nothing, &in) == ZOK);
    UNTIL(told_calls(&in.told) == 1 && told_finalized(&in.opens) == 1);
    CHECK(in.opens.result == TIMEOUT);
    /* What was given up there is given back, and left, in the background. */
    GIVES(OK, zkl_delivery_done(taken(in.queue, "job"), TIMEOUT_MS));
    UNTIL(strcmp(ask("children /groups/inside"), "0") == 0);
    UNTIL(strcmp(ask("children /barriers/inside"), "0") == 0);
    zkl_counter_free(in.counter);
    zkl_queue_free(in.queue);
    zkl_election_free(in.election);
    zkl_latch_free(in.latch);
    zkl_group_free(in.group);
    zkl_double_barrier_free(in.barrier);
    zkl_client_free(in.client);
    CHECK(zookeeper_close(zh) == ZOK);
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    ask("create /data");
    zkl_client *client = connected();
    a_counter_is_changed_and_read(client);
    nothing_is_added_twice_or_left_out_when_replies_are_lost(client);
    a_change_without_an_answer_is_unknown(client);
    elements_are_taken_in_order_and_delivered_again_unless_they_are_done(client);
    a_take_waits_and_is_cancelled(client);
    members_come_and_go_and_come_again(client);
    a_slow_callback_is_called_with_what_is_so_by_then(client);
    a_watch_that_was_freed_is_not_called_any_more(client);
    a_latch_opens_when_all_has_happened(client);
    a_barrier_holds_up_until_it_is_removed(client);
    participants_enter_together_and_leave_together(client);
    nothing_is_left_of_the_lock_of_a_key(client);
    an_element_whose_consumer_has_lost_its_session_is_delivered_again(client);
    what_waits_ends_with_its_client();
    recipes_follow_their_client();
    nothing_waits_inside_a_callback_of_the_c_client();
    zkl_client_free(client);
    return 0;
}
