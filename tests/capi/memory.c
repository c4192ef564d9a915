/* A program that runs out of memory at some step: one allocation fails, or all from it on.
 *
 *   memory HOSTS SESSION_TIMEOUT_MS STEP one|all N
 *
 * Says `allocations COUNT` (how many were made in the step), then `works`, or `error CODE TEXT`, and `works
 * again` when all of it works after that. It may also end at once, by a signal; anything else is a failure. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <stddef.h>
#include <sys/resource.h>

#include <zoo_lock.h>
#include <zoo_queue.h>

/* Those of all libraries come by here. */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static volatile int is_armed, is_for_all;
static long wanted, made;

/* Whether this allocation is to fail. */
static int fails(void)
{
    if (!is_armed)
        return 0;
    long number = __atomic_add_fetch(&made, 1, __ATOMIC_SEQ_CST);
    if (number != wanted && !(is_for_all && number > wanted))
        return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size)
{
    return fails() ? NULL : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **place, size_t alignment, size_t size)
{
    void *memory = memalign(alignment, size);
    if (memory == NULL)
        return ENOMEM;
    *place = memory;
    return 0;
}

static void arm(void)
{
    made = 0;
    is_armed = 1;
}

static void disarm(void)
{
    is_armed = 0;
}

/* How long what fails may take: it says so, or the process ends. */
enum { AT_MOST_MS = 3000 };

static zkl_client *connect_to(int *rc)
{
    zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.session_timeout_ms = session_timeout_ms;
    options.connect_timeout_ms = AT_MOST_MS;
    options.operation_timeout_ms = AT_MOST_MS;
    zkl_client *client = NULL;
    *rc = zkl_client_connect(hosts, &options, &client);
    CHECK((*rc == OK) == (client != NULL));
    return client;
}

static zkl_client *adopt(zhandle_t *zh, int *rc)
{
    zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.operation_timeout_ms = AT_MOST_MS;
    zkl_client *client = NULL;
    *rc = zkl_client_adopt(zh, &options, &client);
    CHECK((*rc == OK) == (client != NULL));
    return client;
}

static zhandle_t *opened(void)
{
    zhandle_t *zh = zookeeper_init(hosts, NULL, session_timeout_ms, NULL, NULL, 0);
    CHECK(zh != NULL);
    UNTIL(zoo_state(zh) == ZOO_CONNECTED_STATE);
    return zh;
}

/* What a call gave while memory was scarce. */
static void report(int rc)
{
    static char why[300];
    snprintf(why, sizeof why, "%s", rc == OK ? "" : zkl_last_error());
    CHECK(rc == OK || why[0] != '\0');
    printf("allocations %ld\n", made);
    if (rc == OK)
        printf("works\n");
    else
        printf("error %d %s\n", rc, why);
    fflush(stdout);
}

static const char lock_path[] = "/memory";

/* Every claim that is believed to be held is there. */
static void a_lock_works(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, lock_path);
    zkl_guard *guard = acquired(lock), *second = NULL;
    CHECK(zkl_guard_state(guard) == ZKL_HELD);
    CHECK(strcmp(ask("exists %s", claim_of(guard)), "yes") == 0);
    GIVES(TIMEOUT, zkl_lock_acquire(lock, 20, &second));
    GIVES(OK, zkl_guard_release(guard));
    zkl_lock_free(lock);
}

/* A handle whose answers are lost can't be worked on, and its client says so in each call: until the C client
 * connects again, which it does after two thirds of the session timeout, or the client ends, after twice that.
 * Where the session is over, the program is told so, and opens another. */
static void use_on(zhandle_t *zh, zkl_client *client)
{
    int rc;
    zkl_guard *guard = NULL;
    do {
        zkl_lock *lock = lock_on(client, lock_path);
        rc = zkl_lock_acquire(lock, TIMEOUT_MS, &guard);
        zkl_lock_free(lock);
    } while (rc == ZKL_WOULD_DEADLOCK);
    if (rc == OK) {
        GIVES(OK, zkl_guard_release(guard));
    } else {
        CHECK(rc == INVALID_STATE || rc == CLOSING || rc == EXPIRED);
        UNTIL(zkl_client_state(client) == ZKL_CLOSED);
        zkl_client_free(client);
        if (is_unrecoverable(zh)) {
            CHECK(zookeeper_close(zh) == ZOK);
            zh = opened();
        }
        client = adopt(zh, &rc);
        CHECK(client != NULL);
    }
    a_lock_works(client);
    zkl_client_free(client);
    CHECK(zookeeper_close(zh) == ZOK);
}

static void use(zkl_client *client)
{
    a_lock_works(client);
    zkl_client_free(client);
}

