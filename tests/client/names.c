/*
 * Loaded before the C library. A name that begins with "slow" resolves only once there is a file. The name "moved"
 * resolves to the address in that file, and before there is one to 127.0.0.1.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int resolve_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **result)
{
    const char *file = getenv("ZKLOCK_TEST_NAMES_FILE");
    resolve_fn *resolve = (resolve_fn *)dlsym(RTLD_NEXT, "getaddrinfo");
    if (node != NULL && strncmp(node, "slow", 4) == 0) {
        while (file != NULL && access(file, F_OK) != 0)
            usleep(10000);
        node = "127.0.0.1";
    }
    char address[64] = "127.0.0.1";
    if (node != NULL && strcmp(node, "moved") == 0) {
        FILE *now = file != NULL ? fopen(file, "r") : NULL;
        if (now != NULL) {
            if (fscanf(now, "%63s", address) != 1)
                return EAI_AGAIN;
            fclose(now);
        }
        node = address;
    }
    return resolve(node, service, hints, result);
}
