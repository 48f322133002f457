/* What glibc has and bionic, Android's C library, lacks. With an Android toolchain every C file is
 * compiled with this header before all else (CMakeLists.txt). Sources call the functions by glibc's
 * names. */
#ifndef CNRI_BIONIC_H
#define CNRI_BIONIC_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The variable's value, or NULL in a process with more rights than its user. */
static inline char *cnri_bionic_secure_getenv(const char *name) {
    return getauxval(AT_SECURE) ? NULL : getenv(name);
}
#define secure_getenv cnri_bionic_secure_getenv

#if defined(__ANDROID_API__) && __ANDROID_API__ < 30
/* renameat2 by its system call, which Bionic has no function for: paths are relative to the folders
 * from_dir and to_dir. 0, or -1 with errno. */
static inline int cnri_bionic_renameat2(int from_dir, const char *from, int to_dir, const char *to,
                                        unsigned flags) {
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}
#define renameat2 cnri_bionic_renameat2
#endif

static inline int cnri_bionic_digit(char c) { return c >= '0' && c <= '9'; }

/* Number of decimal digits that the text begins with. */
static inline size_t cnri_bionic_digits(const char *text) {
    size_t n = 0;
    while (cnri_bionic_digit(text[n])) n++;
    return n;
}

/* Compares names with numbers in them, in glibc's order: 000, 00, 01, 010, 09, 0, 1, 9, 10 (man 3
 * strverscmp). Numbers with leading zeros are fractions; of two others, the one with more digits is
 * larger. */
static inline int cnri_bionic_strverscmp(const char *a, const char *b) {
    size_t at = 0, from = 0; /* the first difference; where the digits before it begin */
    for (; a[at] == b[at]; at++) {
        if (!a[at]) return 0;
        if (!cnri_bionic_digit(a[at])) from = at + 1;
    }
    const int bytes = (unsigned char)a[at] - (unsigned char)b[at];
    const size_t n = cnri_bionic_digits(a + at), m = cnri_bionic_digits(b + at);
    if (at + n == from || at + m == from) return bytes; /* one has no number here */
    if (a[from] != '0' && b[from] != '0') return n != m ? (n > m ? 1 : -1) : bytes;
    const size_t zeros = strspn(a + from, "0");
    if (from < at && from + zeros >= at && !n != !m) return n ? -1 : 1; /* more zeros: smaller */
    return bytes;
}
#define strverscmp cnri_bionic_strverscmp

#endif
