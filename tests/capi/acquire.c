/* Clients, locks and guards, used by threads that wait. */
#include "check.h"

#include <unistd.h>

#include <zookeeper/zookeeper.h>

static void versions_and_words(void)
{
    CHECK(strcmp(zkl_version(), ZKL_VERSION) == 0);
    CHECK(zkl_version_number() == ZKL_VERSION_NUMBER);
    CHECK(strlen(zkl_c_client_version()) > 0);
    int codes[] = {ZOK, ZOPERATIONTIMEOUT, ZNONODE, ZKL_TAKEN, ZKL_CANCELLED, ZKL_WOULD_DEADLOCK,
                   ZKL_PANIC, ZKL_NOT_HELD, ZKL_OUTCOME_UNKNOWN, ZKL_NOT_CONNECTED};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        CHECK(strcmp(zkl_strerror(codes[i]), zkl_strerror(-9999)) != 0);
}

static void sizes_of_options(zkl_client *client)
{
    struct {
        zkl_lock_options options;
        char later[64];
    } newer;
    zkl_lock *const untouched = (zkl_lock *)&newer;
    zkl_lock *lock = untouched;
    memset(&newer, 0, sizeof newer);
    size_t bad[] = {0, 1, sizeof(size_t), offsetof(zkl_lock_options, sharing) - 1, 1000000, (size_t)-1};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        newer.options.size = bad[i];
        GIVES(BAD_ARGUMENTS, zkl_lock_new(client, "/sizes", &newer.options, &lock));
    }
    newer.options.size = sizeof newer;
    newer.later[40] = 1;
    GIVES(BAD_ARGUMENTS, zkl_lock_new(client, "/sizes", &newer.options, &lock));
    CHECK(lock == untouched);
    newer.later[40] = 0;
    GIVES(OK, zkl_lock_new(client, "/sizes", &newer.options, &lock));
    zkl_lock_free(lock);
    /* A program that was compiled before locks could be shared. */
    newer.options.size = offsetof(zkl_lock_options, sharing);
    GIVES(OK, zkl_lock_new(client, "/sizes", &newer.options, &lock));
    zkl_lock_free(lock);
    /* Nor is what lies behind the fields that it knows one of them. */
    memset(&newer.options.limit + 1, 0xff, sizeof newer.options - offsetof(zkl_lock_options, limit) - sizeof(int));
    newer.options.size = offsetof(zkl_lock_options, interop);
    GIVES(OK, zkl_lock_new(client, "/sizes", &newer.options, &lock));
    zkl_lock_free(lock);
}

static void for_all_libraries(zkl_client *client)
{
    zkl_lock_options options = ZKL_LOCK_OPTIONS_INIT;
    options.interop = ZKL_INTEROP_ALL;
    zkl_lock *lock = NULL, *plain = NULL;
    zkl_guard *guard = NULL, *other = NULL;
    GIVES(OK, zkl_lock_new(client, "/for-all", &options, &lock));
    GIVES(OK, zkl_lock_new(client, "/for-all", NULL, &plain));
    GIVES(OK, zkl_lock_acquire(lock, ZKL_FOREVER, &guard));
    GIVES(TIMEOUT, zkl_lock_acquire(plain, 0, &other));
    zkl_contenders *contenders = NULL;
    GIVES(OK, zkl_lock_contenders(plain, &contenders));
    CHECK(zkl_contenders_count(contenders) == 1);
    zkl_contenders_free(contenders);
    GIVES(OK, zkl_guard_release(guard));
    GIVES(OK, zkl_lock_acquire(plain, ZKL_FOREVER, &other));
    GIVES(TIMEOUT, zkl_lock_acquire(lock, 0, &guard));
    GIVES(OK, zkl_guard_release(other));
    zkl_lock_free(lock);
    zkl_lock_free(plain);
}

/* Who waits again after it has waited makes a claim that nobody else may write to: that is what others count on. */
static void releases_that_are_announced(void)
{
    zkl_client *client = NULL;
    zkl_lock *lock = NULL;
    zkl_guard *second = NULL;
    GIVES(OK, zkl_client_connect(hosts, NULL, &client));
    GIVES(OK, zkl_lock_new(client, "/announced", NULL, &lock));
    zkl_guard *first = acquired(lock);
    /* It has waited once it knows for whom. */
    int limit_ms = 50;
    do
        GIVES(TIMEOUT, zkl_lock_acquire(lock, limit_ms, &second));
    while (strstr(zkl_last_error(), "no word") != NULL && (limit_ms *= 2) < TIMEOUT_MS);
    told t;
    told_init(&t);
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &t, NULL, NULL));
    UNTIL(contenders_of(lock) == 2);
    zkl_contenders *list = NULL;
    GIVES(OK, zkl_lock_contenders(lock, &list));
    char set[600];
    snprintf(set, sizeof set, "set %s", zkl_contenders_get(list, 1)->path);
    CHECK(strstr(ask(set), "not authorized") != NULL);
    zkl_contenders_free(list);
    GIVES(OK, zkl_guard_release(first));
    UNTIL(told_calls(&t) == 1);
    GIVES(OK, zkl_guard_release(t.guard));
    zkl_lock_free(lock);
    zkl_client_free(client);
}

