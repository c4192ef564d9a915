/* Acquires and losses that one event loop waits for, by descriptors alone. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>

static int loop;

static void waits_for(int fd, void *what)
{
    struct epoll_event event = {EPOLLIN, {what}};
    CHECK(epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event) == 0);
}

static void ignores(int fd)
{
    CHECK(epoll_ctl(loop, EPOLL_CTL_DEL, fd, NULL) == 0);
}

/* What is readable next. */
static void *next(void)
{
    struct epoll_event event;
    int ready;
    do
        ready = epoll_wait(loop, &event, 1, TIMEOUT_MS);
    while (ready == -1 && errno == EINTR);
    CHECK(ready == 1 && event.events == EPOLLIN);
    return event.data.ptr;
}

static zkl_attempt *begun(zkl_lock *lock, int timeout_ms)
{
    zkl_attempt *attempt = NULL;
    GIVES(OK, zkl_lock_acquire_async(lock, timeout_ms, NULL, NULL, NULL, &attempt));
    CHECK(attempt != NULL);
    return attempt;
}

static int fd_of(zkl_attempt *attempt)
{
    int fd = -1, again = -2;
    GIVES(OK, zkl_attempt_fd(attempt, &fd));
    GIVES(OK, zkl_attempt_fd(attempt, &again));
    CHECK(fd >= 0 && fd == again && (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    return fd;
}

/* Its outcome, once it is readable; and nothing after that. */
static zkl_guard *taken(zkl_attempt *attempt, int wanted)
{
    zkl_guard *guard = NULL, *none = NULL;
    CHECK(is_readable(fd_of(attempt), TIMEOUT_MS));
    GIVES(wanted, zkl_attempt_take(attempt, &guard));
    CHECK((wanted == OK) == (guard != NULL));
    GIVES(NOTHING, zkl_attempt_take(attempt, &none));
    GIVES(NOTHING, zkl_attempt_cancel(attempt));
    CHECK(none == NULL && is_readable(fd_of(attempt), 0));
    return guard;
}

static void ended(zkl_attempt *attempt)
{
    int fd = fd_of(attempt);
    zkl_attempt_free(attempt);
    CHECK(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
}

/* One of the things that the loop waits for. */
struct source {
    const char *path;
    int timeout_ms;
    int wanted;
    zkl_lock *lock;
    zkl_attempt *attempt;
    zkl_guard *guard;
    int fd;
    int is_lost;
};

static void the_loop_waits_for_many_at_once(zkl_client *client, zkl_client *other)
{
    struct source sources[] = {
        {.path = "/free", .timeout_ms = ZKL_FOREVER, .wanted = OK},
        {.path = "/handed-on", .timeout_ms = ZKL_FOREVER, .wanted = OK},
        {.path = "/late", .timeout_ms = 100, .wanted = TIMEOUT},
        {.path = "/looked-at", .timeout_ms = 0, .wanted = TIMEOUT},
        {.path = "/cancelled", .timeout_ms = ZKL_FOREVER, .wanted = ZKL_CANCELLED},
    };
    enum { COUNT = sizeof sources / sizeof *sources };
    zkl_lock *theirs[COUNT];
    zkl_guard *held[COUNT];
    for (int i = 0; i < COUNT; i++) {
        struct source *one = &sources[i];
        theirs[i] = lock_on(other, one->path);
        held[i] = i == 0 ? NULL : acquired(theirs[i]);
        one->lock = lock_on(client, one->path);
        one->attempt = begun(one->lock, one->timeout_ms);
        one->fd = fd_of(one->attempt);
        waits_for(one->fd, one);
    }
    zkl_guard *none = NULL;
    GIVES(ZKL_PENDING, zkl_attempt_take(sources[1].attempt, &none));
    CHECK(none == NULL && !is_readable(sources[1].fd, 0));

    int ended_before = 0;
    for (int ends = 0; ends < COUNT + 2; ends++) {
        struct source *one = next();
        ignores(one->fd);
        if (one->guard != NULL) {
            CHECK(zkl_guard_state(one->guard) == ZKL_LOST && !one->is_lost);
            one->is_lost = 1;
            zkl_guard_free(one->guard);
            continue;
        }
        one->guard = taken(one->attempt, one->wanted);
        ended(one->attempt);
        one->attempt = NULL;
        if (one->guard != NULL) {
            CHECK(zkl_guard_state(one->guard) == ZKL_HELD);
            GIVES(OK, zkl_guard_fd(one->guard, &one->fd));
            waits_for(one->fd, one);
            if (one == &sources[1])
                ask("delete %s", claim_of(one->guard));
        }
        /* Each end has the next follow. */
        if (one == &sources[0])
            GIVES(OK, zkl_guard_release(held[1]));
        if ((one == &sources[0] || one == &sources[2]) && ++ended_before == 2)
            GIVES(OK, zkl_attempt_cancel(sources[4].attempt));
        if (one == &sources[4])
            ask("delete %s", claim_of(sources[0].guard));
    }
    CHECK(sources[0].is_lost && sources[1].is_lost);
    for (int i = 0; i < COUNT; i++) {
        zkl_guard_free(i == 1 ? NULL : held[i]);
        UNTIL(contenders_of(theirs[i]) == 0);
        zkl_lock_free(theirs[i]);
        zkl_lock_free(sources[i].lock);
    }
}

static void an_attempt_ends_before_its_descriptor_is_asked_for(void)
{
    zkl_client *client = connected();
    zkl_lock *lock = lock_on(client, "/before");
    zkl_guard *guard = NULL;
    GIVES(OK, zkl_client_detach(client));
    /* Of a closed client it has ended when it begins. */
    zkl_attempt *attempt = begun(lock, ZKL_FOREVER), *other = begun(lock, ZKL_FOREVER);
    CHECK(is_readable(fd_of(attempt), 0));
    int rc = zkl_attempt_take(attempt, &guard);
    CHECK((rc == INVALID_STATE || rc == CLOSING) && guard == NULL);
    ended(attempt);
    /* Also after the outcome was taken. */
    rc = zkl_attempt_take(other, &guard);
    CHECK((rc == INVALID_STATE || rc == CLOSING) && guard == NULL);
    CHECK(is_readable(fd_of(other), 0));
    ended(other);
    zkl_lock_free(lock);
    zkl_client_free(client);
}

static void an_attempt_ends_with_its_client(void)
{
    zkl_client *client = connected(), *other = connected();
    zkl_lock *lock = lock_on(client, "/with-client"), *theirs = lock_on(other, "/with-client");
    zkl_guard *held = acquired(theirs), *guard = NULL;
    zkl_attempt *attempt = begun(lock, ZKL_FOREVER);
    int fd = fd_of(attempt);
    UNTIL(contenders_of(theirs) == 2);
    CHECK(!is_readable(fd, 0));
    GIVES(OK, zkl_client_detach(client));
    CHECK(is_readable(fd, TIMEOUT_MS));
    int rc = zkl_attempt_take(attempt, &guard);
    CHECK((rc == INVALID_STATE || rc == CLOSING) && guard == NULL);
    CHECK(strstr(zkl_last_error(), "/with-client") != NULL);
    zkl_guard_free(held);
    zkl_lock_free(theirs);
    zkl_client_free(other);
    zkl_lock_free(lock);
    zkl_client_free(client);
    ended(attempt);
}

/* It keeps the session, and so does the guard that it gives. */
static void everything_else_is_freed_meanwhile(void)
{
    zkl_client *client = connected(), *other = connected();
    zkl_lock *lock = lock_on(client, "/alone"), *theirs = lock_on(other, "/alone");
    zkl_guard *held = acquired(theirs);
    zkl_attempt *attempt = begun(lock, ZKL_FOREVER);
    zkl_lock_free(lock);
    zkl_client_free(client);
    GIVES(OK, zkl_guard_release(held));
    held = taken(attempt, OK);
    ended(attempt);
    CHECK(zkl_guard_state(held) == ZKL_HELD && contenders_of(theirs) == 1);
    GIVES(OK, zkl_guard_release(held));
    zkl_lock_free(theirs);
    zkl_client_free(other);
}

static void an_attempt_that_is_freed_leaves_no_claim(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, "/freed");
    /* With an outcome that nobody takes. */
    zkl_attempt *attempt = begun(lock, ZKL_FOREVER);
    CHECK(is_readable(fd_of(attempt), TIMEOUT_MS) && contenders_of(lock) == 1);
    zkl_attempt_free(attempt);
    UNTIL(contenders_of(lock) == 0);
    /* While it waits, and without a descriptor. */
    zkl_guard *guard = acquired(lock);
    attempt = begun(lock, ZKL_FOREVER);
    UNTIL(contenders_of(lock) == 2);
    zkl_attempt_free(attempt);
    UNTIL(contenders_of(lock) == 1);
    GIVES(OK, zkl_guard_release(guard));
    zkl_lock_free(lock);
}

static void a_cancelled_attempt_gives_no_guard(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, "/cancel");
    /* It has the lock, and the program has not taken it. */
    zkl_attempt *attempt = begun(lock, ZKL_FOREVER);
    CHECK(is_readable(fd_of(attempt), TIMEOUT_MS));
    GIVES(OK, zkl_attempt_cancel(attempt));
    GIVES(OK, zkl_attempt_cancel(attempt));
    CHECK(taken(attempt, ZKL_CANCELLED) == NULL);
    ended(attempt);
    UNTIL(contenders_of(lock) == 0);
    /* What a program gets agrees with what it was told of the cancellation, whichever comes first. */
    for (int i = 0; i < 50; i++) {
        attempt = begun(lock, ZKL_FOREVER);
        if (i % 2)
            pause_ms(i % 5);
        int late = zkl_attempt_cancel(attempt);
        CHECK(late == OK);
        CHECK(taken(attempt, ZKL_CANCELLED) == NULL);
        zkl_attempt_free(attempt);
    }
    UNTIL(contenders_of(lock) == 0);
    zkl_lock_free(lock);
}

struct raced {
    zkl_attempt *attempt;
    int result;
};

static void *cancels(void *userdata)
{
    struct raced *raced = userdata;
    raced->result = zkl_attempt_cancel(raced->attempt);
    return NULL;
}

/* Either the guard was taken, or the cancellation was in time. */
static void one_thread_cancels_while_another_takes(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, "/raced");
    for (int i = 0; i < 50; i++) {
        struct raced raced = {begun(lock, ZKL_FOREVER), 12345};
        CHECK(is_readable(fd_of(raced.attempt), TIMEOUT_MS));
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, cancels, &raced) == 0);
        zkl_guard *guard = NULL;
        int rc = zkl_attempt_take(raced.attempt, &guard);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(rc == OK ? raced.result == NOTHING : rc == ZKL_CANCELLED && raced.result == OK);
        zkl_guard_free(guard);
        zkl_attempt_free(raced.attempt);
    }
    UNTIL(contenders_of(lock) == 0);
    zkl_lock_free(lock);
}

