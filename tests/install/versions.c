/* Uses zklock and the C client side by side, as programs do: prints which versions it found. */

#include <stdio.h>
#include <string.h>

#include <zklock.h>
#include <zookeeper.h>

int main(void)
{
    if (strcmp(zerror(ZNONODE), "no node") != 0) {
        fprintf(stderr, "the C client says: %s\n", zerror(ZNONODE));
        return 1;
    }
    printf("zklock %s (%d)\n", zkl_version(), zkl_version_number());
    return 0;
}
