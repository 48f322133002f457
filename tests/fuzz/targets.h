/* Fuzz targets: the readers of the program that get untrusted bytes. The fuzzer, the replay of its
 * findings and the tests with damaged models all call fuzz_run.
 *
 * Each registered importer, source, and object that loads its saved state is a target of its own:
 * "import-NAME", "source-NAME", "object-NAME". A new plugin is covered without a change here. The
 * other targets are "load" (the content chooses the reader), "weights" (the weights of a net in
 * Lua), "native" (.cnr), "plan-cache", "lua" and "schema" (attributes).
 *
 * The bytes are one file. If they begin with "PAIR" and a little-endian u32, they are two files:
 * the number is the length of the first. */
#ifndef CNRT_FUZZ_TARGETS_H
#define CNRT_FUZZ_TARGETS_H

#include "show/show.h"
#include "lua/script.h"
#include "run/run.h"
#include "store/store.h"
#include "keep/keep.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FUZZ_UNUSED __attribute__((unused)) static

static struct {
    cnr_runtime *rt;
    char folder[256], first[300], second[300];
    const char *name, *other; /* File names for the target "load"; NULL: neutral ones. */
    const char *option;       /* Option of its importer, as "shape=3,24,24", or NULL. */
    int beside;               /* The first file names the second, which isn't passed. */
    int runs;                 /* Also run the loaded net. */
    const char *const *dirs;
    cnr_runtime *here; /* The runtime of this process that runs nets. */
    pid_t pid;
    char why[1400]; /* Message of the last refusal. */
} fuzz;

/* A log that says nothing. */
static void fuzz_silence(void *arg, int32_t level, const char *who, const char *text) {
    (void)arg, (void)level, (void)who, (void)text;
}

/* Loads the plugins of a folder and makes a temporary folder, in memory where there is one. */
FUZZ_UNUSED int fuzz_open(const char *plugins) {
    const char *dirs[] = {plugins, NULL};
    cnr_open_options options = {.size = sizeof options,
                                .plugin_dirs = dirs,
                                .threads = 1,
                                .no_default_dirs = 1,
                                .log = fuzz_silence};
    cnr_error err = CNR_ERROR_INIT;
    cnri_lua_install();
    if (cnr_open(&fuzz.rt, &options, &err) != CNR_OK) {
        fprintf(stderr, "%s: %s\n", err.where, err.text);
        return 0;
    }
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(fuzz.folder, sizeof fuzz.folder, "%s/cnnrun-fuzz-XXXXXX", base);
    if (!mkdtemp(fuzz.folder)) return 0;
    return 1;
}

FUZZ_UNUSED void fuzz_close(void) {
    remove(fuzz.first);
    remove(fuzz.second);
    remove(fuzz.folder);
    cnr_close(fuzz.rt);
}

/* Writes an input as a file. */
static void fuzz_write(const char *path, const uint8_t *data, size_t n) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, n, file) != n) {
        fprintf(stderr, "%s cannot be written\n", path);
        _exit(3);
    }
    fclose(file);
}

/* Writes the bytes into one or two files of these names; returns their number. */
static int fuzz_files(const uint8_t *data, size_t n, const char *first, const char *second) {
    size_t length = n;
    int files = 1;
    if (n >= 8 && memcmp(data, "PAIR", 4) == 0) {
        length =
            (size_t)data[4] | (size_t)data[5] << 8 | (size_t)data[6] << 16 | (size_t)data[7] << 24;
        data += 8;
        n -= 8;
        if (length > n) length = n;
        files = 2;
    }
    remove(fuzz.first);
    remove(fuzz.second);
    snprintf(fuzz.first, sizeof fuzz.first, "%s/%s", fuzz.folder, first);
    snprintf(fuzz.second, sizeof fuzz.second, "%s/%s", fuzz.folder, second);
    fuzz_write(fuzz.first, data, length);
    if (files == 2) fuzz_write(fuzz.second, data + length, n - length);
    return files;
}

/* Opens the library without devices that are slow to open; NULL: it can't. */
static cnr_runtime *fuzz_runtime(void) {
    cnr_open_options options = {.size = sizeof options,
                                .plugin_dirs = fuzz.dirs,
                                .threads = 1,
                                .no_default_dirs = 1,
                                .log = fuzz_silence};
    if (!fuzz.here || fuzz.pid != getpid()) {
        if (cnr_open(&fuzz.here, &options, NULL)) return NULL;
        fuzz.pid = getpid();
    }
    return fuzz.here;
}

