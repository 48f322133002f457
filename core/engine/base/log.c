/* One process-wide sink for messages; standard error until someone asks for them. */
#include "base/base.h"
#include <pthread.h>
#include <string.h>

enum { DEFAULT_LEVEL = 1 /* level 1: warnings */ };

static struct {
    pthread_mutex_t lock;
    cnri_log_fn fn;
    void *arg;
    int32_t level;
} sink = {PTHREAD_MUTEX_INITIALIZER, NULL, NULL, DEFAULT_LEVEL};

/* Writes one message to standard error, with "error: " or "warning: " before it by level. */
static void to_stderr(int32_t level, const char *who, const char *text) {
    const char *word = level <= 0   ? "cnnrun: error: "
                       : level == 1 ? "cnnrun: warning: "
                                    : "cnnrun: ";
    cnri_sink s = {.file = stderr};
    cnri_sink_put(&s, word, strlen(word));
    if (who && *who) {
        cnri_sink_text(&s, who, strlen(who));
        cnri_sink_put(&s, ": ", 2);
    }
    cnri_sink_lines(&s, text, strlen(text), "  ");
    cnri_sink_put(&s, "\n", 1);
    cnri_sink_end(&s);
}

void cnri_log_to(cnri_log_fn fn, void *arg, int32_t level) {
    pthread_mutex_lock(&sink.lock);
    sink.fn = fn;
    sink.arg = arg;
    sink.level = level;
    pthread_mutex_unlock(&sink.lock);
}

void cnri_logv(int32_t level, const char *who, const char *format, va_list args) {
    char text[4096];
    pthread_mutex_lock(&sink.lock);
    const cnri_log_fn fn = sink.fn;
    void *arg = sink.arg;
    const bool wanted = level <= sink.level;
    pthread_mutex_unlock(&sink.lock);
    if (!wanted) return;
    /* The lock is released before the text is written, so that a sink may log too. */
    vsnprintf(text, sizeof text, format, args);
    if (fn) fn(arg, level, who ? who : "", text);
    else to_stderr(level, who, text);
}

void cnri_log(int32_t level, const char *who, const char *format, ...) {
    va_list args;
    va_start(args, format);
    cnri_logv(level, who, format, args);
    va_end(args);
}
