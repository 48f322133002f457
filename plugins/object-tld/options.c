/* The tracker's options, with the defaults of the document (S16) and of the authors (OpenTLD). */
#include "tld.h"
#include <stdio.h>

/* A row of the table of options. */
typedef struct row {
    const char *name;
    size_t at;
    double standard, least, most;
    const char *help;
} row;

static const row rows[] = {
/* the row of an option */
#define X(name, standard, least, most, help) \
    {#name, offsetof(tld_options, name), standard, least, most, help},
    TLD_OPTIONS(X)
#undef X
};

/* The row of that name; NULL: none. */
static const row *find(const char *name) {
    for (int32_t i = 0; i < CNR_ROWS(rows); i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

static double *slot(tld_options *o, const row *r) { return (double *)((char *)o + r->at); }

cnr_status tld_options_read(const cnr_attr *const *list, int32_t n, tld_options *out,
                            cnr_error *err) {
    for (int32_t i = 0; i < CNR_ROWS(rows); i++) *slot(out, &rows[i]) = rows[i].standard;
    for (int32_t i = 0; i < n; i++) {
        const cnr_attr *a = list[i];
        const row *r = find(a->name);
        if (!r)
            return tld_host->fail(err, CNR_E_ARG, "tld", "no option '%s'; options() tells them",
                                  a->name);
        const double v = a->type == CNR_ATTR_BOOL ? (double)a->i : a->f;
        if (a->type != CNR_ATTR_INT && a->type != CNR_ATTR_FLOAT && a->type != CNR_ATTR_BOOL)
            return tld_host->fail(err, CNR_E_ARG, a->name, "want a number");
        if (!(v >= r->least && v <= r->most))
            return tld_host->fail(err, CNR_E_ARG, a->name, "want %g to %g, got %g", r->least,
                                  r->most, v);
        *slot(out, r) = v;
    }
    return CNR_OK;
}

char *tld_options_text(void) {
    const size_t room = sizeof rows / sizeof rows[0] * 160;
    size_t n = 0;
    char *text = tld_host->alloc(room);
    for (int32_t i = 0; text && i < CNR_ROWS(rows) && n < room; i++)
        n += (size_t)snprintf(text + n, room - n, "%s %g %s\n", rows[i].name, rows[i].standard,
                              rows[i].help);
    return text;
}
