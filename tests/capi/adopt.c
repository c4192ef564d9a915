/* A program with a handle of its own, which it goes on using, adds locks to it. */
#include "check.h"

#include <zookeeper/zookeeper.h>

/* The program's handle, and what its own watcher hears. */
typedef struct own {
    zhandle_t *zh;
    pthread_mutex_t mutex;
    int connected;
    int expired;
    int changed;
    int close_when_expired;
} own;

static void watcher(zhandle_t *zh, int type, int state, const char *path, void *context)
{
    own *o = context;
    (void)path;
    CHECK(zoo_get_context(zh) == context);
    pthread_mutex_lock(&o->mutex);
    if (type == ZOO_SESSION_EVENT && state == ZOO_CONNECTED_STATE)
        o->connected++;
    if (type == ZOO_SESSION_EVENT && state == ZOO_EXPIRED_SESSION_STATE)
        o->expired++;
    if (type == ZOO_CHANGED_EVENT)
        o->changed++;
    pthread_mutex_unlock(&o->mutex);
    if (type == ZOO_SESSION_EVENT && state == ZOO_EXPIRED_SESSION_STATE && o->close_when_expired)
        CHECK(zookeeper_close(zh) == ZOK);
}

static int seen(own *o, const int *what)
{
    pthread_mutex_lock(&o->mutex);
    int times = *what;
    pthread_mutex_unlock(&o->mutex);
    return times;
}

static void open_own(own *o)
{
    memset(o, 0, sizeof *o);
    CHECK(pthread_mutex_init(&o->mutex, NULL) == 0);
    o->zh = zookeeper_init(hosts, watcher, session_timeout_ms, NULL, o, 0);
    CHECK(o->zh != NULL);
}

static zkl_client *adopted(own *o)
{
    zkl_client *client = NULL;
    GIVES(OK, zkl_client_adopt(o->zh, NULL, &client));
    return client;
}

/* Adopted before it is connected; freed before the handle is closed. */
static void a_handle_is_shared(void)
{
    own o;
    open_own(&o);
    zkl_client *client = adopted(&o);
    zkl_lock *lock = lock_on(client, "/shared");
    zkl_guard *guard = acquired(lock);
    CHECK(zkl_client_state(client) == ZKL_CONNECTED);
    CHECK(zkl_client_session_id(client) == zoo_client_id(o.zh)->client_id);
    CHECK(zkl_client_session_timeout_ms(client) == zoo_recv_timeout(o.zh));
    CHECK(seen(&o, &o.connected) == 1 && zoo_get_context(o.zh) == &o);

    /* The program's own requests and watches go on. */
    struct Stat stat;
    char data[8];
    int len = sizeof data;
    CHECK(zoo_create(o.zh, "/own", "one", 3, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0) == ZOK);
    CHECK(zoo_wget(o.zh, "/own", watcher, &o, data, &len, &stat) == ZOK && len == 3);
    GIVES(OK, zkl_guard_set(guard, "/own", "two", 3, stat.version, &stat));
    UNTIL(seen(&o, &o.changed) == 1);
    CHECK(stat.version == 1);
    CHECK(zoo_delete(o.zh, "/own", -1) == ZOK);

    GIVES(OK, zkl_guard_release(guard));
    zkl_guard_free(acquired(lock));
    zkl_lock_free(lock);
    zkl_client_free(client);
    /* Given back whole: what was released in the background is gone, and it can be adopted again. */
    CHECK(zoo_state(o.zh) == ZOO_CONNECTED_STATE && zoo_get_context(o.zh) == &o);
    UNTIL(strcmp(ask("children /shared"), "0") == 0);
    client = adopted(&o);
    lock = lock_on(client, "/shared");
    guard = acquired(lock);
    /* Little is known of a handle that was connected long before; yet the lock is kept. */
    GIVES(TIMEOUT, zkl_guard_wait_lost(guard, session_timeout_ms));
    GIVES(OK, zkl_guard_release(guard));
    zkl_lock_free(lock);
    zkl_client_free(client);
    CHECK(zookeeper_close(o.zh) == ZOK);
}

