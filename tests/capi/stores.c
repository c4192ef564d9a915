/* Locks that other stores than ZooKeeper keep: the same functions, by an address. */
#include "check.h"

#include <unistd.h>

static zkl_client *store_at(const char *address)
{
    zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    /* Under valgrind one thread runs at a time. */
    options.session_timeout_ms = session_timeout_ms;
    options.connect_timeout_ms = TIMEOUT_MS;
    zkl_client *client = NULL;
    GIVES(OK, zkl_store_connect(address, &options, &client));
    CHECK(zkl_client_state(client) == ZKL_CONNECTED);
    return client;
}

static zkl_lock *shared_at(zkl_client *client, const char *path, int sharing)
{
    zkl_lock_options options = ZKL_LOCK_OPTIONS_INIT;
    options.sharing = sharing;
    options.limit = sharing == ZKL_PERMITS ? 2 : 0;
    zkl_lock *lock = NULL;
    GIVES(OK, zkl_lock_new(client, path, &options, &lock));
    return lock;
}

static void one_holds(zkl_client *client, zkl_client *other)
{
    zkl_lock *lock = lock_on(client, "/one"), *theirs = lock_on(other, "/one");
    zkl_guard *guard = acquired(lock), *none = NULL;
    int64_t first = zkl_guard_token(guard);
    CHECK(zkl_guard_state(guard) == ZKL_HELD && first > 0);
    CHECK(strcmp(zkl_guard_path(guard), "/one") == 0 && strncmp(claim_of(guard), "/one/", 5) == 0);
    GIVES(ZKL_TAKEN, zkl_lock_try(theirs, &none));
    GIVES(TIMEOUT, zkl_lock_acquire(theirs, 0, &none));
    GIVES(TIMEOUT, zkl_lock_acquire(theirs, 50, &none));
    CHECK(strstr(zkl_last_error(), "/one") != NULL);
    UNTIL(contenders_of(theirs) == 1);
    GIVES(OK, zkl_guard_release(guard));
    guard = NULL;
    GIVES(OK, zkl_lock_try(theirs, &guard));
    CHECK(zkl_guard_token(guard) > first);
    zkl_guard_free(guard);
    UNTIL(contenders_of(lock) == 0);
    zkl_lock_free(lock);
    zkl_lock_free(theirs);
}

static void callbacks_tell(zkl_client *client, zkl_client *other)
{
    zkl_lock *lock = lock_on(client, "/async"), *theirs = lock_on(other, "/async");
    zkl_guard *guard = acquired(theirs);
    told waits, given_up, asked, released;
    told_init(&waits);
    told_init(&given_up);
    told_init(&asked);
    told_init(&released);
    zkl_attempt *attempt = NULL, *second = NULL;
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &waits, finalize, &attempt));
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &given_up, finalize, &second));
    UNTIL(contenders_of(theirs) == 3);
    GIVES(OK, zkl_attempt_cancel(second));
    UNTIL(told_finalized(&given_up) == 1);
    CHECK(given_up.result == ZKL_CANCELLED);
    UNTIL(contenders_of(theirs) == 2);
    CHECK(told_calls(&waits) == 0);
    GIVES(OK, zkl_lock_contenders_async(lock, 1, tell_contenders, &asked, finalize));
    UNTIL(told_finalized(&asked) == 1);
    CHECK(asked.result == 1);
    GIVES(OK, zkl_guard_release_async(guard, ZKL_FOREVER, tell_rc, &released, finalize));
    UNTIL(told_finalized(&waits) == 1 && told_finalized(&released) == 1);
    CHECK(waits.result == OK && !waits.thread_is_main && released.result == OK);
    GIVES(OK, zkl_guard_release(waits.guard));
    zkl_attempt_free(attempt);
    zkl_attempt_free(second);
    zkl_lock_free(lock);
    zkl_lock_free(theirs);
}

