/* Parses an encoding as users write it, "sparse-csr:density=0.1", by the encoding's own schema. */
#include "show/show.h"

enum { MOST = 32 };

/* The callback of cnri_attrs_resolve: keeps the first problem in the error `arg`. */
static void setting_problem(void *arg, const char *path, const char *text) {
    cnr_error *err = arg;
    if (!err->code) cnri_fail(err, CNR_E_ARG, NULL, "%s: %s", path, text);
}

/* Parses one setting, "density=0.1", by its type in the schema. Cuts `text` at its '='. */
static cnr_status parse_setting(const cnr_encoding *e, char *text, cnr_attr *out, cnr_error *err) {
    cnr_attr_spec row_buffer;
    const char *end;
    char *equals = strchr(text, '=');
    if (!equals) return cnri_fail(err, CNR_E_ARG, e->name, "wanted OPTION=VALUE, got \"%s\"", text);
    *equals = 0;
    *out = (cnr_attr){.name = text, .set = 1, .s = equals + 1, .type = CNR_ATTR_STRING};
    for (int32_t i = 0; i < e->n_attrs; i++) {
        const cnr_attr_spec *row = cnri_spec_at(e->attrs, e->attr_spec_size, i, &row_buffer);
        const bool words = row->type == CNR_ATTR_ENUM || row->type == CNR_ATTR_STRING ||
                           row->type == CNR_ATTR_DTYPE;
        if (strcmp(row->name, text) != 0 || words) continue;
        if (cnri_parse_int(out->s, &out->i))
            out->type = row->type == CNR_ATTR_BOOL ? CNR_ATTR_BOOL : CNR_ATTR_INT;
        else if (cnri_parse_double(out->s, &end, &out->f) && *end == 0) out->type = CNR_ATTR_FLOAT;
    }
    return CNR_OK;
}

cnr_status cnri_none_such(int32_t code, int32_t kind, const char *where, const char *what,
                          cnr_error *err) {
    cnri_text all = {0};
    for (int32_t i = 0; i < cnri_descriptor_count(kind); i++)
        cnri_text_add(&all, "%s%s", i ? ", " : "",
                      cnri_item_name(kind, cnri_descriptor_at(kind, i)));
    cnri_fail(err, code, where, "%s; there are: %s", what, all.at ? all.at : "none");
    cnri_text_free(&all);
    return code;
}

/* Parses a list of settings with commas between them, which it cuts up; `text` may be NULL. */
static cnr_status parse_settings(const cnr_encoding *e, char *text, cnr_attr ***out,
                                 cnr_error *err) {
    cnr_attr given[MOST];
    const cnr_attr *list[MOST];
    cnr_error problem = CNR_ERROR_INIT;
    int32_t n = 0;
    for (char *next; text && *text; text = next) {
        next = strchr(text, ',');
        if (next) *next++ = 0;
        if (n == MOST) return cnri_fail(err, CNR_E_LIMIT, e->name, "too many options");
        const cnr_status status = parse_setting(e, text, &given[n], err);
        if (status) return status;
        list[n] = &given[n];
        n++;
    }
    const cnr_status status = cnri_attrs_resolve(e->attrs, e->attr_spec_size, e->n_attrs, list, n,
                                                 -1, setting_problem, &problem, out);
    if (!status) return CNR_OK;
    return cnri_fail(err, status, e->name, "%s",
                     problem.code ? problem.text : "its options could not be read");
}

cnr_status cnri_encoding_parse(const char *words, const cnr_encoding **encoding,
                               cnr_attr ***settings, cnr_error *err) {
    char *text = cnri_strdup(words);
    *settings = NULL;
    if (!text) return cnri_out_of_memory(err, words);
    char *rest = strchr(text, ':');
    if (rest) *rest++ = 0;
    *encoding = cnri_descriptor_find(CNR_KIND_ENCODING, text);
    const cnr_status status = *encoding ? parse_settings(*encoding, rest, settings, err)
                                        : cnri_none_such(CNR_E_NOT_FOUND, CNR_KIND_ENCODING, text,
                                                         "no encoding of that name", err);
    cnri_free(text);
    return status;
}