/* Closed while everything on it is in use; freed after that. */
static void a_handle_is_closed_first(void)
{
    own o;
    open_own(&o);
    zkl_client *client = adopted(&o);
    zkl_lock *lock = lock_on(client, "/closed");
    zkl_guard *guard = acquired(lock);
    told lost, waiting;
    told_init(&lost);
    told_init(&waiting);
    int fd = -1;
    GIVES(OK, zkl_guard_fd(guard, &fd));
    GIVES(OK, zkl_guard_on_lost(guard, tell_lost, &lost, finalize));
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &waiting, finalize, NULL));
    CHECK(!is_readable(fd, 0));
    CHECK(zookeeper_close(o.zh) == ZOK);
    CHECK(zkl_guard_state(guard) == ZKL_LOST && zkl_client_state(client) == ZKL_CLOSED);
    CHECK(is_readable(fd, TIMEOUT_MS));
    UNTIL(told_finalized(&lost) == 1 && told_finalized(&waiting) == 1);
    CHECK(lost.calls == 1 && lost.result == ZKL_LOST_SESSION);
    CHECK(waiting.calls == 1);
    CLOSED(waiting);
    zkl_guard *second = NULL;
    GIVES(INVALID_STATE, zkl_lock_acquire(lock, ZKL_FOREVER, &second));
    GIVES(ZKL_NOT_HELD, zkl_guard_set(guard, "/data", "lost", 4, -1, NULL));
    GIVES(OK, zkl_client_detach(client));
    CHECK(zkl_guard_release(guard) != OK);
    zkl_lock_free(lock);
    zkl_client_free(client);
}

/* Its znode stays for as long as the program's session does, and nobody may say that it is gone. */
static void who_leaves_after_a_detach_may_be_there(void)
{
    own o;
    open_own(&o);
    zkl_client *client = adopted(&o);
    zkl_group *group = NULL;
    zkl_membership *membership = NULL;
    GIVES(OK, zkl_group_new(client, "/group-left", NULL, &group));
    GIVES(OK, zkl_group_join(group, NULL, 0, TIMEOUT_MS, &membership));
    GIVES(OK, zkl_client_detach(client));
    GIVES(ZCONNECTIONLOSS, zkl_membership_leave(membership, TIMEOUT_MS));
    CHECK(strcmp(ask("children /group-left"), "1") == 0);
    zkl_group_free(group);
    zkl_client_free(client);
    CHECK(zookeeper_close(o.zh) == ZOK);
}

static void a_session_expires(void)
{
    own o;
    open_own(&o);
    zkl_client *client = adopted(&o);
    zkl_lock *lock = lock_on(client, "/expired");
    zkl_guard *guard = acquired(lock);
    int fd = -1;
    GIVES(OK, zkl_guard_fd(guard, &fd));
    ask("expire %lld", (long long)zkl_client_session_id(client));
    CHECK(is_readable(fd, TIMEOUT_MS));
    UNTIL(seen(&o, &o.expired) == 1);
    UNTIL(zkl_client_state(client) == ZKL_CLOSED);
    CHECK(zkl_guard_state(guard) == ZKL_LOST);
    zkl_client *untouched = client, *again = client;
    GIVES(INVALID_STATE, zkl_client_adopt(o.zh, NULL, &again));
    CHECK(again == untouched);
    zkl_guard_free(guard);
    zkl_lock_free(lock);
    zkl_client_free(client);
    CHECK(zookeeper_close(o.zh) == ZOK);
}

/* The only close inside a callback that needs no detach. */
static void an_expired_handle_is_closed_by_its_own_watcher(void)
{
    /* Not on the stack: callbacks may go on after a close inside one. */
    static own o;
    open_own(&o);
    zkl_client *client = adopted(&o);
    zkl_lock *lock = lock_on(client, "/watcher");
    zkl_guard *guard = acquired(lock);
    told waiting;
    told_init(&waiting);
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &waiting, finalize, NULL));
    o.close_when_expired = 1;
    ask("expire %lld", (long long)zkl_client_session_id(client));
    UNTIL(seen(&o, &o.expired) == 1);
    GIVES(OK, zkl_guard_wait_lost(guard, TIMEOUT_MS));
    UNTIL(zkl_client_state(client) == ZKL_CLOSED);
    UNTIL(told_finalized(&waiting) == 1);
    CHECK(waiting.calls == 1 && waiting.guard == NULL);
    zkl_guard_free(guard);
    zkl_lock_free(lock);
    zkl_client_free(client);
}

