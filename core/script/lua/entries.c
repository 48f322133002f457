/* Entries of the manual: parts, rows and options, which two files add. */
#include "lua/library.h"
#include <string.h>

void cnri_manual_text(cnri_lua_manual *r, char **slot, const char *text, size_t n) {
    const size_t had = *slot ? strlen(*slot) : 0;
    char *to = cnri_resize(*slot, had + n + 1);
    if (!to) {
        r->failed = true;
        return;
    }
    memcpy(to + had, text, n);
    to[had + n] = 0;
    *slot = to;
}

/* Appends a text (NULL: nothing) to a text of the manual. */
static void add(cnri_lua_manual *r, char **slot, const char *text) {
    cnri_manual_text(r, slot, text ? text : "", text ? strlen(text) : 0);
}

void cnri_manual_part(cnri_lua_manual *r, const char *name, const char *help) {
    cnri_lua_part *part = cnri_push(&r->parts);
    if (!part) {
        r->failed = true;
        return;
    }
    add(r, &part->name, name);
    add(r, &part->help, help);
}

cnri_lua_help *cnri_manual_row(cnri_lua_manual *r, const char *owner, const char *name, size_t n) {
    cnri_lua_help *row = r->failed ? NULL : cnri_push(&r->rows);
    if (!row) {
        r->failed = true;
        return NULL;
    }
    row->part = r->parts.n - 1;
    add(r, &row->owner, owner);
    cnri_manual_text(r, &row->name, name, n);
    add(r, &row->args, "");
    add(r, &row->gives, "");
    add(r, &row->help, "");
    return r->failed ? NULL : row;
}

cnri_lua_option *cnri_manual_option(cnri_lua_manual *r, cnri_lua_help *row, const char *name,
                                    size_t n, const char *type) {
    cnri_lua_option *option = r->failed ? NULL : cnri_push(&row->options);
    if (!option) {
        r->failed = true;
        return NULL;
    }
    cnri_manual_text(r, &option->name, name, n);
    add(r, &option->type, type);
    add(r, &option->help, "");
    return r->failed ? NULL : option;
}
