/* What the files of scripts/lib say of themselves, in the comments by which editors know them:
 *
 *     ---@class lib.csv                         a part, of the table that the next line makes
 *     local M = {}
 *
 *     ---Reads a file.                          a line of help
 *     ---@param path string                     what it takes and gives
 *     ---@return table[] rows
 *     function M.read(path) */
#include "lua/library.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 20, DEEPEST_CLASS = 4, MAX_NAME = 64 };

static const char class_mark[] = "---@class ", field_mark[] = "---@field ";
static const char param_mark[] = "---@param ", return_mark[] = "---@return ";

/* True if the line begins with `with`. */
static bool starts_with(const char *line, const char *with) {
    return strncmp(line, with, strlen(with)) == 0;
}

/* Start of the next line; NULL: there is none. */
static const char *next_line(const char *line) {
    line += strcspn(line, "\n");
    return *line ? line + 1 : NULL;
}

static size_t line_length(const char *line) { return strcspn(line, "\n"); }

/* Length of the word of Lua at p, 0: none; points: points belong to it, as in a class name. */
static size_t word(const char *p, bool points) {
    size_t n = 0;
    while ((p[n] >= 'a' && p[n] <= 'z') || (p[n] >= 'A' && p[n] <= 'Z') || p[n] == '_' ||
           (p[n] >= '0' && p[n] <= '9') || (points && p[n] == '.'))
        n++;
    return n;
}

/* Length of the type that begins the line: up to the first space outside parentheses; for "fun(x:
 * integer): string" all of it. */
static size_t type_length(const char *p) {
    int depth = 0;
    size_t n = 0;
    for (; p[n] && p[n] != '\n'; n++) {
        if (strchr("([{<", p[n])) depth++;
        else if (strchr(")]}>", p[n])) depth--;
        else if (p[n] == ' ' && depth <= 0 && (n == 0 || p[n - 1] != ':')) break;
    }
    return n;
}

/* ---- classes of options ---- */

/* True if the line declares the class whose name is the n bytes at `name`. */
static bool names_class(const char *line, const char *name, size_t n) {
    if (!starts_with(line, class_mark)) return false;
    line += strlen(class_mark);
    return word(line, true) == n && strncmp(line, name, n) == 0;
}

/* Adds the ---@field line as an option of the row, unless the field is private. */
static void add_field(cnri_lua_manual *r, cnri_lua_help *row, const char *line) {
    const char *name = line + strlen(field_mark);
    if (starts_with(name, "private ")) return;
    const size_t n = *name == '[' ? strcspn(name, " ") : word(name, false);
    const char *type = name + n + strspn(name + n, "? ");
    const size_t m = type_length(type);
    const char *help = type + m + strspn(type + m, " ");
    cnri_lua_option *option = cnri_manual_option(r, row, name, n, "");
    if (!option) return;
    cnri_manual_text(r, &option->type, type, m);
    cnri_manual_text(r, &option->help, help, line_length(help));
}

/* Adds the fields of the class named by n bytes at `name`, behind those of the class that it
 * extends; at most DEEPEST_CLASS levels. */
static void add_fields(cnri_lua_manual *r, cnri_lua_help *row, const char *text, const char *name,
                       size_t n, int depth) {
    const char *line = text;
    while (line && !names_class(line, name, n)) line = next_line(line);
    if (!line || depth == DEEPEST_CLASS) return;
    const char *parent = line + strlen(class_mark) + n;
    if (starts_with(parent, ": "))
        add_fields(r, row, text, parent + 2, word(parent + 2, true), depth + 1);
    for (line = next_line(line); line && starts_with(line, field_mark); line = next_line(line))
        add_field(r, row, line);
}

/* ---- functions ---- */

/* Appends n bytes to the list *slot, with a comma before unless it is empty. */
static void join(cnri_lua_manual *r, char **slot, const char *text, size_t n) {
    if (**slot) cnri_manual_text(r, slot, ", ", 2);
    cnri_manual_text(r, slot, text, n);
}

/* Appends "---@param rows? any[]" to the row's arguments as "rows?: any[]", and the fields of its
 * class as options. */
static void add_param(cnri_lua_manual *r, cnri_lua_help *row, const char *text, const char *line) {
    const char *name = line + strlen(param_mark);
    const size_t n = strcspn(name, " \n");
    const char *type = name + n + strspn(name + n, " ");
    const size_t m = type_length(type);
    join(r, &row->args, name, n);
    cnri_manual_text(r, &row->args, ": ", 2);
    cnri_manual_text(r, &row->args, type, m);
    add_fields(r, row, text, type, word(type, true), 0);
}

