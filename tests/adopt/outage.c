/*
 * Gives a lock back while no server is there, or an acquire up whose claim nobody has confirmed yet; frees
 * all that it has of zklock, and looks whether the lock is free once a server is back: its own session has
 * survived.
 *
 * outage HOSTS held      says "held", "freed" and "free", and waits for a line before each of the last two
 * outage HOSTS asked     says "asked" when the acquire has begun, and waits for a line before that as well
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zklock.h>
#include <zookeeper.h>

static const char *const path = "/locks/outage";

static void expect(const char *what, int rc)
{
    if (rc != ZOK) {
        fprintf(stderr, "%s: %s (%s)\n", what, zkl_strerror(rc), zkl_last_error());
        exit(1);
    }
}

static void wait_for_a_line(void)
{
    char line[16];
    if (fgets(line, sizeof line, stdin) == NULL) {
        exit(1);
    }
}

static void done(int rc, zkl_guard *guard, void *userdata)
{
    (void)rc;
    (void)userdata;
    zkl_guard_free(guard);
}

int main(int argc, char **argv)
{
    zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.operation_timeout_ms = 1000;
    zkl_client *client;
    zkl_lock *lock;
    zkl_guard *guard = NULL;
    zkl_attempt *attempt = NULL;
    struct String_vector claims;
    zhandle_t *zh;
    int look, rc = ZCONNECTIONLOSS, left = 1;

    if (argc != 3) {
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zh = zookeeper_init(argv[1], NULL, 12000, NULL, NULL, 0);
    expect("adopt", zkl_client_adopt(zh, &options, &client));
    expect("lock", zkl_lock_new(client, path, NULL, &lock));
    expect("acquire", zkl_lock_acquire(lock, 60000, &guard));
    puts("held");
    if (strcmp(argv[2], "asked") == 0) {
        expect("release", zkl_guard_release(guard));
        guard = NULL;
        wait_for_a_line();
        expect("ask", zkl_lock_acquire_async(lock, 60000, done, NULL, NULL, &attempt));
        puts("asked");
    }
    wait_for_a_line();
    if (attempt != NULL) {
        expect("cancel", zkl_attempt_cancel(attempt));
        zkl_attempt_free(attempt);
    }
    zkl_guard_free(guard);
    zkl_lock_free(lock);
    zkl_client_free(client);
    puts("freed");
    wait_for_a_line();
    for (look = 0; look < 1500 && left != 0; look++) {
        rc = zoo_get_children(zh, path, 0, &claims);
        if (rc == ZOK) {
            left = claims.count;
            deallocate_String_vector(&claims);
        } else if (rc == ZNONODE) {
            left = 0;
        }
        usleep(10000);
    }
    if (left != 0) {
        fprintf(stderr, "the claim is still there (last code %d)\n", rc);
        return 1;
    }
    puts("free");
    return zookeeper_close(zh) == ZOK ? 0 : 1;
}
