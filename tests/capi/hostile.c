/* Every function with every argument that is wrong and that the header allows to pass: a code, or a
 * harmless value, each time. */
#include "check.h"

#include <limits.h>

#include <zookeeper/zookeeper.h>

/* Anything but what a function would write on success. */
static char canary;
#define UNTOUCHED ((void *)&canary)

static const char bad_utf8[] = "/\xff\xfe";

static void see_members(int rc, zkl_members *members, void *userdata)
{
    tell(userdata, rc, NULL);
    zkl_members_free(members);
}

static void take_delivery(int rc, zkl_delivery *delivery, void *userdata)
{
    tell(userdata, rc, NULL);
    zkl_delivery_free(delivery);
}

static void take_entered(int rc, zkl_entered *entered, void *userdata)
{
    tell(userdata, rc, NULL);
    zkl_entered_free(entered);
}

static void recipes_on_nothing(void)
{
    zkl_multi_lock *multi = UNTOUCHED;
    zkl_election *election = UNTOUCHED;
    zkl_counter *counter = UNTOUCHED;
    zkl_queue *queue = UNTOUCHED;
    zkl_delivery *delivery = UNTOUCHED;
    zkl_group *group = UNTOUCHED;
    zkl_membership *membership = UNTOUCHED;
    zkl_members *members = UNTOUCHED;
    zkl_latch *latch = UNTOUCHED;
    zkl_barrier *barrier = UNTOUCHED;
    zkl_double_barrier *both = UNTOUCHED;
    zkl_entered *entered = UNTOUCHED;
    zkl_guard *guard = UNTOUCHED;
    zkl_lock *lock = UNTOUCHED;
    zkl_contenders *list = UNTOUCHED;
    zkl_attempt *attempt = UNTOUCHED;
    zkl_watch *watch = UNTOUCHED;
    const zkl_lock *no_locks[] = {NULL, NULL};
    const zkl_contender somebody = {.path = "/hostile/claim", .token = 1};
    int64_t value = 4711;
    uint32_t left = 4711;
    size_t len = 4711;

    GIVES(BAD_ARGUMENTS, zkl_multi_lock_new(NULL, 1, &multi));
    GIVES(BAD_ARGUMENTS, zkl_multi_lock_new(no_locks, 0, &multi));
    GIVES(BAD_ARGUMENTS, zkl_multi_lock_new(no_locks, 2, &multi));
    GIVES(BAD_ARGUMENTS, zkl_multi_lock_new(no_locks, SIZE_MAX, &multi));
    GIVES(BAD_ARGUMENTS, zkl_multi_lock_acquire(NULL, ZKL_FOREVER, &guard));
    GIVES(BAD_ARGUMENTS, zkl_multi_lock_try(NULL, &guard));
    GIVES(BAD_ARGUMENTS, zkl_multi_lock_acquire_async(NULL, 0, tell_done, NULL, NULL, &attempt));
    zkl_multi_lock_free(NULL);
    GIVES(BAD_ARGUMENTS, zkl_lock_of_key(NULL, "/keys", "key", 3, NULL, &lock));
    zkl_watch_free(NULL);

    GIVES(BAD_ARGUMENTS, zkl_election_new(NULL, "/election", NULL, &election));
    GIVES(BAD_ARGUMENTS, zkl_election_campaign(NULL, ZKL_FOREVER, &guard));
    GIVES(BAD_ARGUMENTS, zkl_election_campaign_async(NULL, 0, tell_done, NULL, NULL, &attempt));
    GIVES(BAD_ARGUMENTS, zkl_election_hand_over(NULL, NULL, &somebody, 0));
    GIVES(BAD_ARGUMENTS, zkl_election_hand_over_async(NULL, NULL, &somebody, 0, tell_rc, NULL, NULL));
    GIVES(BAD_ARGUMENTS, zkl_election_leader(NULL, &list));
    GIVES(BAD_ARGUMENTS, zkl_election_participants(NULL, &list));
    GIVES(BAD_ARGUMENTS, zkl_election_observe(NULL, tell_contenders, NULL, NULL, &watch));
    zkl_election_free(NULL);

    GIVES(BAD_ARGUMENTS, zkl_counter_new(NULL, "/counter", NULL, &counter));
    GIVES(BAD_ARGUMENTS, zkl_counter_get(NULL, 0, &value));
    GIVES(BAD_ARGUMENTS, zkl_counter_set(NULL, 1, 0));
    GIVES(BAD_ARGUMENTS, zkl_counter_add(NULL, 1, 0, &value));
    GIVES(BAD_ARGUMENTS, zkl_counter_get_and_add(NULL, 1, 0, &value));
    GIVES(BAD_ARGUMENTS, zkl_counter_compare_and_set(NULL, 1, 2, 0, &value));
    zkl_counter_free(NULL);

    GIVES(BAD_ARGUMENTS, zkl_queue_new(NULL, "/queue", NULL, &queue));
    GIVES(BAD_ARGUMENTS, zkl_queue_put(NULL, "x", 1, 0, 0));
    GIVES(BAD_ARGUMENTS, zkl_queue_peek(NULL, 0, NULL, 0, &len));
    GIVES(BAD_ARGUMENTS, zkl_queue_take(NULL, 0, &delivery));
    GIVES(BAD_ARGUMENTS, zkl_queue_take_async(NULL, 0, take_delivery, NULL, NULL, &attempt));
    zkl_queue_free(NULL);
    CHECK(len == 4711 && zkl_delivery_data(NULL, NULL) == NULL);
    CHECK(zkl_delivery_data(NULL, &len) == NULL && len == 0);
    CHECK(zkl_delivery_path(NULL) == NULL && zkl_delivery_guard(NULL) == NULL);
    GIVES(BAD_ARGUMENTS, zkl_delivery_done(NULL, 0));
    GIVES(BAD_ARGUMENTS, zkl_delivery_done_async(NULL, 0, tell_rc, NULL, NULL));
    zkl_delivery_free(NULL);

    GIVES(BAD_ARGUMENTS, zkl_group_new(NULL, "/group", NULL, &group));
    GIVES(BAD_ARGUMENTS, zkl_group_join(NULL, "x", 1, 0, &membership));
    GIVES(BAD_ARGUMENTS, zkl_group_members(NULL, 0, &members));
    GIVES(BAD_ARGUMENTS, zkl_group_watch(NULL, see_members, NULL, NULL, &watch));
    zkl_group_free(NULL);
    CHECK(zkl_membership_id(NULL) == NULL && zkl_membership_path(NULL) == NULL);
    GIVES(BAD_ARGUMENTS, zkl_membership_is_member(NULL));
    GIVES(BAD_ARGUMENTS, zkl_membership_leave(NULL, 0));
    zkl_membership_free(NULL);
    CHECK(zkl_members_count(NULL) == 0 && zkl_members_get(NULL, 0) == NULL);
    zkl_members_free(NULL);

    GIVES(BAD_ARGUMENTS, zkl_latch_new(NULL, "/latch", NULL, &latch));
    GIVES(BAD_ARGUMENTS, zkl_latch_set(NULL, 1, 0, &left));
    GIVES(BAD_ARGUMENTS, zkl_latch_count_down(NULL, 0, &left));
    GIVES(BAD_ARGUMENTS, zkl_latch_left(NULL, 0, &left));
    GIVES(BAD_ARGUMENTS, zkl_latch_wait(NULL, 0));
    GIVES(BAD_ARGUMENTS, zkl_latch_wait_async(NULL, 0, tell_rc, NULL, NULL, &attempt));
    zkl_latch_free(NULL);

    GIVES(BAD_ARGUMENTS, zkl_barrier_new(NULL, "/barrier", NULL, &barrier));
    GIVES(BAD_ARGUMENTS, zkl_barrier_set(NULL, 0));
    GIVES(BAD_ARGUMENTS, zkl_barrier_remove(NULL, 0));
    GIVES(BAD_ARGUMENTS, zkl_barrier_pass(NULL, 0));
    GIVES(BAD_ARGUMENTS, zkl_barrier_pass_async(NULL, 0, tell_rc, NULL, NULL, &attempt));
    zkl_barrier_free(NULL);

    GIVES(BAD_ARGUMENTS, zkl_double_barrier_new(NULL, "/barrier", 2, NULL, &both));
    GIVES(BAD_ARGUMENTS, zkl_double_barrier_enter(NULL, 0, &entered));
    GIVES(BAD_ARGUMENTS, zkl_double_barrier_enter_async(NULL, 0, take_entered, NULL, NULL, &attempt));
    zkl_double_barrier_free(NULL);
    GIVES(BAD_ARGUMENTS, zkl_entered_leave(NULL, 0));
    GIVES(BAD_ARGUMENTS, zkl_entered_leave_async(NULL, 0, tell_rc, NULL, NULL));
    zkl_entered_free(NULL);

    CHECK((void *)multi == UNTOUCHED && (void *)election == UNTOUCHED && (void *)counter == UNTOUCHED);
    CHECK((void *)queue == UNTOUCHED && (void *)delivery == UNTOUCHED && (void *)group == UNTOUCHED);
    CHECK((void *)membership == UNTOUCHED && (void *)members == UNTOUCHED && (void *)latch == UNTOUCHED);
    CHECK((void *)barrier == UNTOUCHED && (void *)both == UNTOUCHED && (void *)entered == UNTOUCHED);
    CHECK((void *)guard == UNTOUCHED && (void *)lock == UNTOUCHED && (void *)list == UNTOUCHED);
    CHECK((void *)attempt == UNTOUCHED && (void *)watch == UNTOUCHED && value == 4711 && left == 4711);
}

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
    GIVES(BAD_ARGUMENTS, zkl_store_connect(NULL, NULL, &client));
    GIVES(BAD_ARGUMENTS, zkl_store_connect("local:", NULL, NULL));
    GIVES(BAD_ARGUMENTS, zkl_client_can(NULL));
    CHECK(zkl_client_store(NULL) == NULL);
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
    GIVES(BAD_ARGUMENTS, zkl_attempt_fd(NULL, &fd));
    GIVES(BAD_ARGUMENTS, zkl_attempt_take(NULL, &guard));
    zkl_attempt_free(NULL);
    GIVES(BAD_ARGUMENTS, zkl_lock_holder(NULL, &list));
    GIVES(BAD_ARGUMENTS, zkl_lock_contenders(NULL, &list));
    CHECK(zkl_contenders_count(NULL) == 0);
    CHECK(zkl_contenders_get(NULL, 0) == NULL);
    zkl_contenders_free(NULL);

    GIVES(BAD_ARGUMENTS, zkl_guard_state(NULL));
    GIVES(BAD_ARGUMENTS, zkl_guard_lost_reason(NULL));
    CHECK(zkl_guard_token(NULL) == BAD_ARGUMENTS);
    GIVES(BAD_ARGUMENTS, zkl_guard_access(NULL));
    GIVES(BAD_ARGUMENTS, zkl_guard_upgrade(NULL, 0));
    GIVES(BAD_ARGUMENTS, zkl_guard_downgrade(NULL, ZKL_READ, 0));
    GIVES(BAD_ARGUMENTS, zkl_lock_limit(NULL, &fd));
    GIVES(BAD_ARGUMENTS, zkl_lock_set_limit(NULL, 1));
    GIVES(BAD_ARGUMENTS, zkl_lock_reentrant(NULL, &lock));
    GIVES(BAD_ARGUMENTS, zkl_lock_as_owner(NULL, &lock));
    GIVES(BAD_ARGUMENTS, zkl_guard_holds(NULL));
    const zkl_contender somebody = {.path = "/hostile/claim", .token = 1};
    GIVES(BAD_ARGUMENTS, zkl_lock_request_release(NULL, &somebody, ""));
    GIVES(BAD_ARGUMENTS, zkl_lock_break_hold(NULL, &somebody, "", 0, 0));
    GIVES(BAD_ARGUMENTS, zkl_guard_on_release_request(NULL, tell_request, NULL, NULL));
    CHECK(zkl_guard_path(NULL) == NULL);
    char claim[1] = "x";
    CHECK(zkl_guard_claim_path(NULL, claim, 1) == 0 && claim[0] == 0);
    CHECK(zkl_guard_claim_path(NULL, NULL, 1) == 0);
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
    CHECK(zkl_guard_locks(NULL) == 0 && zkl_guard_token_of(NULL, 0) == BAD_ARGUMENTS);
    CHECK(zkl_guard_path_of(NULL, 0) == NULL);
    recipes_on_nothing();

    CHECK((void *)client == UNTOUCHED && (void *)lock == UNTOUCHED && (void *)guard == UNTOUCHED);
    CHECK((void *)attempt == UNTOUCHED && (void *)list == UNTOUCHED && fd == 4711);
}

