/* Writes a sequence of pictures, a file each, numbered from 1 as in "frames-%04d.png". */
#include "images.h"
#include <stdio.h>
#include <stdlib.h>

/* A sequence of numbered files that is written. */
typedef struct sequence {
    int64_t n;
    int width;     /* digits of a number at least */
    size_t before; /* bytes of the pattern before the number; `after` is the rest */
    const char *after;
    char pattern[];
} sequence;

/* Position of the number "%d", "%4d", "%04d" in the pattern, its *width and *after, what follows;
 * NULL: there is none, or more than one. */
static const char *number_in(const char *pattern, int *width, const char **after) {
    const char *at = strchr(pattern, '%');
    if (!at || strchr(at + 1, '%')) return NULL;
    char *end;
    const long digits = strtol(at + 1, &end, 10);
    if (*end != 'd' || digits < 0 || digits > 18 || at[1] == '+' || at[1] == ' ') return NULL;
    *width = (int)digits;
    *after = end + 1;
    return at;
}

cnr_status img_sequence_open(const char *spec, void **state, cnr_error *err) {
    const size_t n = strlen(spec);
    sequence *s = img_host->alloc(sizeof *s + n + 1);
    if (!s) return img_host->fail(err, CNR_E_MEMORY, spec, "out of memory");
    memcpy(s->pattern, spec, n + 1);
    s->n = 0;
    const char *at = number_in(s->pattern, &s->width, &s->after);
    if (!at) {
        img_host->free(s);
        return img_host->fail(err, CNR_E_ARG, spec,
                              "want one %%d where the number goes, as in "
                              "frames-%%04d.png");
    }
    s->before = (size_t)(at - s->pattern);
    *state = s;
    return CNR_OK;
}

/* Writes the sample as the next file of the sequence. */
cnr_status img_sequence_next(void *state, const cnr_sample *sample, cnr_error *err) {
    sequence *s = state;
    const size_t room = strlen(s->pattern) + 32;
    char *path = img_host->alloc(room);
    if (!path) return img_host->fail(err, CNR_E_MEMORY, s->pattern, "out of memory");
    snprintf(path, room, "%.*s%0*lld%s", (int)s->before, s->pattern, s->width, (long long)++s->n,
             s->after);
    const cnr_status status = img_write(path, &sample->picture, err);
    img_host->free(path);
    return status;
}

/* Frees the sequence and returns the status that is given. Each picture file is complete once it
 * exists, so those written stay after an error. */
cnr_status img_sequence_close(void *state, int32_t status, cnr_error *err) {
    (void)err;
    img_host->free(state);
    return (cnr_status)status;
}
