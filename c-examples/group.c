/*
 * Workers join a group with their addresses, and each is notified of who joins and leaves.
 *
 * Build:  cc group.c $(pkg-config --cflags --libs zklock) -o group
 * Run:    ./group 127.0.0.1:2181
 */
#include <stdio.h>
#include <stdlib.h>
#include <semaphore.h>
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

/* On zklock's callback thread: never twice at a time. */
static void changed(int rc, zkl_members *members, void *userdata)
{
    zkl("watch", rc);
    printf("there are [");
    for (size_t i = 0; i < zkl_members_count(members); i++) {
        const zkl_member *member = zkl_members_get(members, i);
        printf("%s%.*s", i == 0 ? "" : ", ", (int)member->len, (const char *)member->data);
    }
    printf("]\n");
    zkl_members_free(members);
    sem_post(userdata);
}

static void wait_for_a_change(sem_t *changes)
{
    while (sem_wait(changes) != 0)
        ;
}

static zkl_membership *join(zkl_group *group, const char *address)
{
    zkl_membership *membership;
    zkl("join", zkl_group_join(group, address, strlen(address), TIMEOUT_MS, &membership));
    return membership;
}

int main(int argc, char **argv)
{
    zkl_client *client;
    zkl_group *workers;
    zkl_watch *watch;
    sem_t changes;
    char path[64];

    if (argc != 2) {
        fprintf(stderr, "usage: %s HOSTS\n", argv[0]);
        return 2;
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zkl("connect", zkl_client_connect(argv[1], NULL, &client));

    sem_init(&changes, 0, 0);
    snprintf(path, sizeof path, "/examples/workers-%ld", (long)getpid());
    zkl("make a group", zkl_group_new(client, path, NULL, &workers));
    zkl("watch", zkl_group_watch(workers, changed, &changes, NULL, &watch));
    wait_for_a_change(&changes);
    zkl_membership *first = join(workers, "10.0.0.1:8000");
    wait_for_a_change(&changes);
    zkl_membership *second = join(workers, "10.0.0.2:8000");
    wait_for_a_change(&changes);
    zkl("leave", zkl_membership_leave(first, TIMEOUT_MS));
    wait_for_a_change(&changes);

    zkl_watch_free(watch);
    zkl_membership_free(second);
    zkl_group_free(workers);
    zkl_client_free(client);
    return 0;
}
