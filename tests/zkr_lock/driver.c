/*
 * Does what it is told, a line at a time, with the functions of zoo_lock.h: reads commands from its
 * standard input, and answers each with one line. Handles and mutexes go by a letter. Test scenarios
 * are written in Rust and have the server in their hands; this is the old program in them.
 *
 *   open H HOSTS TIMEOUT_MS     zookeeper_init, and waits for the connection
 *   session H                   the session's id and password in hexadecimal
 *   close H                     zookeeper_close
 *   close_when_expired H        have the global watcher close the handle when the session expires
 *   closed H                    waits until it has done so
 *   events H                    how often the global watcher said CONNECTED
 *   init M H PATH [open|creator|empty|null]    zkr_lock_init_cb, with an ACL
 *   plain M H PATH              zkr_lock_init
 *   zero M                      a mutex that is all zeroes
 *   lock M, unlock M, isowner M, destroy M, getid M, getpath M
 *   both M                      lock and unlock, without a pause
 *   error M                     zkr_lock_error
 *   take M                      zkr_lock_lock as a program reads it that takes its result for ownership
 *   fields M                    isOwner, id and ownerid, read directly
 *   told M                      the completions so far: the code, and on which thread: c the one that
 *                               was in zkr_lock_lock or _unlock, h the handle's, o another; ! where
 *                               one began while another ran on another thread
 *   await M RC COUNT            waits until the completion said RC so often
 *   await_owner M 0|1           asks zkr_lock_isowner until it says so
 *   when M RC lock|unlock|free|nothing|overlap|wait|dawdle     have the completion do that when it
 *                               is told RC; free destroys the mutex and frees the struct; two that overlap:
 *                               0 ends once 1 has begun, and 1 ends after that; wait: until told to go
 *   begun M RC COUNT            waits until the completion was called with RC so often
 *   go M                        lets the completion that waits go on
 *   copy M N                    N = M by value
 *   scribble M, intact M        overwrites the struct; whether anybody has written to it since
 *   release_memory M            frees the struct's memory, and nothing else; M is NULL then
 *   callbacks M                 tries zkr_lock_getcallback and zkr_lock_setcallback
 *   pairs M COUNT               so many locks and unlocks; bytes that the heap grew in the last 4/5
 *   callback_threads COUNT      waits until so many of zklock's callback threads run
 *   nulls                       every function with NULL
 *   inside H COMMAND...         runs a command on the handle's completion thread
 */
#define _GNU_SOURCE

#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <zoo_lock.h>

/* The header may be one that a program has of its own, and knows nothing of this. */
int zkr_lock_error(zkr_lock_mutex_t *mutex);

enum { LETTERS = 26, TIMEOUT_SECONDS = 120, DEAD = 0x5a, MAX_WORDS = 8, ROOM = 4096 };

struct handle {
    zhandle_t *zh;
    pthread_t completion_thread;
    int is_known; /* the thread above */
    int connects;
    int closes_when_expired, is_closed;
    char job[ROOM], answer[ROOM];
    int has_answered;
};

/* What the completion of a mutex was told; copies of the struct share it. */
struct record {
    struct handle *handle;
    zkr_lock_mutex_t *mutex;
    pthread_t caller;
    char told[ROOM];
    int begun[2], count[2], may_go, running;
    pthread_t runs_on;
    char when[2][16];
    char path[256];
};

static struct handle handles[LETTERS];
static struct record records[LETTERS];
static zkr_lock_mutex_t *mutexes[LETTERS];

static pthread_mutex_t news = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void obey(char *line, char *answer);

static void pause_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* Waits until `*what` has reached `count`: 1, or 0 when that takes too long. */
static int await(const int *what, int count)
{
    struct timespec until;
    int rc = 0, reached;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += TIMEOUT_SECONDS;
    pthread_mutex_lock(&news);
    while (*what < count && rc == 0) {
        rc = pthread_cond_timedwait(&changed, &news, &until);
    }
    reached = *what >= count;
    pthread_mutex_unlock(&news);
    return reached;
}

static void note(int *what)
{
    pthread_mutex_lock(&news);
    *what += 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&news);
}

