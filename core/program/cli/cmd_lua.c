/* cnnrun lua: the manual of the scripting API, and type files for editors. */
#include "cli/cli.h"
#include "lua/script.h"
#include "people/people.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Options of lua. */
typedef struct lua {
    const char *annotations;
} lua;

static const cnri_option options[] = {
    CNRI_OPTION(lua, annotations, "--annotations", "DIR",
                "write a type file for lua-language-server, by which editors complete and check")};

/* ---- for people ---- */

/* Appends a call such as "c.load(net, options?)". */
static void call_of(const cnri_lua_help *row, cnri_text *out) {
    const char *args = row->args, *item;
    size_t n;
    cnri_text_add(out, "%s%s", row->owner, row->name);
    if (row->op) {
        cnri_text_add(out, " { ... }");
        return;
    }
    cnri_text_add(out, "(");
    if (row->loose) cnri_text_add(out, "%s", args);
    for (bool first = true; !row->loose && cnri_lua_next_item(&args, &item, &n); first = false) {
        const char *colon = memchr(item, ':', n);
        const int word = (int)(colon ? (size_t)(colon - item) : n);
        cnri_text_add(out, "%s%.*s", first ? "" : ", ", word, item);
    }
    cnri_text_add(out, ")");
}

/* Prints a function with the first sentence of its help, or all of it. For methods of objects
 * only the signature is known. */
static cnr_status print_line(const cnri_lua_help *row, bool all, cnr_error *err) {
    enum { COLUMN = 34 };
    cnri_text call = {0};
    call_of(row, &call);
    const bool failed = call.failed;
    const char *stop = all ? NULL : strstr(row->help, ". ");
    const int n = (int)(stop ? stop + 1 - row->help : (long)strlen(row->help));
    if (row->loose && *row->gives) cnri_text_add(&call, " -> %s", row->gives);
    if (row->loose && !failed) cnri_say(stdout, "  %s\n", call.at);
    else if (!failed && call.n > COLUMN)
        cnri_say(stdout, "  %s\n  %*s  %.*s\n", call.at, COLUMN, "", n, row->help);
    else if (!failed) cnri_say(stdout, "  %-*s  %.*s\n", COLUMN, call.at, n, row->help);
    cnri_text_free(&call);
    return failed ? cnri_out_of_memory(err, "lua") : CNR_OK;
}

/* Prints a part's title. Parts of the module have no prefix, because scripts call all of it c. */
static void print_title(const cnri_lua_part *part) {
    if (strcmp(part->name, "cnnrun") == 0) cnri_say(stdout, "%s\n", part->help);
    else cnri_say(stdout, "%.*s: %s\n", (int)strcspn(part->name, ":"), part->name, part->help);
}

/* Prints one line for each function, of all parts or of the part with index `only` (-1: all). */
static cnr_status print_all(const cnri_lua_manual *r, int32_t only, cnr_error *err) {
    cnr_status status = CNR_OK;
    bool first = true;
    for (int32_t p = 0; p < r->parts.n && !status; p++) {
        if (only >= 0 && p != only) continue;
        if (!first) cnri_say(stdout, "\n");
        first = false;
        print_title(&r->parts.at[p]);
        for (int32_t i = 0; i < r->rows.n && !status; i++)
            if (r->rows.at[i].part == p) status = print_line(&r->rows.at[i], false, err);
    }
    return status;
}

/* Prints the items of a list, one a line. */
static void print_items(const char *title, const char *items) {
    const char *item;
    size_t n;
    for (bool first = true; cnri_lua_next_item(&items, &item, &n); first = false)
        cnri_say(stdout, "  %-10s%.*s\n", first ? title : "", (int)n, item);
}

/* Prints a function with arguments and keys. */
static cnr_status print_one(const cnri_lua_help *row, cnr_error *err) {
    const cnr_status status = print_line(row, true, err);
    if (status || row->loose) return status;
    print_items("takes", row->args);
    print_items("gives", row->gives);
    if (row->options.n) cnri_say(stdout, "\n  the table's keys:\n");
    for (int32_t i = 0; i < row->options.n; i++) {
        const cnri_lua_option *o = &row->options.at[i];
        cnri_say(stdout, "  %-18s%s\n  %-18s%s\n", o->name, o->type, "", o->help);
    }
    if (row->op) cnri_say(stdout, "\n  cnnrun ops %s tells more\n", row->name);
    return CNR_OK;
}

/* ---- for programs ---- */

