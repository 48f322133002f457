/* cnnrun convert: any net to the native file, its weights in another encoding if asked. */
#include "core/cli/cli.h"
#include "core/store/store.h"

typedef struct convert {
    const char *out, *encode, *layers;
    const cnr_encoding *encoding;
    cnr_attr **settings;  /* resolved, in the order of the encoding's schema */
    cnri_encoded done;
} convert;

static const cnri_option options[] = {
    {"--output", "FILE", CNRI_OPT_TEXT, offsetof(convert, out), "the native file to write", 0, 0,
     NULL, 'o'},
    {"--encode", "NAME[:OPTION=VALUE,..]", CNRI_OPT_TEXT, offsetof(convert, encode),
     "store weights in this encoding where a kernel reads it", 0, 0, NULL, 0},
    {"--layers", "GLOB", CNRI_OPT_TEXT, offsetof(convert, layers),
     "only in layers of such names (*)", 0, 0, NULL, 0},
};

static const cnri_syntax syntax = {
    .command = "convert",
    .operands = "NET -o OUT.cnr",
    .summary = "Writes any net that can be loaded to the native file.",
    .details = "cnnrun plugins lists the encodings.",
    .options = options,
    .n_options = CNRI_COUNT(options),
    .nets = true,
    .min_operands = 1,
    .max_operands = 1,
};

/* ---- the encoding and its options ---- */

static void setting_problem(void *arg, const char *path, const char *text) {
    cnr_error *err = arg;
    if (!err->code) cnri_fail(err, CNR_E_ARG, "--encode", "%s: %s", path, text);
}

/* "density=0.1" by the type that the schema has for it. */
static cnr_status parse_setting(const cnr_encoding *e, char *text, cnr_attr *out, cnr_error *err) {
    cnr_attr_spec room;
    const char *end;
    char *equals = strchr(text, '=');
    if (!equals)
        return cnri_fail(err, CNR_E_ARG, "--encode", "wanted OPTION=VALUE, got \"%s\"", text);
    *equals = 0;
    memset(out, 0, sizeof *out);
    out->name = text;
    out->set = 1;
    out->s = equals + 1;
    out->type = CNR_ATTR_STRING;
    for (int32_t i = 0; i < e->n_attrs; i++) {
        const cnr_attr_spec *row = cnri_spec_at(e->attrs, e->attr_spec_size, i, &room);
        if (strcmp(row->name, text) != 0) continue;
        const bool numeric = row->type != CNR_ATTR_ENUM && row->type != CNR_ATTR_STRING &&
                             row->type != CNR_ATTR_DTYPE;
        if (!numeric) break;
        if (cnri_parse_int(out->s, &out->i)) out->type = CNR_ATTR_INT;
        else if (cnri_parse_double(out->s, &end, &out->f) && *end == 0) out->type = CNR_ATTR_FLOAT;
        if (row->type == CNR_ATTR_BOOL && out->type == CNR_ATTR_INT) out->type = CNR_ATTR_BOOL;
        break;
    }
    return CNR_OK;
}

static cnr_status find_encoding(convert *c, cnr_error *err) {
    const char *names[64];
    cnr_attr given[32];
    const cnr_attr *list[CNRI_COUNT(given)];
    int32_t n = 0, count = 0;
    char *text = cnri_strdup(c->encode);
    if (!text) return cnri_fail(err, CNR_E_MEMORY, "--encode", "out of memory");
    char *rest = strchr(text, ':');
    if (rest) *rest++ = 0;
    c->encoding = cnri_find(CNR_KIND_ENCODING, text);
    cnr_status status = CNR_OK;
    if (!c->encoding) {
        for (; count < cnri_count(CNR_KIND_ENCODING) && count < (int32_t)CNRI_COUNT(names); count++)
            names[count] = ((const cnr_encoding *)cnri_at(CNR_KIND_ENCODING, count))->name;
        cnri_text all = {0};
        for (int32_t i = 0; i < count; i++) cnri_text_add(&all, "%s%s", i ? ", " : "", names[i]);
        status = cnri_fail(err, CNR_E_NOT_FOUND, "--encode", "no encoding \"%s\"; there are: %s",
                           text, all.at ? all.at : "none");
        cnri_text_free(&all);
    }
    while (!status && rest && *rest) {
        char *next = strchr(rest, ',');
        if (next) *next++ = 0;
        if (n == (int32_t)CNRI_COUNT(given))
            status = cnri_fail(err, CNR_E_LIMIT, "--encode", "too many options");
        else status = parse_setting(c->encoding, rest, &given[n], err);
        list[n] = &given[n];
        n++;
        rest = next;
    }
    if (!status) {
        cnr_error problem = CNR_ERROR_INIT;
        status = cnri_attrs_resolve(c->encoding->attrs, c->encoding->attr_spec_size,
                                    c->encoding->n_attrs, list, n, -1, setting_problem, &problem,
                                    &c->settings);
        if (status)
            cnri_fail(err, status, "--encode", "%s",
                      problem.code ? problem.text : cnr_status_text(status));
    }
    cnri_free(text);
    return status;
}

static cnr_status encode(convert *c, cnr_graph *graph, cnr_error *err) {
    const cnri_encode_options o = {.encoding = c->encoding, .layers = c->layers,
                                   .settings = (const cnr_attr *const *)c->settings};
    return cnri_encode_weights(graph, &o, &c->done, err);
}

int cnri_cmd_convert(int argc, char **argv) {
    convert c = {0};
    cnri_args args;
    cnr_runtime *rt = NULL;
    cnr_graph *graph = NULL;
    cnr_error err = CNR_ERROR_INIT;
    int code = 0;
    if (!cnri_args_parse(&args, &syntax, argc, argv, &c, &code)) return code;
    if (!c.out) {
        code = cnri_usage_error(&args, "-o OUT.cnr is missing");
    } else if (c.layers && !c.encode) {
        code = cnri_usage_error(&args, "--layers goes with --encode");
    } else {
        cnr_status status = cnri_args_output(&args, c.out, NULL, 0, &err);
        if (!status) status = cnri_args_open(&args, &rt, &err);
        if (!status && c.encode) status = find_encoding(&c, &err);
        if (!status) status = cnri_args_load_graph(&args, rt, args.operands.at[0], &graph, &err);
        if (!status) status = cnri_graph_verdict(graph, true, &err);
        if (!status && c.encode) status = encode(&c, graph, &err);
        if (!status) status = cnri_store_write(graph, c.out, &err);
        if (status) code = cnri_complain(&args, &err);
        else if (c.done.encoded && !args.common.quiet)
            cnri_say(stderr, "%s: %d weights in another encoding, %llu bytes instead of %llu\n",
                     c.out, c.done.encoded, (unsigned long long)c.done.after,
                     (unsigned long long)c.done.before);
    }
    cnri_free(c.settings);
    cnri_graph_free(graph);
    cnr_close(rt);
    cnri_args_free(&args);
    return code;
}
