/* A child made by fork: what its parent has made is refused there at once, and stays the parent's;
 * what it makes itself works. */
#define _GNU_SOURCE
#include "check.h"

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zoo_lock.h>
#include <zoo_queue.h>

int zkr_lock_lock_owner(zkr_lock_mutex_t *mutex);

static char path[] = "/jobs", unused_path[] = "/unused", lock_path[] = "/locks/recipe";

/* What the parent has. */
static zkl_client *client, *on_handle;
/* What the process keeps by itself. */
static zkl_client *within;
static zkl_lock *lock_within;
static zkl_guard *guard_within;
static zkl_lock *lock, *other;
static zkl_guard *guard, *freed, *limited, *told_of;
static zkl_attempt *attempt;
static zkl_contenders *contenders;
static zhandle_t *zh;
static zkr_lock_mutex_t owner, waiter, idle;
static zkr_queue_t queue, unused;
static told t;
static zkl_guard *on_handles;
static zkl_multi_lock *multi;
static zkl_election *election;
static zkl_guard *leads;
static zkl_watch *observes, *watches;
static zkl_counter *counter;
static zkl_queue *work;
static zkl_delivery *deliveries[3];
static zkl_group *group;
static zkl_membership *memberships[2];
static zkl_members *members;
static zkl_latch *latch;
static zkl_barrier *barrier;
static zkl_double_barrier *both[3];
static zkl_entered *entered[3];
static told watched;

/* Called in the parent alone. */
static void see_leader(int rc, zkl_contenders *leader, void *userdata)
{
    CHECK(rc == OK);
    zkl_contenders_free(leader);
    tell(userdata, rc, NULL);
}

static void see_members(int rc, zkl_members *seen, void *userdata)
{
    CHECK(rc == OK);
    zkl_members_free(seen);
    tell(userdata, rc, NULL);
}

static void tell_delivery(int rc, zkl_delivery *delivery, void *userdata)
{
    CHECK(delivery == NULL);
    tell(userdata, rc, NULL);
}

static void tell_entered(int rc, zkl_entered *given, void *userdata)
{
    CHECK(given == NULL);
    tell(userdata, rc, NULL);
}

/* How often this thread has waited for anything. */
static long waits(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_THREAD, &usage) == 0);
    return usage.ru_nvcsw;
}

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    CHECK(clock_gettime(clock, &now) == 0);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static int counts_waits;

/* A call that takes less than a second of the processor, and either waits for nothing (but the machine: to read a page
 * of the program, say) or returns within a second: so it does, unless the machine has none for it. */