/* Handles */

static void global_watcher(zhandle_t *zh, int type, int state, const char *path, void *context)
{
    struct handle *handle = context;

    (void)path;
    if (type != ZOO_SESSION_EVENT) {
        return;
    }
    if (state == ZOO_CONNECTED_STATE) {
        pthread_mutex_lock(&news);
        handle->completion_thread = pthread_self();
        handle->is_known = 1;
        pthread_mutex_unlock(&news);
        note(&handle->connects);
    }
    if (state == ZOO_EXPIRED_SESSION_STATE && handle->closes_when_expired) {
        handle->zh = NULL;
        zookeeper_close(zh);
        note(&handle->is_closed);
    }
}

/* Runs on the completion thread. */
static void do_inside(int rc, const struct Stat *stat, const void *data)
{
    struct handle *handle = (struct handle *)data;

    (void)stat;
    snprintf(handle->answer, ROOM, "no connection: %d", rc);
    if (rc == ZOK) {
        obey(handle->job, handle->answer);
    }
    note(&handle->has_answered);
}

static void inside(struct handle *handle, const char *command, char *answer)
{
    int before = handle->has_answered;
    int rc;

    snprintf(handle->job, ROOM, "%s", command);
    rc = zoo_aexists(handle->zh, "/", 0, do_inside, handle);
    if (rc != ZOK) {
        sprintf(answer, "%d", rc);
    } else if (!await(&handle->has_answered, before + 1)) {
        sprintf(answer, "timeout");
    } else {
        strcpy(answer, handle->answer);
    }
}

static void open_handle(struct handle *handle, const char *hosts, int timeout_ms, char *answer)
{
    memset(handle, 0, sizeof *handle);
    handle->zh = zookeeper_init(hosts, global_watcher, timeout_ms, NULL, handle, 0);
    strcpy(answer, handle->zh != NULL && await(&handle->connects, 1) ? "ok" : "failed");
}

/* Mutexes */

static void completion(int rc, void *cbdata)
{
    struct record *record = cbdata;
    struct handle *handle = record->handle;
    char action[16], thread = 'o';
    int rc_of_action = 0, overlaps;

    pthread_mutex_lock(&news);
    if (handle->is_known && pthread_equal(handle->completion_thread, pthread_self())) {
        thread = 'h';
    }
    if (pthread_equal(record->caller, pthread_self())) {
        thread = 'c';
    }
    overlaps = record->running++ > 0 && !pthread_equal(record->runs_on, pthread_self());
    record->runs_on = pthread_self();
    snprintf(record->told + strlen(record->told), ROOM - strlen(record->told), "%d%c%s ", rc, thread,
             overlaps ? "!" : "");
    strcpy(action, rc == 0 || rc == 1 ? record->when[rc] : "");
    pthread_mutex_unlock(&news);
    if (rc == 0 || rc == 1) {
        note(&record->begun[rc]);
    }

    if (strcmp(action, "lock") == 0) {
        rc_of_action = zkr_lock_lock(record->mutex);
    } else if (strcmp(action, "unlock") == 0) {
        rc_of_action = zkr_lock_unlock(record->mutex);
    } else if (strcmp(action, "free") == 0) {
        rc_of_action = zkr_lock_destroy(record->mutex);
        free(record->mutex);
        mutexes[record - records] = NULL;
    } else if (strcmp(action, "overlap") == 0) {
        await(rc == 0 ? &record->begun[1] : &record->count[0], 1);
        /* So that 0 is not only at its end, but out of the library too. */
        pause_ms(rc == 0 ? 0 : 100);
    } else if (strcmp(action, "wait") == 0) {
        await(&record->may_go, 1);
    } else if (strcmp(action, "dawdle") == 0) {
        pause_ms(300);
    }
    pthread_mutex_lock(&news);
    record->running--;
    if (rc_of_action != 0) {
        sprintf(record->told + strlen(record->told), "(%s:%d) ", action, rc_of_action);
    }
    pthread_mutex_unlock(&news);
    if (rc == 0 || rc == 1) {
        note(&record->count[rc]);
    }
}

