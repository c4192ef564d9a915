/* Does with a queue what it is told, a line at a time, and answers with a line each.
 *
 *   queue_tool HOSTS PATH SESSION_TIMEOUT_MS
 *
 *   offer null | offer empty | offer HEX   -> CODE
 *   element SIZE | remove SIZE | take SIZE -> CODE LENGTH HEX   (SIZE: of the buffer)
 *   session                                -> ID PASSWORD       (both in hex)
 *   auth SCHEME SECRET                     -> CODE              (of zoo_add_auth)
 *   paths N                                -> BYTES             (allocated, after the use of N other queues)
 *   narrow                                 -> ok                (what is made from now on can't be written to)
 *   error                                  -> what zkl_last_error() says
 *   fields                                 -> the struct's fields are as they should be, or not
 */
#include "zoo_queue.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *zkl_last_error(void);

#define MOST 2000000

static char line[2 * MOST + 100];
static char bytes[MOST + 1];

static int digit(char c) {
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static int from_hex(const char *hex) {
    int length = 0;
    for (; hex[0] != '\0' && hex[1] != '\0' && length < MOST; hex += 2) {
        bytes[length++] = (char)(digit(hex[0]) * 16 + digit(hex[1]));
    }
    return length;
}

static void print_hex(const char *data, int length) {
    for (int i = 0; i < length; i++) {
        printf("%02x", (unsigned char)data[i]);
    }
}

static int offer(zkr_queue_t *queue, const char *what) {
    if (strcmp(what, "null") == 0) {
        return zkr_queue_offer(queue, NULL, -1);
    }
    if (strcmp(what, "empty") == 0) {
        return zkr_queue_offer(queue, "", 0);
    }
    int length = from_hex(what);
    return zkr_queue_offer(queue, bytes, length);
}

static void receive(zkr_queue_t *queue, const char *how, int size) {
    int length = size;
    int code;
    memset(bytes, '#', sizeof bytes);
    if (strcmp(how, "element") == 0) {
        code = zkr_queue_element(queue, bytes, &length);
    } else if (strcmp(how, "remove") == 0) {
        code = zkr_queue_remove(queue, bytes, &length);
    } else {
        code = zkr_queue_take(queue->zh, queue, bytes, &length);
    }
    printf("%d %d ", code, length);
    int written = code == ZOK && length > 0 ? length : 0;
    print_hex(bytes, written);
    for (size_t i = (size_t)written; i < sizeof bytes; i++) {
        if (bytes[i] != '#') {
            printf(" and wrote beyond it");
            break;
        }
    }
    printf("\n");
}

static int fields_are_right(const zkr_queue_t *queue, zhandle_t *zh, char *path) {
    char create_path[300];
    snprintf(create_path, sizeof create_path, "%s/qn-", path);
    return queue->zh == zh && queue->path == path && queue->acl == &ZOO_OPEN_ACL_UNSAFE &&
           strcmp(queue->node_name, "qn-") == 0 && queue->node_name_length == 3 &&
           strcmp(queue->cached_create_path, create_path) == 0;
}

/* Each of so many threads uses its share of the others: one alone would mostly wait for answers. */
#define THREADS 16

struct share {
    zhandle_t *zh;
    int from, to;
    int failed;
};

static void *use_share(void *given) {
    struct share *share = given;
    for (int number = share->from; number < share->to; number++) {
        char path[50];
        char data;
        int length = 1;
        zkr_queue_t other;
        snprintf(path, sizeof path, "/one-of-many-%d", number);
        zkr_queue_init(&other, share->zh, path, &ZOO_OPEN_ACL_UNSAFE);
        if (zkr_queue_offer(&other, "x", 1) != ZOK ||
            zkr_queue_element(&other, &data, &length) != ZOK || length != 1) {
            share->failed = 1;
        }
        zkr_queue_destroy(&other);
    }
    return NULL;
}

static size_t use_others(zhandle_t *zh, int count) {
    static int used;
    pthread_t threads[THREADS];
    struct share shares[THREADS];
    int failed = 0;
    for (int i = 0; i < THREADS; i++) {
        shares[i] = (struct share){zh, used + count * i / THREADS, used + count * (i + 1) / THREADS, 0};
        if (pthread_create(&threads[i], NULL, use_share, &shares[i]) != 0) {
            exit(6);
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        failed |= shares[i].failed;
    }
    used += count;
    return failed ? 0 : mallinfo2().uordblks;
}

static void added(int rc, const void *data) {
    (void)rc;
    (void)data;
}

static int add_auth(zhandle_t *zh, char *scheme) {
    char *secret = strchr(scheme, ' ');
    if (secret == NULL) {
        return ZBADARGUMENTS;
    }
    *secret++ = '\0';
    return zoo_add_auth(zh, scheme, secret, (int)strlen(secret), added, NULL);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        return 2;
    }
    zoo_set_debug_level((ZooLogLevel)0);
    zhandle_t *zh = zookeeper_init(argv[1], NULL, atoi(argv[3]), NULL, NULL, 0);
    if (zh == NULL) {
        return 3;
    }
    zkr_queue_t made;
    if (zkr_queue_init(&made, zh, argv[2], &ZOO_OPEN_ACL_UNSAFE) != ZOK) {
        return 4;
    }
    /* All the work is done with a copy, as some programs do. */
    zkr_queue_t queue = made;
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *argument = strchr(line, ' ');
        if (argument != NULL) {
            *argument++ = '\0';
        }
        if (strcmp(line, "offer") == 0 && argument != NULL) {
            printf("%d\n", offer(&queue, argument));
        } else if (strcmp(line, "auth") == 0 && argument != NULL) {
            printf("%d\n", add_auth(zh, argument));
        } else if (strcmp(line, "paths") == 0 && argument != NULL) {
            printf("%zu\n", use_others(zh, atoi(argument)));
        } else if (strcmp(line, "narrow") == 0) {
            static struct ACL entry = {0, {(char *)"world", (char *)"anyone"}};
            static struct ACL_vector acl = {1, &entry};
            entry.perms = ZOO_PERM_READ | ZOO_PERM_CREATE | ZOO_PERM_DELETE;
            queue.acl = &acl;
            printf("ok\n");
        } else if (strcmp(line, "session") == 0) {
            const clientid_t *id = zoo_client_id(zh);
            printf("%llx ", (unsigned long long)id->client_id);
            print_hex(id->passwd, sizeof id->passwd);
            printf("\n");
        } else if (strcmp(line, "error") == 0) {
            printf("%s\n", zkl_last_error());
        } else if (strcmp(line, "fields") == 0) {
            printf("%s\n", fields_are_right(&made, zh, argv[2]) ? "right" : "wrong");
        } else if (argument != NULL) {
            receive(&queue, line, atoi(argument));
        }
    }
    zkr_queue_destroy(&made);
    return zookeeper_close(zh) == ZOK ? 0 : 5;
}
