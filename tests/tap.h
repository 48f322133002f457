/* TAP for C tests: ok(...), is_int(...), skip(...), done(). Header only. */
#ifndef CNRT_TAP_H
#define CNRT_TAP_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 1 under the address sanitiser, which needs all addresses and much memory. */
#ifdef __SANITIZE_ADDRESS__
#define TAP_SANITISED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TAP_SANITISED 1
#endif
#endif
#ifndef TAP_SANITISED
#define TAP_SANITISED 0
#endif

static int tap_count, tap_failed;

/* Keeps plans out of the user's own cache folder, as OwnCache.pm does. */
__attribute__((constructor, unused)) static void tap_own_cache(void) {
    setenv("CNNRUN_CACHE", "", 0);
}

__attribute__((format(printf, 2, 3), unused)) static int ok(int good, const char *format, ...) {
    va_list args;
    printf("%sok %d - ", good ? "" : "not ", ++tap_count);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
    if (!good) tap_failed++;
    return good;
}

__attribute__((format(printf, 1, 2), unused)) static void note(const char *format, ...) {
    va_list args;
    printf("# ");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
}

__attribute__((unused)) static void skip(const char *what, const char *missing) {
    printf("ok %d - %s # SKIP %s\n", ++tap_count, what, missing);
    fflush(stdout);
}

__attribute__((unused)) static int is_int(long long got, long long want, const char *what) {
    const int good = ok(got == want, "%s", what);
    if (!good) note("got %lld, want %lld", got, want);
    return good;
}

__attribute__((unused)) static int is_text(const char *got, const char *want, const char *what) {
    const int good = ok(got && want && strcmp(got, want) == 0, "%s", what);
    if (!good) note("got \"%s\", want \"%s\"", got ? got : "(null)", want ? want : "(null)");
    return good;
}

/* Tests that `text` contains `part`. */
__attribute__((unused)) static int has_text(const char *text, const char *part, const char *what) {
    const int good = ok(text && strstr(text, part) != NULL, "%s", what);
    if (!good) note("no \"%s\" in \"%s\"", part, text ? text : "(null)");
    return good;
}

/* The folder of real models and data, or NULL: CNNRUN_SHARED, else ../shared beside the checkout.
 */
__attribute__((unused)) static const char *tap_shared(void) {
    static char path[1024];
    const char *env = getenv("CNNRUN_SHARED");
    FILE *probe;
    snprintf(path, sizeof path, "%s/data", env ? env : CNRT_SOURCE_DIR "/../shared");
    char file[1100];
    snprintf(file, sizeof file, "%s/SOURCES.md", path);
    if ((probe = fopen(file, "r")) == NULL) return NULL;
    fclose(probe);
    return path;
}

__attribute__((unused)) static int done(void) {
    printf("1..%d\n", tap_count);
    return tap_failed ? 1 : 0;
}

#endif