static void another_completion(int rc, void *cbdata)
{
    struct record *record = cbdata;
    pthread_mutex_lock(&news);
    sprintf(record->told + strlen(record->told), "another:%d ", rc);
    pthread_mutex_unlock(&news);
}

static zkr_lock_mutex_t *fresh(int m)
{
    mutexes[m] = calloc(1, sizeof *mutexes[m]);
    return mutexes[m];
}

static int init(int m, struct handle *handle, char *path, const char *acl_name)
{
    static struct ACL_vector empty = {0, NULL};
    struct ACL_vector *acl = &ZOO_OPEN_ACL_UNSAFE;
    struct record *record = &records[m];

    if (strcmp(acl_name, "creator") == 0) {
        acl = &ZOO_CREATOR_ALL_ACL;
    } else if (strcmp(acl_name, "empty") == 0) {
        acl = &empty;
    } else if (strcmp(acl_name, "null") == 0) {
        acl = NULL;
    }
    memset(record, 0, sizeof *record);
    record->handle = handle;
    record->mutex = fresh(m);
    /* What lies in an uninitialised struct must not matter. */
    memset(mutexes[m], DEAD, sizeof *mutexes[m]);
    /* The path is borrowed for as long as the mutex lives. */
    snprintf(record->path, sizeof record->path, "%s", path);
    return zkr_lock_init_cb(mutexes[m], handle->zh, record->path, acl, completion, record);
}

static int is_intact(const zkr_lock_mutex_t *mutex)
{
    const unsigned char *bytes = (const unsigned char *)mutex;
    size_t i;
    for (i = 0; i < sizeof *mutex; i++) {
        if (bytes[i] != DEAD) {
            return 0;
        }
    }
    return 1;
}

static int becomes_owner(zkr_lock_mutex_t *mutex, int is_owner)
{
    int tries;
    for (tries = 0; tries < TIMEOUT_SECONDS * 100; tries++) {
        if (zkr_lock_isowner(mutex) == is_owner) {
            return 1;
        }
        pause_ms(10);
    }
    return 0;
}

static void pairs(zkr_lock_mutex_t *mutex, long count, char *answer)
{
    long i;
    size_t after_a_fifth = 0;

    for (i = 0; i < count; i++) {
        int rc = zkr_lock_lock(mutex);
        if (rc != ZOK || !becomes_owner(mutex, 1) || (rc = zkr_lock_unlock(mutex)) != ZOK) {
            sprintf(answer, "failed in pair %ld: %d", i, rc);
            return;
        }
        if (i == count / 5) {
            after_a_fifth = mallinfo2().uordblks;
        }
    }
    sprintf(answer, "grew %ld", (long)(mallinfo2().uordblks - after_a_fifth));
}

/* Neither NULL nor a struct of zeroes is a reason to crash. */
static void nulls(char *answer)
{
    zkr_lock_mutex_t zeroes;
    char path[] = "/nulls";
    int all_refused = 1;

    memset(&zeroes, 0, sizeof zeroes);
    all_refused &= zkr_lock_init(NULL, handles[0].zh, path, &ZOO_OPEN_ACL_UNSAFE) != 0;
    all_refused &= zkr_lock_init_cb(NULL, NULL, path, NULL, completion, NULL) != 0;
    all_refused &= zkr_lock_lock(NULL) == 0 && zkr_lock_lock(&zeroes) == 0;
    all_refused &= zkr_lock_error(NULL) == ZBADARGUMENTS && zkr_lock_error(&zeroes) == ZBADARGUMENTS;
    all_refused &= zkr_lock_unlock(NULL) != 0 && zkr_lock_unlock(&zeroes) != 0;
    all_refused &= zkr_lock_isowner(NULL) == 0 && zkr_lock_isowner(&zeroes) == 0;
    all_refused &= zkr_lock_getid(NULL) == NULL && zkr_lock_getid(&zeroes) == NULL;
    all_refused &= zkr_lock_getpath(NULL) == NULL && zkr_lock_getpath(&zeroes) == NULL;
    all_refused &= zkr_lock_getcallback(NULL) == NULL && zkr_lock_getcallback(&zeroes) == NULL;
    zkr_lock_setcallback(NULL, completion);
    all_refused &= zkr_lock_destroy(NULL) != 0;
    zkr_lock_destroy(&zeroes);
    strcpy(answer, all_refused ? "refused" : "taken");
}

