/* Signals of a loss, and ends of acquires, that wait behind a callback which blocks, while the program frees,
 * releases, cancels, detaches or closes what they are about. */
#include "check.h"

#include <sys/socket.h>
#include <unistd.h>

#include <zookeeper/zookeeper.h>

/* A callback that blocks the callback thread of its client. */
typedef struct blocker {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int is_inside, may_go, is_over;
} blocker;

static void set(blocker *b, int *what)
{
    pthread_mutex_lock(&b->mutex);
    *what = 1;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->mutex);
}

static void await(blocker *b, const int *what)
{
    pthread_mutex_lock(&b->mutex);
    while (!*what)
        pthread_cond_wait(&b->changed, &b->mutex);
    pthread_mutex_unlock(&b->mutex);
}

static void block(int rc, zkl_guard *guard, void *userdata)
{
    blocker *b = userdata;
    CHECK(rc == OK);
    zkl_guard_free(guard);
    set(b, &b->is_inside);
    await(b, &b->may_go);
}

static void is_over(void *userdata)
{
    blocker *b = userdata;
    set(b, &b->is_over);
}

/* From now on callbacks of this client are queued. */
static void block_callbacks(blocker *b, zkl_client *client)
{
    memset(b, 0, sizeof *b);
    CHECK(pthread_mutex_init(&b->mutex, NULL) == 0 && pthread_cond_init(&b->changed, NULL) == 0);
    zkl_lock *lock = lock_on(client, "/blocker");
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, block, b, is_over, NULL));
    await(b, &b->is_inside);
    zkl_lock_free(lock);
}

/* What was queued runs now. */
static void unblock(blocker *b)
{
    set(b, &b->may_go);
    await(b, &b->is_over);
}

/* A lock that is held, with both signals of its loss. */
typedef struct held {
    zkl_lock *lock;
    zkl_guard *guard;
    told told;
    int fd;
} held;

static void hold(held *h, zkl_client *client, const char *path)
{
    told_init(&h->told);
    h->lock = lock_on(client, path);
    h->guard = acquired(h->lock);
    GIVES(OK, zkl_guard_on_lost(h->guard, tell_lost, &h->told, finalize));
    GIVES(OK, zkl_guard_fd(h->guard, &h->fd));
    CHECK(!is_readable(h->fd, 0));
}

/* It is lost, and its callback, which was asked for before the descriptor, is queued. */
static void await_loss(held *h)
{
    CHECK(is_readable(h->fd, TIMEOUT_MS));
    CHECK(zkl_guard_state(h->guard) == ZKL_LOST);
    GIVES(OK, zkl_guard_wait_lost(h->guard, ZKL_FOREVER));
    CHECK(told_calls(&h->told) == 0 && told_finalized(&h->told) == 0);
}

static void expect_told(held *h, int calls, int reason)
{
    UNTIL(told_finalized(&h->told) == 1);
    CHECK(h->told.calls == calls && (calls == 0 || h->told.result == reason));
    zkl_lock_free(h->lock);
}

static void expire(zkl_client *client)
{
    ask("expire %lld", (long long)zkl_client_session_id(client));
}

static zhandle_t *opened(void)
{
    zhandle_t *zh = zookeeper_init(hosts, NULL, session_timeout_ms, NULL, NULL, 0);
    CHECK(zh != NULL);
    return zh;
}

static zkl_client *adopted(zhandle_t *zh)
{
    zkl_client *client = NULL;
    GIVES(OK, zkl_client_adopt(zh, NULL, &client));
    return client;
}

/* Lost in each way, given up in each way while the callback waits: it is not begun any more. */
static void a_queued_loss_is_not_told_of_a_guard_that_was_given_up(int is_deletion)
{
    enum { FREED, RELEASED, NOT_WAITED_FOR, KEPT, WAYS };
    static held h[WAYS];
    blocker b;
    zkl_client *client = connected();
    for (int way = 0; way < WAYS; way++) {
        char path[40];
        snprintf(path, sizeof path, "/given-up-%d", way);
        hold(&h[way], client, path);
    }
    block_callbacks(&b, client);
    if (!is_deletion)
        expire(client);
    for (int way = 0; way < WAYS; way++) {
        if (is_deletion)
            ask("delete %s", claim_of(h[way].guard));
        await_loss(&h[way]);
    }
    zkl_guard_free(h[FREED].guard);
    GIVES(is_deletion ? NO_NODE : EXPIRED, zkl_guard_release(h[RELEASED].guard));
    CHECK(zkl_guard_release_within(h[NOT_WAITED_FOR].guard, 0) != OK);
    unblock(&b);
    for (int way = 0; way < WAYS; way++)
        expect_told(&h[way], way == KEPT, is_deletion ? ZKL_LOST_DELETED : ZKL_LOST_SESSION);
    zkl_guard_free(h[KEPT].guard);
    zkl_client_free(client);
}

