/* Gathers the manual of the scripting API from the tables that register it. */
#include "lua/library.h"
#include "lua/state.h"
#include "show/show.h"
#include <string.h>

/* Appends a text (NULL: nothing) to a text of the manual. */
static void add(cnri_lua_manual *r, char **slot, const char *text) {
    cnri_manual_text(r, slot, text ? text : "", text ? strlen(text) : 0);
}

bool cnri_lua_next_item(const char **at, const char **item, size_t *n) {
    const char *p = *at + strspn(*at, ", ");
    int depth = 0;
    bool quoted = false;
    *item = p;
    for (; *p && (quoted || depth > 0 || *p != ','); p++) {
        if (*p == '"') quoted = !quoted;
        else if (!quoted && strchr("([{<", *p)) depth++;
        else if (!quoted && strchr(")]}>", *p)) depth--;
    }
    *n = (size_t)(p - *item);
    while (*n > 0 && (*item)[*n - 1] == ' ') --*n;
    *at = p;
    return *n > 0;
}

/* ---- functions and methods of ours ---- */

/* Adds what stands between the parentheses of "load(path: string)". */
static void add_args(cnri_lua_manual *r, cnri_lua_help *row, const char *text) {
    const char *from = strchr(text, '('), *to = from ? strrchr(from, ')') : NULL;
    if (to) cnri_manual_text(r, &row->args, from + 1, (size_t)(to - from - 1));
}

/* Adds the keys of a table as options. */
static void add_keys(cnri_lua_manual *r, cnri_lua_help *row, const cnri_lua_key *key) {
    for (; key && key->text; key++) {
        const size_t n = cnri_word_length(key->text);
        const char *const *choice = key->choices;
        cnri_lua_option *option = cnri_manual_option(r, row, key->text, n, choice ? "" : key->type);
        if (!option) return;
        for (; choice && *choice; choice++) { /* "f32"|"fp16" */
            add(r, &option->type, choice == key->choices ? "\"" : "|\"");
            add(r, &option->type, *choice);
            add(r, &option->type, "\"");
        }
        const char *help = key->text + n;
        add(r, &option->help, help + strspn(help, ": "));
    }
}

/* Adds the functions of all sections of the module to the manual. */
static void gather_sections(cnri_lua_manual *r) {
    for (const cnri_lua_section *s = cnri_lua_sections; s->name && !r->failed; s++) {
        cnri_manual_part(r, s->name, s->help);
        for (const cnri_lua_row *from = s->rows; from && from->text; from++) {
            cnri_lua_help *row =
                cnri_manual_row(r, s->how, from->text, cnri_word_length(from->text));
            if (!row) return;
            add_args(r, row, from->text);
            add(r, &row->gives, from->gives);
            add(r, &row->help, from->help);
            add_keys(r, row, from->keys);
        }
    }
}

/* ---- objects ---- */

/* Adds the objects of plugins with their methods. */
static void gather_objects(cnri_lua_manual *r) {
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_OBJECT) && !r->failed; i++) {
        const cnr_object *o = cnri_descriptor_at(CNR_KIND_OBJECT, i);
        char name[128], owner[128];
        snprintf(name, sizeof name, "cnnrun.Object.%s: cnnrun.Object", o->name);
        snprintf(owner, sizeof owner, "%s:", o->name);
        cnri_manual_part(r, name, o->summary);
        for (int32_t m = 0; m < o->n_methods; m++) {
            const char *text = o->methods[m], *arrow = strstr(text, "->");
            cnri_lua_help *row = cnri_manual_row(r, owner, text, cnri_word_length(text));
            if (!row) return;
            row->loose = true;
            add_args(r, row, text);
            if (arrow) add(r, &row->gives, arrow + 2 + strspn(arrow + 2, " "));
            cnri_manual_text(r, &row->help, text, strlen(text));
        }
    }
}

/* ---- constructors of operators ---- */

static const char *const attribute_types[] = {[CNR_ATTR_INT] = "integer",
                                              [CNR_ATTR_FLOAT] = "number",
                                              [CNR_ATTR_BOOL] = "boolean",
                                              [CNR_ATTR_ENUM] = "string",
                                              [CNR_ATTR_STRING] = "string",
                                              [CNR_ATTR_INTS] = "integer|integer[]",
                                              [CNR_ATTR_FLOATS] = "number|number[]",
                                              [CNR_ATTR_DTYPE] = "string"};