/* How many threads of that name run. */
static int threads_named(const char *wanted)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    int count = 0;

    while (tasks != NULL && (task = readdir(tasks)) != NULL) {
        char path[300], name[32] = "";
        FILE *file;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        file = fopen(path, "r");
        if (file != NULL) {
            count += fgets(name, sizeof name, file) != NULL &&
                     strcspn(name, "\n") == strlen(wanted) &&
                     strncmp(name, wanted, strlen(wanted)) == 0;
            fclose(file);
        }
    }
    closedir(tasks);
    return count;
}

static int becomes_count(int wanted)
{
    int tries;
    for (tries = 0; tries < TIMEOUT_SECONDS * 100; tries++) {
        if (threads_named("zklock-callback") == wanted) {
            return 1;
        }
        pause_ms(10);
    }
    return 0;
}

static const char *shown(const char *text) { return text == NULL ? "-" : text; }

static int act(int m, const char *verb)
{
    zkr_lock_mutex_t *mutex = mutexes[m];
    records[m].caller = pthread_self();
    if (strcmp(verb, "lock") == 0) {
        return zkr_lock_lock(mutex);
    }
    if (strcmp(verb, "unlock") == 0) {
        return zkr_lock_unlock(mutex);
    }
    if (strcmp(verb, "isowner") == 0) {
        return zkr_lock_isowner(mutex);
    }
    if (strcmp(verb, "destroy") == 0) {
        return zkr_lock_destroy(mutex);
    }
    if (strcmp(verb, "error") == 0) {
        return zkr_lock_error(mutex);
    }
    fprintf(stderr, "unknown command: %s\n", verb);
    exit(2);
}

static int index_of(const char *letter)
{
    return *letter >= 'a' && *letter <= 'z' ? *letter - 'a' : 0;
}

static int obey_for_handle(const char *verb, struct handle *handle, char **words, char *answer)
{
    if (strcmp(verb, "open") == 0) {
        open_handle(handle, words[0], atoi(words[1]), answer);
    } else if (strcmp(verb, "session") == 0) {
        sprintf(answer, "%llx", (long long)zoo_client_id(handle->zh)->client_id);
    } else if (strcmp(verb, "close") == 0) {
        zhandle_t *zh = handle->zh;
        handle->zh = NULL;
        sprintf(answer, "%d", zookeeper_close(zh));
    } else if (strcmp(verb, "close_when_expired") == 0) {
        handle->closes_when_expired = 1;
        strcpy(answer, "ok");
    } else if (strcmp(verb, "closed") == 0) {
        strcpy(answer, await(&handle->is_closed, 1) ? "ok" : "timeout");
    } else if (strcmp(verb, "events") == 0) {
        sprintf(answer, "%d", handle->connects);
    } else {
        return 0;
    }
    return 1;
}

