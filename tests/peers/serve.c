/* Runs nets for a script of another language, over stdin and stdout: peers/random_nets.py. A
 * request is a line of words with tabs between, and the data behind it; so is an answer, "ok" or
 * "error TEXT".
 *
 *     serve PLUGIN_FOLDER [ISA]
 *     load NET DEVICE THREADS CACHE MEMORY LIMIT WEIGHTS_TYPE     "-": left out; 0: as usual
 *     run N, then N times: DTYPE RANK DIM... BYTES and the bytes  -> ok N, and N outputs in the
 * same form */
#include <cnnrun/cnnrun.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 16, MOST_TENSORS = 32, MOST_THREADS = 8 };

static cnr_runtime *runtimes[MOST_THREADS + 1];
static cnr_model *model;

/* A log that says nothing. */
static void quiet(void *arg, int32_t level, const char *who, const char *text) {
    (void)arg, (void)level, (void)who, (void)text;
}

/* The words of the next line; 0: there is none. */
static int read_words(char *line, size_t room, char *words[MOST_WORDS]) {
    int n = 0;
    if (!fgets(line, (int)room, stdin)) return 0;
    line[strcspn(line, "\n")] = 0;
    for (char *at = line; at && n < MOST_WORDS; n++) {
        words[n] = at;
        at = strchr(at, '\t');
        if (at) *at++ = 0;
    }
    return n;
}

/* Answers a status, with the message of an error. */
static void answer(cnr_status status, const cnr_error *err) {
    char text[1400];
    snprintf(text, sizeof text, "error\t%d %s: %s", (int)status, err->where, err->text);
    for (char *at = text; *at; at++)
        if (*at == '\n') *at = ' ';
    puts(status ? text : "ok");
}

static const char *given(const char *word) { return strcmp(word, "-") == 0 ? NULL : word; }

/* Loads the net that the words w tell, with its options; fails with err. */
static cnr_status load(char **w, const char *plugins, const char *isa, cnr_error *err) {
    const char *dirs[] = {plugins, NULL};
    const int threads = atoi(w[3]);
    const cnr_open_options open = {.size = sizeof open,
                                   .plugin_dirs = dirs,
                                   .no_default_dirs = 1,
                                   .threads = threads,
                                   .cpu_isa = isa,
                                   .log = quiet};
    const cnr_load_options o = {.size = sizeof o,
                                .device = given(w[2]),
                                .cache = given(w[4]),
                                .memory_bound = strtoull(w[5], NULL, 10),
                                .memory_limit = strtoull(w[6], NULL, 10),
                                .weights_type = given(w[7])};
    if (threads < 0 || threads > MOST_THREADS) return CNR_E_ARG;
    if (model) cnr_release(model);
    model = NULL;
    const cnr_status status = runtimes[threads] ? CNR_OK : cnr_open(&runtimes[threads], &open, err);
    return status ? status : cnr_load(runtimes[threads], w[1], &o, &model, err);
}

/* Reads a tensor; 0: the line is malformed. */
static int read_tensor(cnr_tensor *t) {
    char line[512], *w[MOST_WORDS];
    const int n = read_words(line, sizeof line, w);
    *t = (cnr_tensor){.size = sizeof *t};
    if (n < 3 || (t->rank = atoi(w[1])) < 0 || t->rank > CNR_MAX_RANK || n != t->rank + 3) return 0;
    t->dtype = cnr_dtype_of(w[0]);
    for (int32_t i = 0; i < t->rank; i++) t->dim[i] = atoll(w[2 + i]);
    t->bytes = strtoull(w[n - 1], NULL, 10);
    t->data = malloc((size_t)t->bytes + 1);
    return t->data && fread(t->data, 1, (size_t)t->bytes, stdin) == t->bytes;
}

/* Writes a tensor. */
static void write_tensor(const cnr_tensor *t) {
    const uint64_t bytes = cnr_dense_bytes(t);
    printf("%s\t%d", cnr_dtype_name(t->dtype), (int)t->rank);
    for (int32_t i = 0; i < t->rank; i++) printf("\t%lld", (long long)t->dim[i]);
    printf("\t%llu\n", (unsigned long long)bytes);
    fwrite(t->data, 1, (size_t)bytes, stdout);
}

/* Runs n inputs and writes the outputs; 0: an input is malformed. */
static int run(int32_t n) {
    cnr_tensor in[MOST_TENSORS];
    const cnr_tensor *list[MOST_TENSORS], *out[MOST_TENSORS];
    cnr_error err = CNR_ERROR_INIT;
    if (n < 0 || n > MOST_TENSORS) return 0;
    for (int32_t i = 0; i < n; i++) {
        if (!read_tensor(&in[i])) return 0;
        list[i] = &in[i];
    }
    const int32_t n_out = cnr_output_count(model);
    const cnr_status status =
        n_out > MOST_TENSORS ? CNR_E_LIMIT : cnr_run_tensors(model, list, n, out, n_out, &err);
    for (int32_t i = 0; i < n; i++) free(in[i].data);
    if (status) {
        answer(status, &err);
        return 1;
    }
    printf("ok\t%d\n", (int)n_out);
    for (int32_t i = 0; i < n_out; i++) write_tensor(out[i]);
    return 1;
}

int main(int argc, char **argv) {
    char line[8192], *w[MOST_WORDS];
    int n;
    if (argc < 2) {
        fputs("usage: serve PLUGIN_FOLDER [ISA]\n", stderr);
        return 2;
    }
    while ((n = read_words(line, sizeof line, w)) > 0) {
        if (strcmp(w[0], "load") == 0 && n == 8) {
            cnr_error err = CNR_ERROR_INIT;
            const cnr_status status = load(w, argv[1], argc > 2 ? argv[2] : NULL, &err);
            answer(status, &err);
        } else if (strcmp(w[0], "run") != 0 || n != 2 || !run(atoi(w[1]))) {
            fprintf(stderr, "serve: %s: no request of this program\n", w[0]);
            return 2;
        }
        fflush(stdout);
    }
    for (int i = 0; i <= MOST_THREADS; i++)
        if (runtimes[i]) cnr_close(runtimes[i]);
    return 0;
}
