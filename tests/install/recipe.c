/*
 * Written against the recipes' headers alone, for a build file that says -lzoolock -lzooqueue.
 * Needs no server: a mutex that nobody has locked is nobody's.
 */

#include <stdio.h>
#include <string.h>

#include <zoo_lock.h>
#include <zoo_queue.h>

int main(void)
{
    char lock_path[] = "/locks/install", queue_path[] = "/queues/install";
    zkr_lock_mutex_t mutex;
    zkr_queue_t queue;
    zhandle_t *zh;
    int failed;

    zoo_set_debug_level((ZooLogLevel)0);
    zh = zookeeper_init("127.0.0.1:1", NULL, 10000, NULL, NULL, 0);
    if (zh == NULL) {
        perror("zookeeper_init");
        return 1;
    }
    failed = zkr_lock_init(&mutex, zh, lock_path, &ZOO_OPEN_ACL_UNSAFE) != ZOK
        || zkr_queue_init(&queue, zh, queue_path, &ZOO_OPEN_ACL_UNSAFE) != ZOK
        || zkr_lock_isowner(&mutex)
        || zkr_lock_lock(NULL) != 0
        || zkr_lock_error(NULL) != ZBADARGUMENTS
        || strcmp(zkr_lock_getpath(&mutex), lock_path) != 0
        || zkr_lock_destroy(&mutex) != ZOK;
    zkr_queue_destroy(&queue);
    zookeeper_close(zh);
    puts(failed ? "the recipes do not work" : "the recipes are here");
    return failed;
}
