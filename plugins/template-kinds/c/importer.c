/* An importer of a model format of its own, one layer a line:
 *
 *     input 1 3 8 8
 *     max_pool 2
 *     relu
 */
#include <cnnrun/kit.h>

#include <stdio.h>

static const cnr_host *host;

/* The graph that is built, the present line's place, and the newest value. */
typedef struct parser {
    struct cnr_graph *graph;
    char where[600]; /* place for messages, such as "net.chain:3" */
    cnr_value x;     /* the value so far; -1: none */
    cnr_error *err;
} parser;

/* Method accepts: 50 for a path that ends in .chain and begins with "input ", else 0. */
static int32_t accepts(const char *path, const uint8_t *head, size_t n) {
    const size_t length = strlen(path);
    return length > 6 && strcmp(path + length - 6, ".chain") == 0 && n >= 6 &&
                   memcmp(head, "input ", 6) == 0
               ? 50
               : 0;
}

/* Adds the net's input from a text of four sizes; fails where these are not positive numbers. */
static cnr_status input(parser *p, const char *sizes) {
    cnr_tensor type = {.size = sizeof type, .dtype = CNR_f32, .rank = 4};
    int d[4], end = 0;
    if (sscanf(sizes, "%5d %5d %5d %5d %n", &d[0], &d[1], &d[2], &d[3], &end) != 4 || sizes[end])
        return host->fail(p->err, CNR_E_FORMAT, p->where, "4 sizes are wanted");
    for (int i = 0; i < 4; i++) {
        if (d[i] < 1) return host->fail(p->err, CNR_E_FORMAT, p->where, "a size is below 1");
        type.dim[i] = d[i];
    }
    p->x = host->graph_input(p->graph, "x", &type);
    return CNR_OK;
}

/* Adds a node after the value so far. */
static cnr_status node(parser *p, const char *op, const cnr_attr *const *attrs, int32_t n) {
    const cnr_value x = p->x;
    const cnr_status status =
        host->graph_node(p->graph, op, NULL, p->where, &x, 1, attrs, n, &p->x, 1);
    return status ? host->fail(p->err, status, p->where, "%s can't be added", op) : CNR_OK;
}

/* Adds a pooling of the size that text gives. */
static cnr_status pool(parser *p, const char *text) {
    int size = 0, end = 0;
    if (sscanf(text, "%5d %n", &size, &end) != 1 || text[end] || size < 1)
        return host->fail(p->err, CNR_E_FORMAT, p->where, "a size from 1 to 99999 is wanted");
    const int64_t sides[] = {size, size};
    const cnr_attr shape = {.name = "kernel_shape", .type = CNR_ATTR_INTS, .n = 2, .ints = sides};
    const cnr_attr strides = {.name = "strides", .type = CNR_ATTR_INTS, .n = 2, .ints = sides};
    const cnr_attr *const attrs[] = {&shape, &strides};
    return node(p, "max_pool", attrs, 2);
}

/* An unsupported layer is a problem of the graph, so that a user sees all of them at once. */
static cnr_status layer(parser *p, const char *line) {
    char word[32] = "";
    int end = 0;
    if (sscanf(line, "%31s %n", word, &end) != 1) return CNR_OK;
    if (strcmp(word, "input") == 0) return input(p, line + end);
    if (p->x < 0) return host->fail(p->err, CNR_E_FORMAT, p->where, "an input must be first");
    if (strcmp(word, "max_pool") == 0) return pool(p, line + end);
    if (strcmp(word, "relu") == 0 || strcmp(word, "softmax") == 0) return node(p, word, NULL, 0);
    host->graph_problem(p->graph, p->where, "no layer %s", word);
    return CNR_OK;
}

/* Method import: a node for each line. */
static cnr_status import(const cnr_import_args *args, struct cnr_graph *graph, cnr_error *err) {
    parser p = {.graph = graph, .x = -1, .err = err};
    void *text = NULL;
    uint64_t bytes;
    cnr_status status = host->file_read(args->paths[0], 1 << 20, &text, &bytes, err);
    char *line = text;
    for (int number = 1; line && *line && !status; number++) {
        char *end = line + strcspn(line, "\n"), *next = *end ? end + 1 : end;
        *end = 0;
        snprintf(p.where, sizeof p.where, "%s:%d", args->paths[0], number);
        status = layer(&p, line);
        line = next;
    }
    host->free(text);
    if (!status && p.x < 0)
        status = host->fail(err, CNR_E_FORMAT, args->paths[0], "there is no input");
    return status ? status : host->graph_output(graph, p.x, "out");
}

static const cnr_importer chain = {
    .size = sizeof(cnr_importer),
    .name = "acme-chain",
    .summary = "nets of one layer a line (.chain)",
    .accepts = accepts,
    .import = import,
};

/* Registers the importer. */
static cnr_status init(const cnr_host *h, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    host = h;
    return h->add(registrar, CNR_KIND_IMPORTER, &chain);
}

CNR_PLUGIN("c-importer", "1.0", "an example importer", "MIT", init, CNR_TOUCHES_FILES)