/* Runs the net once on zeros, with a batch of one. Errors are allowed; crashes are not. */
static void fuzz_run_once(cnr_graph *g) {
    enum { MOST = 8, LARGEST = 64 << 20 };
    cnr_model *model = NULL;
    cnr_tensor types[MOST];
    const cnr_tensor *in[MOST], *out[1];
    cnr_graph *copy = cnri_graph_copy(g);
    if (!copy || cnri_model_from_graph(fuzz_runtime(), copy, NULL, &model, NULL)) return;
    const int32_t n = cnr_input_count(model);
    int good = n <= MOST && cnri_model_default_sizes(model, 1, types, in, NULL) == CNR_OK;
    for (int32_t i = 0; i < n && i < MOST; i++) {
        in[i] = &types[i];
        types[i].data = NULL;
        if (!good) continue;
        types[i].bytes = cnr_dense_bytes(&types[i]);
        good = types[i].bytes <= LARGEST;
        if (good) good = (types[i].data = cnri_alloc_zero((size_t)types[i].bytes + 1)) != NULL;
    }
    if (good) (void)cnr_run_tensors(model, in, n, out, 1, NULL);
    for (int32_t i = 0; i < n && i < MOST; i++) cnri_free(types[i].data);
    cnr_release(model);
}

/* Does what users do next with a loaded graph: prints it, binds its sizes, rewrites it. 1: it was
 * taken; 0: refused, fuzz.why says why. */
static int fuzz_use(cnr_graph *g) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_text text = {0};
    if (cnri_graph_status(g, false, &err) != CNR_OK) {
        snprintf(fuzz.why, sizeof fuzz.why, "%s: %s", err.where, err.text);
        return 0;
    }
    cnri_graph_dot(g, &text);
    cnri_text_free(&text);
    cnr_graph *copy = cnri_graph_copy(g);
    if (copy && cnri_graph_bind(copy, NULL, 0, &err) == CNR_OK)
        cnri_graph_rewrite(copy, NULL, NULL, 0, &err);
    cnri_graph_free(copy);
    if (fuzz.runs && cnri_graph_status(g, true, &err) == CNR_OK) fuzz_run_once(g);
    return 1;
}

/* Ends the process if a refusal has no message; lack of memory needs none, as the core writes that.
 * Returns 0. */
static int fuzz_refused(cnr_status status, const cnr_error *err) {
    snprintf(fuzz.why, sizeof fuzz.why, "%s: %s", err->where, err->text);
    if ((err->text[0] && err->code != CNR_OK) || status == CNR_E_MEMORY) return 0;
    fprintf(stderr, "refused without a word\n");
    abort();
}

/* Imports an input; 1: it was taken. */
static int fuzz_import(const cnr_importer *importer, const uint8_t *data, size_t n) {
    const int files = fuzz_files(data, n, "model", "weights");
    const char *paths[] = {fuzz.first, fuzz.second};
    cnr_import_args args = {.size = sizeof args, .n_paths = files, .paths = paths};
    cnr_error err = CNR_ERROR_INIT;
    FILE *file = fopen(fuzz.first, "rb");
    uint8_t head[4096];
    const size_t got = file ? fread(head, 1, sizeof head, file) : 0;
    if (file) fclose(file);
    importer->accepts(fuzz.first, head, got);
    cnr_graph *g = cnri_graph_new("hostile");
    if (!g) return 0;
    cnr_status status = importer->import(&args, g, &err);
    if (status == CNR_E_ARG && files == 2) { /* The importer finds the second file by itself. */
        args.n_paths = 1;
        err = (cnr_error)CNR_ERROR_INIT;
        status = importer->import(&args, g, &err);
    }
    const int good =
        g->problems.n || g->out_of_memory || !status ? fuzz_use(g) : fuzz_refused(status, &err);
    cnri_graph_free(g);
    return good;
}

