/* Class maps: reads a file that says which label each class of a net has. */
#include "work/work.h"
#include <stdlib.h>

/* Compares two texts, for qsort. */
static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* map[i]: the place of name i in sorted order. False: out of memory. */
static bool map_names(char **names, int64_t n, int64_t *map) {
    char **sorted = cnri_alloc((size_t)n * sizeof *sorted);
    if (!sorted) return false;
    memcpy(sorted, names, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_text);
    for (int64_t i = 0; i < n; i++) {
        char **place = bsearch(&names[i], sorted, (size_t)n, sizeof *sorted, by_text);
        map[i] = place - sorted;
    }
    cnri_free(sorted);
    return true;
}

/* Cuts the first `classes` lines of `text` into words, in place. Returns how many there are. */
static int64_t first_words(char *text, char **words, int64_t classes) {
    int64_t n = 0;
    while (*text && n < classes) {
        text += strspn(text, " \t\r\n");
        if (!*text) break;
        words[n++] = text;
        char *line = text + strcspn(text, "\n");
        const bool last = *line == 0;
        *line = 0;
        text[strcspn(text, " \t\r")] = 0;
        text = last ? line : line + 1;
    }
    return n;
}

/* The number of classes of the net; with an open output size, as many as fit memory. */
static int64_t classes_of(const cnr_model *model) {
    cnr_tensor scores = *cnr_output_type(model, 0);
    if (scores.rank > 0) scores.dim[0] = 1;
    const int64_t n = cnr_count(&scores);
    return n > 0 ? n : INT64_C(1) << 20;
}

cnr_status cnri_class_map_read(const char *path, const cnr_model *model, int64_t **out, int64_t *n,
                               cnr_error *err) {
    const int64_t classes = classes_of(model);
    char *text;
    size_t bytes;
    int64_t numbers = 0;
    *out = NULL;
    *n = 0;
    cnr_status status = cnri_read_file(path, 64 << 20, &text, &bytes, err);
    if (status) return status;
    char **words = cnri_alloc((size_t)classes * sizeof *words);
    int64_t *map = cnri_alloc((size_t)classes * sizeof *map);
    bool good = words && map;
    if (good) *n = first_words(text, words, classes);
    while (numbers < *n && cnri_parse_int(words[numbers], &map[numbers])) numbers++;
    if (good && numbers < *n) good = map_names(words, *n, map);
    if (good) *out = map;
    else cnri_free(map);
    cnri_free(words);
    cnri_free(text);
    return good ? CNR_OK : cnri_out_of_memory(err, path);
}
