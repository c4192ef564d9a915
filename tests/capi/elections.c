/* Several locks by one transaction, and elections. */
#include "check.h"

#include <fcntl.h>

/* The only one of a list, or nobody. */
static int64_t only(zkl_contenders *list)
{
    size_t count = zkl_contenders_count(list);
    CHECK(count <= 1);
    int64_t token = count == 0 ? 0 : zkl_contenders_get(list, 0)->token;
    zkl_contenders_free(list);
    return token;
}

static zkl_multi_lock *multi_of(const zkl_lock *first, const zkl_lock *second, const zkl_lock *third)
{
    const zkl_lock *locks[] = {first, second, third};
    zkl_multi_lock *multi = NULL;
    GIVES(OK, zkl_multi_lock_new(locks, third == NULL ? 2 : 3, &multi));
    return multi;
}

static void several_locks_are_acquired_all_or_none(zkl_client *client)
{
    zkl_lock *a = lock_on(client, "/accounts/7"), *b = lock_on(client, "/accounts/12"),
             *c = lock_on(client, "/accounts/4711");
    zkl_multi_lock *all = multi_of(c, a, b), *some = multi_of(a, c, NULL);
    zkl_guard *guard = NULL, *none = (zkl_guard *)&guard;
    GIVES(OK, zkl_multi_lock_acquire(all, TIMEOUT_MS, &guard));
    /* In the order in which they were given, each with its token: that of one transaction. */
    CHECK(zkl_guard_locks(guard) == 3);
    const char *const paths[] = {"/accounts/4711", "/accounts/7", "/accounts/12"};
    for (size_t i = 0; i < 3; i++) {
        CHECK(strcmp(zkl_guard_path_of(guard, i), paths[i]) == 0);
        CHECK(zkl_guard_token_of(guard, i) == zkl_guard_token(guard) && zkl_guard_token(guard) > 0);
    }
    CHECK(strcmp(zkl_guard_path(guard), zkl_guard_path_of(guard, 0)) == 0);
    CHECK(zkl_guard_path_of(guard, 3) == NULL && zkl_guard_token_of(guard, 3) == BAD_ARGUMENTS);
    GIVES(OK, zkl_guard_set(guard, "/data", "all", 3, -1, NULL));

    /* Nobody has a part of them, and who can't have all has none. */
    GIVES(ZKL_TAKEN, zkl_lock_try(b, &none));
    GIVES(ZKL_TAKEN, zkl_multi_lock_try(some, &none));
    GIVES(TIMEOUT, zkl_multi_lock_acquire(some, 0, &none));
    GIVES(TIMEOUT, zkl_multi_lock_acquire(some, 100, &none));
    CHECK(none == (zkl_guard *)&guard);
    UNTIL(contenders_of(a) == 1 && contenders_of(b) == 1 && contenders_of(c) == 1);

    told waits;
    told_init(&waits);
    zkl_attempt *attempt = NULL;
    GIVES(OK, zkl_multi_lock_acquire_async(some, ZKL_FOREVER, tell_done, &waits, finalize, &attempt));
    UNTIL(contenders_of(a) == 2 && contenders_of(c) == 2);
    zkl_multi_lock_free(some);
    GIVES(OK, zkl_guard_release(guard));
    UNTIL(told_finalized(&waits) == 1);
    CHECK(waits.result == OK && zkl_guard_locks(waits.guard) == 2);
    CHECK(strcmp(zkl_guard_path_of(waits.guard, 0), paths[1]) == 0);
    zkl_attempt_free(attempt);
    GIVES(OK, zkl_guard_release(waits.guard));
    UNTIL(contenders_of(a) == 0 && contenders_of(b) == 0 && contenders_of(c) == 0);

    /* One of one lock. */
    CHECK(zkl_guard_locks(NULL) == 0);
    guard = acquired(a);
    CHECK(zkl_guard_locks(guard) == 1 && zkl_guard_token_of(guard, 0) == zkl_guard_token(guard));
    GIVES(OK, zkl_guard_release(guard));
    zkl_multi_lock_free(all);
    zkl_lock_free(a);
    zkl_lock_free(b);
    zkl_lock_free(c);
}

