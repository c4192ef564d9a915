/* The struct is laid out as programs that were compiled against the recipe have it, and the
 * functions have the recipe's types. Compiles as C and as C++. */
#include "zoo_queue.h"
/* Once more, and after zookeeper.h. */
#include "zoo_queue.h"

#include <stddef.h>

/* Fails to compile where it does not hold: C99 has no static assertion. */
#define HOLDS(name, condition) typedef char name[(condition) ? 1 : -1]

#if defined(__x86_64__) && defined(__linux__) && defined(__LP64__)
HOLDS(the_size, sizeof(struct zkr_queue) == 88);
HOLDS(zh, offsetof(struct zkr_queue, zh) == 0);
HOLDS(path, offsetof(struct zkr_queue, path) == 8);
HOLDS(acl, offsetof(struct zkr_queue, acl) == 16);
HOLDS(pmutex, offsetof(struct zkr_queue, pmutex) == 24);
HOLDS(node_name, offsetof(struct zkr_queue, node_name) == 64);
HOLDS(node_name_length, offsetof(struct zkr_queue, node_name_length) == 72);
HOLDS(cached_create_path, offsetof(struct zkr_queue, cached_create_path) == 80);
#endif

int (*const init)(zkr_queue_t *, zhandle_t *, char *, struct ACL_vector *) = zkr_queue_init;
int (*const offer)(zkr_queue_t *, const char *, int) = zkr_queue_offer;
int (*const element)(zkr_queue_t *, char *, int *) = zkr_queue_element;
int (*const removal)(zkr_queue_t *, char *, int *) = zkr_queue_remove;
int (*const take)(zhandle_t *, zkr_queue_t *, char *, int *) = zkr_queue_take;
void (*const destroy)(zkr_queue_t *) = zkr_queue_destroy;
