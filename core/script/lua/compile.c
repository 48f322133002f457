/* Compiles a net as a script describes it to a graph. Mistakes become problems of the graph, at
 * the line of their layer. */
#include "lua/layer.h"
#include "lua/tensor.h"
#include <string.h>

enum { MAX_LIST = 1 << 20 };

/* One run of the compiler. Everything that it allocates is a Lua value, so errors leak nothing.
 * `made` maps node * 1024 + output to the graph's value, `shared` maps a layer to the list of
 * its weights. */
typedef struct compiler {
    lua_State *L;
    cnr_graph *g;
    /* stack indices of the tables: values made, shared values, counts by name */
    int made, shared, counts;
} compiler;

/* The node that is being compiled: stack indices, and texts that its private table holds. */
typedef struct item {
    int node, args, inputs;
    const char *where, *path, *prefix, *word;
    const cnr_op *op;
} item;

/* Text in entry `at` of a node's table, which keeps it; "": there is none. */
static const char *text_at(lua_State *L, int table, int at) {
    lua_rawgeti(L, table, at);
    const char *text = lua_tostring(L, -1);
    lua_pop(L, 1); /* the table keeps it */
    return text ? text : "";
}

/* ---- names ---- */

/* Name that a script gave a layer; NULL: none. */
static const char *own_name(lua_State *L, int args) {
    lua_rawgeti(L, args, 1);
    if (lua_type(L, -1) != LUA_TSTRING) {
        lua_pop(L, 1);
        cnri_lua_get(L, args, "name");
    }
    const char *name = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
    lua_pop(L, 1);
    return name;
}

/* Returns the next number, from 1, for layers named `stem`, and keeps it. */
static int64_t count_up(compiler *c, const char *stem) {
    lua_getfield(c->L, c->counts, stem);
    const int64_t n = lua_tointeger(c->L, -1) + 1;
    lua_pushinteger(c->L, n);
    lua_setfield(c->L, c->counts, stem);
    lua_pop(c->L, 1);
    return n;
}

/* Pushes the name of a node: the script's, behind the names of the lists around it. A layer that
 * is used again gets a number. Without a name it pushes nil, and the graph makes one. */
static const char *push_name(compiler *c, const item *entry, bool again) {
    lua_State *L = c->L;
    const char *own = own_name(L, entry->args);
    if (own) {
        const char *name = lua_pushfstring(L, "%s%s", entry->prefix, own);
        const int64_t n = again ? count_up(c, name) + 1 : 1;
        return n > 1 ? lua_pushfstring(L, "%s_%I", name, (LUAI_UACINT)n) : name;
    }
    if (!*entry->prefix) {
        lua_pushnil(L);
        return NULL;
    }
    const char *stem =
        lua_pushfstring(L, "%s%s", entry->prefix, entry->op ? entry->op->name : entry->word);
    return lua_pushfstring(L, "%s_%I", stem, (LUAI_UACINT)count_up(c, stem));
}

/* ---- problems ---- */

/* Replaces the graph's name for a node in problems by its place in the script's lists: "pool1
 * (max_pool): stride: want" becomes "body[3].stride: want". */
static void localise(compiler *c, const item *entry, int32_t from) {
    for (int32_t i = from; i < c->g->problems.n; i++) {
        cnri_problem *p = &c->g->problems.at[i];
        const char *rest = p->text ? strstr(p->text, "): ") : NULL;
        if (!rest) continue;
        rest += 3;
        const size_t word = strcspn(rest, ": ");
        const char *own = own_name(c->L, entry->args);
        char *text = cnri_format("%s%s%s%s%s%s", entry->path, rest[word] == ':' ? "." : ": ", rest,
                                 own ? " (" : "", own ? own : "", own ? ")" : "");
        if (!text) continue;
        cnri_free(p->text);
        p->text = text;
    }
}

/* Notes a problem of one key of a layer. */
static void complain(compiler *c, const item *entry, const char *key, const char *want) {
    cnri_graph_problem(c->g, entry->where, "%s.%s: %s", entry->path, key, want);
}

/* ---- attributes ---- */

/* Reads the list on top as integers, or as floats if one is not whole. The numbers are in a
 * userdata pushed above it. False: it is no list of numbers. */