static void a_holder_is_asked_and_broken(zkl_client *client, zkl_client *other)
{
    zkl_lock *lock = lock_on(client, "/asked"), *theirs = lock_on(other, "/asked");
    zkl_guard *guard = acquired(lock);
    told asked, lost;
    told_init(&asked);
    told_init(&lost);
    int fd = -1;
    GIVES(OK, zkl_guard_on_release_request(guard, tell_request, &asked, finalize));
    GIVES(OK, zkl_guard_on_lost(guard, tell_lost, &lost, finalize));
    GIVES(OK, zkl_guard_fd(guard, &fd));
    zkl_contenders *list = NULL;
    GIVES(OK, zkl_lock_holder(theirs, &list));
    CHECK(zkl_contenders_count(list) == 1);
    const zkl_contender *holder = zkl_contenders_get(list, 0);
    CHECK(holder->pid == (uint32_t)getpid() && holder->token == zkl_guard_token(guard));
    GIVES(OK, zkl_lock_request_release(theirs, holder, "a deployment"));
    UNTIL(told_calls(&asked) == 1);
    CHECK(strcmp(asked.why, "a deployment") == 0 && !is_readable(fd, 0));
    GIVES(OK, zkl_lock_break_hold(theirs, holder, "it hangs", 0, TIMEOUT_MS));
    UNTIL(is_readable(fd, 0) && told_finalized(&lost) == 1);
    CHECK(lost.result == ZKL_LOST_BROKEN && zkl_guard_state(guard) == ZKL_LOST);
    zkl_contenders_free(list);
    zkl_guard_free(guard);
    UNTIL(told_finalized(&asked) == 1);
    zkl_guard *next = acquired(theirs);
    GIVES(OK, zkl_guard_release(next));
    zkl_lock_free(lock);
    zkl_lock_free(theirs);
}

static void several_hold(zkl_client *client, zkl_client *other)
{
    zkl_lock *read = shared_at(client, "/shared", ZKL_READ), *write = shared_at(other, "/shared", ZKL_WRITE);
    zkl_guard *first = acquired(read), *second = acquired(read), *none = NULL;
    GIVES(ZKL_TAKEN, zkl_lock_try(write, &none));
    CHECK(zkl_guard_access(first) == ZKL_READ);
    GIVES(OK, zkl_guard_release(first));
    GIVES(OK, zkl_guard_release(second));
    GIVES(OK, zkl_guard_release(acquired(write)));
    zkl_lock_free(read);
    zkl_lock_free(write);

    zkl_lock *permits = shared_at(client, "/permits", ZKL_PERMITS);
    int limit = 0;
    GIVES(OK, zkl_lock_limit(permits, &limit));
    CHECK(limit == 2);
    first = acquired(permits);
    second = acquired(permits);
    GIVES(ZKL_TAKEN, zkl_lock_try(permits, &none));
    GIVES(OK, zkl_lock_set_limit(permits, 3));
    GIVES(OK, zkl_guard_release(acquired(permits)));
    GIVES(OK, zkl_guard_release(first));
    GIVES(OK, zkl_guard_release(second));
    zkl_lock_free(permits);

    zkl_lock *lock = lock_on(client, "/again"), *again = NULL;
    GIVES(OK, zkl_lock_reentrant(lock, &again));
    first = acquired(again);
    second = acquired(again);
    CHECK(zkl_guard_holds(first) == 2);
    GIVES(OK, zkl_guard_release(first));
    GIVES(OK, zkl_guard_release(second));

    const zkl_lock *both[2] = {lock, lock_on(client, "/before")};
    zkl_multi_lock *multi = NULL;
    GIVES(OK, zkl_multi_lock_new(both, 2, &multi));
    GIVES(OK, zkl_multi_lock_acquire(multi, TIMEOUT_MS, &first));
    GIVES(ZKL_TAKEN, zkl_lock_try(lock, &none));
    GIVES(OK, zkl_guard_release(first));
    zkl_multi_lock_free(multi);
    zkl_lock_free((zkl_lock *)both[1]);
    zkl_lock_free(again);
    zkl_lock_free(lock);

    zkl_lock *of_key = NULL;
    GIVES(OK, zkl_lock_of_key(client, "/orders", "2026/4711", 9, NULL, &of_key));
    CHECK(strcmp(zkl_lock_path(of_key), "/orders/key-2026%2f4711") == 0);
    GIVES(OK, zkl_guard_release(acquired(of_key)));
    zkl_lock_free(of_key);
    CHECK(none == NULL);
}

