/* How a program learns that a lock is lost, and what it can't do any more then. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>

static void expire(zkl_client *client)
{
    ask("expire %lld", (long long)zkl_client_session_id(client));
}

static void an_expiry_is_told_in_every_way(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, "/expiry");
    zkl_guard *guard = acquired(lock);
    int64_t token = zkl_guard_token(guard), session = zkl_client_session_id(client);
    told first, second;
    told_init(&first);
    told_init(&second);
    GIVES(OK, zkl_guard_on_lost(guard, tell_lost, &first, finalize));
    GIVES(OK, zkl_guard_on_lost(guard, tell_lost, &second, NULL));
    int fd = -1, again = -2;
    GIVES(OK, zkl_guard_fd(guard, &fd));
    GIVES(OK, zkl_guard_fd(guard, &again));
    CHECK(fd >= 0 && fd == again && !is_readable(fd, 0));
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    GIVES(TIMEOUT, zkl_guard_wait_lost(guard, 0));
    GIVES(TIMEOUT, zkl_guard_wait_lost(guard, 20));
    CHECK(first.calls == 0);

    expire(client);
    CHECK(is_readable(fd, TIMEOUT_MS));
    CHECK(zkl_guard_state(guard) == ZKL_LOST && zkl_guard_lost_reason(guard) == ZKL_LOST_SESSION);
    GIVES(OK, zkl_guard_wait_lost(guard, 0));
    GIVES(OK, zkl_guard_wait_lost(guard, ZKL_FOREVER));
    UNTIL(told_finalized(&first) == 1 && told_calls(&second) == 1);
    CHECK(first.calls == 1 && first.result == ZKL_LOST_SESSION && !first.thread_is_main);
    CHECK(is_readable(fd, 0));

    /* Too late for everything, now and in the next session. */
    GIVES(ZKL_NOT_HELD, zkl_guard_set(guard, "/data", "lost", 4, -1, NULL));
    UNTIL(zkl_client_state(client) == ZKL_CONNECTED);
    CHECK(zkl_client_session_id(client) != session);
    GIVES(ZKL_NOT_HELD, zkl_guard_set(guard, "/data", "lost", 4, -1, NULL));
    CHECK(strcmp(ask("get /data"), "") == 0);

    /* Told at once to those who ask late. */
    told late;
    told_init(&late);
    GIVES(OK, zkl_guard_on_lost(guard, tell_lost, &late, finalize));
    UNTIL(told_finalized(&late) == 1);
    CHECK(late.calls == 1 && late.result == ZKL_LOST_SESSION);

    zkl_guard *next = acquired(lock);
    CHECK(zkl_guard_token(next) > token && zkl_guard_state(guard) == ZKL_LOST);
    GIVES(EXPIRED, zkl_guard_release(guard));
    CHECK(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
    GIVES(OK, zkl_guard_release(next));
    CHECK(told_calls(&first) == 1 && told_calls(&second) == 1 && told_finalized(&first) == 1);
    zkl_lock_free(lock);
}

/* Who holds it, as the list that is freed has it. */
static zkl_contender holder_of(zkl_lock *lock, char *path, size_t size)
{
    zkl_contenders *list = NULL;
    GIVES(OK, zkl_lock_holder(lock, &list));
    CHECK(zkl_contenders_count(list) == 1);
    zkl_contender holder = *zkl_contenders_get(list, 0);
    snprintf(path, size, "%s", holder.path);
    holder.path = path;
    zkl_contenders_free(list);
    return holder;
}

