/* Darknet: NET.cfg with NET.weights into a graph. */
#include "darknet.h"

#include <stdio.h>

const cnr_host *darknet_host;

static cnr_status read_file(const char *path, uint8_t **out, size_t *bytes, cnr_error *err) {
    FILE *file = fopen(path, "rb");
    *out = NULL;
    if (!file) return darknet_host->fail(err, CNR_E_IO, path, "cannot be opened");
    cnr_status status = CNR_OK;
    long end = -1;
    if (fseek(file, 0, SEEK_END) == 0) end = ftell(file);
    rewind(file);
    if (end < 0) status = darknet_host->fail(err, CNR_E_IO, path, "is not a regular file");
    else if (!(*out = (uint8_t *)darknet_host->alloc((size_t)end + 1)))
        status = darknet_host->fail(err, CNR_E_MEMORY, path, "out of memory for %ld bytes", end);
    else if (fread(*out, 1, (size_t)end, file) != (size_t)end)
        status = darknet_host->fail(err, CNR_E_IO, path, "could not be read whole");
    fclose(file);
    if (status) {
        darknet_host->free(*out);
        *out = NULL;
        return status;
    }
    (*out)[end] = 0;
    *bytes = (size_t)end;
    return CNR_OK;
}

/* Header: major, minor, revision as int32, then "seen": 64 bits from version 0.2 on. */
static cnr_status open_weights(darknet_net *net, const uint8_t *data, size_t bytes,
                               cnr_error *err) {
    int32_t version[3];
    if (bytes < 16)
        return darknet_host->fail(err, CNR_E_FORMAT, net->weights_path,
                                  "is too short for a weights file");
    memcpy(version, data, sizeof version);
    if (version[0] < 0 || version[1] < 0 || version[0] > 100000 || version[1] > 100000)
        return darknet_host->fail(err, CNR_E_FORMAT, net->weights_path,
                                  "is no weights file: version %d.%d", (int)version[0],
                                  (int)version[1]);
    const int wide = (int64_t)version[0] * 10 + version[1] >= 2 && version[0] < 1000 &&
                     version[1] < 1000;
    const size_t header = wide ? 20 : 16;
    if (bytes < header || (bytes - header) % 4)
        return darknet_host->fail(err, CNR_E_FORMAT, net->weights_path,
                                  "is damaged: its %zu bytes are no header and whole numbers",
                                  bytes);
    net->transposed = version[0] > 1000 || version[1] > 1000;
    net->weights = data + header;
    net->n_weights = (bytes - header) / 4;
    return CNR_OK;
}

static void set_meta(darknet_net *net, const char *key, const char *text) {
    if (darknet_host->graph_set_meta(net->graph, key, text)) net->status = CNR_E_MEMORY;
}

/* Heads on convolutions alone: such a net runs at other sizes than the one in its file. */
static int has_open_size(const darknet_config *c) {
    static const char *const fixed[] = {"connected", "conn", "local", "crop", "detection"};
    int heads = 0;
    for (int32_t i = 1; i < c->n_sections; i++) {
        const char *name = c->sections[i].name;
        heads += strcmp(name, "yolo") == 0 || strcmp(name, "region") == 0;
        for (size_t k = 0; k < sizeof fixed / sizeof fixed[0]; k++)
            if (strcmp(name, fixed[k]) == 0) return 0;
    }
    return heads > 0;
}

static void open_dim(darknet_net *net, const char *name, int64_t usual, int64_t *dim) {
    char key[64], text[32];
    const int32_t symbol = darknet_host->graph_symbol(net->graph, name);
    if (symbol < 0) return;
    *dim = CNR_DIM_SYMBOL(symbol);
    snprintf(key, sizeof key, "symbol.%s.default", name);
    snprintf(text, sizeof text, "%lld", (long long)usual);
    set_meta(net, key, text);
}

static cnr_value add_input(darknet_net *net) {
    const darknet_config *c = net->config;
    const darknet_section *s = &c->sections[0];
    const int64_t channels = darknet_int(c, s, "channels", 3), inputs = darknet_int(c, s, "inputs", 0);
    cnr_tensor type = {.size = sizeof type, .dtype = CNR_f32};
    const int32_t batch = darknet_host->graph_symbol(net->graph, "batch");
    net->width = darknet_int(c, s, "width", 0);
    net->height = darknet_int(c, s, "height", 0);
    type.dim[0] = batch < 0 ? CNR_DIM_UNKNOWN : CNR_DIM_SYMBOL(batch);
    if (net->width > 0 && net->height > 0 && channels > 0) {
        type.rank = 4;
        type.dim[1] = channels, type.dim[2] = net->height, type.dim[3] = net->width;
        if (has_open_size(c)) {
            open_dim(net, "height", net->height, &type.dim[2]);
            open_dim(net, "width", net->width, &type.dim[3]);
        }
    } else if (inputs > 0) {
        type.rank = 2;
        type.dim[1] = inputs;
    } else {
        darknet_host->graph_problem(net->graph, net->path,
                                    "[net] has no width, height and channels");
        return -1;
    }
    set_meta(net, "input.data.scale", "0.00392156863"); /* pictures are 0 to 1 */
    return darknet_host->graph_input(net->graph, "data", &type);
}