static void obey_for_mutex(const char *verb, int m, char **words, char *answer)
{
    zkr_lock_mutex_t *mutex = mutexes[m];
    struct record *record = &records[m];
    int other = index_of(words[0]);

    if (strcmp(verb, "init") == 0) {
        sprintf(answer, "%d", init(m, &handles[other], words[1], words[2]));
    } else if (strcmp(verb, "plain") == 0) {
        record->handle = &handles[other];
        snprintf(record->path, sizeof record->path, "%s", words[1]);
        sprintf(answer, "%d",
                zkr_lock_init(fresh(m), handles[other].zh, record->path, &ZOO_OPEN_ACL_UNSAFE));
    } else if (strcmp(verb, "zero") == 0) {
        fresh(m);
        strcpy(answer, "ok");
    } else if (strcmp(verb, "take") == 0) {
        record->caller = pthread_self();
        if (zkr_lock_lock(mutex)) {
            strcpy(answer, "owned");
        } else {
            strcpy(answer, "not owned");
        }
    } else if (strcmp(verb, "getid") == 0) {
        strcpy(answer, shown(zkr_lock_getid(mutex)));
    } else if (strcmp(verb, "getpath") == 0) {
        strcpy(answer, shown(zkr_lock_getpath(mutex)));
    } else if (strcmp(verb, "fields") == 0) {
        sprintf(answer, "%d %s %s", mutex->isOwner, shown(mutex->id), shown(mutex->ownerid));
    } else if (strcmp(verb, "told") == 0) {
        pthread_mutex_lock(&news);
        strcpy(answer, record->told);
        pthread_mutex_unlock(&news);
    } else if (strcmp(verb, "await") == 0) {
        int *count = &record->count[words[0][0] == '1'];
        strcpy(answer, await(count, atoi(words[1])) ? "ok" : "timeout");
    } else if (strcmp(verb, "begun") == 0) {
        strcpy(answer, await(&record->begun[words[0][0] == '1'], atoi(words[1])) ? "ok" : "timeout");
    } else if (strcmp(verb, "go") == 0) {
        note(&record->may_go);
        strcpy(answer, "ok");
    } else if (strcmp(verb, "await_owner") == 0) {
        strcpy(answer, becomes_owner(mutex, atoi(words[0])) ? "ok" : "timeout");
    } else if (strcmp(verb, "when") == 0) {
        pthread_mutex_lock(&news);
        snprintf(record->when[words[0][0] == '1'], 16, "%s", words[1]);
        pthread_mutex_unlock(&news);
        strcpy(answer, "ok");
    } else if (strcmp(verb, "copy") == 0) {
        *fresh(other) = *mutex;
        records[other].handle = record->handle;
        strcpy(answer, "ok");
    } else if (strcmp(verb, "scribble") == 0) {
        memset(mutex, DEAD, sizeof *mutex);
        strcpy(answer, "ok");
    } else if (strcmp(verb, "intact") == 0) {
        strcpy(answer, is_intact(mutex) ? "yes" : "no");
    } else if (strcmp(verb, "release_memory") == 0) {
        free(mutex);
        mutexes[m] = NULL;
        strcpy(answer, "ok");
    } else if (strcmp(verb, "callbacks") == 0) {
        int was = zkr_lock_getcallback(mutex) == completion;
        zkr_lock_setcallback(mutex, another_completion);
        sprintf(answer, "%d %d", was, zkr_lock_getcallback(mutex) == another_completion);
    } else if (strcmp(verb, "both") == 0) {
        int locked = act(m, "lock");
        sprintf(answer, "%d %d", locked, act(m, "unlock"));
    } else if (strcmp(verb, "pairs") == 0) {
        pairs(mutex, atol(words[0]), answer);
    } else {
        sprintf(answer, "%d", act(m, verb));
    }
}

static void obey(char *line, char *answer)
{
    char *words[MAX_WORDS] = {"", "", "", "", "", "", "", ""};
    char *place = NULL, *word, copy[ROOM];
    int count = 0, letter;

    snprintf(copy, ROOM, "%s", line);
    for (word = strtok_r(line, " \n", &place); word != NULL && count < MAX_WORDS - 3;
         word = strtok_r(NULL, " \n", &place)) {
        words[count++] = word;
    }
    letter = index_of(words[1]);
    if (strcmp(words[0], "nulls") == 0) {
        nulls(answer);
    } else if (strcmp(words[0], "callback_threads") == 0) {
        strcpy(answer, becomes_count(atoi(words[1])) ? "ok" : "timeout");
    } else if (strcmp(words[0], "inside") == 0) {
        inside(&handles[letter], copy + strlen("inside x "), answer);
    } else if (!obey_for_handle(words[0], &handles[letter], words + 2, answer)) {
        obey_for_mutex(words[0], letter, words + 2, answer);
    }
}

int main(void)
{
    static char line[ROOM], answer[ROOM];

    zoo_set_debug_level(0);
    while (fgets(line, sizeof line, stdin) != NULL) {
        obey(line, answer);
        printf("%s\n", answer);
        fflush(stdout);
    }
    return 0;
}
