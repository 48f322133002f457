/* Imports CNNdroid: a NetFile and the MessagePack files beside it. */
#include "cnndroid.h"
#include "export.h"

#include <cnnrun/kit.h>

#include <stdio.h>

/* The NetFile's execution settings become the plan's defaults: memory for weights in megabytes;
 * "sequential": the plain C of each operator on one thread of the processor; auto_tuning off: no
 * measuring, on: the net adapts in its first runs. */
static void plan_defaults(cd_net *net) {
    const cd_netfile *f = net->file;
    const double ram = cd_number(f, 0, "allocated_ram", 0);
    const char *mode = cd_text(f, 0, "execution_mode", NULL);
    const char *tuning = cd_text(f, 0, "auto_tuning", NULL);
    char text[32];
    if (ram > 0 && ram < 1e6) {
        snprintf(text, sizeof text, "%lld", (long long)(ram * 1048576));
        imp_meta(&net->b, "plan.memory_bound", text);
    }
    if (mode && cd_is(mode, "sequential")) {
        imp_meta(&net->b, "plan.device", "cpu");
        imp_meta(&net->b, "plan.kernels", "*=reference");
    } else if (mode && !cd_is(mode, "parallel"))
        imp_host->graph_problem(net->b.graph, net->b.path,
                                "execution_mode is \"%.60s\": parallel or sequential is wanted",
                                mode);
    if (tuning && cd_is(tuning, "off")) imp_meta(&net->b, "plan.deterministic", "1");
    else if (tuning && cd_is(tuning, "on")) imp_meta(&net->b, "plan.adapt", "1");
    else if (tuning)
        imp_host->graph_problem(net->b.graph, net->b.path,
                                "auto_tuning is \"%.60s\": on or off is wanted", tuning);
}

/* The mean image: option mean_file, else mean.msg beside the NetFile if it exists. */
static void read_mean(cd_net *net, cd_array *mean) {
    const char *given = imp_option(net->args, "mean_file");
    char *beside = given ? NULL : cd_beside(net, "mean.msg", 0);
    const char *path = given ? given : beside;
    int32_t n = 0;
    cnr_error why = CNR_ERROR_INIT;
    if (path && cd_message_read(path, mean, 1, &n, &why)) {
        if (why.code == CNR_E_MEMORY) net->b.status = CNR_E_MEMORY;
        else imp_host->graph_problem(net->b.graph, path, "%s", why.text);
    } else if (n == 1 && mean->rank != 3) {
        imp_host->graph_problem(net->b.graph, path, "wants a picture [channel][row][column]");
        cd_message_free(mean, 1);
    }
    imp_host->free(beside);
}

/* Adds the input, with its size from option, NetFile or mean; -1: see the problems. */
static cnr_value add_input(cd_net *net, const cd_array *mean) {
    int64_t dim[CNR_MAX_RANK] = {0}, own[3];
    int open;
    const char *text = imp_option(net->args, "shape");
    int32_t rank = imp_shape(text, dim);
    const int32_t told = cd_find_size(net, own, &open);
    if (rank < 0 || rank >= CNR_MAX_RANK) {
        imp_host->graph_problem(net->b.graph, net->b.path,
                                "shape=%s: sizes of one sample are wanted, 3,224,224", text);
        return -1;
    }
    if (rank == 0 && mean->n) memcpy(dim, mean->dim, (size_t)(rank = 3) * sizeof dim[0]);
    if (rank == 0) memcpy(dim, own, (size_t)(rank = told) * sizeof dim[0]);
    if (rank == 0) {
        imp_host->graph_problem(net->b.graph, net->b.path,
                                "a NetFile does not say how large its input is, nor do these "
                                "layers: give --option shape=CHANNELS,HEIGHT,WIDTH");
        return -1;
    }
    if (mean->n && (rank != 3 || memcmp(dim, mean->dim, sizeof own) != 0)) {
        imp_host->graph_problem(net->b.graph, net->b.path,
                                "the mean image is not of the input's size");
        return -1;
    }
    const cnr_value x = imp_input(&net->b, "data", dim, rank, open && !mean->n);
    if (mean->n) imp_input_mean(&net->b, "data", mean->data, mean->n);
    return x;
}

