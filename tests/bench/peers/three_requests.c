/* The least that a fair hand-off by an announced release takes of the servers, without what makes it safe: create a
 * sequential ephemeral child, read and watch the one with the number before, hold when that is written to; one
 * transaction writes and deletes. */
#include "waiters.h"

static void acquire(struct waiter *waiter, char *own, size_t size) {
    char before[512], data[16];
    int length = sizeof data;
    claim(waiter, own, size);
    size_t digits = strlen(own) - 10;
    snprintf(before, sizeof before, "%.*s%010d", (int)digits, own, atoi(own + digits) - 1);
    waiter->fired = 0;
    int rc = zoo_wget(waiter->zh, before, gone, waiter, data, &length, NULL);
    if (rc == ZNONODE) return;
    if (rc != ZOK) die("zoo_wget", rc);
    wait_for_event(waiter);
}

static void release(struct waiter *waiter, const char *own) {
    zoo_op_t ops[2];
    zoo_op_result_t results[2];
    zoo_set_op_init(&ops[0], own, "", 0, -1, NULL);
    zoo_delete_op_init(&ops[1], own, -1);
    int rc = zoo_multi(waiter->zh, 2, ops, results);
    if (rc != ZOK) die("zoo_multi", rc);
}
