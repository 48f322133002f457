/* Writes CNNdroid's files: a NetFile, MessagePack files of parameters beside it, mean.msg. As its
 * own parser wants them: root_directory first, a key a line, every key of a layer, no remarks. */
#include "export.h"

#include <cnnrun/kit.h>

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

void cd_refuse(cd_writer *w, const cnr_node *node, const char *why) {
    char where[300];
    snprintf(where, sizeof where, "layer %.200s (%.60s)", node ? node->name : "",
             node && node->desc ? node->desc->name : "");
    if (!node) snprintf(where, sizeof where, "%.250s", w->path);
    imp_host->log(CNR_LOG_ERROR, "export", "%s: %s", where, why);
    if (w->problems++ == 0) imp_host->fail(w->err, CNR_E_UNSUPPORTED, where, "%s", why);
}

/* Appends formatted text to the NetFile. */
void cd_print(cd_writer *w, const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof line) return cd_refuse(w, NULL, "a name is too long");
    if (w->n + (size_t)n > w->room) {
        const size_t room = 2 * (w->room + sizeof line);
        char *grown = (char *)imp_host->resize(w->text, room);
        w->no_memory |= !grown;
        if (!grown) return;
        w->text = grown;
        w->room = room;
    }
    memcpy(w->text + w->n, line, (size_t)n);
    w->n += (size_t)n;
}

/* A node's name without what a file's name on the phone cannot hold. */
static void plain_name(const cnr_node *node, cd_name *to) {
    snprintf(to->text, sizeof to->text - 12, "%s",
             node->name && *node->name ? node->name : "layer");
    for (char *c = to->text; *c; c++)
        if (!strchr("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-", *c))
            *c = '_';
}

/* 1 if a file's name is taken, in any case, since case counts for nothing on a phone's card. */
static int is_taken(const cd_writer *w, const cd_name *name) {
    for (int32_t i = 0; i < w->n_names; i++)
        if (strcasecmp(w->names[i].text, name->text) == 0) return 1;
    return 0;
}

void cd_begin(cd_writer *w, const cnr_node *node, const char *type) {
    cd_name plain, name;
    plain_name(node, &plain);
    name = plain;
    for (int k = 2; is_taken(w, &name); k++)
        snprintf(name.text, sizeof name.text, "%.50s_%d", plain.text, k);
    if (!imp_grow((void **)&w->names, w->n_names, &w->names_room, sizeof *w->names)) {
        w->no_memory = 1;
        return;
    }
    w->names[w->n_names++] = name;
    cd_print(w, "layer {\n  type: \"%s\"\n  name: \"%s\"\n", type, name.text);
}

/* 1 if a tensor is NULL, or dense f32 with data. */
static int is_dense(const cnr_tensor *t) {
    return !t || (t->dtype == CNR_f32 && !t->encoding && t->data && cnr_count(t) > 0);
}

void cd_parameters_of(cd_writer *w, const cnr_node *node, const cnr_tensor *weight,
                      const cnr_tensor *bias) {
    if (!is_dense(weight) || !is_dense(bias))
        return cd_refuse(w, node, "its weights are no f32 as they are: convert the net first");
    if (!imp_grow((void **)&w->parameters, w->n_parameters, &w->parameters_room,
                  sizeof *w->parameters)) {
        w->no_memory = 1;
        return;
    }
    if (w->n_names == 0) return; /* there was no memory for its name */
    cd_parameters *p = &w->parameters[w->n_parameters++];
    *p = (cd_parameters){.weight = weight, .bias = bias};
    snprintf(p->file, sizeof p->file, "model_param_%s.msg", w->names[w->n_names - 1].text);
    cd_print(w, "  parameters_file: \"%s\"\n", p->file);
}

/* ---- what stands before the layers ---- */

/* Megabytes of all files' numbers, five bytes each, rounded up: all of them stay in memory. */
static long long megabytes(const cd_writer *w) {
    int64_t n = 0;
    for (int32_t i = 0; i < w->n_parameters; i++)
        n += cnr_count(w->parameters[i].weight) + w->parameters[i].weight->dim[0];
    return (long long)(n * 5 / 1048576 + 1);
}

/* Text of the graph's metadata under a key, owned by the graph; "": none. */
static const char *meta(const cd_writer *w, const char *key) {
    const char *text = imp_host->graph_meta(w->graph, key);
    return text ? text : "";
}

/* Writes the NetFile's head to `to`; returns its length. CNNdroid joins root_directory and a file's
 * name: on the phone, in a folder of the net's name. */