static void an_attempt_with_a_callback_has_a_descriptor_too(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, "/callback");
    told t;
    told_init(&t);
    zkl_attempt *attempt = NULL;
    zkl_guard *guard = NULL;
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &t, finalize, &attempt));
    CHECK(is_readable(fd_of(attempt), TIMEOUT_MS));
    GIVES(BAD_ARGUMENTS, zkl_attempt_take(attempt, &guard));
    UNTIL(told_finalized(&t) == 1);
    CHECK(t.result == OK && guard == NULL);
    GIVES(OK, zkl_guard_release(t.guard));
    ended(attempt);
    zkl_lock_free(lock);
}

static void several_locks_and_elections_have_them_too(zkl_client *client)
{
    zkl_lock *one = lock_on(client, "/several/one"), *two = lock_on(client, "/several/two");
    const zkl_lock *both[] = {one, two};
    zkl_multi_lock *multi = NULL;
    zkl_election *election = NULL;
    zkl_attempt *attempt = NULL;
    GIVES(OK, zkl_multi_lock_new(both, 2, &multi));
    GIVES(OK, zkl_multi_lock_acquire_async(multi, ZKL_FOREVER, NULL, NULL, NULL, &attempt));
    zkl_guard *guard = taken(attempt, OK);
    CHECK(zkl_guard_locks(guard) == 2 && zkl_guard_state(guard) == ZKL_HELD);
    ended(attempt);
    GIVES(OK, zkl_guard_release(guard));
    zkl_multi_lock_free(multi);
    zkl_lock_free(one);
    zkl_lock_free(two);
    GIVES(OK, zkl_election_new(client, "/several/election", NULL, &election));
    GIVES(OK, zkl_election_campaign_async(election, ZKL_FOREVER, NULL, NULL, NULL, &attempt));
    guard = taken(attempt, OK);
    ended(attempt);
    GIVES(OK, zkl_guard_release(guard));
    zkl_election_free(election);
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    loop = epoll_create1(EPOLL_CLOEXEC);
    CHECK(loop >= 0);
    zkl_client *client = connected(), *other = connected();
    the_loop_waits_for_many_at_once(client, other);
    zkl_client_free(other);
    an_attempt_that_is_freed_leaves_no_claim(client);
    a_cancelled_attempt_gives_no_guard(client);
    one_thread_cancels_while_another_takes(client);
    an_attempt_with_a_callback_has_a_descriptor_too(client);
    several_locks_and_elections_have_them_too(client);
    zkl_client_free(client);
    an_attempt_ends_before_its_descriptor_is_asked_for();
    an_attempt_ends_with_its_client();
    everything_else_is_freed_meanwhile();
    return 0;
}