static int64_t session_of(const own *o)
{
    return zoo_client_id(o->zh)->client_id;
}

/* The same objects, on the handle that the program opens after an expiry. */
static void a_client_follows_its_program_to_the_next_handle(void)
{
    own first, second;
    open_own(&first);
    zkl_client *client = adopted(&first);
    zkl_lock_options watching = ZKL_LOCK_OPTIONS_INIT;
    watching.strategy = ZKL_WATCH;
    watching.label = "night run";
    zkl_lock *lock = lock_on(client, "/followed"), *other = NULL;
    GIVES(OK, zkl_lock_new(client, "/followed-by-watch", &watching, &other));
    zkl_guard *lost = acquired(lock);
    zkl_guard_free(acquired(other));
    told waiting;
    told_init(&waiting);
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &waiting, finalize, NULL));
    ask("expire %lld", (long long)zkl_client_session_id(client));
    UNTIL(zkl_client_state(client) == ZKL_CLOSED);
    UNTIL(told_finalized(&waiting) == 1);
    CHECK(waiting.calls == 1 && waiting.guard == NULL);
    /* A handle whose session is over is none to follow to. */
    UNTIL(seen(&first, &first.expired) == 1);
    GIVES(INVALID_STATE, zkl_client_follow(client, first.zh));
    zkl_guard *guard = NULL;
    CHECK(zkl_lock_acquire(lock, TIMEOUT_MS, &guard) != OK && guard == NULL);
    CHECK(zkl_client_state(client) == ZKL_CLOSED);
    CHECK(zookeeper_close(first.zh) == ZOK);

    /* Perhaps at the address of the one before. */
    open_own(&second);
    GIVES(OK, zkl_client_follow(client, second.zh));
    guard = acquired(lock);
    CHECK(zkl_guard_token(guard) > zkl_guard_token(lost));
    CHECK(zkl_client_state(client) == ZKL_CONNECTED);
    CHECK(zkl_client_session_id(client) == session_of(&second));
    CHECK(zkl_guard_state(guard) == ZKL_HELD && zkl_guard_state(lost) == ZKL_LOST);
    zkl_guard *labelled = acquired(other);
    zkl_contenders *holder = NULL;
    GIVES(OK, zkl_lock_holder(other, &holder));
    CHECK(strcmp(zkl_contenders_get(holder, 0)->label, "night run") == 0);
    CHECK(strcmp(zkl_lock_path(other), "/followed-by-watch") == 0);
    zkl_contenders_free(holder);
    GIVES(OK, zkl_guard_release(labelled));
    /* A new lock of the client, an asynchronous acquire, and callbacks go there as well. */
    zkl_lock *third = lock_on(client, "/followed-later");
    told_init(&waiting);
    GIVES(OK, zkl_lock_acquire_async(third, ZKL_FOREVER, tell_done, &waiting, finalize, NULL));
    UNTIL(told_finalized(&waiting) == 1);
    CHECK(waiting.result == OK);
    told told_lost;
    told_init(&told_lost);
    GIVES(OK, zkl_guard_on_lost(guard, tell_lost, &told_lost, finalize));
    CHECK(zookeeper_close(second.zh) == ZOK);
    UNTIL(told_finalized(&told_lost) == 1);
    CHECK(told_lost.calls == 1 && told_lost.result == ZKL_LOST_SESSION);
    zkl_guard_free(lost);
    zkl_guard_free(guard);
    zkl_guard_free(waiting.guard);
    zkl_lock_free(lock);
    zkl_lock_free(other);
    zkl_lock_free(third);
    zkl_client_free(client);
}