static void what_the_thread_holds_already_may_be_among_them(zkl_client *client)
{
    zkl_lock *plain = lock_on(client, "/held-already"), *other = lock_on(client, "/beside");
    zkl_lock *held = NULL;
    GIVES(OK, zkl_lock_reentrant(plain, &held));
    zkl_guard *outer = acquired(held), *both = NULL;
    zkl_multi_lock *multi = multi_of(held, other, NULL);
    GIVES(OK, zkl_multi_lock_acquire(multi, TIMEOUT_MS, &both));
    GIVES(OK, zkl_guard_release(both));
    CHECK(zkl_guard_state(outer) == ZKL_HELD);
    GIVES(OK, zkl_guard_release(outer));
    zkl_multi_lock_free(multi);
    zkl_lock_free(held);
    zkl_lock_free(other);
    zkl_lock_free(plain);
}


static void several_locks_are_lost_when_one_is(zkl_client *client)
{
    zkl_lock *a = lock_on(client, "/several/a"), *b = lock_on(client, "/several/b");
    zkl_multi_lock *both = multi_of(b, a, NULL);
    zkl_guard *guard = NULL;
    told lost, cancelled;
    told_init(&lost);
    told_init(&cancelled);
    GIVES(OK, zkl_multi_lock_try(both, &guard));
    GIVES(OK, zkl_guard_on_lost(guard, tell_lost, &lost, finalize));
    zkl_attempt *attempt = NULL;
    GIVES(OK, zkl_multi_lock_acquire_async(both, ZKL_FOREVER, tell_done, &cancelled, finalize, &attempt));
    UNTIL(contenders_of(a) == 2 && contenders_of(b) == 2);
    GIVES(OK, zkl_attempt_cancel(attempt));
    UNTIL(told_finalized(&cancelled) == 1);
    CHECK(cancelled.result == ZKL_CANCELLED);
    UNTIL(contenders_of(a) == 1 && contenders_of(b) == 1);
    zkl_attempt_free(attempt);
    zkl_contenders *holder = NULL;
    GIVES(OK, zkl_lock_holder(b, &holder));
    ask("delete %s", zkl_contenders_get(holder, 0)->path);
    zkl_contenders_free(holder);
    UNTIL(told_finalized(&lost) == 1);
    CHECK(lost.result == ZKL_LOST_DELETED && zkl_guard_state(guard) == ZKL_LOST);
    GIVES(ZKL_NOT_HELD, zkl_guard_set(guard, "/data", "lost", 4, -1, NULL));
    GIVES(NO_NODE, zkl_guard_release(guard));
    UNTIL(contenders_of(a) == 0 && contenders_of(b) == 0);
    zkl_multi_lock_free(both);
    zkl_lock_free(a);
    zkl_lock_free(b);
}

static void a_multi_lock_is_of_different_locks_of_one_client(zkl_client *client)
{
    zkl_client *second = connected();
    zkl_lock *mine = lock_on(client, "/mine"), *same = lock_on(client, "/mine"),
             *others = lock_on(second, "/others");
    zkl_multi_lock *const untouched = (zkl_multi_lock *)&mine;
    zkl_multi_lock *multi = untouched;
    const zkl_lock *locks[] = {mine, others};
    GIVES(BAD_ARGUMENTS, zkl_multi_lock_new(locks, 2, &multi));
    locks[1] = same;
    GIVES(BAD_ARGUMENTS, zkl_multi_lock_new(locks, 2, &multi));
    CHECK(multi == untouched);
    zkl_lock_free(mine);
    zkl_lock_free(same);
    zkl_lock_free(others);
    zkl_client_free(second);
}

/* A participant that says who it is. */
static zkl_election *election_of(zkl_client *client, const char *label)
{
    zkl_lock_options options = ZKL_LOCK_OPTIONS_INIT;
    options.label = label;
    zkl_election *election = NULL;
    GIVES(OK, zkl_election_new(client, "/elections/billing", &options, &election));
    return election;
}

static size_t participants_of(zkl_election *election)
{
    zkl_contenders *list = NULL;
    GIVES(OK, zkl_election_participants(election, &list));
    size_t count = zkl_contenders_count(list);
    zkl_contenders_free(list);
    return count;
}

