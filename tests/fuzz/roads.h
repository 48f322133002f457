/* Roads: the ways that hostile bytes take into the program. Fuzz targets, the replay of what they
 * found, and damaged models all go by here.
 *
 * A road is named "import-NAME" or "source-NAME" for each registered importer and source, and
 * "object-NAME" for each object that loads what it saved, so that new ones are covered as they
 * come; and "load" (whatever the content says), "weights" (the same, for a net in Lua), "native"
 * (.cnr), "plan-cache", "lua" and "schema" (attributes).
 *
 * Bytes are one file, or two when they begin with "PAIR" and a little-endian u32: the length of the
 * first; the rest is the second. */
#ifndef CNRT_ROADS_H
#define CNRT_ROADS_H

#include "lua/script.h"
#include "run/run.h"
#include "store/store.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROADS_UNUSED __attribute__((unused)) static

static struct {
    cnr_runtime *rt;
    char folder[256], first[300], second[300];
    const char *name, *other; /* of the files on the road "load"; NULL: no telling ones */
    const char *option;       /* of the importer there: "shape=3,24,24", or NULL */
    int beside;               /* the second is found by what the first says, not given */
    int runs;                 /* what was loaded is run, too */
    const char *const *dirs;
    cnr_runtime *here; /* that runs: not of the parent's process */
    pid_t pid;
    char why[1400]; /* of the last refusal */
} roads;

static void roads_silence(void *arg, int32_t level, const char *who, const char *text) {
    (void)arg, (void)level, (void)who, (void)text;
}

/* Loads the plugins of a folder. Files are written in a folder of our own, in memory if there is.
 */
ROADS_UNUSED int roads_open(const char *plugins) {
    const char *dirs[] = {plugins, NULL};
    cnr_open_options options = {.size = sizeof options,
                                .plugin_dirs = dirs,
                                .threads = 1,
                                .no_default_dirs = 1,
                                .log = roads_silence};
    cnr_error err = CNR_ERROR_INIT;
    cnri_lua_install();
    if (cnr_open(&roads.rt, &options, &err) != CNR_OK) {
        fprintf(stderr, "%s: %s\n", err.where, err.text);
        return 0;
    }
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(roads.folder, sizeof roads.folder, "%s/cnnrun-roads-XXXXXX", base);
    if (!mkdtemp(roads.folder)) return 0;
    return 1;
}

ROADS_UNUSED void roads_close(void) {
    remove(roads.first);
    remove(roads.second);
    remove(roads.folder);
    cnr_close(roads.rt);
}

static void roads_write(const char *path, const uint8_t *data, size_t n) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, n, file) != n) {
        fprintf(stderr, "%s cannot be written\n", path);
        _exit(3);
    }
    fclose(file);
}

/* Puts the bytes into files called so; how many there are. */
static int roads_files(const uint8_t *data, size_t n, const char *first, const char *second) {
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
    remove(roads.first);
    remove(roads.second);
    snprintf(roads.first, sizeof roads.first, "%s/%s", roads.folder, first);
    snprintf(roads.second, sizeof roads.second, "%s/%s", roads.folder, second);
    roads_write(roads.first, data, length);
    if (files == 2) roads_write(roads.second, data + length, n - length);
    return files;
}

static cnr_runtime *roads_runtime(void) {
    cnr_open_options options = {.size = sizeof options,
                                .plugin_dirs = roads.dirs,
                                .threads = 1,
                                .no_default_dirs = 1,
                                .log = roads_silence};
    if (!roads.here || roads.pid != getpid()) {
        if (cnr_open(&roads.here, &options, NULL)) return NULL;
        roads.pid = getpid();
    }
    return roads.here;
}

/* Once, on zeros, a picture at a time; an error is as good an end as any. */
static void roads_run_once(cnr_graph *g) {
    enum { MOST = 8, LARGEST = 64 << 20 };
    cnr_model *model = NULL;
    cnr_tensor types[MOST];
    const cnr_tensor *in[MOST], *out[1];
    cnr_graph *copy = cnri_graph_copy(g);
    if (!copy || cnri_model_from_graph(roads_runtime(), copy, NULL, &model, NULL)) return;
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

/* What a user would do next with a graph that was loaded: look at it, and give it sizes. */
static int roads_use(cnr_graph *g) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_text text = {0};
    if (cnri_graph_status(g, false, &err) != CNR_OK) {
        snprintf(roads.why, sizeof roads.why, "%s: %s", err.where, err.text);
        return 0;
    }
    cnri_graph_dot(g, &text);
    cnri_text_free(&text);
    cnr_graph *copy = cnri_graph_copy(g);
    if (copy && cnri_graph_bind(copy, NULL, 0, &err) == CNR_OK)
        cnri_graph_rewrite(copy, NULL, NULL, 0, &err);
    cnri_graph_free(copy);
    if (roads.runs && cnri_graph_status(g, true, &err) == CNR_OK) roads_run_once(g);
    return 1;
}

