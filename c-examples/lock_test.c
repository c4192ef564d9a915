/*
 * Threads contend for one lock, each with its own client and session, under one strategy or all of
 * them. The lock protects a plain variable in memory, which shows if two threads are inside at once.
 *
 * Build:  cc lock_test.c $(pkg-config --cflags --libs zklock) -o lock_test
 * Run:    ./lock_test 127.0.0.1:2181
 *         ./lock_test 127.0.0.1:2181 --strategy queue --threads 16 --seconds 5
 *
 * It exits with 1 if two threads held the lock at once, if a fencing token did not grow, if a lock
 * was lost, if a znode stayed behind, or if anything failed.
 */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <zklock.h>
#include <zookeeper.h>

enum { SESSION_TIMEOUT_MS = 30000, NOBODY = -1, MAX_THREADS = 256 };
/* With --rounds: the limit of an acquire. Far more than any needs. */
enum { TIMEOUT_MS = 60000 };

static const char *const strategy_names[] = {
    [ZKL_QUEUE] = "queue", [ZKL_WATCH] = "watch", [ZKL_POLL] = "poll"};

struct settings {
    const char *hosts;
    int strategy; /* -1: all */
    int threads;
    int seconds;
    long rounds; /* for each thread; 0: until the seconds are over */
};

/* Protected by the lock alone: no mutex, no atomics. */
static struct {
    volatile long counter;
    volatile int owner;
    volatile int64_t last_token;
} shared = {0, NOBODY, 0};

struct contender {
    pthread_t thread;
    int number;
    const struct settings *settings;
    int64_t ends_us;

    zhandle_t *zh;
    zkl_client *client;
    zkl_lock *lock;

    long acquired, violations, lost;
    int failed;
    int64_t *waits_us; /* one for each acquisition */
    size_t room;
};

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void pause_us(long us)
{
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&time, NULL);
}

static int failed(const char *what, int rc)
{
    fprintf(stderr, "%s: %s (%s)\n", what, zkl_strerror(rc), zkl_last_error());
    return 1;
}

/* This contender's session, adopted by zklock, and the lock on it. */
static int set_up(struct contender *me, int strategy, const char *path)
{
    zkl_lock_options options = ZKL_LOCK_OPTIONS_INIT;
    char label[32];
    int rc;

    me->zh = zookeeper_init(me->settings->hosts, NULL, SESSION_TIMEOUT_MS, NULL, NULL, 0);
    if (me->zh == NULL) {
        perror("zookeeper_init");
        return 1;
    }
    rc = zkl_client_adopt(me->zh, NULL, &me->client);
    if (rc != ZOK) {
        return failed("zkl_client_adopt", rc);
    }
    snprintf(label, sizeof label, "contender %d", me->number);
    options.strategy = strategy;
    options.label = label;
    rc = zkl_lock_new(me->client, path, &options, &me->lock);
    return rc == ZOK ? 0 : failed("zkl_lock_new", rc);
}

static void tear_down(struct contender *me)
{
    zkl_lock_free(me->lock);
    zkl_client_free(me->client);
    if (me->zh != NULL) {
        zookeeper_close(me->zh);
    }
    free(me->waits_us);
}

/* Inside the lock: reads, pauses, writes, so that another holder would be noticed. */
static long critical_section(int number, int64_t token)
{
    long violations = 0;
    long seen = shared.counter;

    violations += shared.owner != NOBODY;
    shared.owner = number;
    violations += token <= shared.last_token;
    shared.last_token = token;

    pause_us(50);

    violations += shared.owner != number;
    violations += shared.counter != seen;
    shared.counter = seen + 1;
    shared.owner = NOBODY;
    return violations;
}

static int note_wait(struct contender *me, int64_t us)
{
    if ((size_t)me->acquired == me->room) {
        size_t room = me->room == 0 ? 1024 : me->room * 2;
        int64_t *more = realloc(me->waits_us, room * sizeof *more);
        if (more == NULL) {
            perror("realloc");
            return 1;
        }
        me->waits_us = more;
        me->room = room;
    }
    me->waits_us[me->acquired++] = us;
    return 0;
}