static zkl_contender participant(zkl_election *election, const char *label, char *path, size_t size)
{
    zkl_contenders *list = NULL;
    GIVES(OK, zkl_election_participants(election, &list));
    zkl_contender found = {.path = NULL};
    for (size_t i = 0; i < zkl_contenders_count(list); i++)
        if (strcmp(zkl_contenders_get(list, i)->label, label) == 0)
            found = *zkl_contenders_get(list, i);
    CHECK(found.path != NULL);
    snprintf(path, size, "%s", found.path);
    found.path = path;
    zkl_contenders_free(list);
    return found;
}

/* The leaders that were seen. */
typedef struct seen {
    told told;
    int64_t leader;
} seen;

static void see(int rc, zkl_contenders *leader, void *userdata)
{
    seen *s = userdata;
    CHECK((rc == 0) == (leader != NULL));
    pthread_mutex_lock(&s->told.mutex);
    CHECK(s->told.finalized == 0);
    s->told.calls++;
    s->told.result = rc;
    if (rc == 0)
        s->leader = only(leader);
    pthread_mutex_unlock(&s->told.mutex);
}

static int64_t seen_leader(seen *s)
{
    pthread_mutex_lock(&s->told.mutex);
    int64_t leader = s->leader;
    pthread_mutex_unlock(&s->told.mutex);
    return leader;
}

static void one_leads_and_hands_over(zkl_client *client)
{
    zkl_election *first = election_of(client, "first"), *second = election_of(client, "second"),
                 *third = election_of(client, "third");
    seen seen = {.leader = -1};
    told_init(&seen.told);
    zkl_watch *watch = NULL;
    GIVES(OK, zkl_election_observe(second, see, &seen, finalize, &watch));
    UNTIL(seen_leader(&seen) == 0);

    zkl_guard *leads = NULL, *none = NULL;
    /* A limit of 0 is one look: nobody leads. */
    GIVES(OK, zkl_election_campaign(first, 0, &leads));
    int64_t term = zkl_guard_token(leads);
    UNTIL(seen_leader(&seen) == term);
    zkl_contenders *leader = NULL;
    GIVES(OK, zkl_election_leader(second, &leader));
    CHECK(strcmp(zkl_contenders_get(leader, 0)->label, "first") == 0 && only(leader) == term);
    GIVES(TIMEOUT, zkl_election_campaign(second, 0, &none));
    GIVES(TIMEOUT, zkl_election_campaign(second, 100, &none));
    CHECK(none == NULL);
    UNTIL(participants_of(first) == 1);

    told elected[2], lost;
    told_init(&elected[0]);
    told_init(&elected[1]);
    told_init(&lost);
    zkl_attempt *attempt = NULL;
    GIVES(OK, zkl_election_campaign_async(second, ZKL_FOREVER, tell_done, &elected[0], finalize, NULL));
    UNTIL(participants_of(first) == 2);
    GIVES(OK, zkl_election_campaign_async(third, ZKL_FOREVER, tell_done, &elected[1], finalize, &attempt));
    UNTIL(participants_of(first) == 3);

    /* To the one behind: the one between gives way, and leads after it. */
    GIVES(OK, zkl_guard_on_lost(leads, tell_lost, &lost, finalize));
    char path[256];
    zkl_contender chosen = participant(first, "third", path, sizeof path);
    GIVES(OK, zkl_election_hand_over(first, leads, &chosen, TIMEOUT_MS));
    CHECK(zkl_guard_state(leads) == ZKL_LOST && zkl_guard_lost_reason(leads) == 0);
    UNTIL(told_finalized(&elected[1]) == 1);
    CHECK(elected[1].result == OK && zkl_guard_token(elected[1].guard) > term);
    CHECK(zkl_guard_state(elected[1].guard) == ZKL_HELD && told_calls(&elected[0]) == 0);
    UNTIL(seen_leader(&seen) == zkl_guard_token(elected[1].guard));
    GIVES(NOTHING, zkl_attempt_cancel(attempt));
    zkl_attempt_free(attempt);
    /* A hand-over is no loss. */
    UNTIL(told_finalized(&lost) == 1);
    CHECK(lost.calls == 0);
    GIVES(ZKL_NOT_HELD, zkl_guard_set(leads, "/data", "stale", 5, -1, NULL));
    GIVES(OK, zkl_guard_release(leads));

    /* Resigning lets the next one lead. */
    term = zkl_guard_token(elected[1].guard);
    GIVES(OK, zkl_guard_release(elected[1].guard));
    UNTIL(told_finalized(&elected[0]) == 1);
    CHECK(elected[0].result == OK && zkl_guard_token(elected[0].guard) > term);
    term = zkl_guard_token(elected[0].guard);
    UNTIL(seen_leader(&seen) == term);

    /* Who has left is not led by, and the leader goes on. */
    GIVES(NOTHING, zkl_election_hand_over(second, elected[0].guard, &chosen, TIMEOUT_MS));
    CHECK(zkl_guard_state(elected[0].guard) == ZKL_HELD);

    /* Without waiting, by its blocking twin's code. */
    told handed[2], next;
    told_init(&handed[0]);
    told_init(&handed[1]);
    told_init(&next);
    GIVES(OK, zkl_election_hand_over_async(second, elected[0].guard, &chosen, ZKL_FOREVER, tell_rc, &handed[0],
                                           finalize));
    UNTIL(told_finalized(&handed[0]) == 1);
    CHECK(handed[0].result == NOTHING && zkl_guard_state(elected[0].guard) == ZKL_HELD);
    GIVES(OK, zkl_election_campaign_async(first, ZKL_FOREVER, tell_done, &next, finalize, NULL));
    UNTIL(participants_of(first) == 2);
    chosen = participant(second, "first", path, sizeof path);
    GIVES(OK, zkl_election_hand_over_async(second, elected[0].guard, &chosen, ZKL_FOREVER, tell_rc, &handed[1],
                                           finalize));
    UNTIL(told_finalized(&handed[1]) == 1 && told_finalized(&next) == 1);
    CHECK(handed[1].result == OK && next.result == OK && zkl_guard_state(next.guard) == ZKL_HELD);
    zkl_guard_free(elected[0].guard);

    /* After its end a watch says nothing, whoever leads. */
    UNTIL(seen_leader(&seen) == zkl_guard_token(next.guard));
    zkl_watch_free(watch);
    UNTIL(told_finalized(&seen.told) == 1);
    GIVES(OK, zkl_guard_release(next.guard));
    UNTIL(participants_of(first) == 0);
    CHECK(seen.told.result == OK);
    zkl_election_free(first);
    zkl_election_free(second);
    zkl_election_free(third);
}

