/* core/cmake/bionic.h beside glibc's functions. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int glibc_order(const char *a, const char *b) { return strverscmp(a, b); }
static char *glibc_variable(const char *name) { return secure_getenv(name); }

#define __ANDROID_API__ 28
#include "bionic.h"

static int sign(int n) { return (n > 0) - (n < 0); }

/* Draws a name of up to seven characters of a few, so that runs of digits and zeros are
 * frequent. */
static void draw(char *name) {
    static const char letters[] = "00012a.";
    const int n = rand() % 8;
    for (int i = 0; i < n; i++) name[i] = letters[rand() % 7];
    name[n] = 0;
}

/* Compares drawn names by qsort; returns how many come out of order. */
static int wrong_orders(void) {
    int wrong = 0;
    for (int i = 0; i < 2000000; i++) {
        char a[8], b[8];
        draw(a);
        draw(b);
        if (sign(strverscmp(a, b)) == sign(glibc_order(a, b))) continue;
        if (wrong++ < 5) printf("# '%s' '%s': %d\n", a, b, strverscmp(a, b));
    }
    return wrong;
}

/* Whether renameat2 replaces a file. */
static int replaces(const char *from, const char *to) {
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0;
}

int main(int n, char **words) {
    if (n != 3) return 2;
    const char *seen = secure_getenv("PATH"), *want = glibc_variable("PATH");
    printf("%sok 1 - strverscmp orders as glibc's\n", wrong_orders() ? "not " : "");
    printf("%sok 2 - secure_getenv\n", seen == want && !secure_getenv("NOT_THERE") ? "" : "not ");
    const int kept = !replaces(words[1], words[2]) && access(words[1], F_OK) == 0;
    const int moved = unlink(words[2]) == 0 && replaces(words[1], words[2]);
    printf("%sok 3 - renameat2 replaces nothing\n1..3\n", kept && moved ? "" : "not ");
    return 0;
}