/* Adds an attribute of an operator as an option. */
static void add_attribute(cnri_lua_manual *r, cnri_lua_help *row, const cnr_attr_spec *a) {
    cnri_text help = {0}, standard = {0};
    const bool choice = a->type == CNR_ATTR_ENUM;
    cnri_lua_option *option = cnri_manual_option(r, row, a->name, strlen(a->name),
                                                 choice ? "" : attribute_types[a->type]);
    for (int32_t i = 0; option && choice && a->choices[i]; i++) { /* "same"|"valid" */
        add(r, &option->type, i ? "|\"" : "\"");
        add(r, &option->type, a->choices[i]);
        add(r, &option->type, "\"");
    }
    cnri_text_add(&help, "%s", a->help ? a->help : a->name);
    cnri_attr_print_bounds(a, &help);
    cnri_attr_print_default(a, &standard);
    if (a->flags & CNR_ATTR_REQUIRED) cnri_text_add(&help, "; required");
    else if (standard.n) cnri_text_add(&help, "; default %s", standard.at);
    if (a->alias) cnri_text_add(&help, "; also called %s", a->alias);
    r->failed = r->failed || help.failed || standard.failed;
    if (option) add(r, &option->help, help.at);
    if (option && a->alias) {
        char *type = option->type; /* the list may move */
        cnri_lua_option *also = cnri_manual_option(r, row, a->alias, strlen(a->alias), type);
        if (also) cnri_manual_text(r, &also->help, "the same as ", 12);
        if (also) add(r, &also->help, a->name);
    }
    cnri_text_free(&help);
    cnri_text_free(&standard);
}

/* True if the row has that option. */
static bool is_option(const cnri_lua_help *row, const char *name) {
    return CNRI_INDEX_OF(row->options.at, row->options.n, name) >= 0;
}

/* Adds the named inputs of an operator as options, unless an option has the name. */
static void add_ports(cnri_lua_manual *r, cnri_lua_help *row, const cnr_op *op) {
    for (int32_t i = 0; i < op->n_inputs; i++) {
        const cnr_port p = cnri_port_at(op, op->inputs, i);
        if (!p.name || !cnri_word_length(p.name) || is_option(row, p.name)) continue;
        cnri_lua_option *option = cnri_manual_option(r, row, p.name, strlen(p.name),
                                                     "cnnrun.Value|cnnrun.Tensor|number|number[]");
        if (!option) return;
        add(r, &option->help,
            p.flags & CNR_PORT_PARAMETER  ? "a weight, made when left out"
            : p.flags & CNR_PORT_OPTIONAL ? "an input, optional"
                                          : "an input");
        if (p.help) add(r, &option->help, ": ");
        add(r, &option->help, p.help);
    }
}

/* Adds an option of this type to the row, unless the operator has one of that name. */
static void add_own(cnri_lua_manual *r, cnri_lua_help *row, const char *name, const char *type,
                    const char *help) {
    if (is_option(row, name)) return;
    cnri_lua_option *option = cnri_manual_option(r, row, name, strlen(name), type);
    if (option) add(r, &option->help, help);
}

/* Adds all registered operators, with inputs and attributes, to the manual. */
static void gather_operators(cnri_lua_manual *r) {
    cnri_manual_part(r, "cnnrun", "operators: the first word is the layer's name, then inputs");
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_OPERATOR); i++) {
        const cnr_op *op = cnri_descriptor_at(CNR_KIND_OPERATOR, i);
        cnri_lua_help *row = cnri_manual_row(r, "c.", op->name, strlen(op->name));
        if (!row) return;
        row->op = op;
        add(r, &row->args, "layer?: table|cnnrun.Value|string");
        add(r, &row->gives, "cnnrun.Layer");
        add(r, &row->help, op->summary && *op->summary ? op->summary : op->name);
        for (int32_t a = 0; a < op->n_attrs; a++) {
            cnr_attr_spec row_buffer;
            add_attribute(r, row, cnri_spec_at(op->attrs, op->attr_spec_size, a, &row_buffer));
        }
        add_ports(r, row, op);
        add_own(r, row, "name", "string", "of the layer, instead of in front");
        add_own(r, row, "place", "string|table<string, number>",
                "where it runs: \"opencl:0\", or a share each");
    }
}

/* ---- all of it ---- */

cnr_status cnri_lua_manual_make(cnri_lua_manual *r, cnr_error *err) {
    *r = (cnri_lua_manual){0};
    gather_sections(r);
    gather_objects(r);
    if ((r->scripts = cnri_lua_scripts()) != NULL) cnri_library_gather(r);
    gather_operators(r);
    return r->failed ? cnri_out_of_memory(err, "reference") : CNR_OK;
}

/* Frees all rows and parts; the struct is the caller's. */
void cnri_lua_manual_free(cnri_lua_manual *r) {
    for (int32_t i = 0; i < r->rows.n; i++) {
        cnri_lua_help *row = &r->rows.at[i];
        for (int32_t k = 0; k < row->options.n; k++) {
            cnri_free(row->options.at[k].name);
            cnri_free(row->options.at[k].type);
            cnri_free(row->options.at[k].help);
        }
        cnri_vec_free(&row->options);
        cnri_free(row->owner);
        cnri_free(row->name);
        cnri_free(row->args);
        cnri_free(row->gives);
        cnri_free(row->help);
    }
    for (int32_t i = 0; i < r->parts.n; i++) {
        cnri_free(r->parts.at[i].name);
        cnri_free(r->parts.at[i].help);
    }
    cnri_vec_free(&r->rows);
    cnri_vec_free(&r->parts);
    cnri_free(r->scripts);
}