static void *contend(void *argument)
{
    struct contender *me = argument;
    long rounds = me->settings->rounds;

    while (rounds == 0 || me->acquired < rounds) {
        zkl_guard *guard;
        int64_t start = now_us();
        int64_t left_ms = rounds == 0 ? (me->ends_us - start) / 1000 : TIMEOUT_MS;
        int rc;

        if (left_ms <= 0) {
            break;
        }
        rc = zkl_lock_acquire(me->lock, (int)left_ms, &guard);
        if (rc == ZOPERATIONTIMEOUT && rounds == 0) {
            break; /* the time is over */
        }
        if (rc != ZOK) {
            me->failed = failed("zkl_lock_acquire", rc);
            break;
        }
        me->failed |= note_wait(me, now_us() - start);
        me->violations += critical_section(me->number, zkl_guard_token(guard));
        me->lost += zkl_guard_state(guard) != ZKL_HELD;
        rc = zkl_guard_release(guard);
        if (rc != ZOK) {
            me->failed = failed("zkl_guard_release", rc);
        }
        if (me->failed) {
            break;
        }
    }
    return NULL;
}

/* How many znodes the lock has left: the children of a queue's directory, or the lock's znode with the
 * other strategies. -1 if the server does not tell. Looks for a while, because timed-out acquires are
 * cleaned up in the background. */
static int nodes_left(zhandle_t *zh, int strategy, const char *path)
{
    int left = -1;
    int tries;

    for (tries = 0; tries < 100 && left != 0; tries++) {
        struct String_vector children = {0, NULL};
        int rc = zoo_get_children(zh, path, 0, &children);
        if (rc == ZOK) {
            left = strategy == ZKL_QUEUE ? children.count : 1;
            deallocate_String_vector(&children);
        } else {
            left = rc == ZNONODE ? 0 : -1;
        }
        if (left != 0) {
            pause_us(50000);
        }
    }
    if (left == 0 && strategy == ZKL_QUEUE) {
        zoo_delete(zh, path, -1); /* the empty directory, which stays for the next user */
    }
    return left;
}

static int compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* Prints one line of statistics; 0 if all was well. */
static int report(const struct contender *contenders, int threads, int strategy, double seconds,
                  int left)
{
    long total = 0, violations = 0, lost = 0, min = -1, max = 0;
    int64_t *waits, p50 = 0, p99 = 0;
    int wrong = 0, i;

    for (i = 0; i < threads; i++) {
        const struct contender *one = &contenders[i];
        total += one->acquired;
        violations += one->violations;
        lost += one->lost;
        min = min < 0 || one->acquired < min ? one->acquired : min;
        max = one->acquired > max ? one->acquired : max;
        wrong |= one->failed;
    }
    violations += shared.counter != total; /* an increment was lost */
    waits = malloc(((size_t)total + 1) * sizeof *waits);
    if (waits != NULL && total > 0) {
        size_t n = 0;
        for (i = 0; i < threads; i++) {
            size_t count = (size_t)contenders[i].acquired;
            if (count > 0) {
                memcpy(waits + n, contenders[i].waits_us, count * sizeof *waits);
                n += count;
            }
        }
        qsort(waits, n, sizeof *waits, compare);
        p50 = waits[n / 2];
        p99 = waits[n * 99 / 100];
    }
    free(waits);
    printf("%-8s %12ld %8.0f %8ld %8ld %9" PRId64 " %9" PRId64 " %10ld %5ld %5d\n",
           strategy_names[strategy], total, (double)total / seconds, min, max, p50, p99, violations,
           lost, left);
    fflush(stdout);
    return wrong || total == 0 || violations != 0 || lost != 0 || left != 0;
}

