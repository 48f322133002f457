/* Prints the scripting API as a type file for lua-language-server: classes and functions. */
#define _GNU_SOURCE /* memmem */
#include "lua/library.h"
#include "lua/state.h"
#include <string.h>

/* True for a reserved word of Lua, which can't name a function. */
static bool is_reserved(const char *name) {
    static const char words[] = " and break do else elseif end false for function goto if in local "
                                "nil not or repeat return then true until while ";
    char word[64];
    snprintf(word, sizeof word, " %s ", name);
    return strstr(words, word) != NULL;
}

/* Appends a line "---@MARK TEXT" of n bytes. */
static void add_mark(cnri_text *out, const char *mark, const char *text, size_t n) {
    cnri_text_add(out, "---@%s %.*s\n", mark, (int)n, text);
}

/* ---- tables that functions take: classes of their own ---- */

/* Writes the name of the class for the table that a function takes. */
static void push_table_name(const cnri_lua_help *row, char *name, size_t capacity) {
    const char *owner = row->owner;
    snprintf(name, capacity, "cnnrun.%.*s.%s.table", (int)strcspn(owner, ".:"), owner, row->name);
}

/* True if the item "layer?: table" is the table that row->options describe. *must: it can't be
 * left out. */
static bool is_table(const cnri_lua_help *row, const char *item, size_t n, bool *must) {
    const char *colon = memchr(item, ':', n);
    const size_t type = colon ? n - (size_t)(colon + 1 - item) : 0;
    *must = colon && colon[-1] != '?';
    return row->options.n > 0 && type && memmem(colon + 1, type, "table", 5) != NULL;
}

/* Appends the class for the table that a function takes; items: it also has numbered entries. */
static void add_table(cnri_text *out, const cnri_lua_help *row, bool items) {
    char name[160];
    push_table_name(row, name, sizeof name);
    cnri_text_add(out, "---@class %s\n", name);
    if (items) cnri_text_add(out, "---@field [integer] any\n");
    for (int32_t i = 0; i < row->options.n; i++) {
        const cnri_lua_option *o = &row->options.at[i];
        cnri_text_add(out, "---@field %s? %s %s\n", o->name, o->type, o->help);
    }
    cnri_text_add(out, "\n");
}

/* ---- functions ---- */

/* Adds a parameter. Tables with items are lists too. */
static void add_param(cnri_text *out, const cnri_lua_help *row, const char *item, size_t n) {
    bool must;
    char name[160];
    const char *colon = memchr(item, ':', n);
    const size_t word = colon ? (size_t)(colon - item) : n;
    cnri_text_add(out, "---@param %.*s ", (int)word, item);
    if (!colon) cnri_text_add(out, "any");
    else if (is_table(row, item, n, &must)) {
        const char *type = colon + 1 + strspn(colon + 1, " "), *end = item + n;
        const char *at = memmem(type, (size_t)(end - type), "table", 5);
        push_table_name(row, name, sizeof name);
        cnri_text_add(out, "%.*s%s%.*s%s", (int)(at - type), type, name, (int)(end - at - 5),
                      at + 5, must || row->op ? "|any[]" : "");
    } else {
        const char *type = colon + 1 + strspn(colon + 1, " ");
        cnri_text_add(out, "%.*s", (int)(item + n - type), type);
    }
    cnri_text_add(out, "\n");
}

/* Appends the names of arguments, with commas between. */
static void add_names(cnri_text *out, const char *args) {
    const char *item;
    size_t n;
    bool first = true;
    while (cnri_lua_next_item(&args, &item, &n)) {
        const char *colon = memchr(item, ':', n);
        size_t word = colon ? (size_t)(colon - item) : n;
        if (word && item[word - 1] == '?') word--;
        cnri_text_add(out, "%s%.*s", first ? "" : ", ", (int)word, item);
        first = false;
    }
}

/* Adds a line such as "---@overload fun(name: "canvas", options?: table): cnnrun.Object.canvas". */
static void add_overloads(cnri_text *out, const cnri_lua_manual *r) {
    static const char head[] = "cnnrun.Object.";
    for (int32_t i = 0; i < r->parts.n; i++) {
        const char *name = r->parts.at[i].name;
        if (strncmp(name, head, strlen(head)) != 0) continue;
        const int n = (int)strcspn(name, ":");
        cnri_text_add(out, "---@overload fun(name: \"%.*s\", options?: table): %.*s\n",
                      n - (int)strlen(head), name + strlen(head), n, name);
    }
}

static const char *const *aliases_of(const cnr_op *op) {
    static const char *const none[] = {NULL};
    return op && CNRI_HAS(op, aliases) ? op->aliases : none;
}

