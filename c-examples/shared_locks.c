/*
 * Locks with several holders: readers of a catalogue, and at most three transfers at a time.
 *
 * Build:  cc shared_locks.c $(pkg-config --cflags --libs zklock) -o shared_locks
 * Run:    ./shared_locks 127.0.0.1:2181
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <zklock.h>
#include <zookeeper.h>

enum { TIMEOUT_MS = 30000 };

static void zkl(const char *what, int rc)
{
    if (rc != ZOK) {
        fprintf(stderr, "%s: %s (%s)\n", what, zkl_strerror(rc), zkl_last_error());
        exit(1);
    }
}

/* Paths for this run only. */
static zkl_lock *lock_at(zkl_client *client, const char *name, int sharing, int permits, int limit)
{
    zkl_lock_options options = ZKL_LOCK_OPTIONS_INIT;
    zkl_lock *lock;
    char path[64];

    snprintf(path, sizeof path, "/examples/shared-%ld/%s", (long)getpid(), name);
    options.sharing = sharing;
    options.permits = permits;
    options.limit = limit;
    zkl("make a lock", zkl_lock_new(client, path, &options, &lock));
    return lock;
}

static zkl_guard *acquired(zkl_lock *lock)
{
    zkl_guard *guard;
    zkl("acquire", zkl_lock_acquire(lock, TIMEOUT_MS, &guard));
    return guard;
}

int main(int argc, char **argv)
{
    zkl_client *client;
    zkl_guard *guard;
    int limit;

    if (argc != 2) {
        fprintf(stderr, "usage: %s HOSTS\n", argv[0]);
        return 2;
    }
    zkl("connect", zkl_client_connect(argv[1], NULL, &client));

    zkl_lock *read = lock_at(client, "catalogue", ZKL_READ, 0, 0);
    zkl_lock *write = lock_at(client, "catalogue", ZKL_WRITE, 0, 0);
    zkl_guard *one = acquired(read), *other = acquired(read);
    printf("two read, and a writer is %s\n",
           zkl_lock_try(write, &guard) == ZKL_TAKEN ? "kept out" : "let in");
    zkl_guard_free(one);
    zkl_guard_free(other);
    guard = acquired(write);
    puts("one writes, once both have finished");
    zkl("release", zkl_guard_release(guard));

    /* Others can read while this client checks whether there is anything to write. */
    zkl_lock *look = lock_at(client, "catalogue", ZKL_UPGRADEABLE, 0, 0);
    guard = acquired(look);
    other = acquired(read);
    puts("one looks whether to write, while another reads");
    zkl_guard_free(other);
    zkl("upgrade", zkl_guard_upgrade(guard, TIMEOUT_MS));
    printf("it writes, and a reader is %s\n",
           zkl_lock_try(read, &other) == ZKL_TAKEN ? "kept out" : "let in");
    zkl("downgrade", zkl_guard_downgrade(guard, ZKL_READ, TIMEOUT_MS));
    other = acquired(read);
    puts("it reads again, and so does another");
    zkl_guard_free(other);
    zkl_guard_free(guard);

    /* Three permits for all. This transfer takes two. */
    zkl_lock *large = lock_at(client, "transfers", ZKL_PERMITS, 2, 3);
    zkl_lock *small = lock_at(client, "transfers", ZKL_PERMITS, 1, 3);
    one = acquired(large);
    other = acquired(small);
    printf("all permits are taken, and another transfer is %s\n",
           zkl_lock_try(small, &guard) == ZKL_TAKEN ? "kept out" : "let in");
    zkl("set the limit", zkl_lock_set_limit(small, 4));
    zkl("read the limit", zkl_lock_limit(large, &limit));
    guard = acquired(small);
    printf("with %d permits it is let in\n", limit);

    zkl_guard_free(one);
    zkl_guard_free(other);
    zkl_guard_free(guard);
    zkl_lock_free(read);
    zkl_lock_free(write);
    zkl_lock_free(look);
    zkl_lock_free(large);
    zkl_lock_free(small);
    zkl_client_free(client);
    return 0;
}