static int run(const struct settings *settings, int strategy)
{
    static struct contender contenders[MAX_THREADS];
    char path[64];
    int64_t start;
    double seconds;
    int running, wrong = 0, left = -1, i;

    memset(contenders, 0, sizeof contenders);
    shared.counter = 0;
    shared.owner = NOBODY;
    snprintf(path, sizeof path, "/zklock-lock-test/c-%ld-%s", (long)getpid(),
             strategy_names[strategy]);
    for (i = 0; i < settings->threads && !wrong; i++) {
        contenders[i].number = i;
        contenders[i].settings = settings;
        wrong = set_up(&contenders[i], strategy, path);
    }
    start = now_us();
    for (running = 0; running < settings->threads && !wrong; running++) {
        struct contender *one = &contenders[running];
        one->ends_us = start + (int64_t)settings->seconds * 1000000;
        if (pthread_create(&one->thread, NULL, contend, one) != 0) {
            fprintf(stderr, "pthread_create failed\n");
            wrong = 1;
            break;
        }
    }
    for (i = 0; i < running; i++) {
        pthread_join(contenders[i].thread, NULL);
    }
    seconds = (double)(now_us() - start) / 1e6;
    if (running > 0) {
        /* Before the sessions end, which deletes their znodes. */
        left = nodes_left(contenders[0].zh, strategy, path);
        wrong |= report(contenders, running, strategy, seconds, left);
    }
    for (i = 0; i < settings->threads; i++) {
        tear_down(&contenders[i]);
    }
    return wrong;
}

static int usage(const char *program)
{
    fprintf(stderr,
            "usage: %s HOSTS [--strategy poll|watch|queue|all] [--threads N]\n"
            "       [--seconds N | --rounds N]\n"
            "\n"
            "  HOSTS       of the ZooKeeper servers: host:port[,host:port...] (also --hosts HOSTS)\n"
            "  --strategy  how the lock is waited for (all, one after the other)\n"
            "  --threads   how many contend, 1 to %d (3)\n"
            "  --seconds   how long each strategy runs (3)\n"
            "  --rounds    instead: how often each thread acquires\n",
            program, MAX_THREADS);
    return 2;
}

static int strategy_of(const char *name)
{
    int i;
    for (i = 0; i < 3; i++) {
        if (strcmp(name, strategy_names[i]) == 0) {
            return i;
        }
    }
    return strcmp(name, "all") == 0 ? -1 : -2;
}

/* A whole number from `least` to `most`, or -1. */
static long number_of(const char *text, long least, long most)
{
    char *end;
    long number = strtol(text, &end, 10);
    return *text == '\0' || *end != '\0' || number < least || number > most ? -1 : number;
}

/* 0 if the arguments make sense. */
static int parse(int argc, char **argv, struct settings *settings)
{
    int i;
    for (i = 1; i < argc; i++) {
        const char *name = argv[i];
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strncmp(name, "--", 2) != 0) {
            if (settings->hosts != NULL) {
                return 1;
            }
            settings->hosts = name;
            continue;
        }
        i++;
        if (strcmp(name, "--hosts") == 0 && settings->hosts == NULL) {
            settings->hosts = value;
        } else if (strcmp(name, "--strategy") == 0) {
            settings->strategy = strategy_of(value);
        } else if (strcmp(name, "--threads") == 0) {
            settings->threads = (int)number_of(value, 1, MAX_THREADS);
        } else if (strcmp(name, "--seconds") == 0) {
            settings->seconds = (int)number_of(value, 1, 3600);
        } else if (strcmp(name, "--rounds") == 0) {
            settings->rounds = number_of(value, 1, 1000000);
        } else {
            return 1;
        }
    }
    return settings->hosts == NULL || *settings->hosts == '\0' || settings->strategy < -1 ||
           settings->threads < 0 || settings->seconds < 0 || settings->rounds < 0;
}

int main(int argc, char **argv)
{
    static const int order[] = {ZKL_POLL, ZKL_WATCH, ZKL_QUEUE};
    struct settings settings = {NULL, -1, 3, 3, 0};
    int wrong = 0, i;

    if (parse(argc, argv, &settings) != 0) {
        return usage(argv[0]);
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    printf("%d threads, each with a session of its own\n", settings.threads);
    printf("%-8s %12s %8s %8s %8s %9s %9s %10s %5s %5s\n", "strategy", "acquisitions", "per s",
           "min", "max", "wait p50", "p99 us", "violations", "lost", "left");
    for (i = 0; i < 3; i++) {
        if (settings.strategy < 0 || settings.strategy == order[i]) {
            wrong |= run(&settings, order[i]);
        }
    }
    return wrong;
}
