/* What the C programs here share: a session, the clock, and what they print.
 *
 * Each is called with HOSTS PATH N SECONDS. It contends for a quarter of that time before it prints "begin", and
 * prints "end" when the time is over; in between, the server's counters are read. Then comes a line of JSON. With
 * BENCH_RATE, each contender asks for the lock so many times a second, at times that are fixed beforehand: what comes
 * late because the one before took long has waited since then. */
#ifndef PEER_H
#define PEER_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

/* More are not kept: what comes later changes no median. */
#define MOST_SAMPLES 1000000

enum phase { WARMING, MEASURING, OVER };

static _Atomic int phase = WARMING;
static _Atomic long acquisitions;
static uint32_t samples[MOST_SAMPLES];
static _Atomic size_t sampled;

static inline int64_t now_nanos(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

static inline void die(const char *what, int rc) {
    fprintf(stderr, "%s: %s\n", what, zerror(rc));
    exit(1);
}

static inline void record(int64_t nanos) {
    if (phase != MEASURING) return;
    size_t at = sampled++;
    if (at < MOST_SAMPLES) samples[at] = (uint32_t)(nanos / 1000);
}

/* Nanoseconds between the times at which a contender asks; 0 if each follows the one before. */
static inline int64_t interval(void) {
    const char *rate = getenv("BENCH_RATE");
    return rate == NULL ? 0 : (int64_t)(1e9 / atof(rate));
}

static inline void wait_until(int64_t at) {
    struct timespec time = {at / 1000000000, at % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static void ignore(zhandle_t *zh, int type, int state, const char *path, void *context) {
    (void)zh, (void)type, (void)state, (void)path, (void)context;
}

/* A session, connected. Without the resolution delay, the C client resolves its hosts for each request. */
static inline zhandle_t *connected(const char *hosts) {
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zhandle_t *zh = zookeeper_init(hosts, ignore, 30000, NULL, NULL, 0);
    if (zh == NULL) die("zookeeper_init", ZSYSTEMERROR);
    zoo_set_servers_resolution_delay(zh, -1);
    for (int tries = 0; zoo_state(zh) != ZOO_CONNECTED_STATE; tries++) {
        if (tries == 30000) die("connect", ZOPERATIONTIMEOUT);
        usleep(1000);
    }
    return zh;
}

static inline void sleep_seconds(double seconds) {
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

struct window {
    long count;
    double seconds;
};

static inline struct window measure(double seconds) {
    sleep_seconds(seconds / 4);
    long before = acquisitions;
    int64_t from = now_nanos();
    phase = MEASURING;
    puts("begin");
    fflush(stdout);
    sleep_seconds(seconds);
    phase = OVER;
    struct window window = {acquisitions - before, (double)(now_nanos() - from) / 1e9};
    puts("end");
    fflush(stdout);
    return window;
}

static inline int by_size(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static inline void print_result(struct window window) {
    size_t kept = sampled < MOST_SAMPLES ? sampled : MOST_SAMPLES;
    printf("{\"count\":%ld,\"seconds\":%.6f", window.count, window.seconds);
    if (kept > 0) {
        qsort(samples, kept, sizeof samples[0], by_size);
        printf(",\"p50_us\":%u,\"p99_us\":%u,\"p999_us\":%u", samples[kept / 2], samples[kept - 1 - kept / 100],
               samples[kept - 1 - kept / 1000]);
    }
    puts("}");
    fflush(stdout);
}

#endif
