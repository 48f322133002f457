/* The plugin: MNIST's digits, and sets of the same form, as a source. */
#include "idx.h"
#include <stdio.h>
#include <unistd.h>

const cnr_host *mnist_host;

static const char scheme[] = "mnist:";

/* The pictures and labels of one split. */
typedef struct mnist_set {
    mnist_idx pictures, labels;
    int training;
} mnist_set;

/* Method accepts: a spec that begins with the scheme, and is no file. */
static int32_t mnist_accepts(const char *spec, const uint8_t *head, size_t head_bytes) {
    (void)head_bytes;
    if (head) return 0; /* an existing file, whatever its name */
    return strncmp(spec, scheme, sizeof scheme - 1) == 0 ? 100 : 0;
}

/* Splits "mnist:DIR[:train|test]" into `folder` and *training; *named: the spec names a part, else
 * the command's split applies. */
static cnr_status parse(const char *spec, const char *split, char *folder, size_t room,
                        int *training, int *named, cnr_error *err) {
    const char *rest = spec + sizeof scheme - 1, *colon = strrchr(rest, ':');
    size_t n = strlen(rest);
    *training = split && strcmp(split, "train") == 0;
    *named = 0;
    if (colon && !strchr(colon, '/')) {
        if (strcmp(colon, ":train") != 0 && strcmp(colon, ":test") != 0)
            return mnist_host->fail(err, CNR_E_ARG, spec, "wanted :train or :test, got \"%.40s\"",
                                    colon);
        *training = strcmp(colon, ":train") == 0;
        *named = 1;
        n = (size_t)(colon - rest);
    }
    if (n == 0 || n >= room)
        return mnist_host->fail(err, CNR_E_ARG, spec, "wanted mnist:DIR[:train|test]");
    memcpy(folder, rest, n);
    folder[n] = 0;
    return CNR_OK;
}

/* File names of the set: with '-' or '.' before idx, plain or .gz. */
static cnr_status read_part(const char *folder, const char *prefix, const char *what, int32_t rank,
                            mnist_idx *out, cnr_error *err) {
    static const char *const forms[] = {"%s/%s-%s-idx%d-ubyte", "%s/%s-%s-idx%d-ubyte.gz",
                                        "%s/%s-%s.idx%d-ubyte", "%s/%s-%s.idx%d-ubyte.gz"};
    char path[4400];
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        snprintf(path, sizeof path, forms[i], folder, prefix, what, rank);
        if (access(path, F_OK) == 0) return mnist_idx_read(path, rank, out, err);
    }
    return mnist_host->fail(err, CNR_E_NOT_FOUND, folder, "no %s-%s-idx%d-ubyte or .gz in here",
                            prefix, what, rank);
}

/* Frees the set with its pictures and labels. */
static void mnist_close(void *state) {
    mnist_set *set = state;
    mnist_idx_free(&set->pictures);
    mnist_idx_free(&set->labels);
    mnist_host->free(set);
}

/* Method open: reads the pictures and labels of the split. */
static cnr_status mnist_open(const char *spec, const char *split, void **state,
                             cnr_source_info *info, cnr_error *err) {
    char folder[4096];
    int training, named;
    cnr_status status = parse(spec, split, folder, sizeof folder, &training, &named, err);
    if (status) return status;
    mnist_set *set = mnist_host->alloc(sizeof *set);
    if (!set) return mnist_host->fail(err, CNR_E_MEMORY, spec, "out of memory");
    memset(set, 0, sizeof *set);
    set->training = training;
    const char *prefix = training ? "train" : "t10k";
    status = read_part(folder, prefix, "images", 3, &set->pictures, err);
    if (!status) status = read_part(folder, prefix, "labels", 1, &set->labels, err);
    if (!status && set->pictures.dim[0] != set->labels.dim[0])
        status = mnist_host->fail(err, CNR_E_FORMAT, folder, "%lld pictures but %lld labels",
                                  (long long)set->pictures.dim[0], (long long)set->labels.dim[0]);
    if (status) {
        mnist_close(set);
        return status;
    }
    info->count = set->labels.dim[0];
    if (info->size >= sizeof *info) info->is_split = split && !named;
    for (int64_t i = 0; i < info->count; i++)
        if (set->labels.data[i] >= info->classes) info->classes = set->labels.data[i] + 1;
    *state = set;
    return CNR_OK;
}

/* Method read: *out receives picture `index` and its label. */
static cnr_status mnist_read(void *state, int64_t index, cnr_sample *out, cnr_error *err) {
    const mnist_set *set = state;
    const int64_t h = set->pictures.dim[1], w = set->pictures.dim[2];
    if (index < 0 || index >= set->labels.dim[0])
        return mnist_host->fail(err, CNR_E_ARG, "source-mnist", "no such sample");
    out->picture.data = mnist_host->alloc((size_t)(h * w));
    if (!out->picture.data)
        return mnist_host->fail(err, CNR_E_MEMORY, "source-mnist", "out of memory");
    memcpy(out->picture.data, set->pictures.data + index * h * w, (size_t)(h * w));
    snprintf(out->name, sizeof out->name, "%s %lld", set->training ? "train" : "test",
             (long long)index);
    out->label = set->labels.data[index];
    out->picture.dtype = CNR_u8;
    out->picture.rank = 3;
    out->picture.dim[0] = h;
    out->picture.dim[1] = w;
    out->picture.dim[2] = 1;
    out->picture.bytes = (uint64_t)(h * w);
    return CNR_OK;
}

static const cnr_source source = {
    .size = sizeof source,
    .name = "mnist",
    .syntax = "mnist:DIR[:train|test]",
    .summary = "digits in IDX files, plain or .gz",
    .accepts = mnist_accepts,
    .open = mnist_open,
    .read = mnist_read,
    .close = mnist_close,
};

/* Registers the source. */
static cnr_status mnist_init(const cnr_host *given, struct cnr_registrar *registrar,
                             cnr_error *err) {
    (void)err;
    mnist_host = given;
    return mnist_host->add(registrar, CNR_KIND_SOURCE, &source);
}

CNR_PLUGIN("source-mnist", CNNRUN_VERSION, "the MNIST digits in their own file form", "MIT",
           mnist_init, CNR_TOUCHES_FILES)