/* Appends the annotations of a function: a class for its options, if it has any, then parameters,
 * results and its declaration in `table`. */
static void add_function(cnri_text *out, const cnri_lua_manual *r, const cnri_lua_help *row,
                         const char *table) {
    const char *item, *args = row->args, *gives = row->gives;
    const char mark = row->owner[strlen(row->owner) - 1];
    size_t n;
    bool items = false, must;
    while (cnri_lua_next_item(&args, &item, &n))
        if (is_table(row, item, n, &must)) items = must || row->op;
    if (row->options.n > 0) add_table(out, row, items);
    cnri_text_add(out, "---%s\n", row->help);
    if (row->loose) cnri_text_add(out, "---@param ... any\n%s", *gives ? "---@return any\n" : "");
    for (args = row->args; !row->loose && cnri_lua_next_item(&args, &item, &n);)
        add_param(out, row, item, n);
    while (!row->loose && cnri_lua_next_item(&gives, &item, &n)) add_mark(out, "return", item, n);
    if (strcmp(row->gives, "cnnrun.Object") == 0) add_overloads(out, r);
    if (is_reserved(row->name)) cnri_text_add(out, "%s[\"%s\"] = function(", table, row->name);
    else cnri_text_add(out, "function %s%c%s(", table, mark, row->name);
    if (row->loose) cnri_text_add(out, "...");
    else add_names(out, row->args);
    cnri_text_add(out, ") end\n");
    for (const char *const *alias = aliases_of(row->op); *alias; alias++)
        cnri_text_add(out, "%s[\"%s\"] = %s[\"%s\"]\n", table, *alias, table, row->name);
    cnri_text_add(out, "\n");
}

/* ---- parts ---- */

/* Annotations of the section with this name, a constant text; "": it has none, or there is no such
 * section. */
static const char *marks_of(const char *name) {
    const cnri_lua_section *s = cnri_lua_sections;
    while (s->name && strcmp(s->name, name) != 0) s++;
    return s->name && s->marks ? s->marks : "";
}

/* Name of the local variable that holds the class: for "cnnrun.Object.canvas: cnnrun.Object" it
 * is Object_canvas. */
static void push_local(const char *name, char *local, size_t capacity) {
    const char *dot = strchr(name, '.'), *from = dot ? dot + 1 : name;
    snprintf(local, capacity, "%.*s", (int)strcspn(from, ":"), from);
    for (char *p = local; *p; p++)
        if (*p == '.' || *p == '-') *p = '_';
}

/* True if an earlier part has the same name: the methods of a type may be spread over several
 * parts. */
static bool is_begun(const cnri_lua_manual *r, int32_t part) {
    return CNRI_INDEX_OF(r->parts.at, part, r->parts.at[part].name) >= 0;
}

/* Appends the annotations of one part of the manual (a module or type): its class, then its
 * functions. */
static void add_part(cnri_text *out, const cnri_lua_manual *r, int32_t part) {
    const char *name = r->parts.at[part].name;
    char local[128] = "c";
    if (strcmp(name, "cnnrun") != 0) push_local(name, local, sizeof local);
    if (strcmp(name, "cnnrun") != 0 && !is_begun(r, part)) {
        cnri_text_add(out, "---%s\n---@class %s\n", r->parts.at[part].help, name);
        for (const char *mark = marks_of(name); *mark;) {
            const size_t n = strcspn(mark, "\n");
            cnri_text_add(out, "---@%.*s\n", (int)n, mark);
            mark += n + (mark[n] != 0);
        }
        cnri_text_add(out, "local %s = {}\n\n", local);
    }
    for (int32_t i = 0; i < r->rows.n; i++) {
        const cnri_lua_help *row = &r->rows.at[i];
        if (row->part != part) continue;
        add_function(out, r, row, local);
    }
}

cnr_status cnri_lua_annotate(const cnri_lua_manual *r, cnri_text *out, cnr_error *err) {
    cnri_text_add(out,
                  "---@meta cnnrun\n-- What scripts can say, by cnnrun %s and its plugins: cnnrun "
                  "lua --annotations DIR\n\n---@class cnnrun\nlocal c = {}\n\n",
                  CNNRUN_VERSION);
    for (int32_t i = 0; i < r->parts.n; i++)
        if (strncmp(r->parts.at[i].name, "lib.", 4) != 0) add_part(out, r, i);
    cnri_text_add(out, "return c\n");
    return out->failed ? cnri_out_of_memory(err, "annotations") : CNR_OK;
}
