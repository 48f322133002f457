/* Parses the NetFile: "key: value" lines and "layer { ... }" blocks. */
#include "cnndroid.h"

#include <ctype.h>
#include <stdio.h>

/* Position in the text. */
typedef struct cursor {
    char *at;
    int32_t line;
    char next; /* a punctuation mark that ended the last word; returned next */
} cursor;

/* The next word, quoted text, or one of { } : as a text, skipping spaces and comments from # on;
 * NULL at the end. The text, which is cut in place, keeps it; counts lines. */
static const char *token(cursor *c) {
    static const char *const marks[] = {"{", "}", ":"};
    char mark = c->next;
    c->next = 0;
    while (!mark) {
        while (isspace((unsigned char)*c->at)) c->line += *c->at++ == '\n';
        if (*c->at != '#') break;
        c->at += strcspn(c->at, "\n");
    }
    if (!mark && !*c->at) return NULL;
    if (!mark && strchr("{}:", *c->at)) mark = *c->at++;
    if (mark) return marks[mark == '{' ? 0 : mark == '}' ? 1 : 2];
    const int quoted = *c->at == '"';
    c->at += quoted;
    char *begin = c->at;
    c->at += strcspn(c->at, quoted ? "\"\n" : " \t\r\n{}:");
    if (*c->at == '\n') c->line++;
    if (!quoted && *c->at && strchr("{}:", *c->at)) c->next = *c->at;
    if (*c->at) *c->at++ = 0;
    return begin;
}

/* 1: word is text, upper and lower case alike. CNNdroid ignores the case of names and layer types.
 */
int cd_is(const char *word, const char *text) {
    for (; word && *word && *text; word++, text++)
        if (tolower((unsigned char)*word) != tolower((unsigned char)*text)) return 0;
    return word && *word == *text;
}

static int is_mark(const char *word) { return *word && strchr("{}:", *word) && !word[1]; }

cnr_status cd_netfile_parse(cd_netfile *f, char *text, const char *path, cnr_error *err) {
    cursor c = {text, 1, 0};
    const char *word;
    char where[300];
    int inside = 0;
    memset(f, 0, sizeof *f);
    f->text = text;
    if (!imp_grow((void **)&f->layers, 0, &f->layers_room, sizeof *f->layers))
        return imp_host->fail(err, CNR_E_MEMORY, path, "out of memory");
    f->layers[f->n_layers++] = (cd_layer){1, 0, 0};
    while ((word = token(&c)) != NULL) {
        snprintf(where, sizeof where, "%.250s:%d", path, (int)c.line);
        if (cd_is(word, "}") && inside) {
            inside = 0;
            continue;
        }
        const char *name = word, *mark = token(&c);
        if (cd_is(name, "layer") && cd_is(mark, "{") && !inside) {
            if (!imp_grow((void **)&f->layers, f->n_layers, &f->layers_room, sizeof *f->layers))
                return imp_host->fail(err, CNR_E_MEMORY, where, "out of memory");
            f->layers[f->n_layers++] = (cd_layer){c.line, f->n_keys, 0};
            inside = 1;
            continue;
        }
        const char *value = cd_is(mark, ":") ? token(&c) : NULL;
        if (!value || is_mark(name) || is_mark(value))
            return imp_host->fail(err, CNR_E_FORMAT, where, "key: value or layer { is wanted");
        if (!imp_grow((void **)&f->keys, f->n_keys, &f->keys_room, sizeof *f->keys))
            return imp_host->fail(err, CNR_E_MEMORY, where, "out of memory");
        f->keys[f->n_keys++] = (struct cd_key){name, value, !inside};
        if (inside) f->layers[f->n_layers - 1].n++;
    }
    if (inside) return imp_host->fail(err, CNR_E_FORMAT, path, "the last layer has no '}'");
    return CNR_OK;
}

/* Frees text and lists, and zeroes f. */
void cd_netfile_free(cd_netfile *f) {
    imp_host->free(f->text);
    imp_host->free(f->keys);
    imp_host->free(f->layers);
    memset(f, 0, sizeof *f);
}

const char *cd_text(const cd_netfile *f, int32_t layer, const char *key, const char *fallback) {
    const cd_layer *l = &f->layers[layer];
    const int32_t end = layer ? l->first + l->n : f->n_keys;
    for (int32_t i = l->first; i < end; i++)
        if (f->keys[i].outside == !layer && cd_is(f->keys[i].name, key)) return f->keys[i].value;
    return fallback;
}

double cd_number(const cd_netfile *f, int32_t layer, const char *key, double fallback) {
    const char *text = cd_text(f, layer, key, NULL), *end;
    if (!text) return fallback;
    const double value = imp_number(text, &end);
    return end == text ? fallback : value;
}

int64_t cd_int(const cd_netfile *f, int32_t layer, const char *key, int64_t fallback) {
    const double value = cd_number(f, layer, key, (double)fallback);
    return value > -1e9 && value < 1e9 ? (int64_t)value : fallback;
}
