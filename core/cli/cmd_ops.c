/* cnnrun ops: operators with their ports, attributes and help, straight from their descriptors. */
#include "core/cli/cli.h"

static const cnri_syntax syntax = {
    .command = "ops",
    .operands = "[NAME]",
    .summary = "Lists the operators that plugins brought; with a NAME, all about one of them.",
    .max_operands = 1};

static const char *const type_names[] = {
    [CNR_ATTR_INT] = "int",       [CNR_ATTR_FLOAT] = "float", [CNR_ATTR_BOOL] = "true or false",
    [CNR_ATTR_ENUM] = "choice",   [CNR_ATTR_STRING] = "text", [CNR_ATTR_INTS] = "ints",
    [CNR_ATTR_FLOATS] = "floats", [CNR_ATTR_DTYPE] = "data type"};

static const struct { uint32_t flag; const char *text; } op_flags[] = {
    {CNR_OP_ELEMENTWISE, "element-wise"},
    {CNR_OP_EPILOGUE, "fusible"},
    {CNR_OP_PASS, "no-op at inference"},
    {CNR_OP_PURE, "foldable"},
    {CNR_OP_LOSS, "a loss"},
    {CNR_OP_RANGES, "in ranges"}};

static const char *const *aliases_of(const cnr_op *op) {
    static const char *const none[] = {NULL};
    return CNRI_HAS(op, aliases) ? op->aliases : none;
}

static const char *text_or(const char *text, const char *other) {
    return text && *text ? text : other;
}

static const cnr_attr_spec *attr_at(const cnr_op *op, int32_t i, cnr_attr_spec *room) {
    return cnri_spec_at(op->attrs, op->attr_spec_size, i, room);
}

/* Row i of a list of ports whose rows may be shorter than ours. */
static cnr_port port_at(const cnr_op *op, const cnr_port *rows, int32_t i) {
    cnr_port port = {0};
    const size_t row = op->port_size;
    memcpy(&port, (const char *)rows + row * (size_t)i, row < sizeof port ? row : sizeof port);
    return port;
}

/* The value that an omitted attribute has, as text; "" when it has none. */
static void add_default(const cnr_attr_spec *a, cnri_text *out) {
    cnr_attr value = {.type = a->type, .i = a->default_i, .f = a->default_f, .s = a->default_s};
    if (a->flags & CNR_ATTR_REQUIRED) return;
    if (a->type == CNR_ATTR_DTYPE && a->default_i == CNR_DTYPE_NONE) return;
    if (a->flags & (CNR_ATTR_SPATIAL | CNR_ATTR_SPATIAL_PAIRS))
        cnri_text_add(out, "%lld", (long long)a->fill);
    else cnri_attr_print(&value, out);
}

/* ---- for people ---- */

static void print_ports(const cnr_op *op, const char *title, const cnr_port *rows, int32_t n) {
    if (n) cnri_say(stdout, "\n%s:\n", title);
    for (int32_t i = 0; i < n; i++) {
        const cnr_port p = port_at(op, rows, i);
        char count[32] = "";
        if (p.flags & CNR_PORT_VARIADIC)
            snprintf(count, sizeof count, "%d or more; ", (int)p.min);
        cnri_say(stdout, "  %-18s%s%s%s%s%s\n", text_or(p.name, "-"), count,
                 p.flags & CNR_PORT_OPTIONAL ? "optional; " : "",
                 p.flags & CNR_PORT_PARAMETER ? "a weight, made when omitted; " : "",
                 p.flags & CNR_PORT_CONST ? "known before anything runs; " : "",
                 text_or(p.help, ""));
    }
}

static void print_bounds(const cnr_attr_spec *a) {
    char low[40], high[40];
    if (!(a->flags & CNR_ATTR_BOUNDED)) return;
    cnri_print_double(low, sizeof low, a->min);
    cnri_print_double(high, sizeof high, a->max);
    if (a->max >= 9e15) cnri_say(stdout, ", >= %s", low);
    else if (a->min <= -9e15) cnri_say(stdout, ", <= %s", high);
    else cnri_say(stdout, ", %s to %s", low, high);
}

static void print_attr(const cnr_attr_spec *a) {
    cnri_text text = {0};
    cnri_say(stdout, "  %-18s", a->name);
    if (a->flags & CNR_ATTR_SPATIAL)
        cnri_say(stdout, "%s, one a spatial axis", type_names[a->type]);
    else if (a->flags & CNR_ATTR_SPATIAL_PAIRS)
        cnri_say(stdout, "%s, begins then ends of the spatial axes", type_names[a->type]);
    else if (a->type == CNR_ATTR_ENUM)
        for (int32_t i = 0; a->choices[i]; i++)
            cnri_say(stdout, "%s%s", i ? " | " : "", a->choices[i]);
    else cnri_say(stdout, "%s", type_names[a->type]);
    print_bounds(a);
    add_default(a, &text);
    if (a->flags & CNR_ATTR_REQUIRED) cnri_say(stdout, "; required");
    else if (text.n) cnri_say(stdout, "; default %s", text.at);
    cnri_say(stdout, "\n");
    cnri_text_free(&text);
    if (a->alias) cnri_say(stdout, "  %-18salso called %s\n", "", a->alias);
    if (a->help) cnri_say(stdout, "  %-18s%s\n", "", a->help);
}