static zkl_contenders *participants_of(zkl_election *election, size_t count)
{
    zkl_contenders *all = NULL;
    UNTIL((zkl_contenders_free(all), zkl_election_participants(election, &all)) == OK
          && zkl_contenders_count(all) == count);
    return all;
}

static int hand_over_to_the_second(zkl_election *election, zkl_guard *guard)
{
    zkl_contenders *all = participants_of(election, 2);
    int rc = zkl_election_hand_over(election, guard, zkl_contenders_get(all, 1), TIMEOUT_MS);
    zkl_contenders_free(all);
    return rc;
}

static void one_leads(zkl_client *client, zkl_client *other)
{
    zkl_election *election = NULL, *theirs = NULL;
    zkl_guard *guard = NULL, *none = NULL;
    GIVES(OK, zkl_election_new(client, "/election", NULL, &election));
    GIVES(OK, zkl_election_new(other, "/election", NULL, &theirs));
    GIVES(OK, zkl_election_campaign(election, TIMEOUT_MS, &guard));
    GIVES(TIMEOUT, zkl_election_campaign(theirs, 0, &none));
    zkl_contenders_free(participants_of(election, 1));
    told elected;
    told_init(&elected);
    GIVES(OK, zkl_election_campaign_async(theirs, ZKL_FOREVER, tell_done, &elected, finalize, NULL));
    zkl_contenders_free(participants_of(election, 2));
    CHECK(told_calls(&elected) == 0);
    /* The claim of the campaign that timed out may be there for a moment yet; it has left by the time it is chosen. */
    int rc;
    UNTIL((rc = hand_over_to_the_second(election, guard)) != ZNOTHING);
    CHECK(rc == OK);
    zkl_guard_free(guard);
    UNTIL(told_finalized(&elected) == 1);
    CHECK(elected.result == OK);
    GIVES(OK, zkl_guard_release(elected.guard));
    zkl_election_free(election);
    zkl_election_free(theirs);
}

static void what_only_zookeeper_has_is_refused(zkl_client *client)
{
    zkl_counter *counter = NULL;
    zkl_queue *queue = NULL;
    zkl_group *group = NULL;
    zkl_latch *latch = NULL;
    zkl_barrier *barrier = NULL;
    zkl_double_barrier *both = NULL;
    GIVES(BAD_ARGUMENTS, zkl_counter_new(client, "/recipe", NULL, &counter));
    CHECK(strstr(zkl_last_error(), "zookeeper:") != NULL && strstr(zkl_last_error(), zkl_client_store(client)) != NULL);
    GIVES(BAD_ARGUMENTS, zkl_queue_new(client, "/recipe", NULL, &queue));
    GIVES(BAD_ARGUMENTS, zkl_group_new(client, "/recipe", NULL, &group));
    GIVES(BAD_ARGUMENTS, zkl_latch_new(client, "/recipe", NULL, &latch));
    GIVES(BAD_ARGUMENTS, zkl_barrier_new(client, "/recipe", NULL, &barrier));
    GIVES(BAD_ARGUMENTS, zkl_double_barrier_new(client, "/recipe", 2, NULL, &both));
    CHECK(!counter && !queue && !group && !latch && !barrier && !both);
    GIVES(BAD_ARGUMENTS, zkl_client_follow(client, NULL));
    CHECK(zkl_client_session_id(client) == 0);

    zkl_lock *lock = lock_on(client, "/written");
    zkl_guard *guard = acquired(lock);
    CHECK(zkl_guard_set(guard, "/data", "new", 3, -1, NULL) != OK);
    CHECK(strstr(zkl_last_error(), "token") != NULL);
    told written;
    told_init(&written);
    GIVES(OK, zkl_guard_set_async(guard, "/data", "new", 3, -1, tell_written, &written, finalize));
    UNTIL(told_finalized(&written) == 1);
    CHECK(written.result < 0);
    CHECK(zkl_guard_state(guard) == ZKL_HELD);
    GIVES(OK, zkl_guard_release(guard));
    zkl_lock_free(lock);
}