static void a_holder_is_asked_and_then_its_hold_is_broken(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, "/broken");
    zkl_guard *guard = acquired(lock);
    char path[128];
    zkl_contender holder = holder_of(lock, path, sizeof path);
    told asked, late, lost;
    told_init(&asked);
    told_init(&late);
    told_init(&lost);
    GIVES(OK, zkl_guard_on_release_request(guard, tell_request, &asked, finalize));
    GIVES(OK, zkl_guard_on_lost(guard, tell_lost, &lost, finalize));
    GIVES(OK, zkl_lock_request_release(lock, &holder, "deployment"));
    UNTIL(told_calls(&asked) == 1);
    CHECK(strcmp(asked.why, "deployment") == 0 && zkl_guard_state(guard) == ZKL_HELD);
    GIVES(OK, zkl_guard_on_release_request(guard, tell_request, &late, finalize));
    UNTIL(told_calls(&late) == 1);
    /* On a busy machine the limit may pass before anything is sent. */
    for (int tries = 0; tries < 100 && zkl_guard_state(guard) != ZKL_LOST; tries++) {
        GIVES(ZKL_OUTCOME_UNKNOWN, zkl_lock_break_hold(lock, &holder, "now", 3600000, 200));
    }
    CHECK(zkl_guard_state(guard) == ZKL_LOST);
    CHECK(zkl_guard_lost_reason(guard) == ZKL_LOST_BROKEN);
    GIVES(ZKL_NOT_HELD, zkl_guard_set(guard, "/data", "lost", 4, -1, NULL));
    UNTIL(told_finalized(&lost) == 1 && told_finalized(&asked) == 1 && told_finalized(&late) == 1);
    CHECK(lost.calls == 1 && lost.result == ZKL_LOST_BROKEN && asked.calls == 1);
    /* It passes on when the guard goes, within the grace. */
    GIVES(EXPIRED, zkl_guard_release(guard));
    guard = acquired(lock);
    GIVES(NOTHING, zkl_lock_break_hold(lock, &holder, "", 0, ZKL_FOREVER));
    GIVES(NOTHING, zkl_lock_request_release(lock, &holder, ""));
    CHECK(zkl_guard_state(guard) == ZKL_HELD);
    GIVES(OK, zkl_guard_release(guard));
    zkl_lock_free(lock);
}

static void a_deleted_znode_is_told(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, "/deletion");
    zkl_guard *guard = acquired(lock);
    told t;
    told_init(&t);
    GIVES(OK, zkl_guard_on_lost(guard, tell_lost, &t, finalize));
    ask("delete %s", claim_of(guard));
    GIVES(ZKL_NOT_HELD, zkl_guard_set(guard, "/data", "lost", 4, -1, NULL));
    UNTIL(told_finalized(&t) == 1);
    CHECK(t.calls == 1 && t.result == ZKL_LOST_DELETED);
    CHECK(zkl_guard_lost_reason(guard) == ZKL_LOST_DELETED);
    GIVES(ZKL_NOT_HELD, zkl_guard_set(guard, "/data", "lost", 4, -1, NULL));
    /* A descriptor that is made after the loss is readable as well. */
    int fd = -1;
    GIVES(OK, zkl_guard_fd(guard, &fd));
    CHECK(is_readable(fd, 0));
    GIVES(NO_NODE, zkl_guard_release(guard));
    CHECK(strcmp(ask("get /data"), "") == 0);
    zkl_lock_free(lock);
}

static void a_release_is_no_loss(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, "/release");
    enum { TIMES = 20 };
    static told t[TIMES];
    for (int i = 0; i < TIMES; i++) {
        told_init(&t[i]);
        zkl_guard *guard = acquired(lock);
        int fd = -1;
        GIVES(OK, zkl_guard_on_lost(guard, tell_lost, &t[i], finalize));
        GIVES(OK, zkl_guard_fd(guard, &fd));
        if (i % 2)
            GIVES(OK, zkl_guard_release(guard));
        else
            zkl_guard_free(guard);
        CHECK(fcntl(fd, F_GETFD) == -1);
    }
    for (int i = 0; i < TIMES; i++) {
        UNTIL(told_finalized(&t[i]) == 1);
        CHECK(t[i].calls == 0);
    }
    zkl_lock_free(lock);
}

struct owner {
    told told;
    zkl_guard *guard;
};

static void free_the_guard(int reason, void *userdata)
{
    struct owner *owner = userdata;
    zkl_guard_free(owner->guard);
    tell(&owner->told, reason, NULL);
}

