/* cnnrun ops: lists operators with their ports, attributes and help, from their descriptors. */
#include "cli/cli.h"
#include "people/people.h"
#include <math.h>

static const char *const type_names[] =
    {[CNR_ATTR_INT] = "int",       [CNR_ATTR_FLOAT] = "float",    [CNR_ATTR_BOOL] = "true or false",
     [CNR_ATTR_ENUM] = "choice",   [CNR_ATTR_STRING] = "text",    [CNR_ATTR_INTS] = "ints",
     [CNR_ATTR_FLOATS] = "floats", [CNR_ATTR_DTYPE] = "data type"};

static const struct {
    uint32_t flag;
    const char *text;
} op_flags[] = {{CNR_OP_ELEMENTWISE, "element-wise"},
                {CNR_OP_EPILOGUE, "fusible"},
                {CNR_OP_PASS, "no-op at inference"},
                {CNR_OP_PURE, "foldable"},
                {CNR_OP_LOSS, "a loss"},
                {CNR_OP_RANGES, "in ranges"}};

typedef CNRI_VEC(const char *) names;

/* Adds a name; one without memory is left out. */
static void add_name(names *list, const char *name) {
    const char **slot = cnri_push(list);
    if (slot) *slot = name;
}

/* Where results go: into a JSON object, or to people; err: the first error of printing. */
typedef struct telling {
    cnri_json *json; /* JSON object to add to; NULL: lines for people */
    cnr_error *err;
} telling;

/* Prints a list of names. */
static void tell_list(telling *t, const char *key, const char *title, const names *list) {
    if (t->json) cnri_json_list(t->json, key);
    for (int32_t i = 0; i < list->n; i++) {
        if (t->json) cnri_json_text(t->json, NULL, list->at[i]);
        else cnri_say(stdout, "%s%s", i ? ", " : title, list->at[i]);
    }
    if (t->json) cnri_json_end(t->json);
    else if (list->n) cnri_say(stdout, "\n");
}

/* Begins a list of n rows: a JSON list, or a title if there are any. */
static void begin_rows(telling *t, const char *key, int32_t n) {
    if (t->json) cnri_json_list(t->json, key);
    else if (n) cnri_say(stdout, "\n%s:\n", key);
}

/* Prints a row by its record, as a JSON object that end_rows ends, or a line. */
static void tell_row(telling *t, const cnri_record *record, const void *of) {
    if (t->json) cnri_json_object(t->json, NULL);
    if (t->json) cnri_json_fields(t->json, record, of);
    else (void)cnri_tell_line(record, of, t->err);
}

/* Ends a row or list of JSON; for people nothing. */
static void end_rows(telling *t) {
    if (t->json) cnri_json_end(t->json);
}

/* ---- ports ---- */

/* Result: an input or output. */
typedef struct port_row {
    const char *name, *help;
    bool optional, variadic, parameter, constant;
    int32_t minimum;
} port_row;
static const cnri_field port_fields[] = {CNRI_KEY(port_row, name),
                                         CNRI_KEY(port_row, optional),
                                         CNRI_KEY(port_row, variadic),
                                         CNRI_KEY(port_row, parameter),
                                         CNRI_FIELD(port_row, "const", constant),
                                         CNRI_KEY(port_row, minimum),
                                         CNRI_KEY(port_row, help)};
static const cnri_record port_record =
    CNRI_RECORD(port_fields, "  {name:-18}{variadic?{minimum} or more; }{optional?optional; }"
                             "{parameter?a weight, made when omitted; }{const?known before "
                             "anything runs; }{help?{help}}\n");

/* Prints inputs or outputs. */
static void tell_ports(telling *t, const char *key, const cnr_op *op, const cnr_port *rows,
                       int32_t n) {
    begin_rows(t, key, n);
    for (int32_t i = 0; i < n; i++) {
        const cnr_port p = cnri_port_at(op, rows, i);
        const port_row row = {p.name,
                              p.help,
                              p.flags & CNR_PORT_OPTIONAL,
                              p.flags & CNR_PORT_VARIADIC,
                              p.flags & CNR_PORT_PARAMETER,
                              p.flags & CNR_PORT_CONST,
                              p.min};
        tell_row(t, &port_record, &row);
        end_rows(t);
    }
    end_rows(t);
}

/* ---- attributes ---- */