static bool read_list(lua_State *L, cnr_attr *a) {
    const int list = lua_gettop(L);
    const lua_Unsigned n = lua_rawlen(L, list);
    bool whole = true;
    if (n > MAX_LIST) return false;
    for (lua_Unsigned i = 1; i <= n; i++) {
        const bool number = lua_rawgeti(L, list, (lua_Integer)i) == LUA_TNUMBER;
        whole = whole && lua_isinteger(L, -1);
        lua_pop(L, 1);
        if (!number) return false;
    }
    int64_t *ints = lua_newuserdatauv(L, (size_t)(n ? n : 1) * sizeof *ints, 0);
    double *floats = (double *)ints;
    for (lua_Unsigned i = 0; i < n; i++) {
        lua_rawgeti(L, list, (lua_Integer)i + 1);
        if (whole) ints[i] = lua_tointeger(L, -1);
        else floats[i] = lua_tonumber(L, -1);
        lua_pop(L, 1);
    }
    a->type = whole ? CNR_ATTR_INTS : CNR_ATTR_FLOATS;
    a->n = (int64_t)n;
    if (whole) a->ints = ints;
    else a->floats = floats;
    return true;
}

/* Reads the value on top as attribute `name`. Data that it refers to stays on the stack above.
 * False: it failed. */
static bool read_attr(lua_State *L, const char *name, cnr_attr *a) {
    *a = (cnr_attr){.name = name, .set = 1};
    switch (lua_type(L, -1)) {
    case LUA_TBOOLEAN:
        a->type = CNR_ATTR_BOOL;
        a->i = lua_toboolean(L, -1);
        return true;
    case LUA_TNUMBER:
        a->type = lua_isinteger(L, -1) ? CNR_ATTR_INT : CNR_ATTR_FLOAT;
        if (a->type == CNR_ATTR_INT) a->i = lua_tointeger(L, -1);
        else a->f = lua_tonumber(L, -1);
        return true;
    case LUA_TSTRING:
        a->type = CNR_ATTR_STRING;
        a->s = lua_tostring(L, -1);
        return true;
    case LUA_TTABLE: return read_list(L, a);
    default: return false;
    }
}

/* Index of an operator's input by name; -1: none. */
static int32_t port_index(const cnr_op *op, const char *name) {
    for (int32_t i = 0; op && i < op->n_inputs; i++) {
        const cnr_port *port = (const void *)((const char *)op->inputs + (size_t)i * op->port_size);
        if (strcmp(port->name, name) == 0) return i;
    }
    return -1;
}

/* True if the operator has an attribute of this name or alias; op NULL: false. */
static bool is_attr(const cnr_op *op, const char *name) {
    cnr_attr_spec row_buffer;
    for (int32_t i = 0; op && i < op->n_attrs; i++) {
        const cnr_attr_spec *row = cnri_spec_at(op->attrs, op->attr_spec_size, i, &row_buffer);
        if (strcmp(row->name, name) == 0 || (row->alias && strcmp(row->alias, name) == 0))
            return true;
    }
    return false;
}

/* Pushes the keys of the argument table that are words, sorted, because Lua's own order changes
 * from run to run, and with it the order of messages. Returns their number. */
static int push_keys(lua_State *L, int args) {
    lua_newtable(L);
    const int keys = lua_gettop(L);
    int n = 0;
    lua_pushnil(L);
    while (lua_next(L, args)) {
        lua_pop(L, 1);
        if (lua_type(L, -1) != LUA_TSTRING) continue;
        int at = n++;
        for (; at > 0; at--) { /* insertion: there are few */
            lua_rawgeti(L, keys, at);
            if (strcmp(lua_tostring(L, -1), lua_tostring(L, -2)) <= 0) {
                lua_pop(L, 1);
                break;
            }
            lua_rawseti(L, keys, at + 1);
        }
        lua_pushvalue(L, -1);
        lua_rawseti(L, keys, at + 1);
        if (n > 256) luaL_error(L, "more than 256 arguments for one layer");
    }
    return n;
}

/* ---- values ---- */

/* Notes the graph's value of a node's output. */
static void set_made(compiler *c, int32_t node, int32_t output, cnr_value v) {
    lua_pushinteger(c->L, v);
    lua_rawseti(c->L, c->made, (lua_Integer)node * 1024 + output);
}