/* The session before still lives: what was made on it stays there. */
static void what_is_held_on_the_handle_before_stays_held(void)
{
    own first, second;
    open_own(&first);
    zkl_client *client = adopted(&first);
    zkl_lock *lock = lock_on(client, "/two-handles");
    zkl_guard *guard = acquired(lock);
    open_own(&second);
    GIVES(OK, zkl_client_follow(client, second.zh));
    zkl_guard *next = NULL;
    GIVES(ZKL_TAKEN, zkl_lock_try(lock, &next));
    CHECK(zkl_client_session_id(client) == session_of(&second));
    CHECK(zkl_guard_state(guard) == ZKL_HELD);
    GIVES(TIMEOUT, zkl_guard_wait_lost(guard, session_timeout_ms));
    GIVES(OK, zkl_guard_release(guard));
    next = acquired(lock);
    /* And back again, while nothing else is left on the first. */
    GIVES(OK, zkl_client_follow(client, first.zh));
    zkl_lock *other = lock_on(client, "/two-handles-other");
    guard = acquired(other);
    /* Detaching lets go of both. */
    GIVES(OK, zkl_client_detach(client));
    CHECK(zkl_guard_state(guard) == ZKL_LOST && zkl_guard_state(next) == ZKL_LOST);
    CHECK(zkl_client_state(client) == ZKL_CLOSED);
    /* As after an expiry, it can be followed from there. */
    GIVES(OK, zkl_client_follow(client, second.zh));
    zkl_lock *third = lock_on(client, "/two-handles-last");
    zkl_guard *last = acquired(third);
    GIVES(OK, zkl_guard_release(last));
    CHECK(zookeeper_close(first.zh) == ZOK && zookeeper_close(second.zh) == ZOK);
    zkl_guard_free(guard);
    zkl_guard_free(next);
    zkl_lock_free(lock);
    zkl_lock_free(third);
    zkl_lock_free(other);
    zkl_client_free(client);
}

static void a_client_with_sessions_of_its_own_follows_nobody(void)
{
    own o;
    open_own(&o);
    zkl_client *client = NULL;
    GIVES(OK, zkl_client_connect(hosts, NULL, &client));
    int64_t session = zkl_client_session_id(client);
    GIVES(BAD_ARGUMENTS, zkl_client_follow(client, o.zh));
    GIVES(BAD_ARGUMENTS, zkl_client_follow(client, NULL));
    CHECK(zkl_client_session_id(client) == session);
    zkl_client_free(client);
    CHECK(zookeeper_close(o.zh) == ZOK);
}

struct inside {
    own *own;
    zkl_client *client;
    zkl_lock *lock;
    zkl_guard *guard;
    told told, attempt;
    int close;
};

static void call_what_blocks(struct inside *in)
{
    zkl_client *client = NULL;
    zkl_guard *guard = NULL;
    zkl_contenders *list = NULL;
    GIVES(ZKL_WOULD_DEADLOCK, zkl_client_connect(hosts, NULL, &client));
    GIVES(ZKL_WOULD_DEADLOCK, zkl_lock_acquire(in->lock, ZKL_FOREVER, &guard));
    GIVES(ZKL_WOULD_DEADLOCK, zkl_lock_try(in->lock, &guard));
    GIVES(ZKL_WOULD_DEADLOCK, zkl_lock_holder(in->lock, &list));
    GIVES(ZKL_WOULD_DEADLOCK, zkl_lock_contenders(in->lock, &list));
    GIVES(ZKL_WOULD_DEADLOCK, zkl_guard_wait_lost(in->guard, ZKL_FOREVER));
    GIVES(TIMEOUT, zkl_guard_wait_lost(in->guard, 0));
    GIVES(ZKL_WOULD_DEADLOCK, zkl_guard_set(in->guard, "/own", "x", 1, -1, NULL));
    CHECK(client == NULL && guard == NULL && list == NULL);
    /* What does not block works. */
    CHECK(zkl_guard_state(in->guard) == ZKL_HELD);
    GIVES(OK, zkl_client_adopt(in->own->zh, NULL, &client));
    GIVES(OK, zkl_client_follow(client, in->own->zh));
    zkl_client_free(client);
    GIVES(OK, zkl_lock_acquire_async(in->lock, ZKL_FOREVER, tell_done, &in->attempt, NULL, NULL));
    GIVES(ZKL_WOULD_DEADLOCK, zkl_guard_release(in->guard));
}

static void completion(int rc, const struct Stat *stat, const void *data)
{
    struct inside *in = (struct inside *)data;
    (void)stat;
    CHECK(rc == ZOK);
    if (in->close) {
        GIVES(OK, zkl_client_detach(in->client));
        CHECK(zkl_guard_state(in->guard) == ZKL_LOST);
        zkl_guard_free(in->guard);
        zkl_lock_free(in->lock);
        zkl_client_free(in->client);
        CHECK(zookeeper_close(in->own->zh) == ZOK);
    } else {
        call_what_blocks(in);
    }
    tell(&in->told, rc, NULL);
}