static void finish_owner(void *userdata)
{
    finalize(&((struct owner *)userdata)->told);
}

static void the_guard_is_freed_when_it_is_lost(void)
{
    zkl_client *client = connected();
    zkl_lock *lock = lock_on(client, "/owner");
    static struct owner owner;
    told_init(&owner.told);
    told after;
    told_init(&after);
    owner.guard = acquired(lock);
    GIVES(OK, zkl_guard_on_lost(owner.guard, free_the_guard, &owner, finish_owner));
    zkl_lock_free(lock);
    expire(client);
    UNTIL(told_finalized(&owner.told) == 1);
    CHECK(owner.told.calls == 1);
    zkl_client_free(client);
}

static void the_end_of_a_client_is_a_loss(void)
{
    zkl_client *client = connected();
    zkl_lock *lock = lock_on(client, "/end");
    zkl_guard *guard = acquired(lock);
    told before, after;
    told_init(&before);
    told_init(&after);
    int fd = -1;
    GIVES(OK, zkl_guard_on_lost(guard, tell_lost, &before, finalize));
    GIVES(OK, zkl_guard_fd(guard, &fd));
    GIVES(OK, zkl_client_detach(client));
    CHECK(is_readable(fd, TIMEOUT_MS));
    UNTIL(told_finalized(&before) == 1);
    GIVES(OK, zkl_guard_on_lost(guard, tell_lost, &after, finalize));
    UNTIL(told_finalized(&after) == 1);
    CHECK(before.calls == 1 && before.result == ZKL_LOST_SESSION && after.calls == 1);
    zkl_guard_free(guard);
    zkl_lock_free(lock);
    zkl_client_free(client);
}

/* In between it is neither held nor lost. */
static void a_connection_that_is_lost_is_told_before_the_lock_is(void)
{
    /* Long, so that the lock is not lost before this looks. */
    session_timeout_ms *= 6;
    zkl_client *client = connected();
    session_timeout_ms /= 6;
    zkl_lock *lock = lock_on(client, "/suspended");
    zkl_guard *guard = acquired(lock);
    int fd = -1, changes = -1;
    GIVES(OK, zkl_guard_fd(guard, &fd));
    GIVES(OK, zkl_guard_state_fd(guard, &changes));
    CHECK(changes != fd && is_readable(changes, TIMEOUT_MS));
    CHECK(zkl_guard_take_state(guard) == ZKL_HELD && !is_readable(changes, 0));
    ask("refuse");
    CHECK(is_readable(changes, TIMEOUT_MS) && zkl_guard_take_state(guard) == ZKL_SUSPENDED);
    CHECK(zkl_guard_state(guard) == ZKL_SUSPENDED && zkl_client_state(client) == ZKL_SUSPENDED);
    CHECK(zkl_guard_lost_reason(guard) == 0 && !is_readable(fd, 0));
    ask("heal");
    CHECK(is_readable(changes, TIMEOUT_MS) && zkl_guard_take_state(guard) == ZKL_HELD);
    CHECK(!is_readable(changes, 0));
    expire(client);
    /* What comes before the loss may be told, or left out. */
    while (zkl_guard_take_state(guard) != ZKL_LOST)
        CHECK(is_readable(changes, TIMEOUT_MS));
    CHECK(is_readable(fd, TIMEOUT_MS));
    GIVES(EXPIRED, zkl_guard_release(guard));
    zkl_lock_free(lock);
    zkl_client_free(client);
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    ask("create /data");
    zkl_client *client = connected();
    an_expiry_is_told_in_every_way(client);
    a_holder_is_asked_and_then_its_hold_is_broken(client);
    a_deleted_znode_is_told(client);
    a_release_is_no_loss(client);
    zkl_client_free(client);
    the_guard_is_freed_when_it_is_lost();
    the_end_of_a_client_is_a_loss();
    a_connection_that_is_lost_is_told_before_the_lock_is();
    return 0;
}
