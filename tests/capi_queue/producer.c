/* Offers COUNT elements of 0 to 1,000 bytes, as producer NUMBER, and says how far it is.
 *
 *   producer HOSTS PATH NUMBER COUNT
 *
 * Which bytes the n-th element has is written down once more in load.rs, which checks them.
 */
#include "zoo_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *zkl_last_error(void);

int main(int argc, char **argv) {
    if (argc != 5) {
        return 2;
    }
    zoo_set_debug_level((ZooLogLevel)0);
    int number = atoi(argv[3]);
    int count = atoi(argv[4]);
    zhandle_t *zh = zookeeper_init(argv[1], NULL, 12000, NULL, NULL, 0);
    if (zh == NULL) {
        return 3;
    }
    zoo_set_servers_resolution_delay(zh, -1);
    zkr_queue_t queue;
    if (zkr_queue_init(&queue, zh, argv[2], &ZOO_OPEN_ACL_UNSAFE) != ZOK) {
        return 4;
    }
    char data[1000];
    for (int n = 0; n < count; n++) {
        int length = (n * 7919 + number * 131) % 1001;
        memset(data, n % 251, sizeof data);
        data[0] = (char)number;
        data[1] = (char)(n / 256);
        data[2] = (char)(n % 256);
        int code = n % 50 == 7 ? zkr_queue_offer(&queue, NULL, -1)
                               : zkr_queue_offer(&queue, data, n % 50 == 8 ? 0 : length);
        if (code != ZOK) {
            fprintf(stderr, "producer %d: offer %d: %d: %s\n", number, n, code, zkl_last_error());
            return 1;
        }
        if (n % 100 == 0) {
            printf("%d\n", n);
            fflush(stdout);
        }
    }
    zkr_queue_destroy(&queue);
    return zookeeper_close(zh) == ZOK ? 0 : 5;
}
