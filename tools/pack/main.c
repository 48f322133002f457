/* A packed program: one net with its weights.
 *     PROGRAM [--threads N] [--top K] FILE...   each FILE: input 0 as floats in this machine's order; "-": stdin
 *     PROGRAM --raw FILE...                     writes all outputs' bytes to stdout instead
 *     PROGRAM --about                           inputs, outputs and sizes
 */
#define _GNU_SOURCE
#include "run/run.h"
#include "store/store.h"
#include <cnnrun/engine.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern const unsigned char pack_model[], pack_model_end[]; /* model.S */

/* What the command line says: threads, how many results, raw output, and the files. */
typedef struct words {
    int32_t threads, top;
    bool raw, about;
    char **files;
    int n_files;
} words;

/* Prints an error to standard error; returns its code, positive. */
static int complain(const cnr_error *err) {
    fprintf(stderr, "%s%s%s\n", err->where, err->where[0] ? ": " : "", err->text);
    return -err->code;
}

/* ---- the model: written to a file in memory, which the engine reads as any other ---- */

static char model_path[40];

/* Opens the model that is built in, as a file. */
static cnr_status open_model(cnr_error *err) {
    const int fd = memfd_create("model", MFD_CLOEXEC);
    const unsigned char *at = pack_model;
    while (fd >= 0 && at < pack_model_end) {
        const ssize_t n = write(fd, at, (size_t)(pack_model_end - at));
        if (n <= 0) return cnri_fail(err, CNR_E_IO, "model", "%s", strerror(errno));
        at += n;
    }
    if (fd < 0) return cnri_fail(err, CNR_E_IO, "model", "memfd_create: %s", strerror(errno));
    snprintf(model_path, sizeof model_path, "/proc/self/fd/%d", fd);
    return CNR_OK;
}

/* Method accepts: 1000 for the built-in model's path, else 0. */
static int32_t accepts(const char *path, const uint8_t *head, size_t head_bytes) {
    (void)head, (void)head_bytes;
    return strcmp(path, model_path) == 0 ? 1000 : 0;
}

/* Method read: makes the built-in model's graph in *out, from the data in the program. */
static cnr_status read_model(cnr_runtime *rt, const char *path, const cnr_load_options *options,
                             cnr_graph **out, cnr_error *err) {
    (void)rt, (void)options;
    return cnri_store_read(path, true, out, err);
}

static const cnri_loader loader = {"packed", accepts, read_model};

/* ---- a run ---- */

/* Fills `to` from the file, which has as many bytes. */
static cnr_status read_input(const char *path, const cnr_tensor *to, cnr_error *err) {
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!in) return cnri_fail(err, CNR_E_NOT_FOUND, path, "%s", strerror(errno));
    const size_t n = fread(to->data, 1, to->bytes, in);
    const bool more = fgetc(in) != EOF;
    if (in != stdin) fclose(in);
    if (n == to->bytes && !more) return CNR_OK;
    return cnri_fail(err, CNR_E_SHAPE, path, "has %s%zu bytes; expected %llu: %s",
                     more ? "more than " : "", n, (unsigned long long)to->bytes,
                     cnr_dtype_name(to->dtype));
}

/* Prints all outputs as raw bytes, or the best classes of the first one: index, label and score. */
static void print_outputs(cnr_model *net, const words *w, const cnr_tensor *const *out, int32_t n) {
    if (w->raw) {
        for (int32_t i = 0; i < n; i++) fwrite(out[i]->data, 1, cnr_dense_bytes(out[i]), stdout);
        return;
    }
    cnr_top *best = calloc((size_t)w->top, sizeof *best);
    const int32_t k = best ? cnr_topk(out[0], w->top, best) : 0;
    for (int32_t i = 0; i < k; i++) {
        const char *label = cnr_label(net, best[i].index);
        printf("%lld %s %.9g\n", (long long)best[i].index, label ? label : "-",
               (double)best[i].score);
    }
    free(best);
}