/* Adds a constant from the number, list or tensor on top; -1: see the graph's problems. `whole`:
 * integers stay integers. */
static cnr_value add_constant(compiler *c, const item *entry, bool whole) {
    lua_State *L = c->L;
    const int top = lua_gettop(L);
    cnr_tensor type = {.size = sizeof type};
    cnr_attr a = {0};
    if (luaL_testudata(L, top, CNRI_TENSOR_TYPE)) type = *cnri_lua_tensor_at(L, top);
    else if (!read_attr(L, "", &a)) {
        complain(c, entry, "inputs", "want values, numbers, lists of numbers or tensors");
        return -1;
    } else {
        const bool list = a.type == CNR_ATTR_INTS || a.type == CNR_ATTR_FLOATS;
        const int64_t n = list ? a.n : 1;
        const bool ints = a.type == CNR_ATTR_INTS || a.type == CNR_ATTR_INT;
        type = *cnri_lua_push_tensor(L, whole && ints ? CNR_i64 : CNR_f32, list ? 1 : 0, &n);
        for (int64_t i = 0; i < n; i++) {
            const double f = !list  ? (ints ? (double)a.i : a.f)
                             : ints ? (double)a.ints[i]
                                    : a.floats[i];
            if (type.dtype == CNR_i64) ((int64_t *)type.data)[i] = list ? a.ints[i] : a.i;
            else ((float *)type.data)[i] = (float)f;
        }
    }
    const char *name;
    do name = lua_pushfstring(L, "const_%I", (LUAI_UACINT)count_up(c, "const_"));
    while (cnri_graph_find(c->g, name) >= 0);
    const cnr_value v = cnri_graph_constant(c->g, name, &type);
    lua_settop(L, top);
    return v;
}

/* The graph's value for the operand on top; -1: an earlier mistake left none. */
static cnr_value operand(compiler *c, const item *entry, bool whole) {
    lua_State *L = c->L;
    const cnri_lua_value *v = luaL_testudata(L, -1, CNRI_VALUE_TYPE);
    if (!v) return add_constant(c, entry, whole);
    lua_rawgeti(L, c->made, (lua_Integer)v->node * 1024 + v->output);
    const cnr_value value = lua_isinteger(L, -1) ? (cnr_value)lua_tointeger(L, -1) : -1;
    lua_pop(L, 1);
    return value;
}

/* CNR_PORT_... flags of input i of an operator; further inputs than it has take those of the last,
 * variadic one. 0: it has none. */
static uint32_t port_flags(const cnr_op *op, int32_t i) {
    if (op->n_inputs == 0) return 0;
    if (i >= op->n_inputs) i = op->n_inputs - 1;
    const cnr_port *port = (const void *)((const char *)op->inputs + (size_t)i * op->port_size);
    return port->flags;
}

/* ---- one operator ---- */

/* Splits the words of the argument table into attributes and named inputs, at most `capacity` of
 * each; returns the number of attributes. */
static int32_t read_words(compiler *c, const item *entry, int keys, int n, cnr_attr *attrs,
                          const cnr_attr **pointers, cnr_value *inputs, int32_t *n_inputs,
                          int32_t capacity) {
    lua_State *L = c->L;
    int32_t n_attrs = 0;
    for (int i = 1; i <= n; i++) {
        luaL_checkstack(L, 8, "too many arguments");
        lua_rawgeti(L, keys, i);
        const char *key = lua_tostring(L, -1);
        const int32_t port = port_index(entry->op, key);
        const bool attr = is_attr(entry->op, key);
        lua_pushvalue(L, -1);
        lua_rawget(L, entry->args);
        if ((strcmp(key, "name") == 0 || strcmp(key, "place") == 0) && !attr) continue;
        if (port >= 0 && port < capacity && (!attr || luaL_testudata(L, -1, CNRI_VALUE_TYPE)) &&
            cnri_lua_is_operand(L, -1)) {
            if (inputs[port] >= 0) complain(c, entry, key, "this input is given twice");
            inputs[port] = operand(c, entry, port_flags(entry->op, port) & CNR_PORT_CONST);
            if (port >= *n_inputs) *n_inputs = port + 1;
        } else if (read_attr(L, key, &attrs[n_attrs])) {
            pointers[n_attrs] = &attrs[n_attrs];
            n_attrs++;
        } else complain(c, entry, key, "want a number, a text, true, false or a list of numbers");
    }
    return n_attrs;
}