/* Converts all layers of the NetFile, in order, and adds input and output; problems go to the
 * graph. */
static void build(cd_net *net) {
    cd_array mean = {.n = 0};
    plan_defaults(net);
    cd_read_weights(net);
    if (!net->b.status) read_mean(net, &mean);
    cnr_value x = net->b.status ? -1 : add_input(net, &mean);
    for (int32_t i = 1; i < net->file->n_layers && !net->b.status; i++) x = cd_add_layer(net, i, x);
    if (net->file->n_layers < 2)
        imp_host->graph_problem(net->b.graph, net->b.path, "it has no layers");
    if (x >= 0 && imp_host->graph_output(net->b.graph, x, "output")) net->b.status = CNR_E_MEMORY;
    cd_message_free(&mean, 1);
}

/* Imports a NetFile with the files beside it. */
static cnr_status import(const cnr_import_args *args, struct cnr_graph *graph, cnr_error *err) {
    uint8_t *text;
    size_t bytes;
    cd_netfile file = {.n_layers = 0};
    cd_net net = {.b = {.graph = graph, .path = args->paths[0]},
                  .args = args,
                  .file = &file,
                  .err = err};
    if (args->n_paths > 1)
        return imp_host->fail(err, CNR_E_ARG, args->paths[1],
                              "the NetFile is wanted alone: it names its parameters");
    cnr_status status = imp_read_file(net.b.path, &text, &bytes, err);
    if (!status) status = cd_netfile_parse(&file, (char *)text, net.b.path, err);
    if (!status) {
        const size_t n = (size_t)file.n_layers * sizeof net.weights[0];
        net.weights = (cd_array(*)[2])imp_host->alloc(n);
        if (net.weights) memset(net.weights, 0, n);
        else net.b.status = CNR_E_MEMORY;
        if (net.weights) build(&net);
        status = net.b.status;
        if (status) imp_host->fail(err, status, net.b.path, "out of memory");
    }
    for (int32_t i = 0; net.weights && i < file.n_layers; i++) cd_message_free(net.weights[i], 2);
    imp_host->free(net.weights);
    cd_netfile_free(&file);
    return status;
}

/* How surely a text is a NetFile, 0 to 100. */
static int32_t accepts(const char *path, const uint8_t *head, size_t bytes) {
    char text[4097];
    (void)path;
    if (!imp_is_text(head, bytes)) return 0;
    const size_t k = bytes < sizeof text - 1 ? bytes : sizeof text - 1;
    for (size_t i = 0; i < k; i++)
        text[i] = (char)(head[i] >= 'A' && head[i] <= 'Z' ? head[i] + 32 : head[i]);
    text[k] = 0;
    const int layers = strstr(text, "layer") != NULL;
    return layers && (strstr(text, "root_directory") || strstr(text, "allocated_ram")) ? 85
           : layers && strstr(text, "parameters_file")                                 ? 70
                                                                                       : 0;
}

static const char *const option_rows[] =
    {"shape=C,H,W the input's size, where the layers do not tell",
     "mean_file=FILE a mean picture in MessagePack (mean.msg beside the NetFile)", NULL};

static const cnr_importer importer = {
    .size = sizeof importer,
    .name = "cnndroid",
    .summary = "CNNdroid: NETFILE.txt (its MessagePack files and mean.msg lie beside it)",
    .accepts = accepts,
    .import = import,
    .options = option_rows,
};

/* Registers importer and exporter. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    static const cnr_item items[] = {{CNR_KIND_IMPORTER, &importer},
                                     {CNR_KIND_EXPORTER, &cd_exporter}};
    (void)err;
    imp_host = host;
    return cnr_add_all(host, registrar, items, CNR_ROWS(items));
}

CNR_PLUGIN("import-cnndroid", "1.1", "reads and writes CNNdroid models", "MIT", init,
           CNR_TOUCHES_FILES)