#define AT_ONCE(call)                                                                 \
    do {                                                                              \
        long before = waits();                                                        \
        double used = seconds_of(CLOCK_THREAD_CPUTIME_ID);                            \
        double begun = seconds_of(CLOCK_MONOTONIC);                                   \
        call;                                                                         \
        used = seconds_of(CLOCK_THREAD_CPUTIME_ID) - used;                            \
        int took_long = seconds_of(CLOCK_MONOTONIC) - begun > 1;                      \
        if ((counts_waits && took_long && waits() != before) || used > 1) {           \
            fprintf(stderr, "%s:%d: %s has waited\n", __FILE__, __LINE__, #call);     \
            _Exit(1);                                                                 \
        }                                                                             \
    } while (0)

#define IS(value, call) AT_ONCE(CHECK((call) == (value)))
#define REFUSED(call)                                                                 \
    do {                                                                              \
        AT_ONCE(GIVES(INVALID_STATE, call));                                          \
        CHECK(strstr(zkl_last_error(), "fork") != NULL);                              \
    } while (0)

static zhandle_t *opened(void)
{
    zhandle_t *made = zookeeper_init(hosts, NULL, session_timeout_ms, NULL, NULL, 0);
    CHECK(made != NULL);
    /* Else a thread of the handle resolves its hosts all the time, and a child that is made meanwhile
     * finds a lock of the C library held. */
    CHECK(zoo_set_servers_resolution_delay(made, -1) == ZOK);
    return made;
}

static void what_is_inherited_is_refused(void)
{
    void *const nothing = &t;
    zkl_client *client_out = nothing;
    zkl_lock *lock_out = nothing;
    zkl_guard *guard_out = nothing;
    zkl_attempt *attempt_out = nothing;
    zkl_contenders *contenders_out = nothing;
    char data[16];
    int fd = -2, length;

    AT_ONCE(CHECK(zkl_version() && zkl_version_number() && zkl_c_client_version()));
    AT_ONCE(CHECK(zkl_strerror(INVALID_STATE)));

    REFUSED(zkl_client_state(client));
    REFUSED(zkl_client_state(on_handle));
    REFUSED(zkl_client_session_timeout_ms(client));
    IS(0, zkl_client_session_id(client));
    REFUSED(zkl_client_detach(client));
    REFUSED(zkl_client_detach(on_handle));
    REFUSED(zkl_client_can(client));
    AT_ONCE(CHECK(zkl_client_store(client) != NULL));
    REFUSED(zkl_client_state(within));
    REFUSED(zkl_client_detach(within));
    REFUSED(zkl_lock_new(within, "/locks/new", NULL, &lock_out));
    REFUSED(zkl_lock_acquire(lock_within, ZKL_FOREVER, &guard_out));
    REFUSED(zkl_lock_try(lock_within, &guard_out));
    REFUSED(zkl_lock_try_async(lock_within, tell_done, &t, NULL));
    REFUSED(zkl_guard_state(guard_within));
    AT_ONCE(GIVES(INVALID_STATE, zkl_client_adopt(zh, NULL, &client_out)));
    REFUSED(zkl_client_follow(on_handle, zh));
    REFUSED(zkl_client_follow(client, zh));
    REFUSED(zkl_lock_new(client, "/locks/new", NULL, &lock_out));
    IS(0, strcmp(zkl_lock_path(lock), "/locks/fork"));
    REFUSED(zkl_lock_acquire(lock, ZKL_FOREVER, &guard_out));
    REFUSED(zkl_lock_acquire(lock, 100, &guard_out));
    REFUSED(zkl_lock_acquire(other, ZKL_FOREVER, &guard_out));
    REFUSED(zkl_lock_try(lock, &guard_out));
    REFUSED(zkl_lock_limit(lock, &fd));
    REFUSED(zkl_lock_set_limit(lock, 1));
    REFUSED(zkl_lock_reentrant(lock, &lock_out));
    REFUSED(zkl_lock_as_owner(lock, &lock_out));
    const zkl_contender holder = {.path = "/locks/fork/claim", .token = 1};
    REFUSED(zkl_lock_request_release(lock, &holder, ""));
    REFUSED(zkl_lock_break_hold(lock, &holder, "", 0, ZKL_FOREVER));
    REFUSED(zkl_guard_on_release_request(guard, tell_request, &t, finalize));
    REFUSED(zkl_lock_acquire_async(lock, 100, tell_done, &t, finalize, &attempt_out));
    REFUSED(zkl_lock_try_async(lock, tell_done, &t, finalize));
    REFUSED(zkl_lock_contenders_async(lock, 1, tell_contenders, &t, finalize));
    REFUSED(zkl_attempt_cancel(attempt));
    REFUSED(zkl_attempt_fd(attempt, &fd));
    REFUSED(zkl_attempt_take(attempt, &guard_out));
    REFUSED(zkl_lock_holder(lock, &contenders_out));
    REFUSED(zkl_lock_contenders(lock, &contenders_out));
    REFUSED(zkl_guard_state(guard));
    REFUSED(zkl_guard_lost_reason(guard));
    REFUSED((int)zkl_guard_token(guard));
    REFUSED(zkl_guard_holds(guard));
    AT_ONCE(CHECK(zkl_guard_path(guard) != NULL));
    AT_ONCE(CHECK(zkl_guard_claim_path(guard, NULL, 0) > 0));
    REFUSED(zkl_guard_on_lost(guard, tell_lost, &t, finalize));
    REFUSED(zkl_guard_wait_lost(guard, ZKL_FOREVER));
    REFUSED(zkl_guard_fd(guard, &fd));
    REFUSED(zkl_guard_state_fd(guard, &fd));
    REFUSED(zkl_guard_take_state(guard));
    REFUSED(zkl_guard_access(guard));
    REFUSED(zkl_guard_upgrade(guard, ZKL_FOREVER));
    REFUSED(zkl_guard_downgrade(guard, ZKL_READ, ZKL_FOREVER));
    REFUSED(zkl_guard_set(guard, "/data", "x", 1, -1, NULL));
    REFUSED(zkl_guard_set_async(guard, "/data", "x", 1, -1, tell_written, &t, finalize));
    REFUSED(zkl_guard_state(on_handles));
    REFUSED(zkl_guard_release_within(on_handles, 100));
    CHECK(client_out == nothing && lock_out == nothing && guard_out == nothing);
    CHECK(attempt_out == nothing && contenders_out == nothing && fd == -2);

    /* Data, and nothing else. */
    IS(1, zkl_contenders_count(contenders));
    AT_ONCE(CHECK(zkl_contenders_get(contenders, 0)->pid == (uint32_t)getppid()));

    CHECK(zkl_guard_locks(guard) == 1);
    REFUSED((int)zkl_guard_token_of(guard, 0));
    AT_ONCE(CHECK(zkl_guard_path_of(guard, 0) != NULL));
    const zkl_lock *const locks[] = {lock};
    zkl_multi_lock *multi_out = nothing;
    REFUSED(zkl_multi_lock_new(locks, 1, &multi_out));
    REFUSED(zkl_multi_lock_acquire(multi, ZKL_FOREVER, &guard_out));
    REFUSED(zkl_multi_lock_try(multi, &guard_out));
    REFUSED(zkl_multi_lock_acquire_async(multi, ZKL_FOREVER, tell_done, &t, finalize, &attempt_out));
    AT_ONCE(zkl_multi_lock_free(multi));
    REFUSED(zkl_lock_of_key(client, "/keys", "key", 3, NULL, &lock_out));

    zkl_election *election_out = nothing;
    zkl_watch *watch_out = nothing;
    REFUSED(zkl_election_new(client, "/elections/new", NULL, &election_out));
    REFUSED(zkl_election_campaign(election, ZKL_FOREVER, &guard_out));
    REFUSED(zkl_election_campaign_async(election, ZKL_FOREVER, tell_done, &t, finalize, &attempt_out));
    REFUSED(zkl_election_hand_over(election, leads, &holder, ZKL_FOREVER));
    REFUSED(zkl_election_hand_over_async(election, leads, &holder, ZKL_FOREVER, tell_rc, &t, finalize));
    REFUSED(zkl_election_leader(election, &contenders_out));
    REFUSED(zkl_election_participants(election, &contenders_out));
    REFUSED(zkl_election_observe(election, see_leader, &t, finalize, &watch_out));
    AT_ONCE(zkl_watch_free(observes));
    AT_ONCE(zkl_watch_free(watches));
    AT_ONCE(zkl_guard_free(leads));
    AT_ONCE(zkl_election_free(election));

    zkl_counter *counter_out = nothing;
    int64_t value = 4711;
    REFUSED(zkl_counter_new(client, "/counters/new", NULL, &counter_out));
    REFUSED(zkl_counter_get(counter, ZKL_FOREVER, &value));
    REFUSED(zkl_counter_set(counter, 1, ZKL_FOREVER));
    REFUSED(zkl_counter_add(counter, 1, ZKL_FOREVER, &value));
    REFUSED(zkl_counter_get_and_add(counter, 1, ZKL_FOREVER, &value));
    REFUSED(zkl_counter_compare_and_set(counter, 0, 1, ZKL_FOREVER, &value));
    AT_ONCE(zkl_counter_free(counter));

    zkl_queue *queue_out = nothing;
    zkl_delivery *delivery_out = nothing;
    size_t len = 4711;
    REFUSED(zkl_queue_new(client, "/queues/new", NULL, &queue_out));
    REFUSED(zkl_queue_put(work, "x", 1, 0, ZKL_FOREVER));
    REFUSED(zkl_queue_peek(work, ZKL_FOREVER, data, sizeof data, &len));
    REFUSED(zkl_queue_take(work, ZKL_FOREVER, &delivery_out));
    REFUSED(zkl_queue_take_async(work, ZKL_FOREVER, tell_delivery, &t, finalize, &attempt_out));
    CHECK(len == 4711);
    AT_ONCE(CHECK(zkl_delivery_data(deliveries[0], &len) != NULL && len == 3));
    AT_ONCE(CHECK(zkl_delivery_path(deliveries[0]) != NULL));
    REFUSED(zkl_guard_state(zkl_delivery_guard(deliveries[0])));
    REFUSED(zkl_delivery_done(deliveries[0], ZKL_FOREVER));
    REFUSED(zkl_delivery_done_async(deliveries[1], ZKL_FOREVER, tell_rc, &t, finalize));
    AT_ONCE(zkl_delivery_free(deliveries[2]));
    AT_ONCE(zkl_queue_free(work));

    zkl_group *group_out = nothing;
    zkl_membership *membership_out = nothing;
    zkl_members *members_out = nothing;
    REFUSED(zkl_group_new(client, "/groups/new", NULL, &group_out));
    REFUSED(zkl_group_join(group, "x", 1, ZKL_FOREVER, &membership_out));
    REFUSED(zkl_group_members(group, ZKL_FOREVER, &members_out));
    REFUSED(zkl_group_watch(group, see_members, &t, finalize, &watch_out));
    AT_ONCE(CHECK(zkl_membership_id(memberships[0]) && zkl_membership_path(memberships[0])));
    REFUSED(zkl_membership_is_member(memberships[0]));
    REFUSED(zkl_membership_leave(memberships[0], ZKL_FOREVER));
    AT_ONCE(zkl_membership_free(memberships[1]));
    IS(2, zkl_members_count(members));
    AT_ONCE(CHECK(zkl_members_get(members, 0)->len == 1));
    AT_ONCE(zkl_members_free(members));
    AT_ONCE(zkl_group_free(group));

    zkl_latch *latch_out = nothing;
    uint32_t left = 4711;
    REFUSED(zkl_latch_new(client, "/latches/new", NULL, &latch_out));
    REFUSED(zkl_latch_set(latch, 1, ZKL_FOREVER, &left));
    REFUSED(zkl_latch_count_down(latch, ZKL_FOREVER, &left));
    REFUSED(zkl_latch_left(latch, ZKL_FOREVER, &left));
    REFUSED(zkl_latch_wait(latch, ZKL_FOREVER));
    REFUSED(zkl_latch_wait_async(latch, ZKL_FOREVER, tell_rc, &t, finalize, &attempt_out));
    AT_ONCE(zkl_latch_free(latch));

    zkl_barrier *barrier_out = nothing;
    REFUSED(zkl_barrier_new(client, "/barriers/new", NULL, &barrier_out));
    REFUSED(zkl_barrier_set(barrier, ZKL_FOREVER));
    REFUSED(zkl_barrier_remove(barrier, ZKL_FOREVER));
    REFUSED(zkl_barrier_pass(barrier, ZKL_FOREVER));
    REFUSED(zkl_barrier_pass_async(barrier, ZKL_FOREVER, tell_rc, &t, finalize, &attempt_out));
    AT_ONCE(zkl_barrier_free(barrier));

    zkl_double_barrier *both_out = nothing;
    zkl_entered *entered_out = nothing;
    REFUSED(zkl_double_barrier_new(client, "/barriers/new", 2, NULL, &both_out));
    REFUSED(zkl_double_barrier_enter(both[0], ZKL_FOREVER, &entered_out));
    REFUSED(zkl_double_barrier_enter_async(both[0], ZKL_FOREVER, tell_entered, &t, finalize, &attempt_out));
    REFUSED(zkl_entered_leave(entered[0], ZKL_FOREVER));
    REFUSED(zkl_entered_leave_async(entered[1], ZKL_FOREVER, tell_rc, &t, finalize));
    AT_ONCE(zkl_entered_free(entered[2]));
    AT_ONCE(zkl_double_barrier_free(both[0]));
    CHECK(value == 4711 && left == 4711 && guard_out == nothing && attempt_out == nothing);
    CHECK((void *)multi_out == nothing && (void *)election_out == nothing && (void *)watch_out == nothing);
    CHECK((void *)counter_out == nothing && (void *)queue_out == nothing && (void *)delivery_out == nothing);
    CHECK((void *)group_out == nothing && (void *)membership_out == nothing && (void *)members_out == nothing);
    CHECK((void *)latch_out == nothing && (void *)barrier_out == nothing && (void *)both_out == nothing);
    CHECK((void *)entered_out == nothing);

    REFUSED(zkl_guard_release(guard));
    REFUSED(zkl_guard_release_within(limited, 100));
    REFUSED(zkl_guard_release_async(told_of, 100, tell_rc, &t, finalize));
    AT_ONCE(zkl_guard_free(freed));
    AT_ONCE(zkl_attempt_free(attempt));
    AT_ONCE(zkl_contenders_free(contenders));
    AT_ONCE(zkl_lock_free(lock));
    AT_ONCE(zkl_lock_free(other));
    AT_ONCE(zkl_guard_free(guard_within));
    AT_ONCE(zkl_lock_free(lock_within));
    AT_ONCE(zkl_client_free(within));
    AT_ONCE(zkl_client_free(client));
    AT_ONCE(zkl_client_free(on_handle));
    /* What runs is the parent's. */
    IS(OK, zkl_shutdown());

    IS(0, zkr_lock_isowner(&owner));
    zkr_lock_mutex_t *const mutexes[] = {&owner, &waiter, &idle};
    for (int i = 0; i < 3; i++) {
        zkr_lock_mutex_t *mutex = mutexes[i];
        IS(0, zkr_lock_lock(mutex));
        REFUSED(zkr_lock_error(mutex));
        IS(0, zkr_lock_lock_owner(mutex));
        REFUSED(zkr_lock_unlock(mutex));
        IS(lock_path, zkr_lock_getpath(mutex));
        AT_ONCE(zkr_lock_getid(mutex));
        AT_ONCE(zkr_lock_setcallback(mutex, NULL));
        AT_ONCE(CHECK(zkr_lock_getcallback(mutex) == NULL));
        IS(0, zkr_lock_destroy(mutex));
    }
    /* Structs of its own on the parent's handle. */
    for (int i = 0; i < 2; i++) {
        zkr_lock_mutex_t own;
        if (i == 0)
            IS(0, zkr_lock_init(&own, zh, lock_path, &ZOO_OPEN_ACL_UNSAFE));
        else
            IS(0, zkr_lock_init_cb(&own, zh, lock_path, &ZOO_OPEN_ACL_UNSAFE, NULL, NULL));
        IS(0, zkr_lock_lock(&own));
        AT_ONCE(GIVES(INVALID_STATE, zkr_lock_error(&own)));
        IS(0, zkr_lock_isowner(&own));
        AT_ONCE(CHECK(zkr_lock_unlock(&own) != OK));
        IS(0, zkr_lock_destroy(&own));
    }
    /* Of the last the handle alone is the parent's, and the words are those of zkl_client_adopt. */
    zkr_queue_t own_queue;
    IS(0, zkr_queue_init(&own_queue, zh, path, &ZOO_OPEN_ACL_UNSAFE));
    zkr_queue_t *const queues[] = {&queue, &unused, &own_queue};
    for (int i = 0; i < 3; i++) {
        for (int call = 0; call < 4; call++) {
            int rc = OK;
            length = call == 0 ? -1 : (int)sizeof data;
            AT_ONCE(rc = call == 0   ? zkr_queue_offer(queues[i], "x", 1)
                         : call == 1 ? zkr_queue_element(queues[i], data, &length)
                         : call == 2 ? zkr_queue_remove(queues[i], data, &length)
                                     : zkr_queue_take(zh, queues[i], data, &length));
            GIVES(INVALID_STATE, rc);
            CHECK(queues[i] == &own_queue || strstr(zkl_last_error(), "fork") != NULL);
            CHECK(length == -1);
        }
        AT_ONCE(zkr_queue_destroy(queues[i]));
    }
}

static void what_the_child_makes_works(void)
{
    zkl_client *own = connected();
    zkl_lock *taken = lock_on(own, "/locks/fork"), *free_one = lock_on(own, "/locks/child");
    zkl_guard *got = NULL;
    int limit_ms = 200;
    do
        GIVES(TIMEOUT, zkl_lock_acquire(taken, limit_ms, &got));
    while (strstr(zkl_last_error(), "no word") != NULL && (limit_ms *= 2) < TIMEOUT_MS);
    CHECK(strstr(zkl_last_error(), "pid") != NULL);
    GIVES(ZKL_TAKEN, zkl_lock_try(taken, &got));
    got = acquired(free_one);
    CHECK(zkl_guard_state(got) == ZKL_HELD);
    told waited;
    told_init(&waited);
    GIVES(OK, zkl_lock_acquire_async(free_one, ZKL_FOREVER, tell_done, &waited, finalize, NULL));
    GIVES(OK, zkl_guard_release(got));
    UNTIL(told_finalized(&waited) == 1);
    CHECK(waited.result == OK);
    GIVES(OK, zkl_guard_release(waited.guard));
    zkl_lock_free(taken);
    zkl_lock_free(free_one);
    zkl_client_free(own);

    /* What is within this process is its own, and free. */
    GIVES(OK, zkl_store_connect("local:", NULL, &own));
    zkl_lock *of_this_process = lock_on(own, "/locks/within");
    GIVES(OK, zkl_guard_release(acquired(of_this_process)));
    zkl_lock_free(of_this_process);
    zkl_client_free(own);

    zhandle_t *made = opened();
    zkr_queue_t jobs;
    zkr_lock_mutex_t mutex;
    char data[16];
    int length = sizeof data;
    GIVES(OK, zkr_queue_init(&jobs, made, path, &ZOO_OPEN_ACL_UNSAFE));
    GIVES(OK, zkr_queue_offer(&jobs, "job", 3));
    GIVES(OK, zkr_queue_take(made, &jobs, data, &length));
    CHECK(length == 3);
    GIVES(OK, zkr_lock_init(&mutex, made, lock_path, &ZOO_OPEN_ACL_UNSAFE));
    zkr_lock_lock(&mutex);
    GIVES(OK, zkr_lock_error(&mutex));
    CHECK(!zkr_lock_isowner(&mutex));
    GIVES(OK, zkr_lock_unlock(&mutex));
    GIVES(OK, zkr_lock_destroy(&mutex));
    zkr_queue_destroy(&jobs);
    GIVES(OK, zkl_client_adopt(made, NULL, &own));
    free_one = lock_on(own, "/locks/child");
    got = acquired(free_one);
    GIVES(OK, zkl_guard_release(got));
    zkl_lock_free(free_one);
    zkl_client_free(own);
    CHECK(zookeeper_close(made) == ZOK);
}

/* What the parent holds until its child asks for it. */
static zkl_guard *promised;
static zkr_lock_mutex_t promised_mutex;
static char promised_path[] = "/locks/promised-mutex", fed_path[] = "/fed";
static zkr_queue_t fed;

/* From the child to the parent: a letter for each thing that it asks for. */
static int asks[2];

static void ask_parent(char what)
{
    CHECK(write(asks[1], &what, 1) == 1);
}

/* It waits for what its parent holds, and gets it when its parent has given it back. */
static void the_child_waits_for_its_parent(void)
{
    zkl_client *own = connected();
    zkl_lock *awaited = lock_on(own, "/locks/promised");
    zkl_guard *got = NULL;
    double began = seconds_of(CLOCK_MONOTONIC);
    GIVES(TIMEOUT, zkl_lock_acquire(awaited, 1500, &got));
    double took = seconds_of(CLOCK_MONOTONIC) - began;
    CHECK(got == NULL && took >= 1.5 && took < TIMEOUT_MS / 2000.0);
    ask_parent('g');
    got = acquired(awaited);
    CHECK(zkl_guard_state(got) == ZKL_HELD);
    GIVES(OK, zkl_guard_release(got));
    zkl_lock_free(awaited);
    zkl_client_free(own);

    zhandle_t *made = opened();
    zkr_lock_mutex_t mutex;
    GIVES(OK, zkr_lock_init(&mutex, made, promised_path, &ZOO_OPEN_ACL_UNSAFE));
    zkr_lock_lock(&mutex);
    GIVES(OK, zkr_lock_error(&mutex));
    CHECK(!zkr_lock_isowner(&mutex) && zkr_lock_getid(&mutex) != NULL);
    ask_parent('m');
    UNTIL(zkr_lock_isowner(&mutex));
    GIVES(OK, zkr_lock_unlock(&mutex));
    GIVES(OK, zkr_lock_destroy(&mutex));

    zkr_queue_t empty;
    char data[16];
    int length = sizeof data;
    GIVES(OK, zkr_queue_init(&empty, made, fed_path, &ZOO_OPEN_ACL_UNSAFE));
    GIVES(OK, zkr_queue_element(&empty, data, &length));
    CHECK(length == -1);
    ask_parent('q');
    length = sizeof data;
    GIVES(OK, zkr_queue_take(made, &empty, data, &length));
    CHECK(length == 5 && memcmp(data, "later", 5) == 0);
    length = sizeof data;
    GIVES(OK, zkr_queue_remove(&empty, data, &length));
    CHECK(length == -1);
    zkr_queue_destroy(&empty);
    CHECK(zookeeper_close(made) == ZOK);
}

/* Does what its child asks for, until that has ended. */
static void the_parent_gives(void)
{
    char what, all[8] = "";
    size_t count = 0;
    while (read(asks[0], &what, 1) == 1) {
        CHECK(count < sizeof all - 1);
        all[count++] = what;
        if (what == 'g') {
            GIVES(OK, zkl_guard_release(promised));
        } else if (what == 'm') {
            GIVES(OK, zkr_lock_unlock(&promised_mutex));
        } else {
            /* The child is waiting for an element by then, most of the time. */
            pause_ms(300);
            GIVES(OK, zkr_queue_offer(&fed, "later", 5));
        }
    }
    CHECK(strcmp(all, "gmq") == 0);
}

static void in_a_child_beside(void (*does)(void), void (*meanwhile)(void))
{
    fflush(stdout);
    CHECK(pipe(asks) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        /* A call that hangs. */
        alarm(TIMEOUT_MS / 1000);
        does();
        _exit(0);
    }
    close(asks[1]);
    if (meanwhile != NULL)
        meanwhile();
    close(asks[0]);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fprintf(stderr, "the child has ended with %x\n", status);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void in_a_child(void (*does)(void))
{
    in_a_child_beside(does, NULL);
}

static void exits(void)
{
    exit(0);
}

static void in_a_grandchild(void)
{
    zkl_client *own = connected();
    in_a_child(what_the_child_makes_works);
    CHECK(zkl_client_state(own) == ZKL_CONNECTED);
    zkl_client_free(own);
}

static zkl_client *busy_client;
static zkl_lock *busy;

static void a_glimpse(void)
{
    zkl_guard *none = NULL;
    REFUSED(zkl_client_state(busy_client));
    REFUSED(zkl_lock_acquire(busy, ZKL_FOREVER, &none));
    AT_ONCE(zkl_lock_free(busy));
    AT_ONCE(zkl_client_free(busy_client));
    zkl_client *own = connected();
    zkl_lock *free_one = lock_on(own, "/locks/child");
    GIVES(OK, zkl_guard_release(acquired(free_one)));
    zkl_lock_free(free_one);
    zkl_client_free(own);
}

/* Where a handle was that the parent has closed. */
static zhandle_t *closed;

static void a_handle_in_its_place_is_the_childs_own(void)
{
    enum { MOST = 50 };
    zhandle_t *made = NULL;
    for (int i = 0; i < MOST && made != closed; i++)
        made = zookeeper_init(hosts, NULL, session_timeout_ms, NULL, NULL, 0);
    if (made != closed)
        return;
    zkl_client *own = NULL;
    GIVES(OK, zkl_client_adopt(made, NULL, &own));
    CHECK(write(asks[1], "a", 1) == 1);
}

static int adopted;

static void adoptions_are_counted(void)
{
    char what;
    while (read(asks[0], &what, 1) == 1)
        adopted++;
}

static void a_handle_that_never_answered_is_forgotten(void)
{
    /* The kernel takes its connection, and nobody answers. */
    struct sockaddr_in silent = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof silent;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)&silent, length) == 0 && listen(listener, 1) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&silent, &length) == 0);
    char nobody[32];
    snprintf(nobody, sizeof nobody, "127.0.0.1:%d", ntohs(silent.sin_port));
    closed = zookeeper_init(nobody, NULL, session_timeout_ms, NULL, NULL, 0);
    zkl_client *on_closed = NULL;
    GIVES(OK, zkl_client_adopt(closed, NULL, &on_closed));
    zookeeper_close(closed);
    close(listener);
    zkl_client_free(on_closed);
    in_a_child_beside(a_handle_in_its_place_is_the_childs_own, adoptions_are_counted);
}