/* Opens an input as a source; 1: it was taken. */
static int fuzz_source(const cnr_source *source, const uint8_t *data, size_t n) {
    void *state = NULL;
    cnr_error err = CNR_ERROR_INIT;
    cnr_source_info info = {.size = sizeof info};
    char spec[400];
    fuzz_files(data, n, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
    const char *colon = source->syntax ? strchr(source->syntax, ':') : NULL;
    snprintf(spec, sizeof spec, "%s", fuzz.first);
    if (source->accepts(spec, data, n < 4096 ? n : 4096) <= 0 && colon) /* It reads folders. */
        snprintf(spec, sizeof spec, "%.*s:%s:test", (int)(colon - source->syntax), source->syntax,
                 fuzz.folder);
    cnr_status status = source->open(spec, "eval", &state, &info, &err);
    if (status) return fuzz_refused(status, &err);
    for (int64_t i = 0; i < 3 && i < info.count && !status; i++) {
        cnr_sample sample = {.size = sizeof sample};
        status = source->read(state, i, &sample, &err);
        cnri_free(sample.picture.data);
    }
    source->close(state);
    return status ? fuzz_refused(status, &err) : 1;
}

/* Loads an input as a net; 1: it was taken. */
static int fuzz_load(const uint8_t *data, size_t n, const char *name, const char *weights) {
    const char *const settings[] = {fuzz.option, NULL};
    cnr_load_options options = {.size = sizeof options,
                                .weights = weights,
                                .import_options = settings};
    cnr_error err = CNR_ERROR_INIT;
    cnr_graph *g = NULL;
    if (fuzz_files(data, n, name, fuzz.other ? fuzz.other : "weights") == 2 && !fuzz.beside)
        options.weights = fuzz.second;
    const cnr_status status = cnri_load_graph(fuzz.rt, fuzz.first, &options, &g, &err);
    const int good = status ? fuzz_refused(status, &err) : fuzz_use(g);
    cnri_graph_free(g);
    return good;
}

/* Loads the bytes as weights of a small net in Lua. */
static int fuzz_weights(const uint8_t *data, size_t n) {
    static const char net[] =
        "local c = require 'cnnrun'\n"
        "return c.net { input = { 'data', shape = { 'batch', 2, 6, 6 } },\n"
        "  c.conv2d { 'conv1', out = 4, kernel = 3, pad = 1, group = 2 }, c.batch_norm { 'bn1' },\n"
        "  c.relu {}, c.maxpool { kernel = 2, stride = 2 }, c.dense { 'fc', out = 3 } }\n";
    static const char *const settings[] = {"batch_norm=beta,gamma,mean,inv_std", NULL};
    cnr_error err = CNR_ERROR_INIT;
    cnr_graph *g = NULL;
    fuzz_files(data, n, "weights", "net.lua");
    fuzz_write(fuzz.second, (const uint8_t *)net, sizeof net - 1);
    const cnr_load_options options = {.size = sizeof options,
                                      .weights = fuzz.first,
                                      .import_options = settings};
    const cnr_status status = cnri_load_graph(fuzz.rt, fuzz.second, &options, &g, &err);
    const int good = status ? fuzz_refused(status, &err) : fuzz_use(g);
    cnri_graph_free(g);
    return good;
}

/* Reads an input as a native file; 1: it was taken. */
static int fuzz_native(const uint8_t *data, size_t n) {
    cnr_error err = CNR_ERROR_INIT;
    int32_t bad = 0;
    const int good = fuzz_load(data, n, "model.cnr", NULL);
    cnri_store_check(fuzz.first, &bad, &err);
    return good;
}

/* Reads an input as a stored plan; 1: it was taken. */
static int fuzz_plan_cache(const uint8_t *data, size_t n) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_cached cached;
    fuzz_files(data, n, "model" CNRI_PLAN_SUFFIX, "weights");
    const cnr_status status = cnri_cached_open(fuzz.first, &cached, &err);
    if (status) return fuzz_refused(status, &err);
    cnri_cached_close(&cached);
    return 1;
}

/* ---- attributes: bytes choose an operator, names and values ---- */

/* What is left of the input. */
typedef struct fuzz_bytes {
    const uint8_t *at, *end;
} fuzz_bytes;

static uint8_t fuzz_byte(fuzz_bytes *b) { return b->at < b->end ? *b->at++ : 0; }

/* A number, of few bytes or of an extreme. */
static int64_t fuzz_number(fuzz_bytes *b) {
    const uint8_t way = fuzz_byte(b);
    uint64_t v = 0;
    if (way < 192) return (int64_t)way - 64;
    for (int i = 0; i < 8; i++) v = v << 8 | fuzz_byte(b);
    return (int64_t)v;
}

/* Any double. */
static double fuzz_real(fuzz_bytes *b) {
    const int64_t bits = fuzz_number(b);
    double v;
    memcpy(&v, &bits, sizeof v);
    return bits >= -64 && bits < 128 ? (double)bits / 8 : v;
}

/* Counts the bytes of a problem's text. */
static void fuzz_problem(void *arg, const char *path, const char *text) {
    *(size_t *)arg += strlen(path) + strlen(text);
}

