/*
 * libzoolock-owner: zkr_lock_lock() for programs that read ownership from its result. A program finds
 * this one because the library stands before libzklock, which has the rest.
 */
#include <zoo_lock.h>

int zkr_lock_lock(zkr_lock_mutex_t *mutex)
{
    return zkr_lock_lock_owner(mutex);
}