/* One that was freed is not looked at any more; of one that is kept, the end of the client tells. */
static void a_guard_that_was_given_up_before_the_loss_is_told_nothing(void)
{
    static held freed, kept;
    blocker b;
    zkl_client *client = connected();
    hold(&freed, client, "/freed");
    hold(&kept, client, "/kept");
    block_callbacks(&b, client);
    zkl_guard_free(freed.guard);
    expire(client);
    await_loss(&kept);
    unblock(&b);
    expect_told(&freed, 0, 0);
    expect_told(&kept, 1, ZKL_LOST_SESSION);
    zkl_guard_free(kept.guard);
    zkl_client_free(client);
}

struct pair {
    zkl_guard *guard;
    told first;
};

static void free_the_guard(int reason, void *userdata)
{
    struct pair *pair = userdata;
    zkl_guard_free(pair->guard);
    tell(&pair->first, reason, NULL);
}

static void the_first_callback_frees_the_guard_of_the_second(void)
{
    static held h;
    static struct pair pair;
    blocker b;
    told_init(&pair.first);
    told_init(&h.told);
    zkl_client *client = connected();
    h.lock = lock_on(client, "/pair");
    pair.guard = acquired(h.lock);
    GIVES(OK, zkl_guard_fd(pair.guard, &h.fd));
    block_callbacks(&b, client);
    expire(client);
    CHECK(is_readable(h.fd, TIMEOUT_MS));
    /* Both are asked for when it is lost, so they are queued in this order. */
    GIVES(OK, zkl_guard_on_lost(pair.guard, free_the_guard, &pair, NULL));
    GIVES(OK, zkl_guard_on_lost(pair.guard, tell_lost, &h.told, finalize));
    unblock(&b);
    expect_told(&h, 0, 0);
    CHECK(told_calls(&pair.first) == 1);
    zkl_client_free(client);
}

/* Whoever keeps the guard is told, whatever becomes of the client and of its handle. */
static void a_queued_loss_is_told_although_the_client_ends(void)
{
    enum { DETACHED, CLIENT_FREED, HANDLE_CLOSED, WAYS };
    for (int way = 0; way < WAYS; way++) {
        static held h;
        blocker b;
        zhandle_t *zh = way == HANDLE_CLOSED ? opened() : NULL;
        zkl_client *client = zh != NULL ? adopted(zh) : connected();
        hold(&h, client, "/ended");
        block_callbacks(&b, client);
        expire(client);
        await_loss(&h);
        if (way == DETACHED)
            GIVES(OK, zkl_client_detach(client));
        if (way == CLIENT_FREED)
            zkl_client_free(client);
        if (way == HANDLE_CLOSED)
            CHECK(zookeeper_close(zh) == ZOK);
        unblock(&b);
        expect_told(&h, 1, ZKL_LOST_SESSION);
        zkl_guard_free(h.guard);
        if (way != CLIENT_FREED)
            zkl_client_free(client);
    }
}

/* And whoever has given it up is not, also when the end of the client was what queued it. */
static void a_loss_by_the_end_of_the_client_is_not_told_of_a_guard_that_was_given_up(void)
{
    enum { DETACHED, HANDLE_CLOSED, WAYS };
    for (int way = 0; way < WAYS; way++) {
        static held given_up, kept;
        blocker b;
        zhandle_t *zh = way == HANDLE_CLOSED ? opened() : NULL;
        zkl_client *client = zh != NULL ? adopted(zh) : connected();
        hold(&given_up, client, "/given-up");
        hold(&kept, client, "/kept");
        block_callbacks(&b, client);
        if (zh != NULL)
            CHECK(zookeeper_close(zh) == ZOK);
        else
            GIVES(OK, zkl_client_detach(client));
        await_loss(&given_up);
        await_loss(&kept);
        zkl_guard_free(given_up.guard);
        unblock(&b);
        expect_told(&given_up, 0, 0);
        expect_told(&kept, 1, ZKL_LOST_SESSION);
        zkl_guard_free(kept.guard);
        zkl_client_free(client);
    }
}