static void connecting(void)
{
    int rc;
    arm();
    zkl_client *client = connect_to(&rc);
    disarm();
    report(rc);
    if (client != NULL)
        use(client);
    use(connected());
}

static void adopting(void)
{
    int rc;
    zhandle_t *zh = opened();
    arm();
    zkl_client *client = adopt(zh, &rc);
    disarm();
    report(rc);
    if (client == NULL)
        client = adopt(zh, &rc);
    CHECK(client != NULL);
    use_on(zh, client);
}

/* Also when the claim's creation or the listing is what fails: nobody else is let in, and nothing stays. */
static void acquiring_on(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, lock_path);
    zkl_guard *guard = NULL;
    arm();
    int rc = zkl_lock_acquire(lock, AT_MOST_MS, &guard);
    disarm();
    CHECK((rc == OK) == (guard != NULL));
    report(rc);
    if (guard != NULL && zkl_guard_state(guard) == ZKL_HELD) {
        CHECK(strcmp(ask("exists %s", claim_of(guard)), "yes") == 0);
        GIVES(OK, zkl_guard_release(guard));
    } else {
        zkl_guard_free(guard);
    }
    zkl_lock_free(lock);
}

static void acquiring(void)
{
    zkl_client *client = connected();
    acquiring_on(client);
    use(client);
}

static void acquiring_on_a_handle(void)
{
    int rc;
    zhandle_t *zh = opened();
    zkl_client *client = adopt(zh, &rc);
    CHECK(client != NULL);
    acquiring_on(client);
    use_on(zh, client);
}

static void releasing(void)
{
    zkl_client *client = connected();
    zkl_lock *lock = lock_on(client, lock_path);
    zkl_guard *guard = acquired(lock);
    arm();
    int rc = zkl_guard_release_within(guard, AT_MOST_MS);
    disarm();
    report(rc);
    zkl_lock_free(lock);
    use(client);
}

/* Asked for, and then told for certain. */
static void asking_for_signals(void)
{
    zkl_client *client = connected();
    zkl_lock *lock = lock_on(client, lock_path);
    zkl_guard *guard = acquired(lock);
    static told t;
    told_init(&t);
    int fd = -1;
    arm();
    int told_rc = zkl_guard_on_lost(guard, tell_lost, &t, finalize);
    int fd_rc = zkl_guard_fd(guard, &fd);
    disarm();
    report(told_rc != OK ? told_rc : fd_rc);
    GIVES(OK, zkl_client_detach(client));
    if (told_rc == OK)
        UNTIL(told_calls(&t) == 1 && told_finalized(&t) == 1);
    if (fd_rc == OK)
        CHECK(is_readable(fd, TIMEOUT_MS));
    zkl_guard_free(guard);
    zkl_lock_free(lock);
    zkl_client_free(client);
    use(connected());
}

static char recipe_path[] = "/recipe", queue_path[] = "/elements";

static void locking_as_the_recipe_does(void)
{
    zhandle_t *zh = opened();
    zkr_lock_mutex_t mutex;
    GIVES(OK, zkr_lock_init(&mutex, zh, recipe_path, &ZOO_OPEN_ACL_UNSAFE));
    arm();
    CHECK(zkr_lock_lock(&mutex) == 0);
    int rc = zkr_lock_error(&mutex);
    disarm();
    report(rc);
    if (zkr_lock_isowner(&mutex))
        CHECK(strcmp(ask("exists %s/%s", recipe_path, mutex.id), "yes") == 0);
    /* Where it could not be had it is asked for again, until it can: the handle's client may have to end first. */
    for (int looks = 0; !zkr_lock_isowner(&mutex); looks++) {
        CHECK(looks < TIMEOUT_MS / 20);
        if (zkr_lock_error(&mutex) != OK)
            CHECK(zkr_lock_lock(&mutex) == 0);
        /* What the C client has lost inside itself, it finds with the next connection. */
        if (looks % 500 == 499)
            ask("reset");
        pause_ms(20);
    }
    GIVES(OK, zkr_lock_unlock(&mutex));
    CHECK(strcmp(ask("children %s", recipe_path), "0") == 0);
    GIVES(OK, zkr_lock_destroy(&mutex));
    CHECK(zookeeper_close(zh) == ZOK);
}