static void connecting_with(zkl_client_options *options)
{
    zkl_client *client = UNTOUCHED;
    GIVES(BAD_ARGUMENTS, zkl_client_connect(hosts, options, &client));
    /* NULL is looked at last, so this tells of the options as well. */
    GIVES(BAD_ARGUMENTS, zkl_client_adopt(NULL, options, &client));
    GIVES(BAD_ARGUMENTS, zkl_store_connect("local:", options, &client));
    CHECK((void *)client == UNTOUCHED);
}

static void hostile_hosts_and_options(void)
{
    const char *bad[] = {"", ",", " ", ":", "/", "127.0.0.1:0", "127.0.0.1:99999",
                         "[::1", "127.0.0.1:2181//a", "a,,b", "a\nb", bad_utf8};
    zkl_client *client = UNTOUCHED;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        GIVES(BAD_ARGUMENTS, zkl_client_connect(bad[i], NULL, &client));
    const char *no_stores[] = {"", "local", "local:1", "zookeeper:a", "sqlite:", "sqlite::memory:",
                               "ftp://a", "redis:", "local:\n", bad_utf8};
    for (size_t i = 0; i < sizeof no_stores / sizeof *no_stores; i++)
        GIVES(BAD_ARGUMENTS, zkl_store_connect(no_stores[i], NULL, &client));
    /* It was built without that, or can't be reached; the words show no secret. */
    CHECK(zkl_store_connect("redis://me:secret@127.0.0.1:1/0", NULL, &client) != OK);
    CHECK(strstr(zkl_last_error(), "secret") == NULL);
    GIVES(BAD_ARGUMENTS, zkl_client_connect("redis://me:secret@127.0.0.1:1/0", NULL, &client));
    CHECK(strstr(zkl_last_error(), "secret") == NULL && strstr(zkl_last_error(), "zkl_store_connect") != NULL);
    static char huge[1 << 20];
    memset(huge, ',', sizeof huge - 1);
    GIVES(BAD_ARGUMENTS, zkl_store_connect(huge, NULL, &client));
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
    options.unannounced_releases = 2;
    connecting_with(&options);
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
    int sharings[] = {-1, 5, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof sharings / sizeof *sharings; i++) {
        options.sharing = sharings[i];
        GIVES(BAD_ARGUMENTS, zkl_lock_new(client, "/lock", &options, &lock));
    }
    options = none;
    options.interop = 2;
    GIVES(BAD_ARGUMENTS, zkl_lock_new(client, "/lock", &options, &lock));
    options.interop = ZKL_INTEROP_ALL;
    options.strategy = ZKL_POLL;
    GIVES(BAD_ARGUMENTS, zkl_lock_new(client, "/lock", &options, &lock));
    options.strategy = ZKL_QUEUE;
    options.sharing = ZKL_READ;
    GIVES(BAD_ARGUMENTS, zkl_lock_new(client, "/lock", &options, &lock));
    const zkl_lock_options unshared[] = {
        {sizeof none, ZKL_WATCH, NULL, NULL, ZKL_READ, 0, 0, 0},
        {sizeof none, ZKL_POLL, NULL, NULL, ZKL_PERMITS, 1, 1, 0},
        {sizeof none, ZKL_QUEUE, NULL, NULL, ZKL_EXCLUSIVE, 1, 0, 0},
        {sizeof none, ZKL_QUEUE, NULL, NULL, ZKL_WRITE, 0, 1, 0},
        {sizeof none, ZKL_QUEUE, NULL, NULL, ZKL_PERMITS, 1, 0, 0},
        {sizeof none, ZKL_QUEUE, NULL, NULL, ZKL_PERMITS, -1, 3, 0},
        {sizeof none, ZKL_QUEUE, NULL, NULL, ZKL_PERMITS, 1, INT_MIN, 0},
    };
    for (size_t i = 0; i < sizeof unshared / sizeof *unshared; i++)
        GIVES(BAD_ARGUMENTS, zkl_lock_new(client, "/lock", &unshared[i], &lock));
    const zkl_lock_options permits = {sizeof permits, ZKL_QUEUE, NULL, NULL, ZKL_PERMITS, 0, 2, 0};
    GIVES(BAD_ARGUMENTS, zkl_lock_new(client, "/", &permits, &lock));
    zkl_lock *semaphore = NULL, *plain = NULL;
    int limit = 4711;
    GIVES(OK, zkl_lock_new(client, "/hostile/semaphore", &permits, &semaphore));
    GIVES(OK, zkl_lock_new(client, "/hostile/plain", NULL, &plain));
    GIVES(BAD_ARGUMENTS, zkl_lock_limit(semaphore, NULL));
    GIVES(BAD_ARGUMENTS, zkl_lock_limit(plain, &limit));
    GIVES(BAD_ARGUMENTS, zkl_lock_set_limit(plain, 1));
    GIVES(BAD_ARGUMENTS, zkl_lock_reentrant(plain, NULL));
    GIVES(BAD_ARGUMENTS, zkl_lock_as_owner(plain, NULL));
    GIVES(BAD_ARGUMENTS, zkl_lock_as_owner(plain, &lock));
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
    GIVES(BAD_ARGUMENTS, zkl_lock_acquire_async(lock, 0, NULL, NULL, NULL, NULL));
    GIVES(BAD_ARGUMENTS, zkl_lock_acquire_async(lock, 0, NULL, NULL, finalize, &attempt));
    zkl_attempt *kept = NULL;
    GIVES(OK, zkl_lock_acquire_async(lock, 0, NULL, NULL, NULL, &kept));
    GIVES(INVALID_STATE, zkl_shutdown());
    GIVES(BAD_ARGUMENTS, zkl_attempt_fd(kept, NULL));
    GIVES(BAD_ARGUMENTS, zkl_attempt_take(kept, NULL));
    zkl_attempt_free(kept);
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
    zkl_lock_options watch = {sizeof watch, ZKL_WATCH, NULL, NULL, 0, 0, 0, 0};
    GIVES(OK, zkl_lock_new(client, "/plain", &watch, &lock));
    GIVES(ZNODEEXISTS, zkl_lock_acquire(lock, ZKL_FOREVER, &guard));
    zkl_lock_free(lock);
    /* A name of zklock's own. */
    GIVES(OK, zkl_lock_new(client, "/plain/zl-open", NULL, &lock));
    GIVES(BAD_ARGUMENTS, zkl_lock_acquire(lock, ZKL_FOREVER, &guard));
    CHECK(strstr(zkl_last_error(), "/plain/zl-open") != NULL);
    zkl_lock_free(lock);
}