static void connecting_in_vain(void)
{
    zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    zkl_client *const untouched = (zkl_client *)&options;
    zkl_client *client = untouched;
    options.connect_timeout_ms = 100;
    GIVES(TIMEOUT, zkl_client_connect("127.0.0.1:1", &options, &client));
    GIVES(BAD_ARGUMENTS, zkl_client_connect("127.0.0.1:port", NULL, &client));
    options.session_timeout_ms = -1;
    GIVES(BAD_ARGUMENTS, zkl_client_connect(hosts, &options, &client));
    CHECK(client == untouched);
}

static void a_lock_of(zkl_client *client, int strategy, const char *path)
{
    zkl_lock_options options = ZKL_LOCK_OPTIONS_INIT;
    options.strategy = strategy;
    options.label = "billing";
    zkl_lock *lock = NULL;
    GIVES(OK, zkl_lock_new(client, path, &options, &lock));
    CHECK(strcmp(zkl_lock_path(lock), path) == 0);
    zkl_contenders *list = NULL;
    GIVES(OK, zkl_lock_holder(lock, &list));
    CHECK(zkl_contenders_count(list) == 0 && zkl_contenders_get(list, 0) == NULL);
    zkl_contenders_free(list);

    zkl_guard *first = NULL;
    GIVES(OK, zkl_lock_try(lock, &first));
    CHECK(zkl_guard_state(first) == ZKL_HELD && zkl_guard_lost_reason(first) == 0);
    CHECK(strcmp(zkl_guard_path(first), path) == 0);
    char claim[8];
    CHECK(zkl_guard_claim_path(first, claim, sizeof claim) == strlen(claim_of(first)));
    CHECK(strlen(claim) == 7 && strncmp(claim, claim_of(first), 7) == 0);
    CHECK(zkl_guard_claim_path(first, NULL, 0) == strlen(claim_of(first)));
    int64_t token = zkl_guard_token(first);
    CHECK(token > 0);

    zkl_guard *const untouched = (zkl_guard *)&options;
    zkl_guard *second = untouched;
    GIVES(ZKL_TAKEN, zkl_lock_try(lock, &second));
    GIVES(TIMEOUT, zkl_lock_acquire(lock, 0, &second));
    GIVES(TIMEOUT, zkl_lock_acquire(lock, 50, &second));
    CHECK(second == untouched);

    GIVES(OK, zkl_lock_holder(lock, &list));
    CHECK(zkl_contenders_count(list) == 1 && zkl_contenders_get(list, 1) == NULL);
    const zkl_contender *holder = zkl_contenders_get(list, 0);
    CHECK(strcmp(holder->path, claim_of(first)) == 0);
    CHECK(holder->session_id == zkl_client_session_id(client));
    CHECK(holder->token == token && holder->pid == (uint32_t)getpid());
    CHECK(strcmp(holder->label, "billing") == 0 && holder->since_ms > 0);
    CHECK(strlen(holder->host) > 0 && strlen(holder->thread) > 0);
    zkl_contenders_free(list);

    GIVES(OK, zkl_guard_release(first));
    for (int i = 0; i < 5; i++) {
        second = acquired(lock);
        CHECK(zkl_guard_token(second) > token);
        token = zkl_guard_token(second);
        zkl_guard_free(second);
    }
    zkl_lock_free(lock);
}

static zkl_lock *shared_on(zkl_client *client, const char *path, int sharing, int permits, int limit)
{
    zkl_lock_options options = ZKL_LOCK_OPTIONS_INIT;
    options.sharing = sharing;
    options.permits = permits;
    options.limit = limit;
    zkl_lock *lock = NULL;
    GIVES(OK, zkl_lock_new(client, path, &options, &lock));
    return lock;
}

