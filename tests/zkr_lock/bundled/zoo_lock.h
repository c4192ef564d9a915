/*
 * A header of a program's own, with the recipe's ABI and nothing of zklock's. It comes first in the
 * include path, so no macro of zklock's header has any effect.
 */
#ifndef BUNDLED_ZOO_LOCK_H
#define BUNDLED_ZOO_LOCK_H

#include <pthread.h>

#include <zookeeper.h>

typedef void (*zkr_lock_completion)(int rc, void *cbdata);

typedef struct zkr_lock_mutex {
    zhandle_t *zh;
    char *path;
    struct ACL_vector *acl;
    char *id;
    void *cbdata;
    zkr_lock_completion completion;
    pthread_mutex_t pmutex;
    int isOwner;
    char *ownerid;
} zkr_lock_mutex_t;

int zkr_lock_init(zkr_lock_mutex_t *mutex, zhandle_t *zh, char *path, struct ACL_vector *acl);
int zkr_lock_init_cb(zkr_lock_mutex_t *mutex, zhandle_t *zh, char *path, struct ACL_vector *acl,
                     zkr_lock_completion completion, void *cbdata);
int zkr_lock_lock(zkr_lock_mutex_t *mutex);
int zkr_lock_unlock(zkr_lock_mutex_t *mutex);
void zkr_lock_setcallback(zkr_lock_mutex_t *mutex, zkr_lock_completion completion);
zkr_lock_completion zkr_lock_getcallback(zkr_lock_mutex_t *mutex);
int zkr_lock_destroy(zkr_lock_mutex_t *mutex);
char *zkr_lock_getpath(zkr_lock_mutex_t *mutex);
int zkr_lock_isowner(zkr_lock_mutex_t *mutex);
char *zkr_lock_getid(zkr_lock_mutex_t *mutex);

#endif