/* Whether a kernel of any operator takes this one is known for a node of a net only. */
static bool is_general(const cnr_kernel *k) { return strcmp(k->op, CNR_ANY_OP) == 0; }

static void print_kernels(const cnr_op *op) {
    const cnr_kernel *const *kernels;
    const int32_t n = cnri_kernels_for(op, &kernels);
    int32_t general = 0;
    cnri_say(stdout, "\nkernels:\n  %-25s any device with host memory\n", "(reference)");
    for (int32_t i = 0; i < n; i++) {
        if (is_general(kernels[i])) general++;
        else cnri_say(stdout, "  %-25s %s\n", kernels[i]->name, kernels[i]->device);
    }
    if (general)
        cnri_say(stdout, "\nkernels of any operator, where a node fits (see cnnrun show):\n");
    for (int32_t i = 0; i < n; i++)
        if (is_general(kernels[i]))
            cnri_say(stdout, "  %-25s %s\n", kernels[i]->name, kernels[i]->device);
}

static void print_op(const cnr_op *op) {
    const cnri_plugin *owner = cnri_owner(op);
    const char *const *aliases = aliases_of(op);
    cnri_say(stdout, "%s: %s\n", op->name, text_or(op->summary, "-"));
    cnri_say(stdout, "  version %u of plugin %s", (unsigned)op->version, owner ? owner->name : "?");
    for (size_t i = 0; i < CNRI_COUNT(op_flags); i++)
        if (op->flags & op_flags[i].flag) cnri_say(stdout, "; %s", op_flags[i].text);
    cnri_say(stdout, "%s\n", CNRI_HAS(op, gradient) ? "; has a gradient" : "");
    for (int32_t i = 0; aliases[i]; i++)
        cnri_say(stdout, "%s%s", i ? ", " : "  also called ", aliases[i]);
    if (aliases[0]) cnri_say(stdout, "\n");
    print_ports(op, "inputs", op->inputs, op->n_inputs);
    print_ports(op, "outputs", op->outputs, op->n_outputs);
    if (op->n_attrs) cnri_say(stdout, "\nattributes:\n");
    for (int32_t i = 0; i < op->n_attrs; i++) {
        cnr_attr_spec room;
        print_attr(attr_at(op, i, &room));
    }
    print_kernels(op);
}

/* ---- for programs ---- */

static void json_ports(cnri_json *j, const char *key, const cnr_op *op, const cnr_port *rows,
                       int32_t n) {
    cnri_json_list(j, key);
    for (int32_t i = 0; i < n; i++) {
        const cnr_port p = port_at(op, rows, i);
        cnri_json_object(j, NULL);
        cnri_json_text(j, "name", p.name);
        cnri_json_bool(j, "optional", p.flags & CNR_PORT_OPTIONAL);
        cnri_json_bool(j, "variadic", p.flags & CNR_PORT_VARIADIC);
        cnri_json_bool(j, "parameter", p.flags & CNR_PORT_PARAMETER);
        cnri_json_bool(j, "const", p.flags & CNR_PORT_CONST);
        cnri_json_int(j, "least", p.min);
        cnri_json_text(j, "help", p.help);
        cnri_json_end(j);
    }
    cnri_json_end(j);
}

static void json_attr(cnri_json *j, const cnr_attr_spec *a) {
    cnri_text text = {0};
    const bool bounded = a->flags & CNR_ATTR_BOUNDED;
    cnri_json_object(j, NULL);
    cnri_json_text(j, "name", a->name);
    cnri_json_text(j, "alias", a->alias);
    cnri_json_text(j, "type", type_names[a->type]);
    cnri_json_bool(j, "required", a->flags & CNR_ATTR_REQUIRED);
    cnri_json_int(j, "per_axis", a->flags & CNR_ATTR_SPATIAL_PAIRS ? 2
                                 : a->flags & CNR_ATTR_SPATIAL ? 1 : 0);
    add_default(a, &text);
    cnri_json_text(j, "default", a->flags & CNR_ATTR_REQUIRED ? NULL : text_or(text.at, ""));
    cnri_text_free(&text);
    if (bounded) cnri_json_real(j, "lowest", a->min);
    if (bounded) cnri_json_real(j, "highest", a->max);
    if (a->type == CNR_ATTR_ENUM) {
        cnri_json_list(j, "choices");
        for (int32_t i = 0; a->choices[i]; i++) cnri_json_text(j, NULL, a->choices[i]);
        cnri_json_end(j);
    }
    cnri_json_text(j, "help", a->help);
    cnri_json_end(j);
}