/* Resolves attributes made of the input; 1: they were taken, 0: refused. */
static int fuzz_schema(const uint8_t *data, size_t n) {
    enum { MOST = 12, LIST = 16 };
    fuzz_bytes b = {data, data + n};
    cnr_attr attrs[MOST];
    const cnr_attr *given[MOST];
    int64_t ints[MOST][LIST];
    double floats[MOST][LIST];
    char names[MOST][16], texts[MOST][16];
    const int32_t ops = cnri_descriptor_count(CNR_KIND_OPERATOR);
    const int32_t which = fuzz_byte(&b) | fuzz_byte(&b) << 8;
    const cnr_op *op = cnri_descriptor_at(CNR_KIND_OPERATOR, ops ? which % ops : 0);
    const int32_t many = fuzz_byte(&b) % (MOST + 1), spatial = fuzz_byte(&b) % 5 - 1;
    size_t said = 0;
    cnr_attr **out = NULL;
    for (int32_t i = 0; i < many; i++) {
        const uint8_t name = fuzz_byte(&b);
        cnr_attr_spec room;
        cnr_attr *a = &attrs[i];
        memset(a, 0, sizeof *a);
        given[i] = a;
        for (int k = 0; k < 15; k++) {
            names[i][k] = (char)(name & 128 ? fuzz_byte(&b) : 0);
            texts[i][k] = 0;
        }
        names[i][15] = texts[i][15] = 0;
        a->name = names[i];
        if (!(name & 128) && op->n_attrs > 0) {
            const cnr_attr_spec *row =
                cnri_spec_at(op->attrs, op->attr_spec_size, name % op->n_attrs, &room);
            a->name = name & 64 && row->alias ? row->alias : row->name;
        }
        a->type = 1 + fuzz_byte(&b) % 8;
        a->set = 1;
        a->i = fuzz_number(&b);
        a->f = fuzz_real(&b);
        for (int k = fuzz_byte(&b) % 15; k > 0; k--) texts[i][k - 1] = (char)fuzz_byte(&b);
        a->s = fuzz_byte(&b) % 4 ? texts[i] : NULL;
        a->n = fuzz_byte(&b) % (LIST + 1);
        for (int k = 0; k < a->n; k++) {
            ints[i][k] = fuzz_number(&b);
            floats[i][k] = fuzz_real(&b);
        }
        a->ints = ints[i];
        a->floats = floats[i];
    }
    if (cnri_attrs_resolve(op->attrs, op->attr_spec_size, op->n_attrs, given, many, spatial,
                           fuzz_problem, &said, &out) != CNR_OK) {
        if (said == 0) abort(); /* refused without a word */
        return 0;
    }
    cnri_text text = {0};
    for (int32_t i = 0; i < op->n_attrs; i++) cnri_attr_print(out[i], &text);
    cnri_text_free(&text);
    cnri_free(out);
    return 1;
}

/* ---- objects: options ("name=value" on each line), then saved state; or saved state alone ---- */

/* Calls a method and ignores its results; returns whether the call succeeded. */
static int fuzz_call(cnr_instance *o, const char *method, const cnr_tensor *const *in, int32_t n) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_status status = cnr_object_call(o, method, in, n, NULL, 0, &err);
    return status ? fuzz_refused(status, &err) : 1;
}

/* Calls the object's tracking methods with a made-up picture and a box. */
static void fuzz_show(cnr_instance *o, double *box) {
    enum { W = 64, H = 48 };
    static uint8_t pixels[H * W];
    for (uint32_t i = 0; i < H * W; i++) pixels[i] = (uint8_t)(i * 2654435761u >> 24);
    const cnr_tensor picture = {.size = sizeof picture,
                                .dtype = CNR_u8,
                                .rank = 3,
                                .dim = {H, W, 1},
                                .data = pixels,
                                .bytes = sizeof pixels};
    const cnr_tensor where = {.size = sizeof where,
                              .dtype = CNR_f64,
                              .rank = 1,
                              .dim = {4},
                              .data = box,
                              .bytes = 4 * sizeof *box};
    const cnr_tensor *const both[] = {&picture, &where};
    for (int i = 0; i < 2; i++) fuzz_call(o, "track", both, 1);
    fuzz_call(o, "place", both, 2);
    fuzz_call(o, "track", both, 1);
    if (fuzz_call(o, "init", both, 2)) fuzz_call(o, "track", both, 1);
}

