/* Calls every function with what it must refuse, and expects a code each time.
 *
 *   hostile HOSTS PATH
 */
#include "zoo_queue.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WOULD_DEADLOCK (-2003)

static int failures;

static void expect(int line, const char *what, int got, int wanted) {
    if (got != wanted) {
        fprintf(stderr, "line %d: %s: %d, not %d\n", line, what, got, wanted);
        failures++;
    }
}

#define EXPECT(call, wanted) expect(__LINE__, #call, (call), (wanted))

/* A call that fails for another reason than a small buffer leaves -1. */
#define EXPECT_NOTHING(call, wanted) \
    do {                             \
        length = sizeof buffer;      \
        EXPECT(call, wanted);        \
        EXPECT(length, -1);          \
    } while (0)

static char buffer[100];
static int length;

static void arguments(zhandle_t *zh, char *path) {
    zkr_queue_t queue;
    EXPECT(zkr_queue_init(&queue, zh, path, &ZOO_OPEN_ACL_UNSAFE), ZOK);

    EXPECT(zkr_queue_offer(NULL, "x", 1), ZBADARGUMENTS);
    EXPECT(zkr_queue_offer(&queue, NULL, 1), ZBADARGUMENTS);
    EXPECT(zkr_queue_offer(&queue, "x", -2), ZBADARGUMENTS);
    EXPECT(zkr_queue_offer(&queue, NULL, -2147483647 - 1), ZBADARGUMENTS);

    EXPECT_NOTHING(zkr_queue_element(NULL, buffer, &length), ZBADARGUMENTS);
    EXPECT_NOTHING(zkr_queue_remove(NULL, buffer, &length), ZBADARGUMENTS);
    EXPECT_NOTHING(zkr_queue_take(zh, NULL, buffer, &length), ZBADARGUMENTS);
    EXPECT_NOTHING(zkr_queue_element(&queue, NULL, &length), ZBADARGUMENTS);
    EXPECT_NOTHING(zkr_queue_remove(&queue, NULL, &length), ZBADARGUMENTS);
    EXPECT_NOTHING(zkr_queue_take(zh, &queue, NULL, &length), ZBADARGUMENTS);
    EXPECT(zkr_queue_element(&queue, buffer, NULL), ZBADARGUMENTS);
    EXPECT(zkr_queue_remove(&queue, buffer, NULL), ZBADARGUMENTS);
    EXPECT(zkr_queue_take(zh, &queue, buffer, NULL), ZBADARGUMENTS);
    EXPECT(zkr_queue_take(NULL, NULL, NULL, NULL), ZBADARGUMENTS);
    length = -7;
    EXPECT(zkr_queue_element(&queue, buffer, &length), ZBADARGUMENTS);
    EXPECT(zkr_queue_remove(&queue, buffer, &length), ZBADARGUMENTS);
    EXPECT(zkr_queue_take(zh, &queue, buffer, &length), ZBADARGUMENTS);
    EXPECT(length, -1);

    /* The handle that take is given is not looked at. */
    EXPECT(zkr_queue_offer(&queue, "x", 1), ZOK);
    length = sizeof buffer;
    EXPECT(zkr_queue_take(NULL, &queue, buffer, &length), ZOK);
    EXPECT(length, 1);
    zkr_queue_destroy(&queue);
    zkr_queue_destroy(&queue);
    zkr_queue_destroy(NULL);
}

/* A program that overlooks the code of init must not fall. */
static void refused(zhandle_t *zh, char *path, struct ACL_vector *acl, int init, int offer) {
    zkr_queue_t queue;
    memset(&queue, 0xa5, sizeof queue);
    EXPECT(zkr_queue_init(&queue, zh, path, acl), init);
    EXPECT(zkr_queue_offer(&queue, "x", 1), offer);
    if (offer == ZBADARGUMENTS) {
        EXPECT_NOTHING(zkr_queue_element(&queue, buffer, &length), ZBADARGUMENTS);
        EXPECT_NOTHING(zkr_queue_remove(&queue, buffer, &length), ZBADARGUMENTS);
    }
    EXPECT_NOTHING(zkr_queue_take(zh, &queue, buffer, &length), offer);
    zkr_queue_destroy(&queue);
}