/* Result: an attribute. */
typedef struct attr_row {
    const char *name, *alias, *type, *default_text, *help, *wanted;
    bool required;
    int32_t per_axis;
    double lowest, highest;
} attr_row;
static const cnri_field attr_fields[] = {CNRI_KEY(attr_row, name),
                                         CNRI_KEY(attr_row, alias),
                                         CNRI_KEY(attr_row, type),
                                         CNRI_KEY(attr_row, required),
                                         CNRI_KEY(attr_row, per_axis),
                                         CNRI_FIELD(attr_row, "default", default_text),
                                         CNRI_MAYBE(attr_row, "lowest", lowest),
                                         CNRI_MAYBE(attr_row, "highest", highest),
                                         CNRI_KEY(attr_row, help),
                                         CNRI_ASIDE(attr_row, "wanted", wanted)};
static const cnri_record attr_record =
    CNRI_RECORD(attr_fields,
                "  {name:-18}{wanted}{required?; required|{default?; default {default}}}\n"
                "{alias?                    also called {alias}\n}{help?                    "
                "{help}\n}");

/* Appends type and bounds of an attribute, for people. */
static void add_wanted(const cnr_attr_spec *a, cnri_text *out) {
    const bool choice = a->type == CNR_ATTR_ENUM, pairs = a->flags & CNR_ATTR_SPATIAL_PAIRS;
    for (int32_t i = 0; choice && a->choices[i]; i++)
        cnri_text_add(out, "%s%s", i ? " | " : "", a->choices[i]);
    if (!choice) cnri_text_add(out, "%s", type_names[a->type]);
    if (a->flags & CNR_ATTR_SPATIAL) cnri_text_add(out, ", one a spatial axis");
    else if (pairs) cnri_text_add(out, ", begins then ends of the spatial axes");
    cnri_attr_print_bounds(a, out);
}

/* Prints an attribute. */
static void tell_attr(telling *t, const cnr_attr_spec *a) {
    cnri_text default_text = {0}, wanted = {0};
    names choices = {0};
    const bool bounded = a->flags & CNR_ATTR_BOUNDED, required = a->flags & CNR_ATTR_REQUIRED;
    cnri_attr_print_default(a, &default_text);
    add_wanted(a, &wanted);
    const attr_row row = {.name = a->name,
                          .alias = a->alias,
                          .type = type_names[a->type],
                          .help = a->help,
                          .default_text = required          ? NULL
                                          : default_text.at ? default_text.at
                                                            : "",
                          .wanted = wanted.at,
                          .required = required,
                          .lowest = bounded ? a->min : (double)NAN,
                          .highest = bounded ? a->max : (double)NAN,
                          .per_axis = a->flags & CNR_ATTR_SPATIAL_PAIRS ? 2
                                      : a->flags & CNR_ATTR_SPATIAL     ? 1
                                                                        : 0};
    tell_row(t, &attr_record, &row);
    for (int32_t i = 0; a->type == CNR_ATTR_ENUM && a->choices[i]; i++)
        add_name(&choices, a->choices[i]);
    if (t->json && choices.n) tell_list(t, "choices", "", &choices);
    end_rows(t);
    cnri_vec_free(&choices);
    cnri_text_free(&default_text);
    cnri_text_free(&wanted);
}

/* ---- kernels ---- */

static const cnri_field kernel_fields[] = {CNRI_KEY(cnr_kernel, name),
                                           CNRI_KEY(cnr_kernel, device)};
static const cnri_record kernel_record = CNRI_RECORD(kernel_fields, "  {name:-25} {device}\n");

/* Prints the kernels of an operator; general: those for any operator. Whether these accept it is
 * known only for a node of a net. */
static void tell_kernels(telling *t, const cnr_op *op, bool general) {
    const cnr_kernel *const *kernels;
    const int32_t n = cnri_kernels_for(op, &kernels);
    for (int32_t i = 0; i < n; i++) {
        if ((strcmp(kernels[i]->op, CNR_ANY_OP) == 0) != general) continue;
        tell_row(t, &kernel_record, kernels[i]);
        end_rows(t);
    }
}

/* Prints the operator's kernels and those for any operator. */
static void tell_all_kernels(telling *t, const cnr_op *op) {
    begin_rows(t, "kernels", 1);
    if (!t->json) cnri_say(stdout, "  %-25s any device with host memory\n", "(reference)");
    tell_kernels(t, op, false);
    end_rows(t);
    if (t->json) return;
    cnri_say(stdout, "\nkernels of any operator, where a node fits (see cnnrun show):\n");
    tell_kernels(t, op, true);
}

/* ---- operators ---- */

/* Result: an operator. */
typedef struct op_row {
    const char *name, *plugin, *summary;
    uint32_t version;
    bool gradient;
} op_row;
static const cnri_field op_fields[] = {CNRI_KEY(op_row, name), CNRI_KEY(op_row, version),
                                       CNRI_KEY(op_row, plugin), CNRI_KEY(op_row, summary),
                                       CNRI_KEY(op_row, gradient)};