/* A descriptor that was taken before tells every loss, whatever callbacks do meanwhile. */
static void a_descriptor_waits_for_no_callback(void)
{
    enum { DELETED, EXPIRED_SESSION, DETACHED, WAYS };
    static const int reasons[] = {ZKL_LOST_DELETED, ZKL_LOST_SESSION, ZKL_LOST_SESSION};
    for (int way = 0; way < WAYS; way++) {
        blocker b;
        zkl_client *client = connected();
        zkl_lock *lock = lock_on(client, "/descriptor");
        zkl_guard *guard = acquired(lock);
        int fd = -1, later = -1;
        GIVES(OK, zkl_guard_fd(guard, &fd));
        block_callbacks(&b, client);
        CHECK(!is_readable(fd, 0));
        if (way == DELETED)
            ask("delete %s", claim_of(guard));
        if (way == EXPIRED_SESSION)
            expire(client);
        if (way == DETACHED)
            GIVES(OK, zkl_client_detach(client));
        CHECK(is_readable(fd, TIMEOUT_MS));
        CHECK(zkl_guard_lost_reason(guard) == reasons[way]);
        GIVES(OK, zkl_guard_fd(guard, &later));
        CHECK(fd == later);
        unblock(&b);
        zkl_guard_free(guard);
        zkl_lock_free(lock);
        zkl_client_free(client);
    }
}

/* Its number is another file's by then. */
static void a_descriptor_of_a_guard_that_was_given_up_is_not_written_to(void)
{
    static held given_up, kept;
    zkl_client *client = connected();
    hold(&kept, client, "/kept");
    hold(&given_up, client, "/given-up");
    zkl_guard_free(given_up.guard);
    int others[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, others) == 0);
    CHECK(others[0] == given_up.fd || others[1] == given_up.fd);
    expire(client);
    CHECK(is_readable(kept.fd, TIMEOUT_MS));
    expect_told(&given_up, 0, 0);
    expect_told(&kept, 1, ZKL_LOST_SESSION);
    CHECK(!is_readable(others[0], 0) && !is_readable(others[1], 0));
    close(others[0]);
    close(others[1]);
    zkl_guard_free(kept.guard);
    zkl_client_free(client);
}

/* The outcome of an acquire waits, and something ends meanwhile. */
static void a_queued_outcome_is_told_as_things_are_when_it_is(void)
{
    enum { CANCELLED, DETACHED, HANDLE_CLOSED, EXPIRED_SESSION, ALL_FREED, WAYS };
    for (int way = 0; way < WAYS; way++) {
        blocker b;
        static told t;
        told_init(&t);
        zkl_attempt *attempt = NULL;
        zhandle_t *zh = way == HANDLE_CLOSED ? opened() : NULL;
        zkl_client *client = zh != NULL ? adopted(zh) : connected(), *other = connected();
        zkl_lock *lock = lock_on(client, "/outcome"), *same = lock_on(other, "/outcome");
        block_callbacks(&b, client);
        GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &t, finalize, &attempt));
        UNTIL(contenders_of(same) == 1);
        if (way == CANCELLED)
            GIVES(OK, zkl_attempt_cancel(attempt));
        if (way == DETACHED)
            GIVES(OK, zkl_client_detach(client));
        if (way == HANDLE_CLOSED)
            CHECK(zookeeper_close(zh) == ZOK);
        if (way == EXPIRED_SESSION)
            expire(client);
        if (way == ALL_FREED) {
            zkl_attempt_free(attempt);
            zkl_lock_free(lock);
            zkl_client_free(client);
        }
        CHECK(told_calls(&t) == 0 && told_finalized(&t) == 0);
        unblock(&b);
        UNTIL(told_finalized(&t) == 1);
        CHECK(t.calls == 1);
        if (way == CANCELLED) {
            CHECK(t.result == ZKL_CANCELLED && t.guard == NULL);
            UNTIL(contenders_of(same) == 0);
        } else if (way == ALL_FREED || way == EXPIRED_SESSION) {
            /* Had it not been acquired before the expiry, it would be in the next session. */
            CHECK(t.result == OK);
        } else if (t.result == OK) {
            CHECK(zkl_guard_state(t.guard) == ZKL_LOST);
        } else {
            CLOSED(t);
        }
        if (way == ALL_FREED)
            CHECK(zkl_guard_state(t.guard) == ZKL_HELD);
        zkl_guard_free(t.guard);
        if (way != ALL_FREED) {
            zkl_attempt_free(attempt);
            zkl_lock_free(lock);
            zkl_client_free(client);
        }
        /* Nothing is left of it. */
        zkl_guard *guard = acquired(same);
        GIVES(OK, zkl_guard_release(guard));
        zkl_lock_free(same);
        zkl_client_free(other);
    }
}