static void all_of_it(const char *address)
{
    zkl_client *client = store_at(address), *other = store_at(address);
    one_holds(client, other);
    callbacks_tell(client, other);
    a_holder_is_asked_and_broken(client, other);
    several_hold(client, other);
    one_leads(client, other);
    what_only_zookeeper_has_is_refused(client);
    zkl_client_free(client);
    zkl_client_free(other);
}

/* All that a closed one held is lost, all that was under way has ended, and others go on. */
static void one_is_closed(const char *address)
{
    zkl_client *client = store_at(address), *other = store_at(address);
    zkl_lock *lock = lock_on(client, "/closed"), *theirs = lock_on(other, "/closed");
    zkl_guard *guard = acquired(lock), *none = NULL;
    told lost, waits;
    told_init(&lost);
    told_init(&waits);
    GIVES(OK, zkl_guard_on_lost(guard, tell_lost, &lost, finalize));
    GIVES(OK, zkl_lock_acquire_async(lock, ZKL_FOREVER, tell_done, &waits, finalize, NULL));
    GIVES(OK, zkl_client_detach(client));
    CHECK(zkl_client_state(client) == ZKL_CLOSED && zkl_guard_state(guard) == ZKL_LOST);
    UNTIL(told_finalized(&lost) == 1 && told_finalized(&waits) == 1);
    CHECK(lost.result == ZKL_LOST_SESSION);
    CLOSED(waits);
    GIVES(CLOSING, zkl_lock_acquire(lock, ZKL_FOREVER, &none));
    GIVES(OK, zkl_client_detach(client));
    GIVES(OK, zkl_guard_release(acquired(theirs)));
    zkl_guard_free(guard);
    zkl_lock_free(lock);
    zkl_lock_free(theirs);
    zkl_client_free(client);
    zkl_client_free(other);
}

static void a_store_says_what_it_can(const char *file, const char *servers)
{
    zkl_client *local = store_at("local:"), *sqlite = store_at(file), *zookeeper = NULL;
    zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.session_timeout_ms = session_timeout_ms;
    options.connect_timeout_ms = options.operation_timeout_ms = TIMEOUT_MS;
    GIVES(OK, zkl_store_connect(servers, &options, &zookeeper));
    CHECK(strcmp(zkl_client_store(local), "local") == 0);
    CHECK(strcmp(zkl_client_store(sqlite), "sqlite") == 0);
    CHECK(strcmp(zkl_client_store(zookeeper), "zookeeper") == 0);
    const int all = 2 * ZKL_CAN_LOSE_SERVERS - 1;
    CHECK(zkl_client_can(zookeeper) == all);
    CHECK((zkl_client_can(local) & ZKL_CAN_EXCLUDE_PROCESSES) == 0 && (zkl_client_can(local) & ZKL_CAN_UPGRADE) != 0);
    CHECK((zkl_client_can(sqlite) & ZKL_CAN_EXCLUDE_PROCESSES) != 0 && (zkl_client_can(sqlite) & ZKL_CAN_UPGRADE) == 0);
    CHECK(zkl_client_session_timeout_ms(sqlite) == session_timeout_ms && zkl_client_session_timeout_ms(local) == 0);
    /* It is a client as any other. */
    CHECK(zkl_client_session_id(zookeeper) != 0 && zkl_client_session_timeout_ms(zookeeper) > 0);
    zkl_counter *counter = NULL;
    GIVES(OK, zkl_counter_new(zookeeper, "/counter", NULL, &counter));
    int64_t value = -1;
    GIVES(OK, zkl_counter_get(counter, TIMEOUT_MS, &value));
    zkl_counter_free(counter);

    /* What it can't do is refused when it is asked for. */
    zkl_lock *upgradeable = shared_at(sqlite, "/upgradeable", ZKL_UPGRADEABLE);
    zkl_guard *none = NULL;
    CHECK(zkl_lock_acquire(upgradeable, TIMEOUT_MS, &none) != OK && none == NULL);
    CHECK(strstr(zkl_last_error(), "/upgradeable") != NULL);
    zkl_lock_free(upgradeable);
    zkl_client_free(local);
    zkl_client_free(sqlite);
    zkl_client_free(zookeeper);
}

