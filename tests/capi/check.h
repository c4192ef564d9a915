/* What the programs of this test have in common: checks, questions to the test, told callbacks. */
#ifndef CHECK_H
#define CHECK_H

#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zklock.h>
#include <zookeeper/zookeeper.h>

/* ZooKeeper's codes, by short names. */
enum {
    OK = 0,
    SYSTEM_ERROR = -1,
    TIMEOUT = -7,
    BAD_ARGUMENTS = -8,
    INVALID_STATE = -9,
    NO_NODE = -101,
    NO_AUTH = -102,
    BAD_VERSION = -103,
    EXPIRED = -112,
    INVALID_ACL = -114,
    CLOSING = -116,
    NOTHING = -117
};

/* How long anything may take that will certainly happen. */
enum { TIMEOUT_MS = 60000 };

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not %s; last error: %s\n", __FILE__, __LINE__,    \
                    #condition, zkl_last_error());                                    \
            _Exit(1);                                                                 \
        }                                                                             \
    } while (0)

/* A call gives this code; and words about it, if it is a failure. */
#define GIVES(code, call)                                                             \
    do {                                                                              \
        int given = (call);                                                           \
        if (given != (code)) {                                                        \
            fprintf(stderr, "%s:%d: %s is %d, not %s; last error: %s\n", __FILE__,    \
                    __LINE__, #call, given, #code, zkl_last_error());                 \
            _Exit(1);                                                                 \
        }                                                                             \
        CHECK(given == 0 || zkl_last_error()[0] != '\0');                             \
    } while (0)

static inline void pause_ms(long ms)
{
    struct timespec time = {ms / 1000, (ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

/* Looks until it is so. */
#define UNTIL(condition)                                                              \
    do {                                                                              \
        int looks = 0;                                                                \
        while (!(condition)) {                                                        \
            CHECK(("in time: " #condition) && looks++ < TIMEOUT_MS / 5);             \
            pause_ms(5);                                                              \
        }                                                                             \
    } while (0)

/* Asks the test for something, and gives its answer. One thread at a time. */
static inline const char *ask(const char *format, ...)
{
    static char answer[256];
    va_list arguments;
    va_start(arguments, format);
    printf("ask ");
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    fflush(stdout);
    CHECK(fgets(answer, sizeof answer, stdin) != NULL);
    answer[strcspn(answer, "\n")] = '\0';
    return answer;
}

/* The path of the guard's claim, until the next call. One thread at a time. */
static inline const char *claim_of(const zkl_guard *guard)
{
    static char claim[512];
    CHECK(zkl_guard_claim_path(guard, claim, sizeof claim) < sizeof claim);
    return claim;
}

static inline int is_readable(int fd, int timeout)
{
    struct pollfd poller = {fd, POLLIN, 0};
    int ready = poll(&poller, 1, timeout);
    CHECK(ready >= 0);
    return ready == 1 && (poller.revents & POLLIN);
}

/* What callbacks told. */
typedef struct told {
    pthread_mutex_t mutex;
    int calls;
    int finalized;
    int result;
    int thread_is_main;
    zkl_guard *guard;
    char why[256];
} told;

static pthread_t main_thread;

static inline void told_init(told *t)
{
    memset(t, 0, sizeof *t);
    t->result = 12345;
    CHECK(pthread_mutex_init(&t->mutex, NULL) == 0);
}

static inline int told_calls(told *t)
{
    pthread_mutex_lock(&t->mutex);
    int calls = t->calls;
    pthread_mutex_unlock(&t->mutex);
    return calls;
}

static inline int told_finalized(told *t)
{
    pthread_mutex_lock(&t->mutex);
    int finalized = t->finalized;
    pthread_mutex_unlock(&t->mutex);
    return finalized;
}

static inline void tell_why(told *t, int result, zkl_guard *guard, const char *why)
{
    pthread_mutex_lock(&t->mutex);
    CHECK(t->finalized == 0);
    t->calls++;
    t->result = result;
    t->guard = guard;
    t->thread_is_main = pthread_equal(pthread_self(), main_thread);
    snprintf(t->why, sizeof t->why, "%s", why);
    pthread_mutex_unlock(&t->mutex);
}

static inline void tell(told *t, int result, zkl_guard *guard)
{
    tell_why(t, result, guard, zkl_last_error());
}

static inline void tell_done(int rc, zkl_guard *guard, void *userdata)
{
    CHECK((rc == 0) == (guard != NULL));
    tell(userdata, rc, guard);
}

static inline void tell_rc(int rc, void *userdata)
{
    tell(userdata, rc, NULL);
}

/* Their number, where it went well. */
static inline void tell_contenders(int rc, zkl_contenders *contenders, void *userdata)
{
    CHECK((rc == 0) == (contenders != NULL));
    tell(userdata, rc == 0 ? (int)zkl_contenders_count(contenders) : rc, NULL);
    zkl_contenders_free(contenders);
}

/* The new version, where it went well. */
static inline void tell_written(int rc, const struct Stat *stat, void *userdata)
{
    CHECK((rc == 0) == (stat != NULL));
    tell(userdata, rc == 0 ? stat->version : rc, NULL);
}

static inline void tell_lost(int reason, void *userdata)
{
    tell(userdata, reason, NULL);
}

static inline void tell_request(const char *reason, void *userdata)
{
    tell_why(userdata, 0, NULL, reason);
}

static inline void finalize(void *userdata)
{
    told *t = userdata;
    pthread_mutex_lock(&t->mutex);
    t->finalized++;
    pthread_mutex_unlock(&t->mutex);
}

/* An acquire was under way when its client ended. */
#define CLOSED(told)                                                                  \
    do {                                                                              \
        if ((told).result != INVALID_STATE && (told).result != CLOSING) {             \
            fprintf(stderr, "%s:%d: %d: %s\n", __FILE__, __LINE__, (told).result,     \
                    (told).why);                                                      \
            _Exit(1);                                                                 \
        }                                                                             \
    } while (0)

/* What the test says on the command line. */
static const char *hosts;
static int session_timeout_ms;

static inline void begin(int argc, char **argv)
{
    CHECK(argc == 3);
    hosts = argv[1];
    session_timeout_ms = atoi(argv[2]);
    main_thread = pthread_self();
}

static inline zkl_client *connected(void)
{
    zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.session_timeout_ms = session_timeout_ms;
    options.connect_timeout_ms = TIMEOUT_MS;
    options.operation_timeout_ms = TIMEOUT_MS;
    zkl_client *client = NULL;
    GIVES(OK, zkl_client_connect(hosts, &options, &client));
    return client;
}

static inline zkl_lock *lock_on(zkl_client *client, const char *path)
{
    zkl_lock *lock = NULL;
    GIVES(OK, zkl_lock_new(client, path, NULL, &lock));
    return lock;
}

static inline zkl_guard *acquired(const zkl_lock *lock)
{
    zkl_guard *guard = NULL;
    int rc, tries = 0;
    /* A handle that was just adopted may take more than its two seconds to answer, on a busy machine. */
    do
        rc = zkl_lock_acquire(lock, TIMEOUT_MS, &guard);
    while (rc == ZKL_WOULD_DEADLOCK && tries++ < 10);
    GIVES(OK, rc);
    return guard;
}

static inline size_t contenders_of(const zkl_lock *lock)
{
    zkl_contenders *list = NULL;
    GIVES(OK, zkl_lock_contenders(lock, &list));
    size_t count = zkl_contenders_count(list);
    zkl_contenders_free(list);
    return count;
}

#endif