static void a_queued_request_is_not_told_of_a_guard_that_was_freed(void)
{
    blocker b;
    static told freed, kept;
    told *tolds[] = {&freed, &kept};
    const char *paths[] = {"/asked-and-freed", "/asked-and-kept"};
    zkl_lock *locks[2];
    zkl_guard *guards[2];
    zkl_client *client = connected();
    for (int i = 0; i < 2; i++) {
        told_init(tolds[i]);
        locks[i] = lock_on(client, paths[i]);
        guards[i] = acquired(locks[i]);
        GIVES(OK, zkl_guard_on_release_request(guards[i], tell_request, tolds[i], finalize));
    }
    block_callbacks(&b, client);
    for (int i = 0; i < 2; i++) {
        zkl_contenders *list = NULL;
        GIVES(OK, zkl_lock_holder(locks[i], &list));
        GIVES(OK, zkl_lock_request_release(locks[i], zkl_contenders_get(list, 0), "please"));
        zkl_contenders_free(list);
    }
    /* Both are queued by then, but on a busy machine, where less is tried. */
    pause_ms(300);
    zkl_guard_free(guards[0]);
    unblock(&b);
    UNTIL(told_calls(&kept) == 1);
    UNTIL(told_finalized(&freed) == 1);
    CHECK(freed.calls == 0);
    zkl_guard_free(guards[1]);
    UNTIL(told_finalized(&kept) == 1);
    for (int i = 0; i < 2; i++)
        zkl_lock_free(locks[i]);
    zkl_client_free(client);
}

static void a_client_that_has_followed_calls_back_behind_what_is_told(void)
{
    blocker b;
    static told t;
    told_init(&t);
    zhandle_t *first = opened(), *second = opened();
    zkl_client *client = adopted(first), *other = connected();
    block_callbacks(&b, client);
    UNTIL(zoo_state(second) == ZOO_CONNECTED_STATE);
    GIVES(OK, zkl_client_follow(client, second));
    zkl_lock *lock = lock_on(client, "/behind"), *same = lock_on(other, "/behind");
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &t, finalize, NULL));
    UNTIL(contenders_of(same) == 1);
    pause_ms(300);
    CHECK(told_calls(&t) == 0);
    unblock(&b);
    UNTIL(told_finalized(&t) == 1);
    CHECK(t.calls == 1 && t.result == OK);
    zkl_guard_free(t.guard);
    zkl_lock_free(lock);
    zkl_lock_free(same);
    zkl_client_free(client);
    zkl_client_free(other);
    CHECK(zookeeper_close(first) == ZOK && zookeeper_close(second) == ZOK);
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    /* First: an earlier client that ends late would free lower numbers. */
    a_descriptor_of_a_guard_that_was_given_up_is_not_written_to();
    a_queued_loss_is_not_told_of_a_guard_that_was_given_up(0);
    a_queued_loss_is_not_told_of_a_guard_that_was_given_up(1);
    a_guard_that_was_given_up_before_the_loss_is_told_nothing();
    the_first_callback_frees_the_guard_of_the_second();
    a_queued_loss_is_told_although_the_client_ends();
    a_loss_by_the_end_of_the_client_is_not_told_of_a_guard_that_was_given_up();
    a_descriptor_waits_for_no_callback();
    a_queued_outcome_is_told_as_things_are_when_it_is();
    a_queued_request_is_not_told_of_a_guard_that_was_freed();
    a_client_that_has_followed_calls_back_behind_what_is_told();
    return 0;
}
