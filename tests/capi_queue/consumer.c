/* Takes elements until it gets "stop", and writes each to its output: the length in four bytes, low
 * byte first, then the bytes.
 *
 *   consumer HOSTS PATH
 */
#include "zoo_queue.h"

#include <stdio.h>
#include <string.h>

const char *zkl_last_error(void);

int main(int argc, char **argv) {
    if (argc != 3) {
        return 2;
    }
    zoo_set_debug_level((ZooLogLevel)0);
    zhandle_t *zh = zookeeper_init(argv[1], NULL, 12000, NULL, NULL, 0);
    if (zh == NULL) {
        return 3;
    }
    zoo_set_servers_resolution_delay(zh, -1);
    zkr_queue_t queue;
    if (zkr_queue_init(&queue, zh, argv[2], &ZOO_OPEN_ACL_UNSAFE) != ZOK) {
        return 4;
    }
    for (;;) {
        char data[1000];
        int length = sizeof data;
        int code = zkr_queue_take(zh, &queue, data, &length);
        if (code != ZOK) {
            fprintf(stderr, "consumer: take: %d: %s\n", code, zkl_last_error());
            return 1;
        }
        if (length == 4 && memcmp(data, "stop", 4) == 0) {
            break;
        }
        for (int shift = 0; shift < 32; shift += 8) {
            putchar(length >> shift & 255);
        }
        fwrite(data, 1, (size_t)length, stdout);
        fflush(stdout);
    }
    zkr_queue_destroy(&queue);
    return zookeeper_close(zh) == ZOK ? 0 : 5;
}