/* Adds the comment that begins at `from` to the function at `to`. */
static void add_comment(cnri_lua_manual *r, cnri_lua_help *row, const char *text, const char *from,
                        const char *to) {
    for (const char *line = from; line && line < to; line = next_line(line)) {
        if (starts_with(line, param_mark)) add_param(r, row, text, line);
        else if (starts_with(line, return_mark)) {
            const char *type = line + strlen(return_mark);
            join(r, &row->gives, type, type_length(type));
        } else if (!starts_with(line, "---@")) {
            if (*row->help) cnri_manual_text(r, &row->help, " ", 1);
            cnri_manual_text(r, &row->help, line + 3, line_length(line + 3));
        }
    }
}

/* The name in a line such as "function M.read(path)" for the table of n bytes at `table`: points at
 * "read(path)". *mark: '.' or ':'. NULL: the line is no such function. */
static const char *function_of(const char *line, const char *table, size_t n, char *mark) {
    static const char begin[] = "function ";
    if (!starts_with(line, begin) || strncmp(line + strlen(begin), table, n) != 0) return NULL;
    *mark = line[strlen(begin) + n];
    return *mark == '.' || *mark == ':' ? line + strlen(begin) + n + 1 : NULL;
}

/* Adds the functions of a class with the comments before them. */
static void add_functions(cnri_lua_manual *r, const char *text, const char *class, size_t n,
                          const char *table, size_t m) {
    const char *last = class + n;
    while (last > class && last[-1] != '.') last--;
    const char *comment = NULL;
    for (const char *line = text; line && !r->failed; line = next_line(line)) {
        char mark, owner[MAX_NAME];
        const char *name = function_of(line, table, m, &mark);
        if (name) {
            snprintf(owner, sizeof owner, "%.*s%c", (int)(class + n - last), last, mark);
            cnri_lua_help *row = cnri_manual_row(r, owner, name, word(name, false));
            if (row && comment) add_comment(r, row, text, comment, line);
        }
        if (!starts_with(line, "---")) comment = NULL;
        else if (!comment) comment = line;
    }
}

/* ---- files ---- */

/* Adds a part with its summary: the first sentence of the comment in front of `line`, or else of
 * the file. */
static void add_part(cnri_lua_manual *r, const char *text, const char *before, const char *class,
                     size_t n) {
    char name[MAX_NAME], help[200];
    const bool own = before && starts_with(before, "---") && !starts_with(before, "---@");
    const char *from = own ? before + 3 : text + strspn(text, "- ");
    snprintf(name, sizeof name, "%.*s", (int)n, class);
    snprintf(help, sizeof help, "%.*s", (int)line_length(from), from);
    cnri_manual_part(r, name, help);
}

/* Adds the functions of all classes that a script file declares to the manual. */
static void gather_file(cnri_lua_manual *r, const char *text) {
    static const char local[] = "local ";
    const char *before = NULL;
    for (const char *line = text; line; before = line, line = next_line(line)) {
        if (!starts_with(line, class_mark)) continue;
        const char *class = line + strlen(class_mark);
        const char *made = next_line(line);
        while (made && starts_with(made, field_mark)) made = next_line(made);
        if (!starts_with(class, "lib.") || !made || !starts_with(made, local)) continue;
        add_part(r, text, before, class, word(class, true));
        made += strlen(local);
        add_functions(r, text, class, word(class, true), made, word(made, false));
    }
}

/* Compares two names, for scandir. */
static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* True for a name that ends in .lua, for scandir. */
static int is_script(const struct dirent *entry) {
    const size_t n = strlen(entry->d_name);
    return n > 4 && strcmp(entry->d_name + n - 4, ".lua") == 0;
}

void cnri_library_gather(cnri_lua_manual *r) {
    struct dirent **list = NULL;
    char *folder = cnri_path_join(r->scripts, "lib");
    const int n = folder ? scandir(folder, &list, is_script, by_name) : -1;
    r->failed = r->failed || !folder;
    for (int i = 0; i < n; i++) {
        char *path = cnri_path_join(folder, list[i]->d_name), *text = NULL;
        size_t bytes;
        if (!path) r->failed = true;
        else if (!cnri_read_file(path, MAX_BYTES, &text, &bytes, NULL)) gather_file(r, text);
        cnri_free(text);
        cnri_free(path);
        free(list[i]);
    }
    free(list);
    cnri_free(folder);
}