/* Runs the net on a file's bytes and prints the outputs; fails where the file does not fit. */
static cnr_status run_file(cnr_model *net, const words *w, const char *path, cnr_error *err) {
    const cnr_tensor *type = cnr_input_type(net, 0);
    if (!type || cnr_input_count(net) != 1 || cnr_output_count(net) < 1)
        return cnri_fail(err, CNR_E_UNSUPPORTED, path, "the net has %d inputs; expected one",
                         cnr_input_count(net));
    const int32_t n = cnr_output_count(net);
    cnr_tensor in = *type;
    const cnr_tensor *ins[] = {&in}, **out = calloc((size_t)n, sizeof *out);
    for (int32_t i = 0; i < in.rank; i++)
        if (in.dim[i] < 0) in.dim[i] = 1;
    in.bytes = cnr_dense_bytes(&in);
    in.data = in.bytes < UINT64_MAX ? malloc(in.bytes) : NULL;
    cnr_status status = out && in.data ? read_input(path, &in, err) : cnri_out_of_memory(err, path);
    if (!status) status = cnr_run_tensors(net, ins, 1, out, n, err);
    if (!status) print_outputs(net, w, out, n);
    free(in.data);
    free(out);
    return status;
}

/* Prints an input or output: name, type and sizes. */
static void print_port(const char *what, const char *name, const cnr_tensor *t) {
    printf("%s %s %s", what, name, cnr_dtype_name(t->dtype));
    for (int32_t i = 0; i < t->rank; i++)
        printf("%s%lld", i ? "x" : " ", (long long)(t->dim[i] < 0 ? 1 : t->dim[i]));
    puts("");
}

/* Prints the model's inputs and outputs, a line each. */
static void print_about(const cnr_model *net) {
    for (int32_t i = 0; i < cnr_input_count(net); i++)
        print_port("input", cnr_input_name(net, i), cnr_input_type(net, i));
    for (int32_t i = 0; i < cnr_output_count(net); i++)
        print_port("output", cnr_output_name(net, i), cnr_output_type(net, i));
    printf("model %zu bytes\n", (size_t)(pack_model_end - pack_model));
}

/* ---- the command line ---- */

/* Reads a number after an option; false: it is none. */
static bool read_count(char **argv, int *i, int32_t *out) {
    char *end = NULL;
    const long n = argv[*i + 1] ? strtol(argv[*i + 1], &end, 10) : 0;
    if (!end || *end || n < 1 || n > 1000000) {
        fprintf(stderr, "%s: expected a whole number above 0\n", argv[*i]);
        return false;
    }
    *out = (int32_t)n;
    ++*i;
    return true;
}

/* Reads the command line; false: it is wrong. */
static bool read_words(char **argv, words *w) {
    int i = 1;
    for (; argv[i] && argv[i][0] == '-' && argv[i][1]; i++) {
        if (strcmp(argv[i], "--raw") == 0) w->raw = true;
        else if (strcmp(argv[i], "--about") == 0) w->about = true;
        else if (strcmp(argv[i], "--threads") == 0 || strcmp(argv[i], "--top") == 0) {
            if (!read_count(argv, &i, argv[i][3] == 'h' ? &w->threads : &w->top)) return false;
        } else {
            fprintf(stderr, "%s: unknown option; expected --threads N, --top K, --raw or --about\n",
                    argv[i]);
            return false;
        }
    }
    w->files = argv + i;
    while (argv[i]) i++, w->n_files++;
    if (!w->n_files && !w->about)
        fprintf(stderr, "usage: %s [--threads N] [--top K | --raw] FILE... | --about\n", argv[0]);
    return w->n_files || w->about;
}

int main(int argc, char **argv) {
    words w = {.top = 5};
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt = NULL;
    cnr_model *net = NULL;
    (void)argc;
    if (!read_words(argv, &w)) return 1;
    const cnr_open_options open = {.size = sizeof open, .threads = w.threads};
    cnr_status status = cnr_open(&rt, &open, &err);
    if (!status) status = open_model(&err);
    cnri_loader_add(&loader);
    if (!status) status = cnr_load(rt, model_path, NULL, &net, &err);
    if (!status && w.about) print_about(net);
    for (int i = 0; i < w.n_files && !status; i++) status = run_file(net, &w, w.files[i], &err);
    if (!status && fflush(stdout) != 0)
        status = cnri_fail(&err, CNR_E_IO, "stdout", "%s", strerror(errno));
    const int code = status ? complain(&err) : 0;
    cnr_close(rt);
    return code;
}
