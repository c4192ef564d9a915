/*
 * Three workers wait for a barrier, begin a job together and end it together. A latch tells another client when all of it
 * is done.
 *
 * Build:  cc barriers.c $(pkg-config --cflags --libs zklock) -o barriers
 * Run:    ./barriers 127.0.0.1:2181
 */
#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>
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

enum { PARTS = 3 };

typedef struct job {
    zkl_barrier *start;
    zkl_double_barrier *together;
    zkl_latch *done;
} job;

static void *part(void *of)
{
    job *it = of;
    zkl_entered *entered;

    zkl("pass", zkl_barrier_pass(it->start, TIMEOUT_MS));
    zkl("enter", zkl_double_barrier_enter(it->together, TIMEOUT_MS, &entered));
    puts("a part works");
    zkl("count down", zkl_latch_count_down(it->done, TIMEOUT_MS, NULL));
    /* Waits for the others. */
    zkl("leave", zkl_entered_leave(entered, TIMEOUT_MS));
    return NULL;
}

int main(int argc, char **argv)
{
    zkl_client *client;
    pthread_t threads[PARTS];
    char path[3][64];
    job it;

    if (argc != 2) {
        fprintf(stderr, "usage: %s HOSTS\n", argv[0]);
        return 2;
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zkl("connect", zkl_client_connect(argv[1], NULL, &client));

    const char *const names[] = {"start", "parts", "done"};
    for (int i = 0; i < 3; i++)
        snprintf(path[i], sizeof path[i], "/examples/job-%ld/%s", (long)getpid(), names[i]);
    zkl("make a barrier", zkl_barrier_new(client, path[0], NULL, &it.start));
    zkl("make a double barrier", zkl_double_barrier_new(client, path[1], PARTS, NULL, &it.together));
    zkl("make a latch", zkl_latch_new(client, path[2], NULL, &it.done));
    zkl("set the barrier", zkl_barrier_set(it.start, TIMEOUT_MS));
    zkl("set the latch", zkl_latch_set(it.done, PARTS, TIMEOUT_MS, NULL));
    for (int i = 0; i < PARTS; i++)
        if (pthread_create(&threads[i], NULL, part, &it) != 0)
            return 1;
    puts("go");
    zkl("remove the barrier", zkl_barrier_remove(it.start, TIMEOUT_MS));
    zkl("wait", zkl_latch_wait(it.done, TIMEOUT_MS));
    for (int i = 0; i < PARTS; i++)
        pthread_join(threads[i], NULL);
    puts("all parts are done");

    zkl_barrier_free(it.start);
    zkl_double_barrier_free(it.together);
    zkl_latch_free(it.done);
    zkl_client_free(client);
    return 0;
}
