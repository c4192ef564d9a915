/* Moves elements, and says in a line what it does before it does it, and how that ended. One write
 * each, so nothing that was said is lost when the program is killed.
 *
 *   mover HOSTS PATH offer PRODUCER FIRST END   elements "PRODUCER N ...", N from FIRST on, before END
 *   mover HOSTS PATH take                       until it gets "stop"
 *
 *   session ID                first, in hex
 *   offer N, done N FROM TO   N is in the queue; when the call began and ended, in nanoseconds
 *   offer N, unknown          whether it is can't be found out
 *   took PRODUCER N FROM TO
 *   unknown                   an element may have been taken, and not delivered
 *   stop
 *
 * Ends with 3 when the session is over.
 */
#include "zoo_queue.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *zkl_last_error(void);

#define PERIOD_US 900000

static void say(const char *format, ...) {
    char line[100];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (write(1, line, (size_t)length) != length) {
        exit(4);
    }
}

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* Goes on after a code that is not ZOK, if that makes sense. */
static void go_on_after(int code) {
    if (code == ZCONNECTIONLOSS) {
        say("unknown\n");
    } else if (code == ZSESSIONEXPIRED || code == ZINVALIDSTATE) {
        exit(3);
    } else if (code != ZOPERATIONTIMEOUT) {
        fprintf(stderr, "mover: %d: %s\n", code, zkl_last_error());
        exit(1);
    }
}

/* Or for some seconds. */
static void wait_until_empty(zkr_queue_t *queue) {
    for (int i = 0; i < 250; i++) {
        struct Stat stat;
        int code = zoo_exists(queue->zh, queue->path, 0, &stat);
        if (code == ZNONODE || (code == ZOK && stat.numChildren == 0)) {
            return;
        }
        usleep(20000);
    }
}

static void offer(zkr_queue_t *queue, int producer, int first, int end) {
    char data[1000];
    for (int n = first; n < end; n++) {
        /* In bursts of all producers at once, so that the queue is long at times, and then empty. */
        if (n % 50 == 0) {
            wait_until_empty(queue);
            usleep((useconds_t)(PERIOD_US - now() / 1000 % PERIOD_US));
        }
        memset(data, '.', sizeof data);
        int length = snprintf(data, sizeof data, "%d %d ", producer, n) + n * 7919 % 900;
        int code;
        say("offer %d\n", n);
        long long from = now();
        while ((code = zkr_queue_offer(queue, data, length)) != ZOK) {
            go_on_after(code);
            if (code == ZCONNECTIONLOSS) {
                break;
            }
        }
        if (code == ZOK) {
            say("done %d %lld %lld\n", n, from, now());
        }
    }
}

static void take(zkr_queue_t *queue) {
    for (;;) {
        char data[1001];
        int length = sizeof data - 1;
        int producer, n;
        long long from = now();
        int code = zkr_queue_take(queue->zh, queue, data, &length);
        long long to = now();
        if (code != ZOK) {
            go_on_after(code);
            continue;
        }
        data[length] = '\0';
        if (strcmp(data, "stop") == 0) {
            say("stop\n");
            return;
        }
        if (sscanf(data, "%d %d ", &producer, &n) != 2) {
            fprintf(stderr, "mover: got %s\n", data);
            exit(1);
        }
        say("took %d %d %lld %lld\n", producer, n, from, to);
    }
}

int main(int argc, char **argv) {
    if (argc != 7 && argc != 4) {
        return 2;
    }
    zoo_set_debug_level((ZooLogLevel)0);
    zhandle_t *zh = zookeeper_init(argv[1], NULL, 30000, NULL, NULL, 0);
    if (zh == NULL) {
        return 3;
    }
    zoo_set_servers_resolution_delay(zh, -1);
    for (int i = 0; zoo_state(zh) != ZOO_CONNECTED_STATE; i++) {
        if (i == 6000) {
            return 3;
        }
        usleep(10000);
    }
    say("session %llx\n", (unsigned long long)zoo_client_id(zh)->client_id);
    zkr_queue_t queue;
    if (zkr_queue_init(&queue, zh, argv[2], &ZOO_OPEN_ACL_UNSAFE) != ZOK) {
        return 5;
    }
    if (argc == 7) {
        offer(&queue, atoi(argv[4]), atoi(argv[5]), atoi(argv[6]));
    } else {
        take(&queue);
    }
    zkr_queue_destroy(&queue);
    return zookeeper_close(zh) == ZOK ? 0 : 6;
}