/* Calls an object's methods as the input says; 1: it could be made. */
static int fuzz_object(const cnr_object *object, const uint8_t *data, size_t n) {
    enum { MOST = 12 };
    char text[512] = "";
    const char *options[MOST + 1] = {NULL};
    double box[4] = {8, 8, 24, 24};
    int32_t many = 0;
    if (n >= 8 && memcmp(data, "PAIR", 4) == 0) {
        const size_t told = (size_t)data[4] | (size_t)data[5] << 8, most = n - 8;
        const size_t length = told < most ? told : most;
        memcpy(text, data + 8, length < sizeof text - 1 ? length : sizeof text - 1);
        data += 8 + length;
        n -= 8 + length;
    }
    for (char *rest = text, *line; many < MOST && (line = strsep(&rest, "\n"));) {
        if (sscanf(line, "box=%lf,%lf,%lf,%lf", &box[0], &box[1], &box[2], &box[3]) > 0) continue;
        if (*line) options[many++] = line;
    }
    cnr_error err = CNR_ERROR_INIT;
    cnr_instance *o = NULL;
    const cnr_status status = cnr_object_make(fuzz.rt, object->name, options, &o, &err);
    if (status) return fuzz_refused(status, &err);
    const cnr_tensor saved = {.size = sizeof saved,
                              .dtype = CNR_u8,
                              .rank = 1,
                              .dim = {(int64_t)n},
                              .data = (void *)(uintptr_t)data,
                              .bytes = n};
    const cnr_tensor *const in[] = {&saved};
    const int good = fuzz_call(o, "load", in, 1);
    fuzz_show(o, box);
    fuzz_call(o, "save", NULL, 0);
    cnr_object_free(o);
    return good;
}

/* 1: the object has a method `load`. */
static int fuzz_loads(const cnr_object *object) {
    for (int32_t i = 0; object && i < object->n_methods; i++)
        if (strncmp(object->methods[i], "load(", 5) == 0) return 1;
    return 0;
}

/* ---- by name ---- */

/* Runs one target on the bytes. 1: accepted; 0: refused (fuzz.why); -1: no such target. */
FUZZ_UNUSED int fuzz_run(const char *name, const uint8_t *data, size_t n) {
    fuzz.why[0] = 0;
    if (strncmp(name, "import-", 7) == 0) {
        const cnr_importer *importer = cnri_descriptor_find(CNR_KIND_IMPORTER, name + 7);
        return importer ? fuzz_import(importer, data, n) : -1;
    }
    if (strncmp(name, "source-", 7) == 0) {
        const cnr_source *source = cnri_descriptor_find(CNR_KIND_SOURCE, name + 7);
        return source ? fuzz_source(source, data, n) : -1;
    }
    if (strncmp(name, "object-", 7) == 0) {
        const cnr_object *object = cnri_descriptor_find(CNR_KIND_OBJECT, name + 7);
        return fuzz_loads(object) ? fuzz_object(object, data, n) : -1;
    }
    if (strcmp(name, "load") == 0) return fuzz_load(data, n, fuzz.name ? fuzz.name : "model", NULL);
    if (strcmp(name, "weights") == 0) return fuzz_weights(data, n);
    if (strcmp(name, "lua") == 0) return fuzz_load(data, n, "net.lua", "none");
    if (strcmp(name, "native") == 0) return fuzz_native(data, n);
    if (strcmp(name, "plan-cache") == 0) return fuzz_plan_cache(data, n);
    return strcmp(name, "schema") == 0 ? fuzz_schema(data, n) : -1;
}

FUZZ_UNUSED void fuzz_list(FILE *to) {
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_IMPORTER); i++)
        fprintf(to, "import-%s\n",
                cnri_item_name(CNR_KIND_IMPORTER, cnri_descriptor_at(CNR_KIND_IMPORTER, i)));
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_SOURCE); i++)
        fprintf(to, "source-%s\n",
                cnri_item_name(CNR_KIND_SOURCE, cnri_descriptor_at(CNR_KIND_SOURCE, i)));
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_OBJECT); i++) {
        const cnr_object *object = cnri_descriptor_at(CNR_KIND_OBJECT, i);
        if (fuzz_loads(object)) fprintf(to, "object-%s\n", object->name);
    }
    fprintf(to, "lua\nnative\nplan-cache\nschema\nweights\n");
}

/* Reads a whole file; NULL if it can't be read. The caller frees it. */
FUZZ_UNUSED uint8_t *fuzz_read(const char *path, size_t *n) {
    cnr_error err = CNR_ERROR_INIT;
    char *data = NULL;
    return cnri_read_file(path, (uint64_t)1 << 30, &data, n, &err) == CNR_OK ? (uint8_t *)data
                                                                             : NULL;
}

#endif