static void no_address_shows_its_password(void)
{
    static const char *const addresses[] = {
        "host=127.0.0.1 password=hunter2",
        "redis:hunter2@127.0.0.1",
        "root:hunter2@127.0.0.1/db",
        "mysql:root:hunter2@127.0.0.1/db",
        "Server=127.0.0.1;Pwd=hunter2",
        "postgres://host=127.0.0.1 password=hunter2",
        "zookeeper://root:hunter2@127.0.0.1",
        "127.0.0.1:6379,password=hunter2",
    };
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        zkl_client *client = NULL;
        GIVES(BAD_ARGUMENTS, zkl_store_connect(addresses[i], NULL, &client));
        CHECK(client == NULL && strstr(zkl_last_error(), "hunter2") == NULL);
        GIVES(BAD_ARGUMENTS, zkl_client_connect(addresses[i], NULL, &client));
        CHECK(client == NULL && strstr(zkl_last_error(), "hunter2") == NULL);
    }
}

static void tls_is_for_servers_and_their_files_are_named(const char *file)
{
    zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    zkl_client *client = NULL;
    options.tls_ca = "/nowhere/ca.pem";
    GIVES(BAD_ARGUMENTS, zkl_store_connect(file, &options, &client));
    CHECK(strstr(zkl_last_error(), "no server") != NULL);
    /* The library may be built without it. */
    GIVES(BAD_ARGUMENTS, zkl_store_connect("redis://127.0.0.1:1", &options, &client));
    CHECK(strstr(zkl_last_error(), "/nowhere/ca.pem") != NULL ||
          strstr(zkl_last_error(), "redis-tls") != NULL);
    options.tls_cert = "/nowhere/own.pem";
    GIVES(BAD_ARGUMENTS, zkl_store_connect("redis://127.0.0.1:1", &options, &client));
    CHECK(strstr(zkl_last_error(), "tls_key") != NULL);
    options.tls_ca = options.tls_cert = NULL;
    options.sasl_user = "bob";
    GIVES(BAD_ARGUMENTS, zkl_store_connect(file, &options, &client));
    CHECK(strstr(zkl_last_error(), "TLS alone") != NULL);
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    char directory[] = "/tmp/zklock-stores-XXXXXX", file[64], address[80], servers[256];
    CHECK(mkdtemp(directory) != NULL);
    snprintf(file, sizeof file, "%s/locks.db", directory);
    snprintf(address, sizeof address, "sqlite:%s", file);
    snprintf(servers, sizeof servers, "zookeeper://%s", hosts);

    no_address_shows_its_password();
    tls_is_for_servers_and_their_files_are_named(address);
    all_of_it("local:");
    all_of_it(address);
    one_is_closed(address);
    a_store_says_what_it_can(address, servers);

    const char *const left[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        char name[80];
        snprintf(name, sizeof name, "%s%s", file, left[i]);
        unlink(name);
    }
    CHECK(rmdir(directory) == 0);
    return 0;
}