/* An element is neither lost nor doubled, unless the answer says that it is unknown. */
static void queueing(void)
{
    enum { UNKNOWN = -4 };
    zhandle_t *zh = opened();
    zkr_queue_t queue;
    char taken[8] = "";
    int offered = 12345, removed = 12345, length = sizeof taken;
    GIVES(OK, zkr_queue_init(&queue, zh, queue_path, &ZOO_OPEN_ACL_UNSAFE));
    arm();
    offered = zkr_queue_offer(&queue, "x", 1);
    if (offered == OK)
        removed = zkr_queue_take(zh, &queue, taken, &length);
    disarm();
    report(offered != OK ? offered : removed);
    CHECK(removed != OK || (length == 1 && taken[0] == 'x'));
    int is_made = strcmp(ask("exists %s", queue_path), "yes") == 0;
    int in_queue = is_made ? atoi(ask("children %s", queue_path)) : 0;
    if (offered == OK && removed == OK)
        CHECK(in_queue == 0);
    else if (offered == OK)
        CHECK(in_queue == 1 || removed == UNKNOWN);
    else
        CHECK(in_queue == 0 || offered == UNKNOWN);
    /* A reply that the C client had no memory for is lost, and all behind it, until it gives that connection up:
     * until then the program's own requests on the handle fail, too. */
    int again = ZKL_WOULD_DEADLOCK;
    UNTIL((again = zkr_queue_offer(&queue, "y", 1)) != ZKL_WOULD_DEADLOCK);
    CHECK(again == OK);
    for (; in_queue > 0; in_queue--) {
        length = sizeof taken;
        GIVES(OK, zkr_queue_remove(&queue, taken, &length));
        CHECK(length == 1 && taken[0] == 'x');
    }
    length = sizeof taken;
    GIVES(OK, zkr_queue_take(zh, &queue, taken, &length));
    CHECK(length == 1 && taken[0] == 'y');
    zkr_queue_destroy(&queue);
    CHECK(zookeeper_close(zh) == ZOK);
}

/* The connection is lost, and found again, while a lock is held. */
static void reconnecting_with(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, lock_path);
    zkl_guard *guard = acquired(lock);
    static told t;
    told_init(&t);
    int fd = -1;
    GIVES(OK, zkl_guard_on_lost(guard, tell_lost, &t, finalize));
    GIVES(OK, zkl_guard_fd(guard, &fd));
    int64_t session = zkl_client_session_id(client);
    /* The buffers of stdin and stdout are made by the first question. */
    ask("exists /");
    arm();
    ask("reset");
    /* Until it is connected again, or so much time is over. */
    for (int looks = 0; looks < AT_MOST_MS / 10; looks++) {
        pause_ms(10);
        if (looks > 20 && zkl_client_state(client) == ZKL_CONNECTED)
            break;
    }
    disarm();
    report(OK);
    /* Either it is kept, or the loss is told in each way. */
    UNTIL(zkl_guard_state(guard) != ZKL_SUSPENDED);
    if (zkl_guard_state(guard) == ZKL_HELD) {
        CHECK(zkl_client_session_id(client) == session);
        CHECK(strcmp(ask("exists %s", claim_of(guard)), "yes") == 0 ||
              zkl_guard_state(guard) == ZKL_LOST);
    } else {
        CHECK(is_readable(fd, TIMEOUT_MS));
        UNTIL(told_calls(&t) == 1);
        /* Nobody has deleted it. */
        CHECK(zkl_guard_lost_reason(guard) == ZKL_LOST_SESSION);
    }
    zkl_guard_free(guard);
    zkl_lock_free(lock);
}

static void reconnecting(void)
{
    zkl_client *client = connected();
    reconnecting_with(client);
    use(client);
}

static void reconnecting_a_handle(void)
{
    int rc;
    zhandle_t *zh = opened();
    zkl_client *client = adopt(zh, &rc);
    CHECK(client != NULL);
    reconnecting_with(client);
    use_on(zh, client);
}

static const struct {
    const char *name;
    void (*run)(void);
} steps[] = {
    {"connect", connecting},
    {"adopt", adopting},
    {"acquire", acquiring},
    {"acquire-on-a-handle", acquiring_on_a_handle},
    {"release", releasing},
    {"signals", asking_for_signals},
    {"recipe-lock", locking_as_the_recipe_does},
    {"recipe-queue", queueing},
    {"reconnect", reconnecting},
    {"reconnect-a-handle", reconnecting_a_handle},
};

int main(int argc, char **argv)
{
    CHECK(argc == 6);
    begin(3, argv);
    /* It may end by a panic or a signal, and nobody wants to know where. */
    CHECK(setenv("RUST_BACKTRACE", "0", 1) == 0);
    struct rlimit none = {0, 0};
    CHECK(setrlimit(RLIMIT_CORE, &none) == 0);
    zoo_set_debug_level((ZooLogLevel)0);
    is_for_all = strcmp(argv[4], "all") == 0;
    wanted = atol(argv[5]);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (strcmp(argv[3], steps[i].name) == 0) {
            steps[i].run();
            printf("works again\n");
            return 0;
        }
    }
    return 2;
}
