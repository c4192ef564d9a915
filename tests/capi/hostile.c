/* Every function with every argument that is wrong and that the header allows to pass: a code, or a
 * harmless value, each time. */
#include "check.h"

#include <limits.h>

#include <zookeeper/zookeeper.h>

/* Anything but what a function would write on success. */
static char canary;
#define UNTOUCHED ((void *)&canary)

static const char bad_utf8[] = "/\xff\xfe";

static void on_nothing(void)
{
    zkl_client *client = UNTOUCHED;
    zkl_lock *lock = UNTOUCHED;
    zkl_guard *guard = UNTOUCHED;
    zkl_attempt *attempt = UNTOUCHED;
    zkl_contenders *list = UNTOUCHED;
    int fd = 4711;
    struct Stat stat;

    CHECK(zkl_version() && zkl_version_number() > 0 && zkl_c_client_version());
    int codes[] = {0, 1, -1, -2000, -2006, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        CHECK(zkl_strerror(codes[i])[0] != '\0');
    CHECK(zkl_last_error() != NULL);

    GIVES(BAD_ARGUMENTS, zkl_client_connect(NULL, NULL, &client));
    GIVES(BAD_ARGUMENTS, zkl_client_connect(hosts, NULL, NULL));
    GIVES(BAD_ARGUMENTS, zkl_client_adopt(NULL, NULL, &client));
    GIVES(BAD_ARGUMENTS, zkl_client_adopt(NULL, NULL, NULL));
    GIVES(BAD_ARGUMENTS, zkl_client_follow(NULL, NULL));
    GIVES(BAD_ARGUMENTS, zkl_client_detach(NULL));
    GIVES(BAD_ARGUMENTS, zkl_client_state(NULL));
    CHECK(zkl_client_session_id(NULL) == 0);
    GIVES(BAD_ARGUMENTS, zkl_client_session_timeout_ms(NULL));
    zkl_client_free(NULL);

    GIVES(BAD_ARGUMENTS, zkl_lock_new(NULL, "/lock", NULL, &lock));
    CHECK(zkl_lock_path(NULL) == NULL);
    zkl_lock_free(NULL);
    GIVES(BAD_ARGUMENTS, zkl_lock_acquire(NULL, ZKL_FOREVER, &guard));
    GIVES(BAD_ARGUMENTS, zkl_lock_try(NULL, &guard));
    GIVES(BAD_ARGUMENTS, zkl_lock_acquire_async(NULL, 0, tell_done, NULL, NULL, &attempt));
    GIVES(BAD_ARGUMENTS, zkl_lock_try_async(NULL, tell_done, NULL, NULL));
    GIVES(BAD_ARGUMENTS, zkl_lock_contenders_async(NULL, 1, tell_contenders, NULL, NULL));
    GIVES(BAD_ARGUMENTS, zkl_attempt_cancel(NULL));
    zkl_attempt_free(NULL);
    GIVES(BAD_ARGUMENTS, zkl_lock_holder(NULL, &list));
    GIVES(BAD_ARGUMENTS, zkl_lock_contenders(NULL, &list));
    CHECK(zkl_contenders_count(NULL) == 0);
    CHECK(zkl_contenders_get(NULL, 0) == NULL);
    zkl_contenders_free(NULL);

    GIVES(BAD_ARGUMENTS, zkl_guard_state(NULL));
    GIVES(BAD_ARGUMENTS, zkl_guard_lost_reason(NULL));
    CHECK(zkl_guard_token(NULL) == BAD_ARGUMENTS);
    GIVES(BAD_ARGUMENTS, zkl_lock_limit(NULL, &fd));
    GIVES(BAD_ARGUMENTS, zkl_lock_set_limit(NULL, 1));
    const zkl_contender somebody = {.path = "/hostile/claim", .token = 1};
    GIVES(BAD_ARGUMENTS, zkl_lock_request_release(NULL, &somebody, ""));
    GIVES(BAD_ARGUMENTS, zkl_lock_break_hold(NULL, &somebody, "", 0, 0));
    GIVES(BAD_ARGUMENTS, zkl_guard_on_release_request(NULL, tell_request, NULL, NULL));
    CHECK(zkl_guard_path(NULL) == NULL);
    GIVES(BAD_ARGUMENTS, zkl_guard_on_lost(NULL, tell_lost, NULL, NULL));
    GIVES(BAD_ARGUMENTS, zkl_guard_wait_lost(NULL, ZKL_FOREVER));
    GIVES(BAD_ARGUMENTS, zkl_guard_fd(NULL, &fd));
    GIVES(BAD_ARGUMENTS, zkl_guard_state_fd(NULL, &fd));
    GIVES(BAD_ARGUMENTS, zkl_guard_take_state(NULL));
    GIVES(BAD_ARGUMENTS, zkl_guard_set(NULL, "/data", "x", 1, -1, &stat));
    GIVES(BAD_ARGUMENTS, zkl_guard_set_async(NULL, "/data", "x", 1, -1, tell_written, NULL, NULL));
    GIVES(BAD_ARGUMENTS, zkl_guard_release_async(NULL, 0, tell_rc, NULL, NULL));
    GIVES(BAD_ARGUMENTS, zkl_guard_release(NULL));
    GIVES(BAD_ARGUMENTS, zkl_guard_release_within(NULL, 0));
    zkl_guard_free(NULL);

    CHECK((void *)client == UNTOUCHED && (void *)lock == UNTOUCHED && (void *)guard == UNTOUCHED);
    CHECK((void *)attempt == UNTOUCHED && (void *)list == UNTOUCHED && fd == 4711);
}

static void connecting_with(zkl_client_options *options)
{
    zkl_client *client = UNTOUCHED;
    GIVES(BAD_ARGUMENTS, zkl_client_connect(hosts, options, &client));
    /* NULL is looked at last, so this tells of the options as well. */
    GIVES(BAD_ARGUMENTS, zkl_client_adopt(NULL, options, &client));
    CHECK((void *)client == UNTOUCHED);
}

static void hostile_hosts_and_options(void)
{
    const char *bad[] = {"", ",", " ", ":", "/", "127.0.0.1:0", "127.0.0.1:99999",
                         "[::1", "127.0.0.1:2181//a", "a,,b", "a\nb", bad_utf8};
    zkl_client *client = UNTOUCHED;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        GIVES(BAD_ARGUMENTS, zkl_client_connect(bad[i], NULL, &client));
    static char huge[1 << 20];
    memset(huge, ',', sizeof huge - 1);
    GIVES(BAD_ARGUMENTS, zkl_client_connect(huge, NULL, &client));
    CHECK((void *)client == UNTOUCHED);

    const zkl_client_options none = ZKL_CLIENT_OPTIONS_INIT;
    zkl_client_options options = none;
    /* The shortest that was ever published ends before the tick time. */
    size_t sizes[] = {0, 1, sizeof(size_t), offsetof(zkl_client_options, tick_time_ms) - 1, 100000, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        options.size = sizes[i];
        connecting_with(&options);
    }
    for (int i = 0; i < 3; i++) {
        options = none;
        (&options.session_timeout_ms)[i] = INT_MIN;
        connecting_with(&options);
    }
    options = none;
    options.auth_secret = "secret";
    options.auth_secret_len = 6;
    connecting_with(&options);
    options.auth_scheme = "";
    connecting_with(&options);
    options.auth_scheme = bad_utf8;
    connecting_with(&options);
    options.auth_scheme = "digest";
    options.auth_secret = NULL;
    connecting_with(&options);
    options.auth_secret_len = SIZE_MAX;
    connecting_with(&options);
    options.auth_secret = "secret";
    options.auth_secret_len = strlen("secret");
    options.max_request = strlen("digest") + strlen("secret") - 1;
    connecting_with(&options);
}

static void hostile_locks(zkl_client *client)
{
    const char *bad[] = {NULL, "", "lock", "/lock/", "//lock", "/a//b", "/a/./b", "/a/../b", "/a\n",
                         bad_utf8, "/\x01"};
    zkl_lock *lock = UNTOUCHED;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        GIVES(BAD_ARGUMENTS, zkl_lock_new(client, bad[i], NULL, &lock));
    GIVES(BAD_ARGUMENTS, zkl_lock_new(client, "/lock", NULL, NULL));

    const zkl_lock_options none = ZKL_LOCK_OPTIONS_INIT;
    zkl_lock_options options = none;
    int strategies[] = {-1, 3, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        options.strategy = strategies[i];
        GIVES(BAD_ARGUMENTS, zkl_lock_new(client, "/lock", &options, &lock));
    }
    for (int strategy = 1; strategy <= 2; strategy++) {
        options.strategy = strategy;
        GIVES(BAD_ARGUMENTS, zkl_lock_new(client, "/", &options, &lock));
    }
    options = none;
    int sharings[] = {-1, 4, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof sharings / sizeof *sharings; i++) {
        options.sharing = sharings[i];
        GIVES(BAD_ARGUMENTS, zkl_lock_new(client, "/lock", &options, &lock));
    }
    const zkl_lock_options unshared[] = {
        {sizeof none, ZKL_WATCH, NULL, NULL, ZKL_READ, 0, 0},
        {sizeof none, ZKL_POLL, NULL, NULL, ZKL_PERMITS, 1, 1},
        {sizeof none, ZKL_QUEUE, NULL, NULL, ZKL_EXCLUSIVE, 1, 0},
        {sizeof none, ZKL_QUEUE, NULL, NULL, ZKL_WRITE, 0, 1},
        {sizeof none, ZKL_QUEUE, NULL, NULL, ZKL_PERMITS, 1, 0},
        {sizeof none, ZKL_QUEUE, NULL, NULL, ZKL_PERMITS, -1, 3},
        {sizeof none, ZKL_QUEUE, NULL, NULL, ZKL_PERMITS, 1, INT_MIN},
    };
    for (size_t i = 0; i < sizeof unshared / sizeof *unshared; i++)
        GIVES(BAD_ARGUMENTS, zkl_lock_new(client, "/lock", &unshared[i], &lock));
    const zkl_lock_options permits = {sizeof permits, ZKL_QUEUE, NULL, NULL, ZKL_PERMITS, 0, 2};
    GIVES(BAD_ARGUMENTS, zkl_lock_new(client, "/", &permits, &lock));
    zkl_lock *semaphore = NULL, *plain = NULL;
    int limit = 4711;
    GIVES(OK, zkl_lock_new(client, "/hostile/semaphore", &permits, &semaphore));
    GIVES(OK, zkl_lock_new(client, "/hostile/plain", NULL, &plain));
    GIVES(BAD_ARGUMENTS, zkl_lock_limit(semaphore, NULL));
    GIVES(BAD_ARGUMENTS, zkl_lock_limit(plain, &limit));
    GIVES(BAD_ARGUMENTS, zkl_lock_set_limit(plain, 1));
    GIVES(BAD_ARGUMENTS, zkl_lock_set_limit(semaphore, 0));
    GIVES(BAD_ARGUMENTS, zkl_lock_set_limit(semaphore, INT_MIN));
    CHECK(limit == 4711);
    zkl_lock_free(semaphore);
    zkl_lock_free(plain);
    options = none;
    options.label = bad_utf8;
    GIVES(BAD_ARGUMENTS, zkl_lock_new(client, "/lock", &options, &lock));
    char world[] = "world", anyone[] = "anyone", odd[] = "\xff";
    struct ACL entries[] = {{0x1f, {world, anyone}}};
    struct ACL_vector acl = {0, entries};
    options = none;
    options.acl = &acl;
    int counts[] = {0, -1, INT_MIN};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        acl.count = counts[i];
        GIVES(INVALID_ACL, zkl_lock_new(client, "/lock", &options, &lock));
    }
    acl.count = 1;
    acl.data = NULL;
    GIVES(INVALID_ACL, zkl_lock_new(client, "/lock", &options, &lock));
    acl.data = entries;
    int permissions[] = {0, 64, -1};
    for (size_t i = 0; i < sizeof permissions / sizeof *permissions; i++) {
        entries[0].perms = permissions[i];
        GIVES(INVALID_ACL, zkl_lock_new(client, "/lock", &options, &lock));
    }
    entries[0].perms = 1;
    entries[0].id.scheme = NULL;
    GIVES(BAD_ARGUMENTS, zkl_lock_new(client, "/lock", &options, &lock));
    entries[0].id.scheme = world;
    entries[0].id.id = odd;
    GIVES(BAD_ARGUMENTS, zkl_lock_new(client, "/lock", &options, &lock));
    CHECK((void *)lock == UNTOUCHED);

    /* A label is for people: whatever is in it, it is one line of bounded length. */
    static char label[5000];
    memset(label, '\n', sizeof label - 1);
    options = none;
    options.label = label;
    GIVES(OK, zkl_lock_new(client, "/label", &options, &lock));
    zkl_guard *guard = acquired(lock);
    zkl_contenders *list = NULL;
    GIVES(OK, zkl_lock_holder(lock, &list));
    const char *told = zkl_contenders_get(list, 0)->label;
    CHECK(strlen(told) <= 256 && strchr(told, '\n') == NULL);
    CHECK(zkl_contenders_get(list, SIZE_MAX) == NULL);
    zkl_contenders_free(list);
    GIVES(OK, zkl_guard_release(guard));
    zkl_lock_free(lock);
}