static void inside_a_callback_nothing_waits_for_itself(void)
{
    /* Not on the stack: callbacks may go on after a close inside one. */
    static own o;
    open_own(&o);
    static struct inside in;
    in.own = &o;
    in.client = adopted(&o);
    in.lock = lock_on(in.client, "/inside");
    in.guard = acquired(in.lock);
    told_init(&in.told);
    told_init(&in.attempt);
    CHECK(zoo_aexists(o.zh, "/", 0, completion, &in) == ZOK);
    UNTIL(told_calls(&in.told) == 1);
    /* The release inside went on in the background, so the attempt gets the lock. */
    UNTIL(told_calls(&in.attempt) == 1);
    CHECK(in.attempt.result == OK);
    in.guard = in.attempt.guard;

    told_init(&in.told);
    in.close = 1;
    CHECK(zoo_aexists(o.zh, "/", 0, completion, &in) == ZOK);
    UNTIL(told_calls(&in.told) == 1);
}

static long long requests_of(const own *o)
{
    return strtoll(ask("requests %lld", (long long)session_of(o)), NULL, 10);
}

/* The C client pings once at most in that time. zklock would prove the session twice, too. */
static void nothing_is_sent_on(const own *o)
{
    long long sent = requests_of(o);
    pause_ms(session_timeout_ms / 4);
    CHECK(requests_of(o) <= sent + 1);
}

/* The release can't end before this returns: the first handle is still being given back. */
static void follow_and_detach(int rc, const struct Stat *stat, const void *data)
{
    struct inside *in = (struct inside *)data;
    (void)stat;
    CHECK(rc == ZOK);
    zkl_guard_free(in->guard);
    zkl_lock_free(in->lock);
    GIVES(OK, zkl_client_follow(in->client, in->own[1].zh));
    GIVES(OK, zkl_client_detach(in->client));
    zkl_client_free(in->client);
    nothing_is_sent_on(&in->own[0]);
    CHECK(zookeeper_close(in->own[0].zh) == ZOK);
    tell(&in->told, rc, NULL);
}

static void a_detach_lets_go_of_a_handle_that_is_being_given_back(void)
{
    static own both[2];
    open_own(&both[0]);
    open_own(&both[1]);
    static struct inside in;
    in.own = both;
    in.client = adopted(&both[0]);
    in.lock = lock_on(in.client, "/given-back");
    in.guard = acquired(in.lock);
    told_init(&in.told);
    CHECK(zoo_aexists(both[0].zh, "/", 0, follow_and_detach, &in) == ZOK);
    UNTIL(told_calls(&in.told) == 1);
    CHECK(zookeeper_close(both[1].zh) == ZOK);
}

/* Acquired again after the client has gone on: the claim is that of the first acquire, on the handle before. */
static void a_reentrant_guard_is_told_what_becomes_of_its_claim(void)
{
    own first, second;
    open_own(&first);
    zkl_client *client = adopted(&first);
    zkl_lock *lock = lock_on(client, "/reentrant"), *reentrant = NULL;
    GIVES(OK, zkl_lock_reentrant(lock, &reentrant));
    zkl_lock_free(lock);
    zkl_guard *outer = acquired(reentrant);
    open_own(&second);
    GIVES(OK, zkl_client_follow(client, second.zh));
    zkl_guard *inner = acquired(reentrant);
    CHECK(zkl_guard_holds(inner) == 2 && zkl_guard_token(inner) == zkl_guard_token(outer));
    zkl_guard_free(outer);
    told lost;
    told_init(&lost);
    int fd = -1;
    GIVES(OK, zkl_guard_on_lost(inner, tell_lost, &lost, NULL));
    GIVES(OK, zkl_guard_fd(inner, &fd));
    /* Without what happens to it there. */
    CHECK(zookeeper_close(second.zh) == ZOK);
    UNTIL(zkl_client_state(client) == ZKL_CLOSED);
    CHECK(zkl_guard_state(inner) == ZKL_HELD && told_calls(&lost) == 0);
    CHECK(zookeeper_close(first.zh) == ZOK);
    CHECK(zkl_guard_state(inner) == ZKL_LOST);
    UNTIL(told_calls(&lost) == 1);
    CHECK(is_readable(fd, TIMEOUT_MS));
    zkl_guard_free(inner);
    zkl_lock_free(reentrant);
    zkl_client_free(client);
}

