/* Imports Darknet: NET.cfg with NET.weights. */
#include "darknet.h"

#include <stdio.h>

/* Reads the header: major, minor, revision as int32, then "seen", 64 bits from version 0.2 on. */
static cnr_status open_weights(dn_net *net, const uint8_t *data, size_t bytes, cnr_error *err) {
    int32_t version[3];
    if (bytes < 16)
        return imp_host->fail(err, CNR_E_FORMAT, net->weights_path,
                              "is too short for a weights file");
    memcpy(version, data, sizeof version);
    if (version[0] < 0 || version[1] < 0 || version[0] > 100000 || version[1] > 100000)
        return imp_host->fail(err, CNR_E_FORMAT, net->weights_path,
                              "is no weights file: version %d.%d", (int)version[0],
                              (int)version[1]);
    const int wide =
        (int64_t)version[0] * 10 + version[1] >= 2 && version[0] < 1000 && version[1] < 1000;
    const size_t header = wide ? 20 : 16;
    if (bytes < header || (bytes - header) % 4)
        return imp_host->fail(err, CNR_E_FORMAT, net->weights_path,
                              "is damaged: its %zu bytes are no header and whole numbers", bytes);
    net->transposed = version[0] > 1000 || version[1] > 1000;
    net->weights = data + header;
    net->n_weights = (bytes - header) / 4;
    return CNR_OK;
}

/* Whether the net has convolutions and heads only, so that it runs at other sizes than the
 * file's. */
static int has_open_size(const dn_config *c) {
    static const char *const fixed[] = {"connected", "conn", "local", "crop", "detection"};
    int heads = 0;
    for (int32_t i = 1; i < c->n_sections; i++) {
        const char *name = c->sections[i].name;
        heads += strcmp(name, "yolo") == 0 || strcmp(name, "region") == 0 ||
                 strcmp(name, "Gaussian_yolo") == 0;
        for (size_t k = 0; k < sizeof fixed / sizeof fixed[0]; k++)
            if (strcmp(name, fixed[k]) == 0) return 0;
    }
    return heads > 0;
}

/* Adds the input by the sizes of section [net], and returns it; negative: failed. */
static cnr_value add_input(dn_net *net) {
    const dn_config *c = net->config;
    const dn_section *s = &c->sections[0];
    const int64_t channels = dn_int(c, s, "channels", 3), inputs = dn_int(c, s, "inputs", 0);
    net->width = dn_int(c, s, "width", 0);
    net->height = dn_int(c, s, "height", 0);
    const int64_t picture[] = {channels, net->height, net->width};
    if (net->width > 0 && net->height > 0 && channels > 0) {
        imp_input_meta(&net->b, "data", "scale", "0.00392156863"); /* pixels become 0 to 1 */
        return imp_input(&net->b, "data", picture, 3, has_open_size(c));
    }
    if (inputs > 0) return imp_input(&net->b, "data", &inputs, 1, 0);
    imp_host->graph_problem(net->b.graph, net->path, "[net] has no width, height and channels");
    return -1;
}

/* Converts all sections and makes the last one an output, unless heads are; problems go to the
 * graph. */
static cnr_status build(dn_net *net, cnr_error *err) {
    const dn_config *c = net->config;
    net->done = (struct dn_done *)imp_host->alloc((size_t)c->n_sections * sizeof net->done[0]);
    if (!net->done) return imp_host->fail(err, CNR_E_MEMORY, net->path, "out of memory");
    cnr_value x = add_input(net);
    for (int32_t i = 1; i < c->n_sections && !net->b.status; i++) {
        dn_convert(net, i, x);
        x = net->done[i - 1].value;
    }
    struct cnr_graph *graph = net->b.graph;
    if (x >= 0 && !imp_host->graph_meta(graph, "heads"))
        net->b.status = imp_host->graph_output(graph, x, "output");
    if (x >= 0 && net->weights && net->taken != net->n_weights)
        imp_host->graph_problem(graph, net->weights_path,
                                "%llu values are left over: these are not the weights of %s",
                                (unsigned long long)(net->n_weights - net->taken), net->path);
    if (net->b.status == CNR_E_MEMORY)
        return imp_host->fail(err, CNR_E_MEMORY, net->path, "out of memory");
    return net->b.status;
}

/* Imports a net from configuration and weights. */
static cnr_status import(const cnr_import_args *args, struct cnr_graph *graph, cnr_error *err) {
    uint8_t *text = NULL, *weights = NULL;
    size_t bytes = 0, weight_bytes = 0;
    dn_config config = {0};
    const char *path = args->paths[0];
    dn_net net = {.b = {graph, path, CNR_OK}, .path = path, .config = &config};
    if (args->n_paths > 2)
        return imp_host->fail(err, CNR_E_ARG, args->paths[2],
                              "one .cfg and one .weights are wanted");
    cnr_status status = imp_read_file(path, &text, &bytes, err);
    if (!status && !imp_is_text(text, bytes)) {
        imp_host->free(text);
        return imp_host->fail(err, CNR_E_FORMAT, path,
                              "is no .cfg: give the .cfg first, then the .weights");
    }
    if (!status) status = dn_config_parse(&config, (char *)text, path, err);
    if (!status && args->n_paths > 1) {
        net.weights_path = args->paths[1];
        status = imp_read_file(net.weights_path, &weights, &weight_bytes, err);
        if (!status) status = open_weights(&net, weights, weight_bytes, err);
    }
    if (!status) status = build(&net, err);
    imp_host->free(net.done);
    imp_host->free(weights);
    dn_config_free(&config);
    return status;
}

/* How surely a file is Darknet's, 0 to 100. */
static int32_t accepts(const char *path, const uint8_t *head, size_t bytes) {
    char text[2049];
    const size_t n = bytes < sizeof text - 1 ? bytes : sizeof text - 1;
    if (!imp_is_text(head, bytes)) return imp_ends_with(path, ".weights") ? 20 : 0;
    memcpy(text, head, n);
    text[n] = 0;
    if (strstr(text, "[net]") || strstr(text, "[network]")) return 70;
    return imp_ends_with(path, ".cfg") ? 30 : 0;
}

static const char *const preset_rows[] =
    {"darknet channels=rgb mean=0 std=1 scale=0.00392156862745098", NULL};

static const char *const option_rows[] = {NULL};

static const cnr_importer importer = {
    .size = sizeof importer,
    .name = "darknet",
    .summary = "Darknet: NET.cfg NET.weights (YOLO and classifiers)",
    .accepts = accepts,
    .import = import,
    .options = option_rows,
    .presets = preset_rows,
};

IMP_PLUGIN("import-darknet", "1.0", "reads Darknet models", importer)