/* Pushes the weights of the layer's first use, which a repeated layer shares; false: this is its
 * first use. */
static bool push_shared(compiler *c, const item *entry) {
    lua_rawgeti(c->L, entry->node, CNRI_AT_LAYER);
    if (lua_isnil(c->L, -1)) return false;
    lua_rawget(c->L, c->shared);
    return lua_istable(c->L, -1);
}

/* Remembers the weights of a layer that is used several times. */
static void keep_shared(compiler *c, const item *entry) {
    lua_State *L = c->L;
    if (c->g->nodes.n == 0) return;
    const cnri_node *node = c->g->nodes.at[c->g->nodes.n - 1];
    lua_rawgeti(L, entry->node, CNRI_AT_LAYER);
    if (lua_isnil(L, -1)) return;
    lua_newtable(L);
    for (int32_t i = 0; i < node->view.n_inputs; i++) {
        const bool own = port_flags(entry->op, i) & CNR_PORT_PARAMETER;
        lua_pushinteger(L, own ? node->in[i] : -1);
        lua_rawseti(L, -2, i + 1);
    }
    lua_rawset(L, c->shared);
}

/* Places the layer that was compiled last, if the script says where. */
static void place_layer(compiler *c, const item *entry) {
    const cnri_node *node = c->g->nodes.n > 0 ? c->g->nodes.at[c->g->nodes.n - 1] : NULL;
    if (!node || !node->name || is_attr(entry->op, "place")) return;
    lua_pushliteral(c->L, "place");
    const bool given = lua_rawget(c->L, entry->args) != LUA_TNIL;
    const char *want = given ? cnri_lua_set_place(c->L, c->g, node->name) : NULL;
    if (want) complain(c, entry, "place", want);
    lua_pop(c->L, 1);
}

/* Adds an operator's node with its inputs, weights and attributes. */
static void compile_op(compiler *c, const item *entry, int32_t id) {
    lua_State *L = c->L;
    lua_rawgeti(L, entry->node, CNRI_AT_OUTPUTS);
    const int32_t n_out = (int32_t)lua_tointeger(L, -1);
    const int32_t given = (int32_t)lua_rawlen(L, entry->inputs);
    const int32_t capacity = (given > entry->op->n_inputs ? given : entry->op->n_inputs) + 1;
    cnr_value *inputs = lua_newuserdatauv(L, (size_t)capacity * sizeof *inputs, 0);
    cnr_value *outputs = lua_newuserdatauv(L, (size_t)n_out * sizeof *outputs, 0);
    for (int32_t i = 0; i < capacity; i++) inputs[i] = -1;
    for (int32_t i = 0; i < given; i++) {
        lua_rawgeti(L, entry->inputs, i + 1);
        inputs[i] = operand(c, entry, port_flags(entry->op, i) & CNR_PORT_CONST);
        lua_pop(L, 1);
    }
    int32_t n_inputs = given;
    const int n = push_keys(L, entry->args), keys = lua_gettop(L);
    cnr_attr *attrs = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *attrs, 0);
    const cnr_attr **pointers = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *pointers, 0);
    const int32_t n_attrs =
        read_words(c, entry, keys, n, attrs, pointers, inputs, &n_inputs, capacity);
    const bool again = push_shared(c, entry);
    const int shared = lua_gettop(L);
    for (int32_t i = 0; again && i < entry->op->n_inputs; i++) {
        lua_rawgeti(L, shared, i + 1);
        if (inputs[i] < 0) inputs[i] = (cnr_value)luaL_optinteger(L, -1, -1);
        if (inputs[i] >= 0 && i >= n_inputs) n_inputs = i + 1;
        lua_pop(L, 1);
    }
    luaL_checkstack(L, 8, "too many arguments");
    const char *name = push_name(c, entry, again);
    const int32_t before = c->g->problems.n;
    const cnr_status status =
        cnri_graph_node(c->g, entry->op->name, name, entry->where, inputs, n_inputs,
                        (const cnr_attr *const *)pointers, n_attrs, outputs, n_out);
    localise(c, entry, before);
    if (status == CNR_OK && !again) keep_shared(c, entry);
    if (status == CNR_OK) place_layer(c, entry);
    for (int32_t i = 0; i < n_out; i++) set_made(c, id, i, outputs[i]);
}

