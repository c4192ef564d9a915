/* What the C client itself can do: create an ephemeral znode and delete it. It is no lock.
 *
 * N = 1: synchronously, one after the other; what is timed is the zoo_create alone.
 * More: as many at once by the asynchronous calls, over one session. */
#include "peer.h"

struct slot {
    zhandle_t *zh;
    char path[512];
    int64_t began;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static int running;

static void create(struct slot *slot);

static void deleted(int rc, const void *data) {
    if (rc != ZOK) die("zoo_adelete", rc);
    create((struct slot *)data);
}

static void created(int rc, const char *value, const void *data) {
    struct slot *slot = (struct slot *)data;
    (void)value;
    if (rc != ZOK) die("zoo_acreate", rc);
    record(now_nanos() - slot->began);
    acquisitions++;
    if ((rc = zoo_adelete(slot->zh, slot->path, -1, deleted, slot)) != ZOK) die("zoo_adelete", rc);
}

static void create(struct slot *slot) {
    if (phase == OVER) {
        pthread_mutex_lock(&lock);
        running--;
        pthread_cond_signal(&ended);
        pthread_mutex_unlock(&lock);
        return;
    }
    slot->began = now_nanos();
    int rc =
        zoo_acreate(slot->zh, slot->path, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, created, slot);
    if (rc != ZOK) die("zoo_acreate", rc);
}

static void *one_by_one(void *data) {
    struct slot *slot = data;
    while (phase != OVER) {
        int64_t began = now_nanos();
        int rc = zoo_create(slot->zh, slot->path, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0);
        if (rc != ZOK) die("zoo_create", rc);
        record(now_nanos() - began);
        acquisitions++;
        if ((rc = zoo_delete(slot->zh, slot->path, -1)) != ZOK) die("zoo_delete", rc);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    int slots = atoi(argv[3]);
    zhandle_t *zh = connected(argv[1]);
    struct slot *all = calloc((size_t)slots, sizeof *all);
    if (all == NULL) return 1;
    for (int i = 0; i < slots; i++) {
        all[i].zh = zh;
        snprintf(all[i].path, sizeof all[i].path, "%s/%d", argv[2], i);
    }
    pthread_t alone;
    running = slots;
    if (slots == 1) {
        if (pthread_create(&alone, NULL, one_by_one, all) != 0) return 1;
    } else {
        for (int i = 0; i < slots; i++) create(&all[i]);
    }
    struct window window = measure(atof(argv[4]));
    if (slots == 1) {
        pthread_join(alone, NULL);
    } else {
        pthread_mutex_lock(&lock);
        while (running > 0) pthread_cond_wait(&ended, &lock);
        pthread_mutex_unlock(&lock);
    }
    print_result(window);
    zookeeper_close(zh);
    free(all);
    return 0;
}
