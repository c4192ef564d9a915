/* The recipe of ZooKeeper's documentation, on the C client: create a sequential ephemeral child, list, watch the
 * one before by exists, list again when it is gone, delete. */
#include "waiters.h"

/* Finds who is just before us; leaves `before` empty if nobody is. */
static void find_before(struct waiter *waiter, const char *own, char *before, size_t size) {
    struct String_vector children;
    const char *found = NULL;
    int rc = zoo_get_children(waiter->zh, waiter->path, 0, &children);
    if (rc != ZOK) die("zoo_get_children", rc);
    for (int i = 0; i < children.count; i++) {
        const char *name = children.data[i];
        if (strcmp(name, own) < 0 && (found == NULL || strcmp(name, found) > 0)) found = name;
    }
    before[0] = 0;
    if (found != NULL) snprintf(before, size, "%s/%s", waiter->path, found);
    deallocate_String_vector(&children);
}

static void acquire(struct waiter *waiter, char *own, size_t size) {
    char before[512];
    claim(waiter, own, size);
    for (;;) {
        find_before(waiter, strrchr(own, '/') + 1, before, sizeof before);
        if (before[0] == 0) return;
        waiter->fired = 0;
        int rc = zoo_wexists(waiter->zh, before, gone, waiter, NULL);
        if (rc == ZNONODE) continue;
        if (rc != ZOK) die("zoo_wexists", rc);
        wait_for_event(waiter);
    }
}

static void release(struct waiter *waiter, const char *own) {
    int rc = zoo_delete(waiter->zh, own, -1);
    if (rc != ZOK) die("zoo_delete", rc);
}