static void hostile_acquires_and_guards(zkl_client *client)
{
    zkl_lock *lock = lock_on(client, "/lock");
    zkl_guard *guard = UNTOUCHED;
    zkl_attempt *attempt = UNTOUCHED;
    int timeouts[] = {-2, INT_MIN};
    for (size_t i = 0; i < sizeof timeouts / sizeof *timeouts; i++) {
        GIVES(BAD_ARGUMENTS, zkl_lock_acquire(lock, timeouts[i], &guard));
        GIVES(BAD_ARGUMENTS,
              zkl_lock_acquire_async(lock, timeouts[i], tell_done, NULL, NULL, &attempt));
    }
    GIVES(BAD_ARGUMENTS, zkl_lock_acquire(lock, 0, NULL));
    GIVES(BAD_ARGUMENTS, zkl_lock_try(lock, NULL));
    GIVES(BAD_ARGUMENTS, zkl_lock_acquire_async(lock, 0, NULL, NULL, NULL, &attempt));
    GIVES(BAD_ARGUMENTS, zkl_lock_holder(lock, NULL));
    GIVES(BAD_ARGUMENTS, zkl_lock_contenders(lock, NULL));
    GIVES(BAD_ARGUMENTS, zkl_lock_try_async(lock, NULL, NULL, finalize));
    GIVES(BAD_ARGUMENTS, zkl_lock_contenders_async(lock, 1, NULL, NULL, finalize));
    const zkl_contender nobody = {.path = "/hostile/nobody", .token = 1}, no_path = {.token = 1};
    GIVES(BAD_ARGUMENTS, zkl_lock_request_release(lock, NULL, ""));
    GIVES(BAD_ARGUMENTS, zkl_lock_request_release(lock, &no_path, ""));
    GIVES(BAD_ARGUMENTS, zkl_lock_request_release(lock, &nobody, NULL));
    GIVES(BAD_ARGUMENTS, zkl_lock_request_release(lock, &nobody, bad_utf8));
    GIVES(NOTHING, zkl_lock_request_release(lock, &nobody, ""));
    GIVES(BAD_ARGUMENTS, zkl_lock_break_hold(lock, NULL, "", 0, 0));
    GIVES(BAD_ARGUMENTS, zkl_lock_break_hold(lock, &nobody, "", -1, 0));
    GIVES(BAD_ARGUMENTS, zkl_lock_break_hold(lock, &nobody, "", 0, -2));
    GIVES(NOTHING, zkl_lock_break_hold(lock, &nobody, "", INT_MAX, ZKL_FOREVER));
    CHECK((void *)guard == UNTOUCHED && (void *)attempt == UNTOUCHED);
    GIVES(OK, zkl_lock_acquire(lock, INT_MAX, &guard));
    GIVES(BAD_ARGUMENTS, zkl_guard_on_release_request(guard, NULL, NULL, finalize));

    GIVES(BAD_ARGUMENTS, zkl_guard_on_lost(guard, NULL, NULL, finalize));
    GIVES(BAD_ARGUMENTS, zkl_guard_wait_lost(guard, -2));
    GIVES(BAD_ARGUMENTS, zkl_guard_set_async(guard, "/data", "x", 1, -1, NULL, NULL, finalize));
    GIVES(BAD_ARGUMENTS, zkl_guard_set_async(guard, NULL, "x", 1, -1, tell_written, NULL, finalize));
    GIVES(BAD_ARGUMENTS, zkl_guard_set_async(guard, "/data", "x", 1, -2, tell_written, NULL, finalize));
    GIVES(BAD_ARGUMENTS, zkl_guard_fd(guard, NULL));
    GIVES(BAD_ARGUMENTS, zkl_guard_state_fd(guard, NULL));
    struct Stat stat;
    const char *bad[] = {NULL, "", "data", "/data/", "/a\n", bad_utf8};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        GIVES(BAD_ARGUMENTS, zkl_guard_set(guard, bad[i], "x", 1, -1, &stat));
    GIVES(BAD_ARGUMENTS, zkl_guard_set(guard, "/data", NULL, 1, -1, &stat));
    GIVES(BAD_ARGUMENTS, zkl_guard_set(guard, "/data", "x", SIZE_MAX, -1, &stat));
    GIVES(BAD_ARGUMENTS, zkl_guard_set(guard, "/data", "x", 1, INT_MIN, &stat));
    static char huge[2 << 20];
    GIVES(BAD_ARGUMENTS, zkl_guard_set(guard, "/data", huge, sizeof huge, -1, &stat));
    CHECK(zkl_guard_state(guard) == ZKL_HELD);
    GIVES(OK, zkl_guard_release(guard));
    zkl_lock_free(lock);

    /* A path that is something else than a lock. */
    ask("create /plain");
    zkl_lock_options watch = {sizeof watch, ZKL_WATCH, NULL, NULL, 0, 0, 0};
    GIVES(OK, zkl_lock_new(client, "/plain", &watch, &lock));
    GIVES(ZNODEEXISTS, zkl_lock_acquire(lock, ZKL_FOREVER, &guard));
    zkl_lock_free(lock);
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    on_nothing();
    hostile_hosts_and_options();
    zkl_client *client = connected();
    hostile_locks(client);
    hostile_acquires_and_guards(client);
    CHECK(zkl_client_state(client) == ZKL_CONNECTED);
    zkl_client_free(client);
    return 0;
}