/* What makes a recipe at a path. */
static int make(zkl_client *client, int kind, const char *path, const zkl_recipe_options *options, void **made)
{
    return kind == 0   ? zkl_counter_new(client, path, options, (zkl_counter **)made)
           : kind == 1 ? zkl_queue_new(client, path, options, (zkl_queue **)made)
           : kind == 2 ? zkl_group_new(client, path, options, (zkl_group **)made)
           : kind == 3 ? zkl_latch_new(client, path, options, (zkl_latch **)made)
           : kind == 4 ? zkl_barrier_new(client, path, options, (zkl_barrier **)made)
                       : zkl_double_barrier_new(client, path, 2, options, (zkl_double_barrier **)made);
}

static void hostile_recipes_are_not_made(zkl_client *client)
{
    const char *bad[] = {NULL, "", "a", "/a/", "//a", "/a//b", "/a/./b", "/a/../b", "/a\n", bad_utf8, "/\x01"};
    const char *own = "/a/zl-open";
    char world[] = "world", odd[] = "\xff";
    struct ACL entries[] = {{0x1f, {world, odd}}};
    struct ACL_vector acl = {0, entries};
    for (int kind = 0; kind < 6; kind++) {
        void *made = UNTOUCHED;
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
            GIVES(BAD_ARGUMENTS, make(client, kind, bad[i], NULL, &made));
        GIVES(BAD_ARGUMENTS, make(client, kind, own, NULL, &made));
        CHECK(strstr(zkl_last_error(), own) != NULL);
        GIVES(BAD_ARGUMENTS, make(client, kind, "/a", NULL, NULL));
        zkl_recipe_options options = ZKL_RECIPE_OPTIONS_INIT;
        size_t sizes[] = {0, 1, sizeof(size_t), 100000, SIZE_MAX};
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            options.size = sizes[i];
            GIVES(BAD_ARGUMENTS, make(client, kind, "/a", &options, &made));
        }
        options.size = sizeof options;
        options.acl = &acl;
        acl.count = 0;
        GIVES(INVALID_ACL, make(client, kind, "/a", &options, &made));
        acl.count = 1;
        GIVES(BAD_ARGUMENTS, make(client, kind, "/a", &options, &made));
        CHECK(made == UNTOUCHED);
    }
    int participants[] = {0, -1, 65536, INT_MAX, INT_MIN};
    zkl_double_barrier *barrier = UNTOUCHED;
    for (size_t i = 0; i < sizeof participants / sizeof *participants; i++)
        GIVES(BAD_ARGUMENTS, zkl_double_barrier_new(client, "/a", participants[i], NULL, &barrier));
    CHECK((void *)barrier == UNTOUCHED);

    zkl_election *election = UNTOUCHED;
    zkl_lock *lock = UNTOUCHED;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        GIVES(BAD_ARGUMENTS, zkl_election_new(client, bad[i], NULL, &election));
        GIVES(BAD_ARGUMENTS, zkl_lock_of_key(client, bad[i], "key", 3, NULL, &lock));
    }
    zkl_lock_options options[] = {ZKL_LOCK_OPTIONS_INIT, ZKL_LOCK_OPTIONS_INIT, ZKL_LOCK_OPTIONS_INIT};
    options[0].strategy = ZKL_WATCH;
    options[1].sharing = ZKL_READ;
    options[2].size = 1;
    for (int i = 0; i < 3; i++) {
        GIVES(BAD_ARGUMENTS, zkl_election_new(client, "/a", &options[i], &election));
        GIVES(BAD_ARGUMENTS, zkl_lock_of_key(client, "/a", "key", 3, &options[i], &lock));
    }
    zkl_lock_options interop = ZKL_LOCK_OPTIONS_INIT;
    interop.interop = ZKL_INTEROP_ALL;
    GIVES(BAD_ARGUMENTS, zkl_lock_of_key(client, "/a", "key", 3, &interop, &lock));
    GIVES(BAD_ARGUMENTS, zkl_election_new(client, "/a", NULL, NULL));
    GIVES(BAD_ARGUMENTS, zkl_lock_of_key(client, "/a", "key", 3, NULL, NULL));
    GIVES(BAD_ARGUMENTS, zkl_lock_of_key(client, "/a", NULL, 3, NULL, &lock));
    GIVES(BAD_ARGUMENTS, zkl_lock_of_key(client, "/a", "key", SIZE_MAX, NULL, &lock));
    CHECK((void *)election == UNTOUCHED && (void *)lock == UNTOUCHED);
    /* Any bytes are a key, none too. */
    GIVES(OK, zkl_lock_of_key(client, "/keys", NULL, 0, NULL, &lock));
    CHECK(strcmp(zkl_lock_path(lock), "/keys/key-") == 0);
    GIVES(OK, zkl_guard_release(acquired(lock)));
    zkl_lock_free(lock);
    static char huge[2 << 20];
    zkl_guard *guard = UNTOUCHED;
    GIVES(OK, zkl_lock_of_key(client, "/keys", huge, sizeof huge, NULL, &lock));
    GIVES(BAD_ARGUMENTS, zkl_lock_acquire(lock, TIMEOUT_MS, &guard));
    CHECK((void *)guard == UNTOUCHED);
    zkl_lock_free(lock);
    GIVES(OK, zkl_lock_of_key(client, "/keys", "\0\xff/", 3, NULL, &lock));
    GIVES(OK, zkl_guard_release(acquired(lock)));
    zkl_lock_free(lock);
}