/* Adds a list of items as JSON. */
static void json_items(cnri_json *j, const char *key, const char *items) {
    char text[512];
    const char *item;
    size_t n;
    cnri_json_list(j, key);
    while (cnri_lua_next_item(&items, &item, &n)) {
        snprintf(text, sizeof text, "%.*s", (int)n, item);
        cnri_json_text(j, NULL, text);
    }
    cnri_json_end(j);
}

/* Prints a function as JSON. */
static cnr_status print_json(const cnri_lua_manual *r, const cnri_lua_help *row, cnr_error *err) {
    char call[256];
    cnri_json j;
    snprintf(call, sizeof call, "%s%s", row->owner, row->name);
    cnri_json_begin(&j);
    cnri_json_text(&j, "part", r->parts.at[row->part].name);
    cnri_json_text(&j, "call", call);
    json_items(&j, "args", row->args);
    json_items(&j, "gives", row->gives);
    cnri_json_text(&j, "help", row->help);
    cnri_json_list(&j, "options");
    for (int32_t i = 0; i < row->options.n; i++) {
        cnri_json_object(&j, NULL);
        cnri_json_text(&j, "name", row->options.at[i].name);
        cnri_json_text(&j, "type", row->options.at[i].type);
        cnri_json_text(&j, "help", row->options.at[i].help);
        cnri_json_end(&j);
    }
    cnri_json_end(&j);
    return cnri_json_print(&j, err);
}

/* ---- finding ---- */

/* True if both texts have the same letters, in any case. */
static bool same_letters(const char *a, size_t n, const char *b) {
    if (strlen(b) != n) return false;
    for (size_t i = 0; i < n; i++)
        if ((a[i] | 32) != (b[i] | 32)) return false;
    return true;
}

/* True if the name means the part: "cnnrun.Tensor", "tensor", "lib.csv" or "csv". */
static bool names_part(const cnri_lua_part *part, const char *name) {
    const size_t n = strcspn(part->name, ":");
    if (strcmp(part->name, "cnnrun") == 0) return false;
    if (same_letters(part->name, n, name)) return true;
    size_t last = n;
    while (last > 0 && part->name[last - 1] != '.') last--;
    return same_letters(part->name + last, n - last, name);
}

/* True if the name is an alias of the operator. */
static bool is_alias(const cnr_op *op, const char *name) {
    const char *const *alias = op && CNRI_HAS(op, aliases) ? op->aliases : NULL;
    while (alias && *alias && strcmp(*alias, name) != 0) alias++;
    return alias && *alias;
}

/* True if the name means the function: "load", "c.load" or "cnnrun.load", with "." or ":". */
static bool names_row(const cnri_lua_help *row, const char *name) {
    const char *mark = strpbrk(name, ".:"), *word = mark ? mark + 1 : name;
    const size_t n = strlen(row->owner) - 1; /* without its mark */
    if (strcmp(word, row->name) != 0 && !is_alias(row->op, word)) return false;
    if (!mark) return true;
    if (strcmp(row->owner, "c.") == 0 && strncmp(name, "cnnrun.", 7) == 0) return true;
    return (size_t)(mark - name) == n && strncasecmp(name, row->owner, n) == 0;
}

/* CNR_E_NOT_FOUND: no function has the name; the text has the nearest one. */
static cnr_status unknown(const cnri_lua_manual *r, const char *name, cnr_error *err) {
    CNRI_VEC(const char *) names = {0};
    const char *mark = strpbrk(name, ".:");
    for (int32_t i = 0; i < r->rows.n; i++) {
        const char **slot = cnri_push(&names);
        if (slot) *slot = r->rows.at[i].name;
    }
    const char *near = cnri_nearest_word(mark ? mark + 1 : name, names.at, names.n);
    cnri_vec_free(&names);
    return cnri_fail(err, CNR_E_NOT_FOUND, name, "no such function; %s%s%s",
                     near ? "did you mean " : "cnnrun lua lists all", near ? near : "",
                     near ? "?" : "");
}

/* Prints all functions and parts of that name (NULL: all), as text or JSON; CNR_E_NOT_FOUND: there
 * are none. */
