/*
 * Jobs that are done at least once: if a worker returns a job or dies, another worker gets it.
 *
 * Build:  cc work_queue.c $(pkg-config --cflags --libs zklock) -o work_queue
 * Run:    ./work_queue 127.0.0.1:2181
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

static void put(zkl_queue *queue, const char *job, int priority)
{
    zkl("put", zkl_queue_put(queue, job, strlen(job), priority, TIMEOUT_MS));
}

static zkl_delivery *take(zkl_queue *queue)
{
    zkl_delivery *job;
    zkl("take", zkl_queue_take(queue, TIMEOUT_MS, &job));
    return job;
}

static void say(const zkl_delivery *job, const char *what)
{
    size_t len;
    const char *data = zkl_delivery_data(job, &len);
    printf("%.*s is %s\n", (int)len, data, what);
}

int main(int argc, char **argv)
{
    zkl_client *client;
    zkl_queue *queue;
    zkl_delivery *job;
    char path[64];

    if (argc != 2) {
        fprintf(stderr, "usage: %s HOSTS\n", argv[0]);
        return 2;
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zkl("connect", zkl_client_connect(argv[1], NULL, &client));

    snprintf(path, sizeof path, "/examples/jobs-%ld", (long)getpid());
    zkl("make a queue", zkl_queue_new(client, path, NULL, &queue));
    put(queue, "wash", ZKL_DEFAULT_PRIORITY);
    job = take(queue);
    say(job, "given back");
    int64_t token = zkl_guard_token(zkl_delivery_guard(job));
    zkl_delivery_free(job);

    job = take(queue);
    /* A store that has seen this token rejects the first worker's writes. */
    say(job, zkl_guard_token(zkl_delivery_guard(job)) > token ? "delivered again" : "not delivered again");
    zkl("remove", zkl_delivery_done(job, TIMEOUT_MS));

    put(queue, "dry", ZKL_DEFAULT_PRIORITY);
    put(queue, "hurry", 1);
    for (int i = 0; i < 2; i++) {
        job = take(queue);
        say(job, "done");
        zkl("remove", zkl_delivery_done(job, TIMEOUT_MS));
    }

    zkl_queue_free(queue);
    zkl_client_free(client);
    return 0;
}
