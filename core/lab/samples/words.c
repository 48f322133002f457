/* The words behind a spec that vary pictures for training: "mnist:DIR,shift=2,turn=10". */
#include "samples/samples.h"
#include <sys/stat.h>

/* One word of an augmentation: its name, where its value goes and which values are allowed. */
typedef struct word {
    const char *text; /* its name, '=' and its argument, as help shows it */
    size_t at;        /* offset of the member in cnri_augment */
    /* Default_value: used if no number follows the word; < 0: a number must follow. */
    double default_value, min, max;
} word;

/* A row of the table of words; `field` is the member of cnri_augment. */
#define WORD(text, field, default_value, min, max) \
    { text, offsetof(cnri_augment, field), default_value, min, max }
static const word words[] = {WORD("shift=PIXELS", shift, -1, 0, 4096),
                             WORD("flip=CHANCE", flip, 0.5, 0, 1),
                             WORD("crop=PART", crop, -1, 0.05, 1),
                             WORD("turn=DEGREES", turn, -1, 0, 180),
                             WORD("colour=PART", colour, -1, 0, 1)};

static size_t name_length(const char *text) { return strcspn(text, "="); }

/* The row with that name, of which text may carry "=VALUE" behind; NULL: there is none. */
static const word *find(const char *text) {
    const size_t n = name_length(text);
    for (size_t i = 0; i < CNRI_COUNT(words); i++)
        if (name_length(words[i].text) == n && strncmp(words[i].text, text, n) == 0)
            return &words[i];
    return NULL;
}

size_t cnri_augment_cut(const char *spec) {
    size_t n = strlen(spec);
    struct stat about;
    if (!strchr(spec, ',') || stat(spec, &about) == 0)
        return n; /* a file of that name exists, so the spec means the file */
    for (;;) {
        size_t at = n;
        while (at > 0 && spec[at - 1] != ',') at--;
        char piece[64];
        if (at == 0 || n - at >= sizeof piece) return n;
        memcpy(piece, spec + at, n - at);
        piece[n - at] = 0;
        if (!find(piece)) return n;
        n = at - 1;
    }
}

/* Reads one word, which cnri_augment_cut found known, as "flip" or "crop=0.5" into its field. Fails
 * if the number is missing, malformed or out of range. */
static cnr_status read_word(const char *spec, const char *text, cnri_augment *out, cnr_error *err) {
    const word *w = find(text);
    const size_t n = name_length(text);
    const char *end = "";
    double value = w->default_value;
    const bool given = text[n] == '=';
    if ((given && (!cnri_parse_double(text + n + 1, &end, &value) || *end)) || !(value >= w->min) ||
        value > w->max)
        return cnri_fail(err, CNR_E_ARG, spec, "%s: want %s, from %g to %g", text, w->text, w->min,
                         w->max);
    memcpy((char *)out + w->at, &value, sizeof value);
    out->any = true;
    return CNR_OK;
}

cnr_status cnri_augment_read(char *spec, cnri_augment *out, cnr_error *err) {
    const size_t keep = cnri_augment_cut(spec);
    cnr_status status = CNR_OK;
    *out = (cnri_augment){.crop = 1};
    while (strlen(spec) > keep && !status) {
        char *comma = strrchr(spec, ',');
        status = read_word(spec, comma + 1, out, err);
        *comma = 0;
    }
    return status;
}

cnr_status cnri_augment_open(const char *spec, const char *split, cnri_samples *out,
                             cnr_error *err) {
    cnri_augment augment = {0};
    char *plain = cnri_strdup(spec);
    memset(out, 0, sizeof *out);
    if (!plain) return cnri_out_of_memory(err, spec);
    cnr_status status = cnri_augment_read(plain, &augment, err);
    if (!status) status = cnri_samples_open(plain, split, out, err);
    out->augment = augment;
    cnri_free(plain);
    return status;
}
