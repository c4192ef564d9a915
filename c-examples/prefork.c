/*
 * A server that forks its workers first. Each opens its own session after the fork, and they take turns
 * with a counter in a file.
 *
 * A parent's clients stay the parent's: in a child, every function refuses them with ZINVALIDSTATE.
 *
 * Build:  cc prefork.c $(pkg-config --cflags --libs zklock) -o prefork
 * Run:    ./prefork 127.0.0.1:2181
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zklock.h>
#include <zookeeper.h>

enum { WORKERS = 4, ROUNDS = 25, TIMEOUT_MS = 30000 };

static void check(const char *what, int rc)
{
    if (rc != ZOK) {
        fprintf(stderr, "%s: %s\n", what, zkl_last_error());
        exit(1);
    }
}

/* Only the lock keeps two workers from reading the same number. */
static long increment(FILE *file)
{
    long number = 0;
    rewind(file);
    if (fscanf(file, "%ld", &number) != 1)
        number = 0;
    rewind(file);
    fprintf(file, "%ld\n", ++number);
    fflush(file);
    return number;
}

static void work(const char *hosts, const char *name)
{
    zkl_client *client = NULL;
    zkl_lock *lock = NULL;
    FILE *file = fopen(name, "r+");
    if (file == NULL) {
        perror(name);
        exit(1);
    }
    setvbuf(file, NULL, _IONBF, 0);
    check("connect", zkl_client_connect(hosts, NULL, &client));
    check("lock", zkl_lock_new(client, "/locks/prefork", NULL, &lock));
    for (int round = 0; round < ROUNDS; round++) {
        zkl_guard *guard = NULL;
        check("acquire", zkl_lock_acquire(lock, TIMEOUT_MS, &guard));
        increment(file);
        check("release", zkl_guard_release(guard));
    }
    zkl_lock_free(lock);
    zkl_client_free(client);
    fclose(file);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s HOSTS\n", argv[0]);
        return 2;
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    char name[] = "/tmp/prefork-XXXXXX";
    int fd = mkstemp(name);
    if (fd < 0) {
        perror(name);
        return 1;
    }
    for (int worker = 0; worker < WORKERS; worker++) {
        pid_t pid = fork();
        if (pid < 0) {
            perror("fork");
            return 1;
        }
        if (pid == 0) {
            work(argv[1], name);
            exit(0);
        }
    }
    int failed = 0, status;
    while (wait(&status) > 0)
        failed += status != 0;
    FILE *file = fdopen(fd, "r+");
    long number = file == NULL ? 0 : increment(file) - 1;
    unlink(name);
    printf("%d workers counted to %ld\n", WORKERS - failed, number);
    return failed == 0 && number == WORKERS * ROUNDS ? 0 : 1;
}