static cnr_status show(const cnri_lua_manual *r, const char *name, bool json, cnr_error *err) {
    cnr_status status = CNR_OK;
    int32_t found = 0;
    for (int32_t p = 0; name && p < r->parts.n && !status; p++) {
        if (!names_part(&r->parts.at[p], name)) continue;
        if (!json) status = print_all(r, p, err);
        for (int32_t i = 0; json && i < r->rows.n && !status; i++)
            if (r->rows.at[i].part == p) status = print_json(r, &r->rows.at[i], err);
        found++;
    }
    for (int32_t i = 0; i < r->rows.n && !status; i++) {
        const cnri_lua_help *row = &r->rows.at[i];
        if (name && !names_row(row, name)) continue;
        if (name && !json && found++) cnri_say(stdout, "\n");
        if (json) status = print_json(r, row, err);
        else if (name) status = print_one(row, err);
        found += json;
    }
    if (!name && !json) return print_all(r, -1, err);
    return status || found ? status : unknown(r, name, err);
}

/* ---- type files ---- */

/* Writes a text to a file. */
static cnr_status write_text(const char *path, const cnri_text *text, cnr_error *err) {
    cnri_writer w;
    cnr_status status = cnri_write_begin(&w, path, 0, err);
    if (status) return status;
    status = cnri_write(&w, text->at, text->n, err);
    if (!status) return cnri_write_commit(&w, err);
    cnri_write_abandon(&w);
    return status;
}

/* Writes settings with which lua-language-server finds the type file, and the modules of lib
 * where require does. */
static void add_settings(const char *folder, const char *scripts, cnri_text *out) {
    char real[PATH_MAX], lib[PATH_MAX];
    cnri_text_add(out,
                  "{\"runtime.version\": \"Lua 5.4\", \"runtime.path\": [\"?.lua\"], "
                  "\"runtime.builtin\": {\"io\": \"disable\", \"os\": \"disable\", "
                  "\"debug\": \"disable\", \"package\": \"disable\"}, \"workspace.library\": [");
    cnri_text_json(out, realpath(folder, real) ? real : folder);
    if (scripts && realpath(scripts, lib)) {
        cnri_text_add(out, ", ");
        cnri_text_json(out, lib);
    }
    cnri_text_add(out, "]}");
}

/* Result: the written annotations. */
typedef struct written {
    const char *file, *settings;
    int32_t functions;
} written;
static const cnri_field fields[] = {CNRI_FIELD(written, "file", file),
                                    CNRI_FIELD(written, "functions", functions),
                                    CNRI_FIELD(written, "settings", settings)};
static const cnri_record record =
    CNRI_RECORD(fields, "{file}: {functions} functions\n"
                        "What .luarc.json beside your scripts should hold:\n{settings}\n");

/* Writes annotations for editors and their settings to a folder, which is made if need be. */
static cnr_status annotate(const cnri_call *call, const cnri_lua_manual *r, const char *folder,
                           cnr_error *err) {
    cnri_text text = {0}, settings = {0};
    char *path = cnri_path_join(folder, "cnnrun.lua");
    cnr_status status = path ? CNR_OK : cnri_out_of_memory(err, folder);
    if (!status && mkdir(folder, 0777) != 0 && errno != EEXIST)
        status = cnri_fail_errno(err, folder, "can't be made a folder");
    if (!status) status = cnri_lua_annotate(r, &text, err);
    if (!status) status = write_text(path, &text, err);
    add_settings(folder, r->scripts, &settings);
    if (!status && settings.failed) status = cnri_out_of_memory(err, folder);
    const written made = {path, settings.at, r->rows.n};
    if (!status) status = cnri_tell(call, &record, &made, err);
    cnri_text_free(&text);
    cnri_text_free(&settings);
    cnri_free(path);
    return status;
}

/* The command lua. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    const lua *l = values;
    const char *name = call->operands.n ? call->operands.at[0] : NULL;
    cnri_lua_manual r;
    cnr_status status = cnri_lua_manual_make(&r, err);
    if (!status && l->annotations) status = annotate(call, &r, l->annotations, err);
    else if (!status) status = show(&r, name, call->common.json, err);
    cnri_lua_manual_free(&r);
    return status;
}

const cnri_command cnri_cmd_lua = {
    .name = "lua",
    .example = "cnnrun lua load",
    .operands = "[NAME]",
    .summary =
        "Lists what scripts can say: the functions of require \"cnnrun\", the methods of what\n"
        "they give, the modules of scripts/lib; with a NAME, all about one of them.",
    .details = "A NAME is \"load\", \"c.load\", \"tensor:topk\", an operator, or a whole part: "
               "\"tensor\", \"csv\".\nJSON, a line a function: {\"part\", \"call\", \"args\", "
               "\"gives\", \"help\", \"options\"}.",
    CNRI_OPTIONS(options),
    .values_bytes = sizeof(lua),
    .max_operands = 1,
    .opens = cnri_call_open,
    .run = run,
};