static void readers_hold_together_and_a_writer_alone(zkl_client *client)
{
    zkl_lock *read = shared_on(client, "/shared/catalogue", ZKL_READ, 0, 0);
    zkl_lock *write = shared_on(client, "/shared/catalogue", ZKL_WRITE, 0, 0);
    zkl_guard *first = acquired(read), *second = acquired(read), *none = NULL;
    GIVES(ZKL_TAKEN, zkl_lock_try(write, &none));
    GIVES(OK, zkl_guard_release(first));
    GIVES(TIMEOUT, zkl_lock_acquire(write, 50, &none));
    GIVES(OK, zkl_guard_release(second));
    zkl_guard *writing = acquired(write);
    GIVES(ZKL_TAKEN, zkl_lock_try(read, &none));
    GIVES(ZKL_TAKEN, zkl_lock_try(write, &none));
    GIVES(OK, zkl_guard_release(writing));
    zkl_lock_free(read);
    zkl_lock_free(write);
}

static void an_upgradeable_reader_writes_and_reads_again(zkl_client *client)
{
    zkl_lock *read = shared_on(client, "/shared/upgrade", ZKL_READ, 0, 0);
    zkl_lock *look = shared_on(client, "/shared/upgrade", ZKL_UPGRADEABLE, 0, 0);
    zkl_lock *write = shared_on(client, "/shared/upgrade", ZKL_WRITE, 0, 0);
    zkl_guard *other = acquired(read), *guard = acquired(look), *none = NULL;
    int64_t token = zkl_guard_token(guard);
    GIVES(ZKL_TAKEN, zkl_lock_try(look, &none));
    CHECK(zkl_guard_access(guard) == ZKL_UPGRADEABLE && zkl_guard_access(other) == ZKL_READ);
    GIVES(BAD_ARGUMENTS, zkl_guard_upgrade(other, 0));
    GIVES(TIMEOUT, zkl_guard_upgrade(guard, 50));
    CHECK(zkl_guard_access(guard) == ZKL_UPGRADEABLE && zkl_guard_state(guard) == ZKL_HELD);
    GIVES(OK, zkl_guard_release(other));
    GIVES(OK, zkl_guard_upgrade(guard, ZKL_FOREVER));
    CHECK(zkl_guard_access(guard) == ZKL_WRITE);
    GIVES(ZKL_TAKEN, zkl_lock_try(read, &none));
    GIVES(BAD_ARGUMENTS, zkl_guard_downgrade(guard, ZKL_WRITE, 0));
    GIVES(BAD_ARGUMENTS, zkl_guard_downgrade(guard, ZKL_READ, -2));
    GIVES(OK, zkl_guard_downgrade(guard, ZKL_UPGRADEABLE, ZKL_FOREVER));
    char before[256];
    zkl_guard_claim_path(guard, before, sizeof before);
    GIVES(OK, zkl_guard_downgrade(guard, ZKL_READ, ZKL_FOREVER));
    CHECK(strstr(before, "-up-__READ__") != NULL && strcmp(claim_of(guard), before) != 0);
    GIVES(OK, zkl_guard_release(acquired(look)));
    CHECK(zkl_guard_token(guard) == token);
    GIVES(OK, zkl_guard_release(guard));
    guard = acquired(write);
    GIVES(OK, zkl_guard_downgrade(guard, ZKL_READ, ZKL_FOREVER));
    GIVES(OK, zkl_guard_release(acquired(read)));
    GIVES(OK, zkl_guard_release(guard));
    zkl_lock_free(read);
    zkl_lock_free(look);
    zkl_lock_free(write);
}

static void permits_add_up_to_the_limit(zkl_client *client)
{
    zkl_lock *one = shared_on(client, "/shared/transfers", ZKL_PERMITS, 0, 3);
    zkl_lock *two = shared_on(client, "/shared/transfers", ZKL_PERMITS, 2, 9);
    int limit = 0;
    GIVES(OK, zkl_lock_limit(one, &limit));
    CHECK(limit == 3);
    zkl_guard *first = acquired(one), *second = acquired(two), *third = NULL;
    GIVES(ZKL_TAKEN, zkl_lock_try(one, &third));
    GIVES(OK, zkl_lock_set_limit(two, 4));
    GIVES(OK, zkl_lock_limit(two, &limit));
    CHECK(limit == 4);
    GIVES(OK, zkl_lock_try(one, &third));
    GIVES(OK, zkl_lock_set_limit(one, 1));
    CHECK(zkl_guard_state(first) == ZKL_HELD && zkl_guard_state(third) == ZKL_HELD);
    zkl_guard *none = NULL;
    GIVES(BAD_ARGUMENTS, zkl_lock_acquire(two, ZKL_FOREVER, &none));
    GIVES(OK, zkl_guard_release(first));
    GIVES(OK, zkl_guard_release(second));
    GIVES(ZKL_TAKEN, zkl_lock_try(one, &none));
    GIVES(OK, zkl_guard_release(third));
    zkl_lock_free(one);
    zkl_lock_free(two);
}