static void hostile_calls_of_recipes(zkl_client *client)
{
    static char huge[2 << 20];
    zkl_lock *lock = lock_on(client, "/hostile/one");
    const zkl_lock *locks[] = {lock, NULL};
    zkl_multi_lock *multi = NULL;
    zkl_guard *guard = UNTOUCHED;
    zkl_attempt *attempt = UNTOUCHED;
    zkl_watch *watch = UNTOUCHED;
    zkl_contenders *list = UNTOUCHED;
    GIVES(BAD_ARGUMENTS, zkl_multi_lock_new(locks, 1, NULL));
    GIVES(BAD_ARGUMENTS, zkl_multi_lock_new(locks, 2, &multi));
    GIVES(OK, zkl_multi_lock_new(locks, 1, &multi));
    GIVES(BAD_ARGUMENTS, zkl_multi_lock_acquire(multi, -2, &guard));
    GIVES(BAD_ARGUMENTS, zkl_multi_lock_acquire(multi, 0, NULL));
    GIVES(BAD_ARGUMENTS, zkl_multi_lock_try(multi, NULL));
    GIVES(BAD_ARGUMENTS, zkl_multi_lock_acquire_async(multi, 0, NULL, NULL, finalize, &attempt));
    GIVES(BAD_ARGUMENTS, zkl_multi_lock_acquire_async(multi, -2, tell_done, NULL, finalize, &attempt));
    zkl_multi_lock_free(multi);
    zkl_lock_free(lock);

    zkl_election *election = NULL;
    const zkl_contender nobody = {.path = "/nobody", .token = 1}, no_path = {.token = 1};
    GIVES(OK, zkl_election_new(client, "/hostile/election", NULL, &election));
    GIVES(BAD_ARGUMENTS, zkl_election_campaign(election, INT_MIN, &guard));
    GIVES(BAD_ARGUMENTS, zkl_election_campaign(election, 0, NULL));
    GIVES(BAD_ARGUMENTS, zkl_election_campaign_async(election, 0, NULL, NULL, finalize, &attempt));
    GIVES(BAD_ARGUMENTS, zkl_election_campaign_async(election, -2, tell_done, NULL, finalize, &attempt));
    GIVES(BAD_ARGUMENTS, zkl_election_leader(election, NULL));
    GIVES(BAD_ARGUMENTS, zkl_election_participants(election, NULL));
    GIVES(BAD_ARGUMENTS, zkl_election_observe(election, NULL, NULL, finalize, &watch));
    GIVES(BAD_ARGUMENTS, zkl_election_observe(election, tell_contenders, NULL, finalize, NULL));
    GIVES(BAD_ARGUMENTS, zkl_election_hand_over(election, NULL, &nobody, 0));
    CHECK((void *)guard == UNTOUCHED);
    GIVES(OK, zkl_election_campaign(election, ZKL_FOREVER, &guard));
    GIVES(BAD_ARGUMENTS, zkl_election_hand_over(election, guard, NULL, 0));
    GIVES(BAD_ARGUMENTS, zkl_election_hand_over(election, guard, &no_path, 0));
    GIVES(BAD_ARGUMENTS, zkl_election_hand_over(election, guard, &nobody, -2));
    GIVES(NOTHING, zkl_election_hand_over(election, guard, &nobody, ZKL_FOREVER));
    GIVES(BAD_ARGUMENTS, zkl_election_hand_over_async(election, guard, &nobody, 0, NULL, NULL, finalize));
    GIVES(BAD_ARGUMENTS, zkl_election_hand_over_async(election, guard, NULL, 0, tell_rc, NULL, finalize));
    GIVES(BAD_ARGUMENTS, zkl_election_hand_over_async(election, guard, &nobody, -2, tell_rc, NULL, finalize));
    CHECK(zkl_guard_state(guard) == ZKL_HELD);
    GIVES(OK, zkl_guard_release(guard));
    zkl_election_free(election);

    zkl_counter *counter = NULL;
    int64_t value = 4711;
    GIVES(OK, zkl_counter_new(client, "/hostile/counter", NULL, &counter));
    GIVES(BAD_ARGUMENTS, zkl_counter_get(counter, -2, &value));
    GIVES(BAD_ARGUMENTS, zkl_counter_get(counter, 0, NULL));
    GIVES(BAD_ARGUMENTS, zkl_counter_set(counter, 1, -2));
    GIVES(BAD_ARGUMENTS, zkl_counter_add(counter, 1, INT_MIN, &value));
    GIVES(BAD_ARGUMENTS, zkl_counter_get_and_add(counter, 1, 0, NULL));
    GIVES(BAD_ARGUMENTS, zkl_counter_compare_and_set(counter, 0, 1, 0, NULL));
    CHECK(value == 4711);
    GIVES(OK, zkl_counter_get(counter, INT_MAX, &value));
    CHECK(value == 0);
    zkl_counter_free(counter);

    zkl_queue *queue = NULL;
    zkl_delivery *delivery = UNTOUCHED;
    size_t len = 4711;
    GIVES(OK, zkl_queue_new(client, "/hostile/queue", NULL, &queue));
    int priorities[] = {-1, 256, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof priorities / sizeof *priorities; i++)
        GIVES(BAD_ARGUMENTS, zkl_queue_put(queue, "x", 1, priorities[i], ZKL_FOREVER));
    GIVES(BAD_ARGUMENTS, zkl_queue_put(queue, NULL, 1, 0, ZKL_FOREVER));
    GIVES(BAD_ARGUMENTS, zkl_queue_put(queue, "x", SIZE_MAX, 0, ZKL_FOREVER));
    GIVES(BAD_ARGUMENTS, zkl_queue_put(queue, huge, sizeof huge, 0, ZKL_FOREVER));
    GIVES(BAD_ARGUMENTS, zkl_queue_put(queue, "x", 1, 0, -2));
    GIVES(BAD_ARGUMENTS, zkl_queue_peek(queue, 0, huge, sizeof huge, NULL));
    GIVES(BAD_ARGUMENTS, zkl_queue_peek(queue, 0, NULL, 1, &len));
    GIVES(BAD_ARGUMENTS, zkl_queue_take(queue, 0, NULL));
    GIVES(BAD_ARGUMENTS, zkl_queue_take(queue, -2, &delivery));
    GIVES(BAD_ARGUMENTS, zkl_queue_take_async(queue, 0, NULL, NULL, finalize, &attempt));
    GIVES(BAD_ARGUMENTS, zkl_queue_take_async(queue, -2, take_delivery, NULL, finalize, &attempt));
    CHECK((void *)delivery == UNTOUCHED && len == 4711);
    GIVES(OK, zkl_queue_put(queue, "x", 1, 255, ZKL_FOREVER));
    /* They are freed by what refuses them, and delivered again. */
    GIVES(OK, zkl_queue_take(queue, ZKL_FOREVER, &delivery));
    GIVES(BAD_ARGUMENTS, zkl_delivery_done(delivery, -2));
    GIVES(OK, zkl_queue_take(queue, ZKL_FOREVER, &delivery));
    GIVES(BAD_ARGUMENTS, zkl_delivery_done_async(delivery, ZKL_FOREVER, NULL, NULL, finalize));
    GIVES(OK, zkl_queue_take(queue, ZKL_FOREVER, &delivery));
    GIVES(BAD_ARGUMENTS, zkl_delivery_done_async(delivery, -2, tell_rc, NULL, finalize));
    GIVES(OK, zkl_queue_take(queue, ZKL_FOREVER, &delivery));
    GIVES(OK, zkl_delivery_done(delivery, ZKL_FOREVER));
    zkl_queue_free(queue);

    zkl_group *group = NULL;
    zkl_membership *membership = UNTOUCHED;
    zkl_members *members = UNTOUCHED;
    GIVES(OK, zkl_group_new(client, "/hostile/group", NULL, &group));
    GIVES(BAD_ARGUMENTS, zkl_group_join(group, NULL, 1, ZKL_FOREVER, &membership));
    GIVES(BAD_ARGUMENTS, zkl_group_join(group, "x", SIZE_MAX, ZKL_FOREVER, &membership));
    GIVES(BAD_ARGUMENTS, zkl_group_join(group, huge, sizeof huge, ZKL_FOREVER, &membership));
    GIVES(BAD_ARGUMENTS, zkl_group_join(group, "x", 1, -2, &membership));
    GIVES(BAD_ARGUMENTS, zkl_group_join(group, "x", 1, ZKL_FOREVER, NULL));
    GIVES(BAD_ARGUMENTS, zkl_group_members(group, ZKL_FOREVER, NULL));
    GIVES(BAD_ARGUMENTS, zkl_group_members(group, -2, &members));
    GIVES(BAD_ARGUMENTS, zkl_group_watch(group, NULL, NULL, finalize, &watch));
    GIVES(BAD_ARGUMENTS, zkl_group_watch(group, see_members, NULL, finalize, NULL));
    CHECK((void *)membership == UNTOUCHED && (void *)members == UNTOUCHED);
    GIVES(OK, zkl_group_join(group, "x", 1, ZKL_FOREVER, &membership));
    GIVES(BAD_ARGUMENTS, zkl_membership_leave(membership, -2));
    GIVES(OK, zkl_group_members(group, ZKL_FOREVER, &members));
    CHECK(zkl_members_get(members, SIZE_MAX) == NULL);
    zkl_members_free(members);
    zkl_group_free(group);

    zkl_latch *latch = NULL;
    uint32_t left = 4711;
    GIVES(OK, zkl_latch_new(client, "/hostile/latch", NULL, &latch));
    GIVES(BAD_ARGUMENTS, zkl_latch_set(latch, 1, -2, &left));
    GIVES(BAD_ARGUMENTS, zkl_latch_count_down(latch, -2, &left));
    GIVES(BAD_ARGUMENTS, zkl_latch_left(latch, ZKL_FOREVER, NULL));
    GIVES(BAD_ARGUMENTS, zkl_latch_wait(latch, -2));
    GIVES(BAD_ARGUMENTS, zkl_latch_wait_async(latch, 0, NULL, NULL, finalize, &attempt));
    GIVES(BAD_ARGUMENTS, zkl_latch_wait_async(latch, -2, tell_rc, NULL, finalize, &attempt));
    CHECK(left == 4711);
    GIVES(OK, zkl_latch_set(latch, UINT32_MAX, ZKL_FOREVER, &left));
    CHECK(left == UINT32_MAX);
    zkl_latch_free(latch);
    /* What is at the path is something else. */
    GIVES(OK, zkl_latch_new(client, "/hostile", NULL, &latch));
    GIVES(BAD_ARGUMENTS, zkl_latch_set(latch, 1, ZKL_FOREVER, &left));
    zkl_latch_free(latch);

    zkl_barrier *barrier = NULL;
    GIVES(OK, zkl_barrier_new(client, "/hostile/barrier", NULL, &barrier));
    GIVES(BAD_ARGUMENTS, zkl_barrier_set(barrier, -2));
    GIVES(BAD_ARGUMENTS, zkl_barrier_remove(barrier, INT_MIN));
    GIVES(BAD_ARGUMENTS, zkl_barrier_pass(barrier, -2));
    GIVES(BAD_ARGUMENTS, zkl_barrier_pass_async(barrier, 0, NULL, NULL, finalize, &attempt));
    GIVES(BAD_ARGUMENTS, zkl_barrier_pass_async(barrier, -2, tell_rc, NULL, finalize, &attempt));
    zkl_barrier_free(barrier);

    zkl_double_barrier *both = NULL;
    zkl_entered *entered = UNTOUCHED;
    GIVES(OK, zkl_double_barrier_new(client, "/hostile/both", 1, NULL, &both));
    GIVES(BAD_ARGUMENTS, zkl_double_barrier_enter(both, ZKL_FOREVER, NULL));
    GIVES(BAD_ARGUMENTS, zkl_double_barrier_enter(both, -2, &entered));
    GIVES(BAD_ARGUMENTS, zkl_double_barrier_enter_async(both, 0, NULL, NULL, finalize, &attempt));
    GIVES(BAD_ARGUMENTS, zkl_double_barrier_enter_async(both, -2, take_entered, NULL, finalize, &attempt));
    CHECK((void *)entered == UNTOUCHED);
    for (int i = 0; i < 3; i++) {
        GIVES(OK, zkl_double_barrier_enter(both, ZKL_FOREVER, &entered));
        GIVES(BAD_ARGUMENTS, i == 0   ? zkl_entered_leave(entered, -2)
                             : i == 1 ? zkl_entered_leave_async(entered, 0, NULL, NULL, finalize)
                                      : zkl_entered_leave_async(entered, -2, tell_rc, NULL, finalize));
    }
    zkl_double_barrier_free(both);
    CHECK((void *)attempt == UNTOUCHED && (void *)watch == UNTOUCHED && (void *)list == UNTOUCHED);
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    on_nothing();
    hostile_hosts_and_options();
    zkl_client *client = connected();
    hostile_locks(client);
    hostile_acquires_and_guards(client);
    hostile_recipes_are_not_made(client);
    hostile_calls_of_recipes(client);
    CHECK(zkl_client_state(client) == ZKL_CONNECTED);
    zkl_client_free(client);
    return 0;
}