static void json_lists(cnri_json *j, const cnr_op *op) {
    const cnr_kernel *const *kernels;
    const int32_t n = cnri_kernels_for(op, &kernels);
    const char *const *aliases = aliases_of(op);
    cnri_json_list(j, "aliases");
    for (int32_t i = 0; aliases[i]; i++) cnri_json_text(j, NULL, aliases[i]);
    cnri_json_end(j);
    cnri_json_list(j, "traits");
    for (size_t i = 0; i < CNRI_COUNT(op_flags); i++)
        if (op->flags & op_flags[i].flag) cnri_json_text(j, NULL, op_flags[i].text);
    cnri_json_end(j);
    cnri_json_list(j, "kernels");
    for (int32_t i = 0; i < n; i++) {
        if (is_general(kernels[i])) continue;
        cnri_json_object(j, NULL);
        cnri_json_text(j, "name", kernels[i]->name);
        cnri_json_text(j, "device", kernels[i]->device);
        cnri_json_end(j);
    }
    cnri_json_end(j);
}

static cnr_status print_json(const cnr_op *op, cnr_error *err) {
    const cnri_plugin *owner = cnri_owner(op);
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_text(&j, "name", op->name);
    cnri_json_int(&j, "version", op->version);
    cnri_json_text(&j, "plugin", owner ? owner->name : NULL);
    cnri_json_text(&j, "summary", op->summary);
    cnri_json_bool(&j, "gradient", CNRI_HAS(op, gradient));
    json_lists(&j, op);
    json_ports(&j, "inputs", op, op->inputs, op->n_inputs);
    json_ports(&j, "outputs", op, op->outputs, op->n_outputs);
    cnri_json_list(&j, "attributes");
    for (int32_t i = 0; i < op->n_attrs; i++) {
        cnr_attr_spec room;
        json_attr(&j, attr_at(op, i, &room));
    }
    cnri_json_end(&j);
    return cnri_json_print(&j, err);
}

/* ---- the command ---- */

static cnr_status show_all(bool json, cnr_error *err) {
    const int32_t n = cnri_count(CNR_KIND_OPERATOR);
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < n && status == CNR_OK; i++) {
        const cnr_op *op = cnri_at(CNR_KIND_OPERATOR, i);
        if (json) status = print_json(op, err);
        else cnri_say(stdout, "%-28s%s\n", op->name, text_or(op->summary, ""));
    }
    if (n == 0) cnri_say(stderr, "cnnrun: no plugin has brought any operators\n");
    return status;
}

/* E_NOT_FOUND with the nearest name or alias. */
static cnr_status unknown(const char *name, cnr_error *err) {
    CNRI_VEC(const char *) names = {0};
    for (int32_t i = 0; i < cnri_count(CNR_KIND_OPERATOR); i++) {
        const cnr_op *op = cnri_at(CNR_KIND_OPERATOR, i);
        const char **slot = cnri_push(&names);
        if (slot) *slot = op->name;
        for (const char *const *alias = aliases_of(op); *alias; alias++)
            if ((slot = cnri_push(&names)) != NULL) *slot = *alias;
    }
    const char *near = cnri_nearest(name, names.at, names.n);
    cnri_vec_free(&names);
    if (near)
        return cnri_fail(err, CNR_E_NOT_FOUND, name, "no such operator; did you mean %s?", near);
    return cnri_fail(err, CNR_E_NOT_FOUND, name, "no such operator; cnnrun ops lists all");
}

static cnr_status show(const char *name, bool json, cnr_error *err) {
    const cnr_op *op = cnri_op(name);
    if (!op) return unknown(name, err);
    if (json) return print_json(op, err);
    print_op(op);
    return CNR_OK;
}

int cnri_cmd_ops(int argc, char **argv) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt = NULL;
    cnri_args args;
    int code;
    if (!cnri_args_parse(&args, &syntax, argc, argv, NULL, &code)) return code;
    cnr_status status = cnri_args_open(&args, &rt, &err);
    if (status == CNR_OK) {
        const bool json = args.common.json;
        status = args.operands.n ? show(args.operands.at[0], json, &err) : show_all(json, &err);
        cnr_close(rt);
    }
    code = status == CNR_OK ? 0 : cnri_complain(&args, &err);
    cnri_args_free(&args);
    return code;
}