/* Adds node `id` of the script, an input, constant or weight, to the graph, and notes its value. */
static void compile_source(compiler *c, const item *entry, cnri_layer_kind kind, int32_t id) {
    const char *name = own_name(c->L, entry->args);
    cnr_value v = -1;
    if (kind == CNRI_LAYER_INPUT)
        v = cnri_lua_add_input(c->L, c->g, entry->args, name, entry->where);
    else if (kind == CNRI_LAYER_DATA)
        v = cnri_lua_add_data(c->L, c->g, entry->args, name, entry->where);
    else v = cnri_lua_add_weight(c->L, c->g, entry->args, name, entry->where);
    set_made(c, id, 0, v);
}

/* Adds one node of the script to the graph. */
static void compile_node(compiler *c, int32_t id) {
    lua_State *L = c->L;
    const int top = lua_gettop(L);
    item entry = {.node = top + 1, .args = top + 2, .inputs = top + 3};
    luaL_checkstack(L, 24, "too many values");
    cnri_lua_push_node(L, id);
    lua_rawgeti(L, entry.node, CNRI_AT_ARGS);
    lua_rawgeti(L, entry.node, CNRI_AT_INPUTS);
    lua_rawgeti(L, entry.node, CNRI_AT_OP);
    lua_rawgeti(L, entry.node, CNRI_AT_KIND);
    entry.op = lua_touserdata(L, -2);
    entry.where = text_at(L, entry.node, CNRI_AT_WHERE);
    entry.path = text_at(L, entry.node, CNRI_AT_PATH);
    entry.prefix = text_at(L, entry.node, CNRI_AT_PREFIX);
    entry.word = text_at(L, entry.node, CNRI_AT_WORD);
    const cnri_layer_kind kind = (cnri_layer_kind)lua_tointeger(L, -1);
    if (kind != CNRI_LAYER_OP) compile_source(c, &entry, kind, id);
    else if (entry.op) compile_op(c, &entry, id); /* else told when the script named it */
    lua_settop(L, top);
}

/* ---- the whole net ---- */

/* Pushes and returns zeroed memory, one byte for each node of the state and one more; the collector
 * owns it. */
static uint8_t *push_marks(lua_State *L) {
    const int32_t n = cnri_script_of(L)->n_nodes;
    return memset(lua_newuserdatauv(L, (size_t)n + 1, 0), 0, (size_t)n + 1);
}

/* Marks all nodes that the marked ones are computed from. Inputs are always older, so one pass
 * from the youngest node finds all. */