static void *try_here(void *lock)
{
    zkl_guard *guard = NULL;
    GIVES(ZKL_TAKEN, zkl_lock_try(lock, &guard));
    return NULL;
}

static void a_thread_acquires_again_what_it_holds(zkl_client *client)
{
    zkl_lock *plain = lock_on(client, "/reentrant"), *lock = NULL, *same = NULL, *owner = NULL;
    GIVES(OK, zkl_lock_reentrant(plain, &lock));
    GIVES(OK, zkl_lock_reentrant(lock, &same));
    GIVES(OK, zkl_lock_as_owner(lock, &owner));
    zkl_guard *outer = acquired(lock), *inner = acquired(same), *third = NULL, *none = NULL;
    GIVES(OK, zkl_lock_try(lock, &third));
    CHECK(zkl_guard_holds(outer) == 3 && zkl_guard_token(outer) == zkl_guard_token(third));
    GIVES(ZKL_TAKEN, zkl_lock_try(plain, &none));
    GIVES(ZKL_TAKEN, zkl_lock_try(owner, &none));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, try_here, lock) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    GIVES(OK, zkl_guard_release(outer));
    zkl_guard_free(third);
    CHECK(zkl_guard_holds(inner) == 1 && zkl_guard_state(inner) == ZKL_HELD);
    GIVES(TIMEOUT, zkl_lock_acquire(owner, 50, &none));
    GIVES(OK, zkl_guard_release(inner));

    outer = acquired(owner);
    inner = acquired(owner);
    CHECK(zkl_guard_holds(inner) == 2);
    GIVES(ZKL_TAKEN, zkl_lock_try(lock, &none));
    zkl_lock_free(owner);
    GIVES(OK, zkl_guard_release(inner));
    CHECK(zkl_guard_holds(outer) == 1 && zkl_guard_state(outer) == ZKL_HELD);
    GIVES(OK, zkl_guard_release(outer));

    outer = acquired(lock);
    ask("delete %s", claim_of(outer));
    GIVES(OK, zkl_guard_wait_lost(outer, ZKL_FOREVER));
    GIVES(ZKL_NOT_HELD, zkl_lock_acquire(lock, ZKL_FOREVER, &none));
    GIVES(ZKL_NOT_HELD, zkl_lock_try(lock, &none));
    GIVES(NO_NODE, zkl_guard_release(outer));
    inner = acquired(lock);
    CHECK(zkl_guard_holds(inner) == 1);
    GIVES(OK, zkl_guard_release(inner));
    zkl_lock_free(plain);
    zkl_lock_free(same);
    zkl_lock_free(lock);
}

static void *wait_for(void *lock)
{
    zkl_guard *guard = NULL;
    GIVES(OK, zkl_lock_acquire(lock, ZKL_FOREVER, &guard));
    return guard;
}

static void a_waiter_gets_it_when_it_is_released(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, "/waiters");
    zkl_guard *first = acquired(lock);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_for, lock) == 0);
    UNTIL(contenders_of(lock) == 2);
    int64_t token = zkl_guard_token(first);
    GIVES(OK, zkl_guard_release(first));
    void *second = NULL;
    CHECK(pthread_join(thread, &second) == 0);
    CHECK(zkl_guard_token(second) > token && zkl_guard_state(second) == ZKL_HELD);
    GIVES(OK, zkl_guard_release(second));
    zkl_lock_free(lock);
}

static void a_write_that_the_lock_guards(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, "/guarded/lock");
    zkl_guard *guard = acquired(lock);
    struct Stat stat;
    ask("create /data");
    GIVES(OK, zkl_guard_set(guard, "/data", "one", 3, -1, &stat));
    CHECK(stat.version == 1 && stat.dataLength == 3);
    CHECK(strcmp(ask("get /data"), "one") == 0);
    GIVES(OK, zkl_guard_set(guard, "/data", "two", 3, 1, NULL));
    stat.version = 77;
    GIVES(BAD_VERSION, zkl_guard_set(guard, "/data", "three", 5, 1, &stat));
    GIVES(NO_NODE, zkl_guard_set(guard, "/none", "three", 5, -1, &stat));
    GIVES(BAD_ARGUMENTS, zkl_guard_set(guard, "/data", NULL, 5, -1, &stat));
    GIVES(BAD_ARGUMENTS, zkl_guard_set(guard, "/data", "three", 5, -2, &stat));
    CHECK(stat.version == 77);
    CHECK(strcmp(ask("get /data"), "two") == 0);
    GIVES(OK, zkl_guard_set(guard, "/data", NULL, 0, 2, &stat));
    CHECK(stat.version == 3 && stat.dataLength == 0);
    GIVES(OK, zkl_guard_release(guard));
    zkl_lock_free(lock);
}

