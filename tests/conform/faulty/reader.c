/* A source of pictures "gray H W" with their bytes behind, and an importer of "relu N"; each with
 * one planted fault. */
#include "faulty.h"

enum { LIMIT = 1 << 20 };

/* 1: the path has this ending. */
static int32_t ends_with(const char *path, const char *ending) {
    const size_t n = strlen(path), k = strlen(ending);
    return n > k && strcmp(path + n - k, ending) == 0;
}

/* ---- sources ---- */

/* A picture of the test's own format. */
typedef struct picture {
    uint8_t *data;
    uint64_t bytes, at;
    int64_t h, w;
} picture;

/* Method accepts: by ending. */
static int32_t accepts_gray(const char *spec, const uint8_t *head, size_t n) {
    (void)head, (void)n;
    return ends_with(spec, ".gray") ? 50 : 0;
}

/* Method open. */
static cnr_status open_gray(const char *spec, const char *split, void **state,
                            cnr_source_info *info, cnr_error *err) {
    picture *p = calloc(1, sizeof *p);
    long long h = 0, w = 0;
    int n = 0;
    void *data;
    (void)split;
    if (!p) return faulty_host->fail(err, CNR_E_MEMORY, spec, "out of memory");
    const cnr_status status = faulty_host->file_read(spec, LIMIT, &data, &p->bytes, err);
    if (status) {
        free(p);
        return status;
    }
    p->data = data;
    if (sscanf(data, "gray %lld %lld\n%n", &h, &w, &n) != 2 || n == 0 || h < 1 || w < 1 ||
        h > 9999999 || w > 9999999) {
        faulty_host->free(data);
        free(p);
        return faulty_host->fail(err, CNR_E_FORMAT, spec, "want \"gray H W\"");
    }
    p->at = (uint64_t)n;
    p->h = h;
    p->w = w;
    info->count = 1;
    *state = p;
    return CNR_OK;
}

/* Fault: trusts the sizes of the file. */
static cnr_status read_trusting(void *state, int64_t index, cnr_sample *out, cnr_error *err) {
    const picture *p = state;
    const uint64_t n = (uint64_t)p->h * (uint64_t)p->w;
    if (index != 0) return faulty_host->fail(err, CNR_E_NOT_FOUND, "gray", "there is one");
    out->picture.dtype = CNR_u8;
    out->picture.rank = 3;
    out->picture.dim[0] = p->h;
    out->picture.dim[1] = p->w;
    out->picture.dim[2] = 1;
    out->picture.bytes = n;
    out->picture.data = faulty_host->alloc((size_t)n);
    if (!out->picture.data) return faulty_host->fail(err, CNR_E_MEMORY, "gray", "out of memory");
    memcpy(out->picture.data, p->data + p->at, (size_t)n);
    snprintf(out->name, sizeof out->name, "0");
    return CNR_OK;
}
/* Method read, without a fault: CNR_E_FORMAT if the file is shorter than its sizes say. */
static cnr_status read_gray(void *state, int64_t index, cnr_sample *out, cnr_error *err) {
    const picture *p = state;
    if ((uint64_t)p->h * (uint64_t)p->w > p->bytes - p->at)
        return faulty_host->fail(err, CNR_E_FORMAT, "gray", "it is cut");
    return read_trusting(state, index, out, err);
}
/* Fault: tells another shape than it gives. */
static cnr_status read_misshapen(void *state, int64_t index, cnr_sample *out, cnr_error *err) {
    const cnr_status status = read_gray(state, index, out, err);
    out->picture.dim[2] = 3;
    return status;
}
/* Fault: leaves pixels unwritten. */
static cnr_status read_unwritten(void *state, int64_t index, cnr_sample *out, cnr_error *err) {
    const picture *p = state;
    const cnr_status status = read_gray(state, index, out, err);
    if (status) return status;
    faulty_host->free(out->picture.data);
    out->picture.data = faulty_host->alloc((size_t)out->picture.bytes);
    if (out->picture.data) memcpy(out->picture.data, p->data + p->at, 1);
    return out->picture.data ? CNR_OK : faulty_host->fail(err, CNR_E_MEMORY, "gray", "no memory");
}
static void close_nothing(void *state) { free(state); }
/* Method close: frees picture and file. */
static void close_gray(void *state) {
    picture *p = state;
    faulty_host->free(p->data);
    free(p);
}

