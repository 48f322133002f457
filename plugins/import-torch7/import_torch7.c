/* Imports Torch7: a serialised net (.t7, .nn, .net), binary or ASCII. */
#include "torch7.h"

#include <stdio.h>

/* The module to import: the root, or the field `key` of a saved table; NULL with a problem: neither
 * is one. */
static const t7_value *find_net(t7_net *net, const t7_value *root, const char *key) {
    const t7_value *found = NULL;
    char kind[64], keys[400] = "";
    size_t at = 0;
    int n = 0;
    if (key) {
        found = t7_field(root, key);
        if (!found)
            imp_host->graph_problem(net->b.graph, net->b.path, "it has no field \"%s\"", key);
        return found;
    }
    if (t7_class(root, kind, sizeof kind)) return root;
    for (int64_t i = 0; root->kind == T7_TABLE && i < root->n; i++) {
        const t7_value *name = root->pairs[2 * i], *v = root->pairs[2 * i + 1];
        if (name->kind != T7_STRING || !t7_class(v, kind, sizeof kind)) continue;
        found = v;
        if (at < 300 && name->n_text < 90)
            at += (size_t)snprintf(keys + at, sizeof keys - at, "%s%.*s", n ? ", " : "",
                                   (int)name->n_text, name->text);
        n++;
    }
    if (n == 1) return found;
    imp_host->graph_problem(net->b.graph, net->b.path,
                            n ? "it holds several nets: say which with --option key=NAME, one of %s"
                              : "it holds no net of nn%s",
                            keys);
    return NULL;
}

/* Adds the input, with its size from option or layers; -1: see the problems. */
static cnr_value add_input(t7_net *net, const t7_value *m, const cnr_import_args *args) {
    const char *given = imp_option(args, "shape");
    t7_size size;
    t7_find_size(m, &size);
    if (given) {
        int64_t dim[CNR_MAX_RANK];
        const int32_t rank = imp_shape(given, dim);
        if (rank < 1 || rank >= CNR_MAX_RANK) {
            imp_host->graph_problem(net->b.graph, net->b.path,
                                    "shape=%s: sizes of one sample are wanted, 3,224,224", given);
            return -1;
        }
        return imp_input(&net->b, "data", dim, rank, size.open);
    }
    if (size.rank == 0) {
        char fits[96] = "";
        if (size.low)
            snprintf(fits, sizeof fits, " (squares from %lld to %lld fit its layers)",
                     (long long)size.low, (long long)size.high);
        imp_host->graph_problem(net->b.graph, net->b.path,
                                "Torch files do not say how large their input is, and these layers "
                                "do not tell%s: give --option shape=CHANNELS,HEIGHT,WIDTH",
                                fits);
        return -1;
    }
    if (size.low != size.high)
        imp_host->log(CNR_LOG_INFO, "import-torch7",
                      "%s: input %lld x %lld taken, %lld to %lld would fit: --option shape=C,H,W",
                      net->b.path, (long long)size.dim[1], (long long)size.dim[2],
                      (long long)size.low, (long long)size.high);
    return imp_input(&net->b, "data", size.dim, size.rank, size.open);
}

/* Converts the net from its module, and adds input and outputs; problems go to the graph. */
static void build(t7_net *net, const t7_value *root, const cnr_import_args *args) {
    const t7_value *m = find_net(net, root, imp_option(args, "key"));
    t7_flow in = {.n = 1}, out;
    if (!m) return;
    in.at[0] = add_input(net, m, args);
    t7_module(net, m, "", &in, &out);
    for (int32_t i = 0; i < out.n && !net->b.status; i++) {
        char name[32] = "output";
        if (out.n > 1) snprintf(name, sizeof name, "output%d", (int)i + 1);
        if (out.at[i] >= 0) net->b.status = imp_host->graph_output(net->b.graph, out.at[i], name);
    }
}

/* Reads again with longs of 4 bytes. If that fails too, the first error is kept. */
static const t7_value *read_narrow(t7_file *f) {
    cnr_error *err = f->err, ignored = CNR_ERROR_INIT;
    t7_file again = {.path = f->path,
                     .data = f->data,
                     .bytes = f->bytes,
                     .long_bytes = 4,
                     .err = &ignored};
    const t7_value *root = t7_read(&again);
    t7_release(root ? f : &again);
    if (root) {
        *f = again;
        f->err = err;
    }
    return root;
}

/* Imports a net from a file of Torch. */
static cnr_status import(const cnr_import_args *args, struct cnr_graph *graph, cnr_error *err) {
    uint8_t *data = NULL;
    t7_file f = {.path = args->paths[0], .long_bytes = 8, .err = err};
    t7_net net = {.b = {.graph = graph, .path = args->paths[0]}};
    const char *long_bytes = imp_option(args, "long");
    if (args->n_paths > 1)
        return imp_host->fail(err, CNR_E_ARG, args->paths[1], "one file is wanted");
    if (long_bytes && strcmp(long_bytes, "8") != 0 && strcmp(long_bytes, "4") != 0)
        return imp_host->fail(err, CNR_E_ARG, "long",
                              "4 or 8 is wanted: bytes of the writer's long");
    if (long_bytes) f.long_bytes = long_bytes[0] - '0';
    cnr_error local = CNR_ERROR_INIT;
    if (!f.err) f.err = &local;
    cnr_status status = imp_read_file(f.path, &data, &f.bytes, err);
    if (status) return status;
    f.data = data;
    const t7_value *root = t7_read(&f);
    if (!root && f.err->code == CNR_E_FORMAT && !long_bytes && !f.ascii)
        root = read_narrow(&f); /* perhaps written on a 32-bit machine */
    if (root) {
        net.budget = 4 * (int64_t)(f.bytes / 2);
        build(&net, root, args);
        status = net.b.status;
        if (status) imp_host->fail(err, status, f.path, "out of memory");
    } else {
        status = (cnr_status)f.err->code;
    }
    t7_release(&f);
    imp_host->free(data);
    return status;
}

/* How surely a file is Torch's, 0 to 100. */
static int32_t accepts(const char *path, const uint8_t *head, size_t bytes) {
    if (!t7_looks_right(head, bytes)) return 0;
    return imp_ends_with(path, ".t7") || imp_ends_with(path, ".nn") ? 80 : 60;
}

static const char *const option_rows[] =
    {"shape=C,H,W the input's size, where the layers do not tell",
     "key=NAME which of the file's nets",
     "long=4 the bytes of a long where the file was written: 4 or 8 (told by the file)", NULL};

static const cnr_importer importer = {
    .size = sizeof importer,
    .name = "torch7",
    .summary = "Torch7: NET.t7 (nn modules; option shape=C,H,W where the layers do not tell)",
    .accepts = accepts,
    .import = import,
    .options = option_rows,
};

IMP_PLUGIN("import-torch7", "1.0", "reads Torch7 models", importer)