static void acls(zkl_client *stranger)
{
    zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.auth_scheme = "digest";
    options.auth_secret = "user:secret";
    options.auth_secret_len = 11;
    options.session_timeout_ms = session_timeout_ms;
    zkl_client *client = NULL;
    GIVES(OK, zkl_client_connect(hosts, &options, &client));
    zkl_lock_options secret = {sizeof secret, ZKL_QUEUE, NULL, &ZOO_CREATOR_ALL_ACL, 0, 0, 0, 0};
    zkl_lock *lock = NULL;
    GIVES(OK, zkl_lock_new(client, "/secret", &secret, &lock));
    zkl_guard *guard = acquired(lock);
    zkl_lock *strange = lock_on(stranger, "/secret");
    zkl_contenders *list = NULL;
    GIVES(NO_AUTH, zkl_lock_contenders(strange, &list));
    GIVES(NO_AUTH, zkl_lock_try(strange, &guard));
    CHECK(contenders_of(lock) == 1 && list == NULL);
    GIVES(OK, zkl_guard_release(guard));
    zkl_lock_free(strange);
    zkl_lock_free(lock);
    zkl_client_free(client);
}

static void objects_are_freed_in_any_order(void)
{
    zkl_client *client = connected();
    zkl_lock *lock = lock_on(client, "/order");
    zkl_guard *guard = acquired(lock);
    zkl_client_free(client);
    zkl_lock_free(lock);
    CHECK(zkl_guard_state(guard) == ZKL_HELD);
    GIVES(OK, zkl_guard_release(guard));

    client = connected();
    lock = lock_on(client, "/order");
    guard = acquired(lock);
    zkl_guard_free(guard);
    zkl_client_free(client);
    guard = acquired(lock);
    zkl_lock_free(lock);
    zkl_guard_free(guard);
}

static void a_session_that_is_ended(void)
{
    zkl_client *client = connected();
    zkl_lock *lock = lock_on(client, "/ended");
    zkl_guard *guard = acquired(lock);
    zkl_guard *const untouched = guard;
    GIVES(OK, zkl_client_detach(client));
    GIVES(OK, zkl_client_detach(client));
    CHECK(zkl_client_state(client) == ZKL_CLOSED && zkl_client_session_id(client) == 0);
    CHECK(zkl_guard_state(guard) == ZKL_LOST && zkl_guard_lost_reason(guard) == ZKL_LOST_SESSION);
    GIVES(OK, zkl_guard_wait_lost(guard, ZKL_FOREVER));
    zkl_guard *second = untouched;
    GIVES(INVALID_STATE, zkl_lock_acquire(lock, ZKL_FOREVER, &second));
    GIVES(INVALID_STATE, zkl_lock_try(lock, &second));
    GIVES(ZKL_NOT_HELD, zkl_guard_set(guard, "/data", "lost", 4, -1, NULL));
    CHECK(second == untouched && strcmp(ask("get /data"), "") == 0);
    CHECK(zkl_guard_release(guard) != OK);
    zkl_lock_free(lock);
    zkl_client_free(client);
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    CHECK(zkl_last_error()[0] == '\0');
    versions_and_words();
    connecting_in_vain();
    zkl_client *client = connected();
    CHECK(zkl_client_state(client) == ZKL_CONNECTED && zkl_client_session_id(client) != 0);
    CHECK(zkl_client_session_timeout_ms(client) == session_timeout_ms);
    sizes_of_options(client);
    for_all_libraries(client);
    releases_that_are_announced();
    a_lock_of(client, ZKL_QUEUE, "/locks/queue");
    a_lock_of(client, ZKL_WATCH, "/locks/watch");
    a_lock_of(client, ZKL_POLL, "/locks/poll");
    readers_hold_together_and_a_writer_alone(client);
    an_upgradeable_reader_writes_and_reads_again(client);
    permits_add_up_to_the_limit(client);
    a_thread_acquires_again_what_it_holds(client);
    a_waiter_gets_it_when_it_is_released(client);
    a_write_that_the_lock_guards(client);
    acls(client);
    objects_are_freed_in_any_order();
    a_session_that_is_ended();
    zkl_client_free(client);
    return 0;
}