static void only_the_leader_of_an_election_hands_it_over(zkl_client *client)
{
    zkl_election *election = election_of(client, "");
    zkl_lock *lock = lock_on(client, "/elections/billing-lock"), *below = lock_on(client, "/elections/billing/below");
    zkl_lock *const locks[] = {lock, below};
    const zkl_contender nobody = {.path = "/nobody", .token = 1};
    for (int i = 0; i < 2; i++) {
        zkl_guard *guard = acquired(locks[i]);
        GIVES(BAD_ARGUMENTS, zkl_election_hand_over(election, guard, &nobody, TIMEOUT_MS));
        GIVES(BAD_ARGUMENTS,
              zkl_election_hand_over_async(election, guard, &nobody, TIMEOUT_MS, tell_rc, NULL, finalize));
        CHECK(zkl_guard_state(guard) == ZKL_HELD);
        GIVES(OK, zkl_guard_release(guard));
        zkl_lock_free(locks[i]);
    }
    zkl_election_free(election);
}

static void a_leader_whose_session_ends_is_lost_and_the_next_one_leads(zkl_client *client)
{
    zkl_client *second = connected();
    zkl_election *mine = election_of(client, "mine"), *other = election_of(second, "other");
    zkl_guard *leads = NULL;
    told lost, next;
    told_init(&lost);
    told_init(&next);
    seen seen = {.leader = -1};
    told_init(&seen.told);
    zkl_watch *watch = NULL;
    GIVES(OK, zkl_election_campaign(mine, TIMEOUT_MS, &leads));
    GIVES(OK, zkl_election_observe(mine, see, &seen, finalize, &watch));
    UNTIL(seen_leader(&seen) == zkl_guard_token(leads));
    int fd = -1;
    GIVES(OK, zkl_guard_fd(leads, &fd));
    GIVES(OK, zkl_guard_on_lost(leads, tell_lost, &lost, finalize));
    GIVES(OK, zkl_election_campaign_async(other, ZKL_FOREVER, tell_done, &next, finalize, NULL));
    UNTIL(participants_of(other) == 2);
    char path[256];
    zkl_contender chosen = participant(other, "other", path, sizeof path);
    ask("expire %lld", (long long)zkl_client_session_id(client));
    CHECK(is_readable(fd, TIMEOUT_MS));
    UNTIL(told_finalized(&lost) == 1 && told_finalized(&next) == 1);
    CHECK(lost.result == ZKL_LOST_SESSION && next.result == OK);
    CHECK(zkl_guard_token(next.guard) > zkl_guard_token(leads));
    GIVES(ZKL_NOT_HELD, zkl_election_hand_over(mine, leads, &chosen, TIMEOUT_MS));
    GIVES(EXPIRED, zkl_guard_release(leads));
    /* On the next session the watch goes on. */
    UNTIL(seen_leader(&seen) == zkl_guard_token(next.guard));
    CHECK(seen.told.result == OK);
    GIVES(OK, zkl_guard_release(next.guard));
    UNTIL(seen_leader(&seen) == 0);

    /* With its client it ends, and says so once. */
    GIVES(OK, zkl_client_detach(second));
    told late;
    told_init(&late);
    GIVES(OK, zkl_election_campaign_async(other, ZKL_FOREVER, tell_done, &late, finalize, NULL));
    UNTIL(told_finalized(&late) == 1);
    CLOSED(late);
    zkl_watch_free(watch);
    UNTIL(told_finalized(&seen.told) == 1);
    struct seen closed = {.leader = -1};
    told_init(&closed.told);
    zkl_client *third = connected();
    zkl_election *last = election_of(third, "last");
    GIVES(OK, zkl_election_observe(last, see, &closed, finalize, &watch));
    UNTIL(seen_leader(&closed) == 0);
    int calls = told_calls(&closed.told);
    GIVES(OK, zkl_client_detach(third));
    UNTIL(told_finalized(&closed.told) == 1);
    CHECK(closed.told.calls == calls + 1);
    CLOSED(closed.told);
    zkl_watch_free(watch);
    zkl_election_free(last);
    zkl_client_free(third);
    zkl_election_free(mine);
    zkl_election_free(other);
    zkl_client_free(second);
}

