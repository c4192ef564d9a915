/*
 * A queue of jobs, written against ZooKeeper's C queue recipe. It does not mention zklock.
 *
 * Build:  cc legacy_queue.c $(pkg-config --cflags --libs zklock) -o legacy_queue
 * Run:    ./legacy_queue HOSTS          for example  ./legacy_queue 127.0.0.1:2181
 *
 * One thread offers jobs; another one, on a second session, takes them.
 */
#include "zoo_queue.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define PATH "/zklock-example-jobs"
#define JOBS 5

static const char *hosts;

static zhandle_t *connect_to(const char *hosts_to_try) {
    zoo_set_debug_level(ZOO_LOG_LEVEL_WARN);
    zhandle_t *zh = zookeeper_init(hosts_to_try, NULL, 10000, NULL, NULL, 0);
    if (zh == NULL) {
        perror("zookeeper_init");
    }
    return zh;
}

/* Takes all jobs. Returns NULL on success. */
static void *worker(void *problem) {
    zhandle_t *zh = connect_to(hosts);
    if (zh == NULL) {
        return problem;
    }
    zkr_queue_t queue;
    int code = zkr_queue_init(&queue, zh, (char *)PATH, &ZOO_OPEN_ACL_UNSAFE);
    for (int taken = 0; code == ZOK && taken < JOBS; taken++) {
        char job[100];
        int length = sizeof job;
        code = zkr_queue_take(zh, &queue, job, &length);
        if (code == ZOK) {
            printf("taken:   %.*s\n", length, job);
        }
    }
    if (code != ZOK) {
        fprintf(stderr, "worker: %s\n", zerror(code));
    }
    zkr_queue_destroy(&queue);
    zookeeper_close(zh);
    return code == ZOK ? NULL : problem;
}

static int produce(zkr_queue_t *queue) {
    for (int n = 1; n <= JOBS; n++) {
        char job[100];
        snprintf(job, sizeof job, "job %d of %d", n, JOBS);
        int code = zkr_queue_offer(queue, job, (int)strlen(job));
        if (code != ZOK) {
            return code;
        }
        printf("offered: %s\n", job);
    }
    return ZOK;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: legacy_queue HOSTS\n");
        return 2;
    }
    hosts = argv[1];
    setvbuf(stdout, NULL, _IOLBF, 0);
    zhandle_t *zh = connect_to(hosts);
    if (zh == NULL) {
        return 1;
    }
    zkr_queue_t queue;
    int code = zkr_queue_init(&queue, zh, (char *)PATH, &ZOO_OPEN_ACL_UNSAFE);
    pthread_t thread;
    void *problem = &queue;
    if (code == ZOK && pthread_create(&thread, NULL, worker, &queue) == 0) {
        code = produce(&queue);
        if (code == ZOK) {
            pthread_join(thread, &problem);
        }
    }
    /* Nothing is left; remove does not wait. */
    int length = 0;
    if (code == ZOK && problem == NULL) {
        code = zkr_queue_remove(&queue, NULL, &length);
    }
    if (code != ZOK) {
        fprintf(stderr, "legacy_queue: %s\n", zerror(code));
    } else if (problem == NULL && length == -1) {
        printf("the queue is empty\n");
        zoo_delete(zh, PATH, -1);
    } else {
        code = ZSYSTEMERROR;
    }
    zkr_queue_destroy(&queue);
    zookeeper_close(zh);
    return code == ZOK ? 0 : 1;
}