/* A refusal must say something; for a lack of memory the core has the words. */
static int roads_refused(cnr_status status, const cnr_error *err) {
    snprintf(roads.why, sizeof roads.why, "%s: %s", err->where, err->text);
    if ((err->text[0] && err->code != CNR_OK) || status == CNR_E_MEMORY) return 0;
    fprintf(stderr, "refused without a word\n");
    abort();
}

static int roads_import(const cnr_importer *importer, const uint8_t *data, size_t n) {
    const int files = roads_files(data, n, "model", "weights");
    const char *paths[] = {roads.first, roads.second};
    cnr_import_args args = {.size = sizeof args, .n_paths = files, .paths = paths};
    cnr_error err = CNR_ERROR_INIT;
    FILE *file = fopen(roads.first, "rb");
    uint8_t head[4096];
    const size_t got = file ? fread(head, 1, sizeof head, file) : 0;
    if (file) fclose(file);
    importer->accepts(roads.first, head, got);
    cnr_graph *g = cnri_graph_new("hostile");
    if (!g) return 0;
    cnr_status status = importer->import(&args, g, &err);
    if (status == CNR_E_ARG && files == 2) { /* it finds the second by what the first says */
        args.n_paths = 1;
        err = (cnr_error)CNR_ERROR_INIT;
        status = importer->import(&args, g, &err);
    }
    const int good =
        g->problems.n || g->out_of_memory || !status ? roads_use(g) : roads_refused(status, &err);
    cnri_graph_free(g);
    return good;
}

static int roads_source(const cnr_source *source, const uint8_t *data, size_t n) {
    void *state = NULL;
    cnr_error err = CNR_ERROR_INIT;
    cnr_source_info info = {.size = sizeof info};
    char spec[400];
    roads_files(data, n, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
    const char *colon = source->syntax ? strchr(source->syntax, ':') : NULL;
    snprintf(spec, sizeof spec, "%s", roads.first);
    if (source->accepts(spec, data, n < 4096 ? n : 4096) <= 0 && colon) /* it reads folders */
        snprintf(spec, sizeof spec, "%.*s:%s:test", (int)(colon - source->syntax), source->syntax,
                 roads.folder);
    cnr_status status = source->open(spec, "eval", &state, &info, &err);
    if (status) return roads_refused(status, &err);
    for (int64_t i = 0; i < 3 && i < info.count && !status; i++) {
        cnr_sample sample = {.size = sizeof sample};
        status = source->read(state, i, &sample, &err);
        cnri_free(sample.picture.data);
    }
    source->close(state);
    return status ? roads_refused(status, &err) : 1;
}

static int roads_load(const uint8_t *data, size_t n, const char *name, const char *weights) {
    const char *const settings[] = {roads.option, NULL};
    cnr_load_options options = {.size = sizeof options,
                                .weights = weights,
                                .import_options = settings};
    cnr_error err = CNR_ERROR_INIT;
    cnr_graph *g = NULL;
    if (roads_files(data, n, name, roads.other ? roads.other : "weights") == 2 && !roads.beside)
        options.weights = roads.second;
    const cnr_status status = cnri_load_graph(roads.rt, roads.first, &options, &g, &err);
    const int good = status ? roads_refused(status, &err) : roads_use(g);
    cnri_graph_free(g);
    return good;
}

/* The parameters of tiny.lua. */
static int roads_weights(const uint8_t *data, size_t n) {
    static const char net[] =
        "local c = require 'cnnrun'\n"
        "return c.net { input = { 'data', shape = { 'batch', 2, 6, 6 } },\n"
        "  c.conv2d { 'conv1', out = 4, kernel = 3, pad = 1, group = 2 }, c.batch_norm { 'bn1' },\n"
        "  c.relu {}, c.maxpool { kernel = 2, stride = 2 }, c.dense { 'fc', out = 3 } }\n";
    static const char *const settings[] = {"batch_norm=beta,gamma,mean,inv_std", NULL};
    cnr_error err = CNR_ERROR_INIT;
    cnr_graph *g = NULL;
    roads_files(data, n, "weights", "net.lua");
    roads_write(roads.second, (const uint8_t *)net, sizeof net - 1);
    const cnr_load_options options = {.size = sizeof options,
                                      .weights = roads.first,
                                      .import_options = settings};
    const cnr_status status = cnri_load_graph(roads.rt, roads.second, &options, &g, &err);
    const int good = status ? roads_refused(status, &err) : roads_use(g);
    cnri_graph_free(g);
    return good;
}

static int roads_native(const uint8_t *data, size_t n) {
    cnr_error err = CNR_ERROR_INIT;
    int32_t bad = 0;
    const int good = roads_load(data, n, "model.cnr", NULL);
    cnri_store_check(roads.first, &bad, &err);
    return good;
}

static int roads_plan_cache(const uint8_t *data, size_t n) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_cached cached;
    roads_files(data, n, "model" CNRI_PLAN_SUFFIX, "weights");
    const cnr_status status = cnri_cached_open(roads.first, &cached, &err);
    if (status) return roads_refused(status, &err);
    cnri_cached_close(&cached);
    return 1;
}