static void mark_needed(lua_State *L, uint8_t *needed) {
    static const int lists[] = {CNRI_AT_INPUTS, CNRI_AT_ARGS};
    for (int32_t id = cnri_script_of(L)->n_nodes; id > 0; id--) {
        if (!needed[id]) continue;
        cnri_lua_push_node(L, id);
        for (size_t k = 0; k < CNRI_COUNT(lists); k++) {
            lua_rawgeti(L, -1, lists[k]);
            lua_pushnil(L);
            while (lua_next(L, -2)) {
                const cnri_lua_value *v = luaL_testudata(L, -1, CNRI_VALUE_TYPE);
                if (v && v->node < id) needed[v->node] = 1;
                lua_pop(L, 1);
            }
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
    }
}

/* Pushes and returns marks, one byte a node: 1 for those that the net's inputs and outputs need. */
static uint8_t *push_needed(lua_State *L, int private) {
    uint8_t *needed = push_marks(L);
    for (int list = CNRI_NET_INPUTS; list <= CNRI_NET_OUTPUTS; list++) {
        lua_rawgeti(L, private, list);
        for (lua_Integer i = (lua_Integer)lua_rawlen(L, -1); i > 0; i--) {
            lua_rawgeti(L, -1, i);
            const cnri_lua_value *v = luaL_testudata(L, -1, CNRI_VALUE_TYPE);
            if (v) needed[v->node] = 1;
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
    }
    mark_needed(L, needed);
    return needed;
}

/* Turns the script's mistakes into problems of the graph. */
static void add_mistakes(lua_State *L, cnr_graph *g) {
    cnri_lua_push_mistakes(L);
    const lua_Integer n = (lua_Integer)lua_rawlen(L, -1);
    for (lua_Integer i = 1; i + 1 <= n; i += 2) {
        lua_rawgeti(L, -1, i);
        lua_rawgeti(L, -2, i + 1);
        cnri_graph_problem(g, lua_tostring(L, -2), "%s", lua_tostring(L, -1));
        lua_pop(L, 2);
    }
    lua_pop(L, 1);
}

/* Adds the outputs in the net's private table to the graph. */
static void add_outputs(compiler *c, int private) {
    lua_State *L = c->L;
    lua_rawgeti(L, private, CNRI_NET_OUTPUTS);
    const int n = (int)lua_rawlen(L, -1);
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(L, -1, i);
        const cnri_lua_value *v = luaL_testudata(L, -1, CNRI_VALUE_TYPE);
        if (v) {
            lua_rawgeti(L, c->made, (lua_Integer)v->node * 1024 + v->output);
            cnri_graph_output(c->g, (cnr_value)luaL_optinteger(L, -1, -1), NULL);
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

void cnri_lua_compile(lua_State *L, int net, cnr_graph *g) {
    const int top = lua_gettop(L);
    luaL_checkudata(L, net, CNRI_NET_TYPE);
    lua_getiuservalue(L, net, 1);
    add_mistakes(L, g);
    const uint8_t *needed = push_needed(L, top + 1);
    for (int i = 0; i < 3; i++) lua_newtable(L);
    compiler c = {L, g, lua_gettop(L) - 2, lua_gettop(L) - 1, lua_gettop(L)};
    const int32_t n = cnri_script_of(L)->n_nodes;
    for (int32_t id = 1; id <= n && !g->out_of_memory; id++)
        if (needed[id]) compile_node(&c, id);
    add_outputs(&c, top + 1);
    lua_settop(L, top);
}

/* ---- values ---- */

cnr_value cnri_lua_made(lua_State *L, int made, int value) {
    const cnri_lua_value *v = luaL_checkudata(L, value, CNRI_VALUE_TYPE);
    lua_rawgeti(L, made, (lua_Integer)v->node * 1024 + v->output);
    const cnr_value found = lua_isinteger(L, -1) ? (cnr_value)lua_tointeger(L, -1) : -1;
    lua_pop(L, 1);
    return found;
}

void cnri_lua_push_given(lua_State *L, int made, cnr_value v) {
    lua_pushcfunction(L, cnri_lua_make_nothing);
    lua_newtable(L);
    lua_pushliteral(L, "given");
    lua_call(L, 2, 1);
    lua_pushinteger(L, v);
    lua_rawseti(L, made, (lua_Integer)((cnri_lua_value *)lua_touserdata(L, -2))->node * 1024);
}

/* True if the value of a node is known already. */
static bool is_given(lua_State *L, int made, int32_t id) {
    const bool given = lua_rawgeti(L, made, (lua_Integer)id * 1024) != LUA_TNIL;
    lua_pop(L, 1);
    return given;
}

void cnri_lua_compile_values(lua_State *L, int list, int made, cnr_graph *g, int32_t first) {
    const int top = lua_gettop(L);
    uint8_t *needed = push_marks(L);
    for (lua_Integer i = (lua_Integer)lua_rawlen(L, list); i > 0; i--) {
        lua_rawgeti(L, list, i);
        needed[((cnri_lua_value *)luaL_checkudata(L, -1, CNRI_VALUE_TYPE))->node] = 1;
        lua_pop(L, 1);
    }
    mark_needed(L, needed);
    for (int i = 0; i < 2; i++) lua_newtable(L);
    compiler c = {L, g, made, top + 2, top + 3};
    for (int32_t id = 1; id <= cnri_script_of(L)->n_nodes && !g->out_of_memory; id++) {
        if (!needed[id] || is_given(L, made, id)) continue;
        if (id < first) luaL_error(L, "the function uses a value that it was not given");
        compile_node(&c, id);
    }
    lua_settop(L, top);
}
