/*
 * What programs that were compiled with the recipe's header rely on: where the struct's fields are,
 * and what the functions take and give.
 */
#include <pthread.h>
#include <stddef.h>

#include <zookeeper.h>
#include <zoo_lock.h>

#ifdef __cplusplus
#define HOLDS(what) static_assert(what, #what)
#else
#define HOLDS(what) _Static_assert(what, #what)
#endif

#define AT(field) offsetof(struct zkr_lock_mutex, field)

HOLDS(AT(zh) == 0);
HOLDS(AT(path) == sizeof(void *));
HOLDS(AT(acl) == 2 * sizeof(void *));
HOLDS(AT(id) == 3 * sizeof(void *));
HOLDS(AT(cbdata) == 4 * sizeof(void *));
HOLDS(AT(completion) == 5 * sizeof(void *));
HOLDS(AT(pmutex) == 6 * sizeof(void *));
HOLDS(AT(isOwner) == AT(pmutex) + sizeof(pthread_mutex_t));
HOLDS(AT(ownerid) >= AT(isOwner) + sizeof(int) && AT(ownerid) <= AT(isOwner) + sizeof(void *));
HOLDS(sizeof(struct zkr_lock_mutex) == AT(ownerid) + sizeof(char *));
HOLDS(sizeof(zkr_lock_mutex_t) == sizeof(struct zkr_lock_mutex));
#if defined(__x86_64__) && defined(__LP64__)
HOLDS(AT(pmutex) == 48 && AT(isOwner) == 88 && AT(ownerid) == 96);
HOLDS(sizeof(zkr_lock_mutex_t) == 104);
#endif

/* The types of the fields, and of the functions, exactly. */
static zkr_lock_mutex_t mutex;
static zhandle_t **const zh = &mutex.zh;
static char **const path = &mutex.path;
static struct ACL_vector **const acl = &mutex.acl;
static char **const id = &mutex.id;
static void **const cbdata = &mutex.cbdata;
static void (**const completion)(int, void *) = &mutex.completion;
static pthread_mutex_t *const pmutex = &mutex.pmutex;
static int *const is_owner = &mutex.isOwner;
static char **const ownerid = &mutex.ownerid;

static struct {
    int (*init)(zkr_lock_mutex_t *, zhandle_t *, char *, struct ACL_vector *);
    int (*init_cb)(zkr_lock_mutex_t *, zhandle_t *, char *, struct ACL_vector *,
                   zkr_lock_completion, void *);
    int (*lock)(zkr_lock_mutex_t *);
    int (*lock_owner)(zkr_lock_mutex_t *);
    int (*error)(zkr_lock_mutex_t *);
    int (*unlock)(zkr_lock_mutex_t *);
    void (*setcallback)(zkr_lock_mutex_t *, zkr_lock_completion);
    zkr_lock_completion (*getcallback)(zkr_lock_mutex_t *);
    int (*destroy)(zkr_lock_mutex_t *);
    char *(*getpath)(zkr_lock_mutex_t *);
    int (*isowner)(zkr_lock_mutex_t *);
    char *(*getid)(zkr_lock_mutex_t *);
} functions = {zkr_lock_init,        zkr_lock_init_cb,     zkr_lock_lock,
               zkr_lock_lock_owner,  zkr_lock_error,       zkr_lock_unlock,
               zkr_lock_setcallback, zkr_lock_getcallback, zkr_lock_destroy, zkr_lock_getpath,
               zkr_lock_isowner,     zkr_lock_getid};

int main(void)
{
    int fields = *zh == NULL && *path == NULL && *acl == NULL && *id == NULL && *cbdata == NULL &&
                 *completion == NULL && *is_owner == 0 && *ownerid == NULL;
    (void)pmutex;
    /* Taking their addresses needs them all. */
    return fields && functions.getid(&mutex) == NULL ? 0 : 1;
}