/* ---- attributes: bytes choose an operator, names and values ---- */

typedef struct roads_bytes {
    const uint8_t *at, *end;
} roads_bytes;

static uint8_t roads_byte(roads_bytes *b) { return b->at < b->end ? *b->at++ : 0; }

static int64_t roads_number(roads_bytes *b) {
    const uint8_t way = roads_byte(b);
    uint64_t v = 0;
    if (way < 192) return (int64_t)way - 64;
    for (int i = 0; i < 8; i++) v = v << 8 | roads_byte(b);
    return (int64_t)v;
}

static double roads_real(roads_bytes *b) {
    const int64_t bits = roads_number(b);
    double v;
    memcpy(&v, &bits, sizeof v);
    return bits >= -64 && bits < 128 ? (double)bits / 8 : v;
}

static void roads_problem(void *arg, const char *path, const char *text) {
    *(size_t *)arg += strlen(path) + strlen(text);
}

static int roads_schema(const uint8_t *data, size_t n) {
    enum { MOST = 12, LIST = 16 };
    roads_bytes b = {data, data + n};
    cnr_attr attrs[MOST];
    const cnr_attr *given[MOST];
    int64_t ints[MOST][LIST];
    double floats[MOST][LIST];
    char names[MOST][16], texts[MOST][16];
    const int32_t ops = cnri_descriptor_count(CNR_KIND_OPERATOR);
    const int32_t which = roads_byte(&b) | roads_byte(&b) << 8;
    const cnr_op *op = cnri_descriptor_at(CNR_KIND_OPERATOR, ops ? which % ops : 0);
    const int32_t many = roads_byte(&b) % (MOST + 1), spatial = roads_byte(&b) % 5 - 1;
    size_t said = 0;
    cnr_attr **out = NULL;
    for (int32_t i = 0; i < many; i++) {
        const uint8_t name = roads_byte(&b);
        cnr_attr_spec room;
        cnr_attr *a = &attrs[i];
        memset(a, 0, sizeof *a);
        given[i] = a;
        for (int k = 0; k < 15; k++) {
            names[i][k] = (char)(name & 128 ? roads_byte(&b) : 0);
            texts[i][k] = 0;
        }
        names[i][15] = texts[i][15] = 0;
        a->name = names[i];
        if (!(name & 128) && op->n_attrs > 0) {
            const cnr_attr_spec *row =
                cnri_spec_at(op->attrs, op->attr_spec_size, name % op->n_attrs, &room);
            a->name = name & 64 && row->alias ? row->alias : row->name;
        }
        a->type = 1 + roads_byte(&b) % 8;
        a->set = 1;
        a->i = roads_number(&b);
        a->f = roads_real(&b);
        for (int k = roads_byte(&b) % 15; k > 0; k--) texts[i][k - 1] = (char)roads_byte(&b);
        a->s = roads_byte(&b) % 4 ? texts[i] : NULL;
        a->n = roads_byte(&b) % (LIST + 1);
        for (int k = 0; k < a->n; k++) {
            ints[i][k] = roads_number(&b);
            floats[i][k] = roads_real(&b);
        }
        a->ints = ints[i];
        a->floats = floats[i];
    }
    if (cnri_attrs_resolve(op->attrs, op->attr_spec_size, op->n_attrs, given, many, spatial,
                           roads_problem, &said, &out) != CNR_OK) {
        if (said == 0) abort(); /* refused without a word */
        return 0;
    }
    cnri_text text = {0};
    for (int32_t i = 0; i < op->n_attrs; i++) cnri_attr_print(out[i], &text);
    cnri_text_free(&text);
    cnri_free(out);
    return 1;
}

