/*
 * A transfer between two accounts. One transaction acquires both locks, so transfers in opposite directions never
 * deadlock. Accounts are locked by key, so the locks leave nothing behind.
 *
 * Build:  cc several_locks.c $(pkg-config --cflags --libs zklock) -o several_locks
 * Run:    ./several_locks 127.0.0.1:2181
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static zkl_lock *account(zkl_client *client, const char *number)
{
    zkl_lock *lock;
    char path[64];

    snprintf(path, sizeof path, "/examples/accounts-%ld", (long)getpid());
    zkl("make a lock", zkl_lock_of_key(client, path, number, strlen(number), NULL, &lock));
    return lock;
}

int main(int argc, char **argv)
{
    zkl_client *client;
    zkl_multi_lock *both;
    zkl_guard *guard, *other;

    if (argc != 2) {
        fprintf(stderr, "usage: %s HOSTS\n", argv[0]);
        return 2;
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zkl("connect", zkl_client_connect(argv[1], NULL, &client));

    zkl_lock *from = account(client, "4711"), *to = account(client, "7");
    const zkl_lock *locks[] = {from, to};
    zkl("make one of both", zkl_multi_lock_new(locks, 2, &both));
    zkl("acquire", zkl_multi_lock_acquire(both, TIMEOUT_MS, &guard));
    printf("%zu locks are held, both %s the same token\n", zkl_guard_locks(guard),
           zkl_guard_token_of(guard, 0) == zkl_guard_token_of(guard, 1) ? "with" : "without");
    printf("either alone is %s\n", zkl_lock_try(to, &other) == ZKL_TAKEN ? "taken" : "free");
    zkl("release", zkl_guard_release(guard));
    zkl("acquire one alone", zkl_lock_acquire(to, TIMEOUT_MS, &other));
    zkl("release", zkl_guard_release(other));
    puts("released together");

    zkl_multi_lock_free(both);
    zkl_lock_free(from);
    zkl_lock_free(to);
    zkl_client_free(client);
    return 0;
}