static int put_head(const cd_writer *w, char *to, size_t room) {
    const char *end, *bound = meta(w, "plan.memory_bound"), *slash = strrchr(w->path, '/');
    const char *name = slash ? slash + 1 : w->path;
    const double bytes = imp_number(bound, &end);
    const long long ram = bytes >= 1048576 ? (long long)(bytes / 1048576) : megabytes(w);
    const char *def = strstr(name, "_def.txt");
    const int n = def ? (int)(def - name) : (int)strcspn(name, ".");
    return snprintf(to, room,
                    "root_directory: \"/sdcard/%.*s/\"\n\nallocated_ram: %lld\n\n"
                    "execution_mode: \"%s\"\n\nauto_tuning: \"%s\"\n\n",
                    n > 100 ? 100 : n, name, ram,
                    strcmp(meta(w, "plan.device"), "cpu") == 0 ? "sequential" : "parallel",
                    strcmp(meta(w, "plan.deterministic"), "1") == 0 ? "off" : "on");
}

/* ---- the net ---- */

/* Writes the layers one after the other: each must be the only reader of the layer before it, else
 * it is refused. */
static void walk(cd_writer *w) {
    cnr_value x = imp_host->graph_input_at(w->graph, 0);
    const int32_t n = imp_host->graph_node_count(w->graph);
    for (int32_t i = 0; i < n; i++) {
        const cnr_value *in, *out;
        const cnr_node *node = imp_host->graph_node_at(w->graph, i, &in, &out);
        int chained =
            node->n_inputs > 0 && in[0] == x && imp_host->graph_use_count(w->graph, x) == 1;
        for (int32_t k = 1; k < node->n_inputs; k++)
            chained &= in[k] < 0 || imp_host->graph_producer(w->graph, in[k]) < 0;
        if (chained) cd_layer_of(w, node);
        else cd_refuse(w, node, "CNNdroid's layers stand one behind the other");
        x = out[0];
    }
    if (imp_host->graph_output_at(w->graph, 0) != x)
        cd_refuse(w, NULL, "CNNdroid's result is what the last layer gives");
    if (w->border) cd_refuse(w, NULL, "the net ends with a border");
    if (w->made_flat) cd_refuse(w, NULL, "the net ends flat: CNNdroid's is a picture there");
}

/* Checks that the net has one input and output that CNNdroid can have. */
static void check_ends(cd_writer *w) {
    if (imp_host->graph_input_count(w->graph) != 1 || imp_host->graph_output_count(w->graph) != 1)
        return cd_refuse(w, NULL, "one input and one output are wanted");
    const cnr_tensor *x = imp_host->graph_type(w->graph, imp_host->graph_input_at(w->graph, 0));
    if (x->dtype != CNR_f32) return cd_refuse(w, NULL, "an input of f32 is wanted");
    w->flat = x->rank == 2;
    walk(w);
}

/* ---- the mean picture ---- */

/* Text of the input's preprocessing under a key; "": none. */
static const char *input_meta(const cd_writer *w, const char *key) {
    char name[300];
    snprintf(name, sizeof name, "input.%.200s.%s",
             imp_host->graph_value_name(w->graph, imp_host->graph_input_at(w->graph, 0)), key);
    return meta(w, name);
}

/* Numbers with commas between, up to `most` of them; how many there are. */
static int64_t numbers(const char *text, float *to, int64_t most) {
    int64_t n = 0;
    for (const char *end; *text; text = *end == ',' ? end + 1 : end) {
        const double value = imp_number(text, &end);
        if (end == text) break;
        if (n < most) to[n] = (float)value;
        n++;
    }
    return n;
}

/* Spreads `given` numbers (one, or one a plane) over n elements, in place and from the end. */
static void spread(float *data, int64_t given, int64_t n, int64_t plane) {
    for (int64_t i = n - 1; i >= 0 && given < n; i--) data[i] = data[given == 1 ? 0 : i / plane];
}