/* Guards and attempts keep a handle. Locks do not, even if nobody uses them after zkl_client_follow. */
static void an_idle_lock_keeps_no_handle(void)
{
    own first, second;
    open_own(&first);
    zkl_client *client = adopted(&first);
    zkl_lock *lock = lock_on(client, "/idle"), *reentrant = NULL, *owner = NULL;
    GIVES(OK, zkl_lock_reentrant(lock, &reentrant));
    GIVES(OK, zkl_lock_as_owner(reentrant, &owner));
    zkl_lock *locks[] = {lock, reentrant, owner};
    for (int i = 0; i < 3; i++)
        GIVES(OK, zkl_guard_release(acquired(locks[i])));
    open_own(&second);
    GIVES(OK, zkl_client_follow(client, second.zh));
    nothing_is_sent_on(&first);
    for (int i = 0; i < 3; i++) {
        GIVES(OK, zkl_guard_release(acquired(locks[i])));
        zkl_lock_free(locks[i]);
    }
    zkl_client_free(client);
    CHECK(zookeeper_close(first.zh) == ZOK && zookeeper_close(second.zh) == ZOK);
}

enum { ROUNDS = 100 };

static void *busy(void *userdata)
{
    own *o = userdata;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(zoo_create(o->zh, "/busy/own", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0) == ZOK);
        CHECK(zoo_wexists(o->zh, "/busy/own", watcher, o, NULL) == ZOK);
        CHECK(zoo_set(o->zh, "/busy/own", "y", 1, -1) == ZOK);
        CHECK(zoo_delete(o->zh, "/busy/own", -1) == ZOK);
    }
    return NULL;
}

static void both_are_busy_on_one_handle(void)
{
    own o;
    open_own(&o);
    zkl_client *client = adopted(&o);
    zkl_lock *lock = lock_on(client, "/busy/lock");
    GIVES(OK, zkl_guard_release(acquired(lock)));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, busy, &o) == 0);
    int64_t token = 0;
    for (int i = 0; i < ROUNDS; i++) {
        zkl_guard *guard = acquired(lock);
        CHECK(zkl_guard_token(guard) > token);
        token = zkl_guard_token(guard);
        if (i % 2)
            zkl_guard_free(guard);
        else
            GIVES(OK, zkl_guard_release(guard));
    }
    CHECK(pthread_join(thread, NULL) == 0);
    UNTIL(seen(&o, &o.changed) == ROUNDS);
    zkl_lock_free(lock);
    zkl_client_free(client);
    CHECK(zookeeper_close(o.zh) == ZOK);
}

static void options_that_the_handle_has_are_refused(void)
{
    own o;
    open_own(&o);
    zkl_client *client = NULL;
    zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.session_timeout_ms = 1000;
    GIVES(BAD_ARGUMENTS, zkl_client_adopt(o.zh, &options, &client));
    options.session_timeout_ms = 0;
    options.auth_scheme = "digest";
    GIVES(BAD_ARGUMENTS, zkl_client_adopt(o.zh, &options, &client));
    options.auth_scheme = NULL;
    options.operation_timeout_ms = 1000;
    CHECK(client == NULL);
    GIVES(BAD_ARGUMENTS, zkl_client_adopt(o.zh, &options, NULL));
    GIVES(OK, zkl_client_adopt(o.zh, &options, &client));
    zkl_client_free(client);
    CHECK(zookeeper_close(o.zh) == ZOK);
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    a_handle_is_shared();
    a_handle_is_closed_first();
    who_leaves_after_a_detach_may_be_there();
    a_session_expires();
    an_expired_handle_is_closed_by_its_own_watcher();
    a_client_follows_its_program_to_the_next_handle();
    what_is_held_on_the_handle_before_stays_held();
    a_client_with_sessions_of_its_own_follows_nobody();
    inside_a_callback_nothing_waits_for_itself();
    a_detach_lets_go_of_a_handle_that_is_being_given_back();
    a_reentrant_guard_is_told_what_becomes_of_its_claim();
    an_idle_lock_keeps_no_handle();
    both_are_busy_on_one_handle();
    options_that_the_handle_has_are_refused();
    return 0;
}
