/*
 * Assigns each number once, even if replies are lost.
 *
 * Build:  cc counter.c $(pkg-config --cflags --libs zklock) -o counter
 * Run:    ./counter 127.0.0.1:2181
 */
#include <stdio.h>
#include <stdlib.h>
#include <inttypes.h>
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

int main(int argc, char **argv)
{
    zkl_client *client;
    zkl_counter *counter;
    int64_t mine, before;
    char path[64];

    if (argc != 2) {
        fprintf(stderr, "usage: %s HOSTS\n", argv[0]);
        return 2;
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zkl("connect", zkl_client_connect(argv[1], NULL, &client));

    snprintf(path, sizeof path, "/examples/counter-%ld", (long)getpid());
    zkl("make a counter", zkl_counter_new(client, path, NULL, &counter));
    for (int i = 0; i < 3; i++) {
        int rc = zkl_counter_get_and_add(counter, 1, TIMEOUT_MS, &mine);
        if (rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT) {
            /* The number may be used up without an owner. A retry takes another one. */
            printf("perhaps one is lost: %s\n", zkl_last_error());
            continue;
        }
        zkl("add", rc);
        printf("the number %" PRId64 " is mine\n", mine);
    }
    zkl("compare and set", zkl_counter_compare_and_set(counter, mine + 1, 100, TIMEOUT_MS, &before));
    zkl("read", zkl_counter_get(counter, TIMEOUT_MS, &mine));
    printf("it was %" PRId64 ", and is %" PRId64 "\n", before, mine);

    zkl_counter_free(counter);
    zkl_client_free(client);
    return 0;
}