/* Writes the mean image, if there is one. */
static cnr_status write_mean(const cd_writer *w, const char *path) {
    const cnr_tensor *x = imp_host->graph_type(w->graph, imp_host->graph_input_at(w->graph, 0));
    const char *text = input_meta(w, "mean");
    if (!*text) return CNR_OK;
    if (x->rank != 4 || x->dim[1] < 1 || x->dim[2] < 1 || x->dim[3] < 1)
        return imp_host->fail(w->err, CNR_E_UNSUPPORTED, w->path,
                              "CNNdroid's mean is a picture: fix the input's size (--shape)");
    const int64_t plane = x->dim[2] * x->dim[3], n = x->dim[1] * plane;
    float *data = (float *)imp_host->alloc((size_t)n * sizeof *data);
    if (!data) return imp_host->fail(w->err, CNR_E_MEMORY, w->path, "out of memory");
    const int64_t given = numbers(text, data, n);
    cnr_status status = CNR_OK;
    if (given != 1 && given != x->dim[1] && given != n)
        status = imp_host->fail(w->err, CNR_E_FORMAT, w->path, "the mean has %lld numbers",
                                (long long)given);
    else spread(data, given, n, plane);
    if (!status) status = cd_picture_write(path, data, x->dim + 1, w->err);
    imp_host->free(data);
    return status;
}

/* Warns of picture preparation that the format can't express; an application must do it itself. */
static void tell_of_pictures(const cd_writer *w) {
    static const char *const keys[] = {"scale", "std", "channels"};
    for (int i = 0; i < CNR_ROWS(keys); i++)
        if (*input_meta(w, keys[i]) && (i < 2 || strcmp(input_meta(w, keys[i]), "bgr") == 0))
            imp_host
                ->log(CNR_LOG_WARN, "export",
                      "%s: pictures' %s=%.60s is not in CNNdroid's files: its application does it",
                      w->path, keys[i], input_meta(w, keys[i]));
}

/* ---- files ---- */

/* Path of a file `name` in the same folder as `path`, in host memory; NULL: out of memory. */
static char *beside(const char *path, const char *name) {
    const char *slash = strrchr(path, '/');
    const size_t folder = slash ? (size_t)(slash + 1 - path) : 0, n = strlen(name) + 1;
    char *out = (char *)imp_host->alloc(folder + n);
    if (!out) return NULL;
    memcpy(out, path, folder);
    memcpy(out + folder, name, n);
    return out;
}

/* Writes weights and biases of a layer; p NULL: the mean. */
static cnr_status write_parameters(const cd_writer *w, const cd_parameters *p) {
    char *path = beside(w->path, p ? p->file : "mean.msg");
    if (!path) return imp_host->fail(w->err, CNR_E_MEMORY, w->path, "out of memory");
    const cnr_status status =
        p ? cd_message_write(path, p->weight, p->bias, w->err) : write_mean(w, path);
    imp_host->free(path);
    return status;
}

/* Last, so that a NetFile has all that it names. */
static cnr_status write_netfile(const cd_writer *w) {
    char head[400];
    struct cnr_output *out;
    const int n = put_head(w, head, sizeof head);
    cnr_status status = imp_host->output_begin(w->path, 0, &out, w->err);
    if (status) return status;
    status = imp_host->output_write(out, head, (uint64_t)n, w->err);
    if (!status) status = imp_host->output_write(out, w->text, w->n, w->err);
    return imp_host->output_end(out, status, w->err);
}

/* Method of the exporter: writes NetFile and weights beside it. Fails if a layer can't be
 * written. */
static cnr_status export_graph(const struct cnr_graph *graph, const char *path, cnr_error *err) {
    cd_writer w = {.graph = graph, .path = path, .err = err};
    cnr_status status = CNR_OK;
    check_ends(&w);
    if (w.problems) status = CNR_E_UNSUPPORTED;
    else if (w.no_memory) status = imp_host->fail(err, CNR_E_MEMORY, path, "out of memory");
    else if (w.n == 0)
        status = imp_host->fail(err, CNR_E_UNSUPPORTED, path, "the net has no layers");
    if (!status) tell_of_pictures(&w);
    for (int32_t i = 0; i < w.n_parameters && !status; i++)
        status = write_parameters(&w, &w.parameters[i]);
    if (!status) status = write_parameters(&w, NULL);
    if (!status) status = write_netfile(&w);
    imp_host->free(w.parameters);
    imp_host->free(w.names);
    imp_host->free(w.text);
    return status;
}

/* 100 for a name of a NetFile, else 0. */
static int32_t accepts(const char *path) {
    return imp_ends_with(path, ".def") || imp_ends_with(path, "_def.txt") ? 100 : 0;
}

const cnr_exporter cd_exporter = {
    .size = sizeof(cnr_exporter),
    .name = "cnndroid",
    .summary = "CNNdroid: a NetFile NAME.def or NAME_def.txt, its parameters beside it",
    .accepts = accepts,
    .write = export_graph,
};