static void queues_that_cannot_be(zhandle_t *zh, char *path) {
    static char long_path[2000000];
    memset(long_path, 'x', sizeof long_path - 1);
    long_path[0] = '/';
    char *bad[] = {(char *)"",       (char *)"x",        (char *)"/",       (char *)"/x/",
                   (char *)"//",     (char *)"/x//y",    (char *)"/./x",    (char *)"/x\x01",
                   (char *)"/zklock", (char *)"/zklock/receipts", long_path};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        refused(zh, bad[i], &ZOO_OPEN_ACL_UNSAFE, ZOK, ZBADARGUMENTS);
    }
    refused(zh, (char *)"/\xff\xfe", &ZOO_OPEN_ACL_UNSAFE, ZBADARGUMENTS, ZBADARGUMENTS);
    refused(zh, NULL, &ZOO_OPEN_ACL_UNSAFE, ZBADARGUMENTS, ZBADARGUMENTS);
    refused(NULL, path, &ZOO_OPEN_ACL_UNSAFE, ZBADARGUMENTS, ZBADARGUMENTS);
    EXPECT(zkr_queue_init(NULL, zh, path, &ZOO_OPEN_ACL_UNSAFE), ZBADARGUMENTS);
    EXPECT(zkr_queue_init(NULL, NULL, NULL, NULL), ZBADARGUMENTS);

    /* Access control lists matter where something is made, and only there. */
    char other[200];
    snprintf(other, sizeof other, "%s-other", path);
    struct ACL_vector none = {0, NULL};
    struct ACL_vector negative = {-5, NULL};
    struct ACL_vector *lists[] = {NULL, &none, &negative};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        refused(zh, other, lists[i], ZOK, ZINVALIDACL);
    }
    struct ACL nameless = {31, {NULL, NULL}};
    struct ACL_vector strange = {1, &nameless};
    zkr_queue_t queue;
    EXPECT(zkr_queue_init(&queue, zh, other, &strange), ZOK);
    EXPECT(zkr_queue_offer(&queue, "x", 1), ZBADARGUMENTS);
    EXPECT_NOTHING(zkr_queue_take(zh, &queue, buffer, &length), ZINVALIDACL);
    zkr_queue_destroy(&queue);
    EXPECT(zkr_queue_init(&queue, zh, path, NULL), ZOK);
    length = sizeof buffer;
    EXPECT(zkr_queue_remove(&queue, buffer, &length), ZOK);
    EXPECT(length, -1);
    zkr_queue_destroy(&queue);
}

static sem_t called;

static void inside(int rc, const struct Stat *stat, const void *data) {
    (void)stat;
    zkr_queue_t queue = *(const zkr_queue_t *)data;
    EXPECT(rc, ZOK);
    EXPECT(zkr_queue_offer(&queue, "x", 1), WOULD_DEADLOCK);
    EXPECT_NOTHING(zkr_queue_element(&queue, buffer, &length), WOULD_DEADLOCK);
    EXPECT_NOTHING(zkr_queue_remove(&queue, buffer, &length), WOULD_DEADLOCK);
    EXPECT_NOTHING(zkr_queue_take(queue.zh, &queue, buffer, &length), WOULD_DEADLOCK);
    sem_post(&called);
}

static void on_the_completion_thread(zhandle_t *zh, char *path) {
    zkr_queue_t queue;
    EXPECT(zkr_queue_init(&queue, zh, path, &ZOO_OPEN_ACL_UNSAFE), ZOK);
    EXPECT(zkr_queue_offer(&queue, "x", 1), ZOK);
    sem_init(&called, 0, 0);
    EXPECT(zoo_aexists(zh, "/", 0, inside, &queue), ZOK);
    sem_wait(&called);
    length = sizeof buffer;
    EXPECT(zkr_queue_remove(&queue, buffer, &length), ZOK);
    EXPECT(length, 1);
    zkr_queue_destroy(&queue);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        return 2;
    }
    zoo_set_debug_level((ZooLogLevel)0);
    zhandle_t *zh = zookeeper_init(argv[1], NULL, 20000, NULL, NULL, 0);
    if (zh == NULL) {
        return 3;
    }
    arguments(zh, argv[2]);
    queues_that_cannot_be(zh, argv[2]);
    on_the_completion_thread(zh, argv[2]);
    EXPECT(zookeeper_close(zh), ZOK);
    return failures == 0 ? 0 : 1;
}