static int stops;
static pthread_mutex_t stop_mutex = PTHREAD_MUTEX_INITIALIZER;

static int is_stopped(void)
{
    pthread_mutex_lock(&stop_mutex);
    int is = stops;
    pthread_mutex_unlock(&stop_mutex);
    return is;
}

/* Is inside zklock most of the time. */
static void *keeps_busy(void *unused)
{
    (void)unused;
    while (!is_stopped())
        GIVES(OK, zkl_guard_release(acquired(busy)));
    return NULL;
}

/* What the child may hang in is that a lock was held by a thread which it does not have. */
static void children_are_made_while_other_threads_are_inside(int children)
{
    busy_client = connected();
    busy = lock_on(busy_client, "/locks/busy");
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, keeps_busy, NULL) == 0);
    for (int i = 0; i < children; i++) {
        in_a_child(a_glimpse);
    }
    pthread_mutex_lock(&stop_mutex);
    stops = 1;
    pthread_mutex_unlock(&stop_mutex);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    zkl_lock_free(busy);
    zkl_client_free(busy_client);
}

static void the_parent_has_recipes(void)
{
    const zkl_lock *locks[] = {lock, other};
    GIVES(OK, zkl_multi_lock_new(locks, 1, &multi));
    GIVES(OK, zkl_election_new(client, "/elections/fork", NULL, &election));
    GIVES(OK, zkl_election_campaign(election, TIMEOUT_MS, &leads));
    told_init(&watched);
    GIVES(OK, zkl_election_observe(election, see_leader, &watched, finalize, &observes));
    GIVES(OK, zkl_counter_new(client, "/counters/fork", NULL, &counter));
    GIVES(OK, zkl_counter_set(counter, 42, TIMEOUT_MS));
    GIVES(OK, zkl_queue_new(client, "/queues/fork", NULL, &work));
    for (int i = 0; i < 3; i++) {
        GIVES(OK, zkl_queue_put(work, "job", 3, ZKL_DEFAULT_PRIORITY, TIMEOUT_MS));
        GIVES(OK, zkl_queue_take(work, TIMEOUT_MS, &deliveries[i]));
    }
    GIVES(OK, zkl_group_new(client, "/groups/fork", NULL, &group));
    for (int i = 0; i < 2; i++)
        GIVES(OK, zkl_group_join(group, "x", 1, TIMEOUT_MS, &memberships[i]));
    GIVES(OK, zkl_group_members(group, TIMEOUT_MS, &members));
    GIVES(OK, zkl_group_watch(group, see_members, &watched, NULL, &watches));
    GIVES(OK, zkl_latch_new(client, "/latches/fork", NULL, &latch));
    GIVES(OK, zkl_latch_set(latch, 1, TIMEOUT_MS, NULL));
    GIVES(OK, zkl_barrier_new(client, "/barriers/fork", NULL, &barrier));
    GIVES(OK, zkl_barrier_set(barrier, TIMEOUT_MS));
    const char *const paths[] = {"/barriers/fork1", "/barriers/fork2", "/barriers/fork3"};
    for (int i = 0; i < 3; i++) {
        GIVES(OK, zkl_double_barrier_new(client, paths[i], 1, NULL, &both[i]));
        GIVES(OK, zkl_double_barrier_enter(both[i], TIMEOUT_MS, &entered[i]));
    }
    UNTIL(told_calls(&watched) == 2);
}