/* ---- objects: options ("name=value" a line), then what was saved; or the latter alone ---- */

/* One call; what it gives is not looked at. Whether it went well. */
static int roads_call(cnr_instance *o, const char *method, const cnr_tensor *const *in, int32_t n) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_status status = cnr_object_call(o, method, in, n, NULL, 0, &err);
    return status ? roads_refused(status, &err) : 1;
}

/* A picture goes through it, from where it is told to look on. */
static void roads_show(cnr_instance *o, double *box) {
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
    for (int i = 0; i < 2; i++) roads_call(o, "track", both, 1);
    roads_call(o, "place", both, 2);
    roads_call(o, "track", both, 1);
    if (roads_call(o, "init", both, 2)) roads_call(o, "track", both, 1);
}

static int roads_object(const cnr_object *object, const uint8_t *data, size_t n) {
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
    const cnr_status status = cnr_object_make(roads.rt, object->name, options, &o, &err);
    if (status) return roads_refused(status, &err);
    const cnr_tensor saved = {.size = sizeof saved,
                              .dtype = CNR_u8,
                              .rank = 1,
                              .dim = {(int64_t)n},
                              .data = (void *)(uintptr_t)data,
                              .bytes = n};
    const cnr_tensor *const in[] = {&saved};
    const int good = roads_call(o, "load", in, 1);
    roads_show(o, box);
    roads_call(o, "save", NULL, 0);
    cnr_object_free(o);
    return good;
}

static int roads_loads(const cnr_object *object) {
    for (int32_t i = 0; object && i < object->n_methods; i++)
        if (strncmp(object->methods[i], "load(", 5) == 0) return 1;
    return 0;
}

/* ---- by name ---- */

/* 1: taken; 0: refused (roads.why); -1: no such road here. */
ROADS_UNUSED int roads_run(const char *name, const uint8_t *data, size_t n) {
    roads.why[0] = 0;
    if (strncmp(name, "import-", 7) == 0) {
        const cnr_importer *importer = cnri_descriptor_find(CNR_KIND_IMPORTER, name + 7);
        return importer ? roads_import(importer, data, n) : -1;
    }
    if (strncmp(name, "source-", 7) == 0) {
        const cnr_source *source = cnri_descriptor_find(CNR_KIND_SOURCE, name + 7);
        return source ? roads_source(source, data, n) : -1;
    }
    if (strncmp(name, "object-", 7) == 0) {
        const cnr_object *object = cnri_descriptor_find(CNR_KIND_OBJECT, name + 7);
        return roads_loads(object) ? roads_object(object, data, n) : -1;
    }
    if (strcmp(name, "load") == 0)
        return roads_load(data, n, roads.name ? roads.name : "model", NULL);
    if (strcmp(name, "weights") == 0) return roads_weights(data, n);
    if (strcmp(name, "lua") == 0) return roads_load(data, n, "net.lua", "none");
    if (strcmp(name, "native") == 0) return roads_native(data, n);
    if (strcmp(name, "plan-cache") == 0) return roads_plan_cache(data, n);
    return strcmp(name, "schema") == 0 ? roads_schema(data, n) : -1;
}

ROADS_UNUSED void roads_list(FILE *to) {
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_IMPORTER); i++)
        fprintf(to, "import-%s\n",
                cnri_item_name(CNR_KIND_IMPORTER, cnri_descriptor_at(CNR_KIND_IMPORTER, i)));
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_SOURCE); i++)
        fprintf(to, "source-%s\n",
                cnri_item_name(CNR_KIND_SOURCE, cnri_descriptor_at(CNR_KIND_SOURCE, i)));
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_OBJECT); i++) {
        const cnr_object *object = cnri_descriptor_at(CNR_KIND_OBJECT, i);
        if (roads_loads(object)) fprintf(to, "object-%s\n", object->name);
    }
    fprintf(to, "lua\nnative\nplan-cache\nschema\nweights\n");
}

/* A whole file; NULL when it cannot be read. */
ROADS_UNUSED uint8_t *roads_read(const char *path, size_t *n) {
    cnr_error err = CNR_ERROR_INIT;
    char *data = NULL;
    return cnri_read_file(path, (uint64_t)1 << 30, &data, n, &err) == CNR_OK ? (uint8_t *)data
                                                                             : NULL;
}

#endif
