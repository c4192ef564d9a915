/*
 * One of three participants leads, and hands over to one that it chooses. An observer sees each leader.
 *
 * Build:  cc election.c $(pkg-config --cflags --libs zklock) -o election
 * Run:    ./election 127.0.0.1:2181
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

/* A participant, which leads in its turn. */
typedef struct participant {
    const char *name;
    zkl_election *election;
    zkl_guard *guard;
    sem_t leads;
} participant;

/* On zklock's callback thread. */
static void elected(int rc, zkl_guard *guard, void *userdata)
{
    participant *it = userdata;

    zkl("campaign", rc);
    it->guard = guard;
    sem_post(&it->leads);
}

static void observed(int rc, zkl_contenders *leader, void *userdata)
{
    if (rc == ZOK && zkl_contenders_count(leader) == 1 && strcmp(zkl_contenders_get(leader, 0)->label, "third") == 0)
        sem_post(userdata);
    zkl_contenders_free(leader);
}

static participant *take_part(zkl_client *client, participant *it, const char *name)
{
    zkl_lock_options options = ZKL_LOCK_OPTIONS_INIT;
    char path[64];

    snprintf(path, sizeof path, "/examples/election-%ld", (long)getpid());
    options.label = it->name = name;
    sem_init(&it->leads, 0, 0);
    zkl("make an election", zkl_election_new(client, path, &options, &it->election));
    zkl("take part", zkl_election_campaign_async(it->election, ZKL_FOREVER, elected, it, NULL, NULL));
    return it;
}

static int64_t wait_until_it_leads(participant *it)
{
    while (sem_wait(&it->leads) != 0)
        ;
    printf("%s leads\n", it->name);
    return zkl_guard_token(it->guard);
}

/* The chosen one's place, once it takes part. */
static void hand_over(participant *from, const char *name)
{
    int done = 0;

    while (!done) {
        zkl_contenders *list;
        zkl("list", zkl_election_participants(from->election, &list));
        for (size_t i = 0; i < zkl_contenders_count(list) && !done; i++) {
            const zkl_contender *one = zkl_contenders_get(list, i);
            if (strcmp(one->label, name) == 0) {
                zkl("hand over", zkl_election_hand_over(from->election, from->guard, one, TIMEOUT_MS));
                done = 1;
            }
        }
        zkl_contenders_free(list);
    }
}

int main(int argc, char **argv)
{
    zkl_client *client;
    participant first, second, third;
    zkl_watch *watch;
    sem_t seen;

    if (argc != 2) {
        fprintf(stderr, "usage: %s HOSTS\n", argv[0]);
        return 2;
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zkl("connect", zkl_client_connect(argv[1], NULL, &client));

    sem_init(&seen, 0, 0);
    take_part(client, &first, "first");
    int64_t term = wait_until_it_leads(&first);
    zkl("observe", zkl_election_observe(first.election, observed, &seen, NULL, &watch));
    take_part(client, &second, "second");
    take_part(client, &third, "third");
    hand_over(&first, "third");
    zkl("leave", zkl_guard_release(first.guard));
    int64_t next = wait_until_it_leads(&third);
    printf("its term is %s\n", next > term ? "larger" : "not larger");
    while (sem_wait(&seen) != 0)
        ;
    puts("who observes has seen it");
    zkl("resign", zkl_guard_release(third.guard));
    wait_until_it_leads(&second);
    zkl("resign", zkl_guard_release(second.guard));

    zkl_watch_free(watch);
    zkl_election_free(first.election);
    zkl_election_free(second.election);
    zkl_election_free(third.election);
    zkl_client_free(client);
    return 0;
}
