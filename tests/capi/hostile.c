#include "check.h"
int main(int c, char **v) { begin(c, v); return 0; }