static cnr_status build(darknet_net *net, cnr_error *err) {
    const darknet_config *c = net->config;
    net->n_layers = c->n_sections - 1;
    net->values = (cnr_value *)darknet_host->alloc((size_t)(net->n_layers + 1) * sizeof(cnr_value));
    if (!net->values) return darknet_host->fail(err, CNR_E_MEMORY, net->path, "out of memory");
    cnr_value x = add_input(net);
    for (int32_t i = 1; i < c->n_sections && !net->status; i++) {
        darknet_layer(net, i, x);
        x = net->values[i - 1];
    }
    if (net->status) return darknet_host->fail(err, net->status, net->path, "out of memory");
    if (net->n_heads) set_meta(net, "heads", net->heads);
    else if (x >= 0) net->status = darknet_host->graph_output(net->graph, x, "output");
    if (x >= 0 && net->weights && net->taken != net->n_weights)
        darknet_host->graph_problem(net->graph, net->weights_path,
                                    "%llu values are left over: these are not the weights of %s",
                                    (unsigned long long)(net->n_weights - net->taken), net->path);
    return net->status;
}

static int is_text(const uint8_t *head, size_t n) {
    for (size_t i = 0; i < n && i < 256; i++)
        if (head[i] < 9 || (head[i] > 13 && head[i] < 32)) return 0;
    return n > 0;
}

static cnr_status import(const cnr_import_args *args, struct cnr_graph *graph, cnr_error *err) {
    uint8_t *text = NULL, *weights = NULL;
    size_t bytes = 0, weight_bytes = 0;
    darknet_config config = {0};
    darknet_net net = {.graph = graph, .path = args->paths[0], .config = &config};
    if (args->n_paths > 2)
        return darknet_host->fail(err, CNR_E_ARG, args->paths[2],
                                  "one .cfg and one .weights are wanted");
    cnr_status status = read_file(net.path, &text, &bytes, err);
    if (!status && !is_text(text, bytes)) {
        darknet_host->free(text);
        return darknet_host->fail(err, CNR_E_FORMAT, net.path,
                                  "is no .cfg: give the .cfg first, then the .weights");
    }
    if (!status) status = darknet_config_parse(&config, (char *)text, net.path, err);
    if (!status && args->n_paths > 1) {
        net.weights_path = args->paths[1];
        status = read_file(net.weights_path, &weights, &weight_bytes, err);
        if (!status) status = open_weights(&net, weights, weight_bytes, err);
    }
    if (!status) status = build(&net, err);
    darknet_host->free(net.values);
    darknet_host->free(net.heads);
    darknet_host->free(weights);
    darknet_config_free(&config);
    return status;
}

static int32_t accepts(const char *path, const uint8_t *head, size_t bytes) {
    const size_t n = strlen(path);
    if (!is_text(head, bytes)) return 0;
    char text[2049];
    const size_t k = bytes < sizeof text - 1 ? bytes : sizeof text - 1;
    memcpy(text, head, k);
    text[k] = 0;
    const int found = strstr(text, "[net]") || strstr(text, "[network]");
    return found ? 70 : n > 4 && strcmp(path + n - 4, ".cfg") == 0 ? 30 : 0;
}

static const cnr_importer importer = {
    .size = sizeof importer,
    .name = "darknet",
    .summary = "Darknet: NET.cfg NET.weights (YOLO and classifiers)",
    .accepts = accepts,
    .import = import,
};

static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    darknet_host = host;
    return host->add(registrar, CNR_KIND_IMPORTER, &importer);
}

static const cnr_plugin plugin = {
    .size = sizeof plugin,
    .magic = CNR_PLUGIN_MAGIC,
    .abi = CNR_ABI,
    .signature = CNR_SIGNATURE,
    .name = "import-darknet",
    .version = "1.0",
    .summary = "reads Darknet models",
    .licence = "MIT",
    .init = init,
};

CNR_PLUGIN_ENTRY {
    (void)host_abi;
    return &plugin;
}