static const cnri_record op_record =
    CNRI_RECORD(op_fields, "{name}: {summary}\n  version {version} of plugin {plugin}{gradient?; "
                           "has a gradient}\n");
static const cnri_record line_record = CNRI_RECORD(op_fields, "{name:-30}{summary}\n");

static const char *const *aliases_of(const cnr_op *op) {
    static const char *const none[] = {NULL};
    return CNRI_HAS(op, aliases) ? op->aliases : none;
}

/* Prints aliases and traits. */
static void tell_names(telling *t, const cnr_op *op) {
    names aliases = {0}, traits = {0};
    for (const char *const *a = aliases_of(op); *a; a++) add_name(&aliases, *a);
    for (size_t i = 0; i < CNRI_COUNT(op_flags); i++)
        if (op->flags & op_flags[i].flag) add_name(&traits, op_flags[i].text);
    tell_list(t, "aliases", "  also called ", &aliases);
    tell_list(t, "traits", "  ", &traits);
    cnri_vec_free(&aliases);
    cnri_vec_free(&traits);
}

/* Prints all of an operator but its first line. */
static void tell_parts(telling *t, const cnr_op *op) {
    tell_names(t, op);
    if (t->json) tell_all_kernels(t, op);
    tell_ports(t, "inputs", op, op->inputs, op->n_inputs);
    tell_ports(t, "outputs", op, op->outputs, op->n_outputs);
    begin_rows(t, "attributes", op->n_attrs);
    for (int32_t i = 0; i < op->n_attrs; i++) {
        cnr_attr_spec row_buffer;
        tell_attr(t, cnri_spec_at(op->attrs, op->attr_spec_size, i, &row_buffer));
    }
    end_rows(t);
    if (!t->json) tell_all_kernels(t, op);
}

/* Prints an operator; whole: with inputs, attributes and kernels. */
static cnr_status tell_op(const cnri_call *call, const cnr_op *op, bool whole, cnr_error *err) {
    const cnri_plugin *owner = cnri_owner(op);
    const op_row row = {op->name, owner ? owner->name : NULL, op->summary, op->version,
                        CNRI_HAS(op, gradient)};
    cnri_json j;
    telling t = {call->common.json ? &j : NULL, err};
    if (t.json) cnri_json_begin(&j);
    if (t.json) cnri_json_fields(&j, &op_record, &row);
    else (void)cnri_tell_line(whole ? &op_record : &line_record, &row, err);
    if (t.json || whole) tell_parts(&t, op);
    return t.json ? cnri_json_print(&j, err) : (cnr_status)err->code;
}

/* ---- the command ---- */

/* Prints a line for each operator. */
static cnr_status show_all(const cnri_call *call, cnr_error *err) {
    const int32_t n = cnri_descriptor_count(CNR_KIND_OPERATOR);
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < n && !status; i++)
        status = tell_op(call, cnri_descriptor_at(CNR_KIND_OPERATOR, i), false, err);
    if (n == 0) cnri_say(stderr, "cnnrun: no plugin has brought any operators\n");
    return status;
}

/* Fails with CNR_E_NOT_FOUND and the nearest name or alias. */
static cnr_status unknown(const char *name, cnr_error *err) {
    names all = {0};
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_OPERATOR); i++) {
        const cnr_op *op = cnri_descriptor_at(CNR_KIND_OPERATOR, i);
        add_name(&all, op->name);
        for (const char *const *alias = aliases_of(op); *alias; alias++) add_name(&all, *alias);
    }
    const char *near = cnri_nearest_word(name, all.at, all.n);
    cnri_vec_free(&all);
    return cnri_fail(err, CNR_E_NOT_FOUND, name, "no such operator; %s%s%s",
                     near ? "did you mean " : "cnnrun ops lists all", near ? near : "",
                     near ? "?" : "");
}

/* The command ops. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    const char *name = call->operands.n ? call->operands.at[0] : NULL;
    const cnr_op *op = name ? cnri_op_find(name) : NULL;
    (void)values;
    if (!name) return show_all(call, err);
    return op ? tell_op(call, op, true, err) : unknown(name, err);
}

const cnri_command cnri_cmd_ops = {
    .name = "ops",
    .example = "cnnrun ops conv2d",
    .operands = "[NAME]",
    .summary =
        "Lists the operators of all plugins; with NAME, the inputs, outputs and attributes of one.",
    .max_operands = 1,
    .opens = cnri_call_open,
    .run = run,
};
