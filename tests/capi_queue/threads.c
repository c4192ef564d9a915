/* Two threads offer, three take, all with one struct on one handle.
 *
 *   threads HOSTS PATH
 */
#include "zoo_queue.h"

#include <stdio.h>
#include <string.h>

#define PRODUCERS 2
#define CONSUMERS 3
#define EACH 300

static zkr_queue_t queue;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counts[PRODUCERS][EACH];
static int failures;

static void fail(const char *what, int code) {
    fprintf(stderr, "%s: %d\n", what, code);
    pthread_mutex_lock(&lock);
    failures++;
    pthread_mutex_unlock(&lock);
}

static void *produce(void *number) {
    for (int n = 0; n < EACH; n++) {
        int element[2] = {*(int *)number, n};
        int code = zkr_queue_offer(&queue, (const char *)element, sizeof element);
        if (code != ZOK) {
            fail("offer", code);
        }
    }
    return NULL;
}

/* Each thread must see the elements of each producer in their order. */
static void *consume(void *unused) {
    int last[PRODUCERS] = {-1, -1};
    for (;;) {
        int element[2];
        int length = sizeof element;
        int code = zkr_queue_take(queue.zh, &queue, (char *)element, &length);
        if (code != ZOK) {
            fail("take", code);
            return unused;
        }
        if (length == 0) {
            return unused;
        }
        if (element[1] <= last[element[0]]) {
            fail("an element came after a later one", element[1]);
        }
        last[element[0]] = element[1];
        pthread_mutex_lock(&lock);
        counts[element[0]][element[1]]++;
        pthread_mutex_unlock(&lock);
    }
}

int main(int argc, char **argv) {
    if (argc != 3) {
        return 2;
    }
    zoo_set_debug_level((ZooLogLevel)0);
    zhandle_t *zh = zookeeper_init(argv[1], NULL, 20000, NULL, NULL, 0);
    if (zh == NULL || zkr_queue_init(&queue, zh, argv[2], &ZOO_OPEN_ACL_UNSAFE) != ZOK) {
        return 3;
    }
    pthread_t producers[PRODUCERS];
    pthread_t consumers[CONSUMERS];
    int numbers[PRODUCERS] = {0, 1};
    for (int i = 0; i < PRODUCERS; i++) {
        pthread_create(&producers[i], NULL, produce, &numbers[i]);
    }
    for (int i = 0; i < CONSUMERS; i++) {
        pthread_create(&consumers[i], NULL, consume, NULL);
    }
    for (int i = 0; i < PRODUCERS; i++) {
        pthread_join(producers[i], NULL);
    }
    for (int i = 0; i < CONSUMERS; i++) {
        if (zkr_queue_offer(&queue, NULL, -1) != ZOK) {
            return 4;
        }
    }
    for (int i = 0; i < CONSUMERS; i++) {
        pthread_join(consumers[i], NULL);
    }
    for (int i = 0; i < PRODUCERS * EACH; i++) {
        if (counts[i / EACH][i % EACH] != 1) {
            fail("an element was not taken once", i);
        }
    }
    zkr_queue_destroy(&queue);
    return zookeeper_close(zh) == ZOK && failures == 0 ? 0 : 1;
}
