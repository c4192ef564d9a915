/*
 * Adopts one handle again and again, holds a lock each time, and gives the handle back.
 *
 * rounds HOSTS COUNT    says by how many bytes the heap grew in the last 4/5 of the rounds, and how many
 *                       microseconds the fastest zkl_client_free took
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <zklock.h>
#include <zookeeper.h>

static void expect(const char *what, int rc)
{
    if (rc != ZOK) {
        fprintf(stderr, "%s: %s (%s)\n", what, zkl_strerror(rc), zkl_last_error());
        exit(1);
    }
}

static long microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int main(int argc, char **argv)
{
    zhandle_t *zh;
    long round, rounds, fastest = -1;
    size_t after_a_fifth = 0;

    if (argc != 3) {
        return 2;
    }
    rounds = atol(argv[2]);
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zh = zookeeper_init(argv[1], NULL, 30000, NULL, NULL, 0);
    for (round = 0; round < rounds; round++) {
        zkl_client *client;
        zkl_lock *lock;
        zkl_guard *guard;
        long took;
        expect("adopt", zkl_client_adopt(zh, NULL, &client));
        expect("lock", zkl_lock_new(client, "/locks/rounds", NULL, &lock));
        expect("acquire", zkl_lock_acquire(lock, 60000, &guard));
        expect("release", zkl_guard_release(guard));
        zkl_lock_free(lock);
        took = microseconds();
        zkl_client_free(client);
        took = microseconds() - took;
        if (fastest < 0 || took < fastest) {
            fastest = took;
        }
        if (round == rounds / 5) {
            after_a_fifth = mallinfo2().uordblks;
        }
    }
    printf("%ld %ld\n", (long)(mallinfo2().uordblks - after_a_fifth), fastest);
    return zookeeper_close(zh) == ZOK ? 0 : 1;
}