/* A source with these hooks. */
#define SOURCE(word, look, end) \
    { \
        .size = sizeof(cnr_source), .name = word, .syntax = "FILE.gray", .summary = "for tests", \
        .accepts = accepts_gray, .open = open_gray, .read = look, .close = end \
    }
static const cnr_source sources[] = {SOURCE("source_sound", read_gray, close_gray),
                                     SOURCE("source_misshapen", read_misshapen, close_gray),
                                     SOURCE("source_trusting", read_trusting, close_gray),
                                     SOURCE("source_unwritten", read_unwritten, close_gray),
                                     SOURCE("source_keeping", read_gray, close_nothing)};

/* ---- importers ---- */

/* Method accepts of the importer: by ending. */
static int32_t accepts_relu(const char *path, const uint8_t *head, size_t n) {
    (void)head, (void)n;
    return ends_with(path, ".relu") ? 50 : 0;
}

/* Imports a net from a file; the fault, unless it checks: it uses a length from the file as an
 * offset. */
static cnr_status import(const cnr_import_args *args, struct cnr_graph *graph, int checks,
                         cnr_error *err) {
    void *data;
    uint64_t bytes;
    char last = 0;
    CNR_TRY(faulty_host->file_read(args->paths[0], LIMIT, &data, &bytes, err));
    const long long n = strncmp(data, "relu ", 5) == 0 ? atoll((char *)data + 5) : -1;
    const int good = n >= 1 && n <= LIMIT && (!checks || n <= (long long)bytes);
    if (good) last = ((volatile char *)data)[n - 1];
    faulty_host->free(data);
    if (!good) return faulty_host->fail(err, CNR_E_FORMAT, args->paths[0], "want \"relu N\"");
    const cnr_tensor type = {.size = sizeof type, .dtype = CNR_f32, .rank = 2, .dim = {1, n}};
    cnr_value x = faulty_host->graph_input(graph, last ? "x" : "y", &type), y = -1;
    CNR_TRY(faulty_host->graph_node(graph, "relu", NULL, NULL, &x, 1, NULL, 0, &y, 1));
    return faulty_host->graph_output(graph, y, "out");
}
/* Method import, without a fault: the file's numbers are checked. */
static cnr_status import_relu(const cnr_import_args *args, struct cnr_graph *g, cnr_error *err) {
    return import(args, g, 1, err);
}
/* Fault: trusts the file's numbers, unchecked. */
static cnr_status import_trusting(const cnr_import_args *args, struct cnr_graph *g,
                                  cnr_error *err) {
    return import(args, g, 0, err);
}

/* An importer with this hook. */
#define IMPORTER(word, make) \
    { \
        .size = sizeof(cnr_importer), .name = word, .summary = "for tests", \
        .accepts = accepts_relu, .import = make \
    }
static const cnr_importer importers[] = {IMPORTER("importer_sound", import_relu),
                                         IMPORTER("importer_trusting", import_trusting)};

cnr_status faulty_add_readers(struct cnr_registrar *r) {
    for (int32_t i = FAULTY_FIRST; i < FAULTY_PAST(sources); i++)
        CNR_TRY(faulty_host->add(r, CNR_KIND_SOURCE, &sources[i]));
    for (int32_t i = FAULTY_FIRST; i < FAULTY_PAST(importers); i++)
        CNR_TRY(faulty_host->add(r, CNR_KIND_IMPORTER, &importers[i]));
    return CNR_OK;
}