static void the_parents_recipes_work(void)
{
    int64_t value = 0;
    uint32_t left = 0;
    CHECK(zkl_guard_state(leads) == ZKL_HELD && told_calls(&watched) == 2);
    GIVES(OK, zkl_counter_get(counter, TIMEOUT_MS, &value));
    GIVES(OK, zkl_latch_left(latch, TIMEOUT_MS, &left));
    CHECK(value == 42 && left == 1);
    GIVES(TIMEOUT, zkl_barrier_pass(barrier, 0));
    for (int i = 0; i < 3; i++) {
        GIVES(OK, zkl_delivery_done(deliveries[i], TIMEOUT_MS));
        GIVES(OK, zkl_entered_leave(entered[i], TIMEOUT_MS));
        zkl_double_barrier_free(both[i]);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(zkl_membership_is_member(memberships[i]) == 1);
        zkl_membership_free(memberships[i]);
    }
    /* Both watches go on, and say what has changed. */
    GIVES(OK, zkl_guard_release(leads));
    UNTIL(told_calls(&watched) >= 4);
    zkl_watch_free(watches);
    zkl_watch_free(observes);
    UNTIL(told_finalized(&watched) == 1);
    zkl_members_free(members);
    zkl_multi_lock_free(multi);
    zkl_election_free(election);
    zkl_counter_free(counter);
    zkl_queue_free(work);
    zkl_group_free(group);
    zkl_latch_free(latch);
    zkl_barrier_free(barrier);
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    /* valgrind has threads take turns, which looks like waiting. */
    counts_waits = session_timeout_ms < 20000;
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    ask("create /data");
    client = connected();
    lock = lock_on(client, "/locks/fork");
    guard = acquired(lock);
    zkl_lock *second = lock_on(client, "/locks/second"), *third = lock_on(client, "/locks/third");
    zkl_lock *last = lock_on(client, "/locks/last");
    freed = acquired(second);
    limited = acquired(third);
    told_of = acquired(last);
    GIVES(OK, zkl_lock_contenders(lock, &contenders));
    told_init(&t);
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &t, finalize, &attempt));
    zh = opened();
    GIVES(OK, zkl_client_adopt(zh, NULL, &on_handle));
    other = lock_on(on_handle, "/locks/other");
    GIVES(OK, zkl_guard_release(acquired(other)));
    zkl_lock *fourth = lock_on(on_handle, "/locks/fourth"), *fifth = lock_on(client, "/locks/promised");
    on_handles = acquired(fourth);
    promised = acquired(fifth);
    GIVES(OK, zkr_lock_init(&promised_mutex, zh, promised_path, &ZOO_OPEN_ACL_UNSAFE));
    zkr_lock_lock(&promised_mutex);
    UNTIL(zkr_lock_isowner(&promised_mutex));
    GIVES(OK, zkr_queue_init(&fed, zh, fed_path, &ZOO_OPEN_ACL_UNSAFE));
    GIVES(OK, zkr_lock_init(&owner, zh, lock_path, &ZOO_OPEN_ACL_UNSAFE));
    GIVES(OK, zkr_lock_init(&waiter, zh, lock_path, &ZOO_OPEN_ACL_UNSAFE));
    GIVES(OK, zkr_lock_init(&idle, zh, lock_path, &ZOO_OPEN_ACL_UNSAFE));
    zkr_lock_lock(&owner);
    UNTIL(zkr_lock_isowner(&owner));
    zkr_lock_lock(&waiter);
    GIVES(OK, zkr_queue_init(&queue, zh, path, &ZOO_OPEN_ACL_UNSAFE));
    GIVES(OK, zkr_queue_offer(&queue, "mine", 4));
    GIVES(OK, zkr_queue_init(&unused, zh, unused_path, &ZOO_OPEN_ACL_UNSAFE));

    GIVES(OK, zkl_store_connect("local:", NULL, &within));
    lock_within = lock_on(within, "/locks/within");
    guard_within = acquired(lock_within);

    the_parent_has_recipes();
    in_a_child(what_is_inherited_is_refused);
    char data[16];
    int length = sizeof data;
    GIVES(OK, zkr_queue_take(zh, &queue, data, &length));
    CHECK(length == 4);
    in_a_child(what_the_child_makes_works);
    in_a_child_beside(the_child_waits_for_its_parent, the_parent_gives);
    in_a_child(in_a_grandchild);
    in_a_child(exits);
    /* valgrind gives no memory twice. */
    if (counts_waits) {
        /* Most of the time, the first one is given the memory again. */
        for (int i = 0; i < 50 && adopted == 0; i++)
            a_handle_that_never_answered_is_forgotten();
        CHECK(adopted == 1);
    }
    /* More, where somebody wants to look for long. */
    const char *children = getenv("CHILDREN");
    children_are_made_while_other_threads_are_inside(children == NULL ? 10 : atoi(children));

    /* Nothing of the parent's has changed. */
    the_parents_recipes_work();
    CHECK(zkl_guard_state(guard) == ZKL_HELD && zkr_lock_isowner(&owner));
    CHECK(told_calls(&t) == 0 && zkl_guard_state(on_handles) == ZKL_HELD);
    GIVES(OK, zkl_guard_release(guard_within));
    zkl_lock_free(lock_within);
    zkl_client_free(within);
    GIVES(OK, zkl_guard_release(guard));
    UNTIL(told_finalized(&t) == 1);
    CHECK(t.result == OK);
    GIVES(OK, zkl_guard_release(t.guard));
    CHECK(contenders_of(lock) == 0);
    GIVES(OK, zkl_guard_release(freed));
    GIVES(OK, zkl_guard_release(limited));
    GIVES(OK, zkl_guard_release(told_of));
    GIVES(OK, zkl_guard_release(on_handles));
    GIVES(OK, zkr_lock_unlock(&owner));
    UNTIL(zkr_lock_isowner(&waiter));
    GIVES(OK, zkr_lock_unlock(&waiter));
    GIVES(OK, zkr_lock_destroy(&owner));
    GIVES(OK, zkr_lock_destroy(&waiter));
    GIVES(OK, zkr_lock_destroy(&idle));
    zkr_queue_destroy(&queue);
    zkr_queue_destroy(&unused);
    GIVES(OK, zkr_lock_destroy(&promised_mutex));
    zkr_queue_destroy(&fed);
    zkl_attempt_free(attempt);
    zkl_contenders_free(contenders);
    zkl_lock_free(lock);
    zkl_lock_free(second);
    zkl_lock_free(third);
    zkl_lock_free(last);
    zkl_lock_free(fourth);
    zkl_lock_free(fifth);
    zkl_lock_free(other);
    zkl_client_free(on_handle);
    CHECK(zookeeper_close(zh) == ZOK);
    zkl_client_free(client);
    return 0;
}
