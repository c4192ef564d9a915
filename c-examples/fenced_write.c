/*
 * A write that succeeds only while the lock is held: zkl_guard_set sends it in one transaction with
 * a check of the lock's znode. If that znode is gone, the write fails, even if this program does not
 * know of the loss yet.
 *
 * Build:  cc fenced_write.c $(pkg-config --cflags --libs zklock) -o fenced_write
 * Run:    ./fenced_write 127.0.0.1:2181
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zklock.h>
#include <zookeeper.h>

enum { TIMEOUT_MS = 30000 };

static void zoo(const char *what, int rc)
{
    if (rc != ZOK) {
        fprintf(stderr, "%s: %s\n", what, zerror(rc));
        exit(1);
    }
}

static void zkl(const char *what, int rc)
{
    if (rc != ZOK) {
        fprintf(stderr, "%s: %s (%s)\n", what, zkl_strerror(rc), zkl_last_error());
        exit(1);
    }
}

int main(int argc, char **argv)
{
    zhandle_t *zh;
    zkl_client *client;
    zkl_lock *lock;
    zkl_guard *guard;
    struct Stat stat;
    char account[64], lock_path[64], claim[128], balance[16];
    int length = sizeof balance;
    int rc;

    if (argc != 2) {
        fprintf(stderr, "usage: %s HOSTS\n", argv[0]);
        return 2;
    }
    snprintf(account, sizeof account, "/fenced-write-%ld", (long)getpid());
    snprintf(lock_path, sizeof lock_path, "/locks/fenced-write-%ld", (long)getpid());
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);

    zh = zookeeper_init(argv[1], NULL, 10000, NULL, NULL, 0);
    if (zh == NULL) {
        perror("zookeeper_init");
        return 1;
    }
    zkl("zkl_client_adopt", zkl_client_adopt(zh, NULL, &client));
    zkl("zkl_lock_new", zkl_lock_new(client, lock_path, NULL, &lock));
    zkl("zkl_lock_acquire", zkl_lock_acquire(lock, TIMEOUT_MS, &guard));
    printf("held, with the token %" PRId64 "\n", zkl_guard_token(guard));
    zoo("zoo_create",
        zoo_create(zh, account, "100", 3, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0));

    /* While the lock is held, it writes. */
    zkl("zkl_guard_set", zkl_guard_set(guard, account, "90", 2, -1, &stat));
    printf("written: version %d\n", stat.version);

    /* An operator deletes the lock, for example because this program seems to hang. */
    zkl_guard_claim_path(guard, claim, sizeof claim);
    zoo("zoo_delete", zoo_delete(zh, claim, -1));

    /* The same write is refused now and changes nothing. */
    rc = zkl_guard_set(guard, account, "80", 2, -1, NULL);
    if (rc != ZKL_NOT_HELD) {
        fprintf(stderr, "not refused as it should be: %s\n", zkl_strerror(rc));
        return 1;
    }
    printf("refused: %s\n", zkl_last_error());
    zoo("zoo_get", zoo_get(zh, account, 0, balance, &length, NULL));
    printf("the balance is %.*s\n", length, balance);

    zkl_guard_free(guard);
    zkl_lock_free(lock);
    zkl_client_free(client);
    zoo_delete(zh, lock_path, -1); /* the empty directory of the queue */
    zookeeper_close(zh);
    return length == 2 && memcmp(balance, "90", 2) == 0 ? 0 : 1;
}