/* It frees its own watch from within, and what it was given is finalized after that. */
static zkl_watch *own_watch;
static pthread_mutex_t own_mutex = PTHREAD_MUTEX_INITIALIZER;

static void see_and_free(int rc, zkl_contenders *leader, void *userdata)
{
    tell(userdata, rc, NULL);
    zkl_contenders_free(leader);
    pthread_mutex_lock(&own_mutex);
    zkl_watch_free(own_watch);
    own_watch = NULL;
    pthread_mutex_unlock(&own_mutex);
}

static void a_watch_is_freed_in_its_own_callback(zkl_client *client)
{
    zkl_election *election = election_of(client, "");
    told t;
    told_init(&t);
    pthread_mutex_lock(&own_mutex);
    GIVES(OK, zkl_election_observe(election, see_and_free, &t, finalize, &own_watch));
    pthread_mutex_unlock(&own_mutex);
    UNTIL(told_finalized(&t) == 1);
    CHECK(t.calls == 1 && own_watch == NULL);
    zkl_election_free(election);
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    ask("create /data");
    zkl_client *client = connected();
    several_locks_are_acquired_all_or_none(client);
    what_the_thread_holds_already_may_be_among_them(client);
    several_locks_are_lost_when_one_is(client);
    a_multi_lock_is_of_different_locks_of_one_client(client);
    one_leads_and_hands_over(client);
    only_the_leader_of_an_election_hands_it_over(client);
    a_watch_is_freed_in_its_own_callback(client);
    a_leader_whose_session_ends_is_lost_and_the_next_one_leads(client);
    zkl_client_free(client);
    return 0;
}
