/* Parses Darknet's .cfg: sections in brackets, key=value lines, comments after # or ;. */
#include "darknet.h"

#include <ctype.h>
#include <stdio.h>

/* Removes all blanks, as Darknet does, and everything after # or ;. */
static void strip(char *line) {
    char *to = line;
    for (; *line && *line != '#' && *line != ';'; line++)
        if (!isspace((unsigned char)*line)) *to++ = *line;
    *to = 0;
}

/* Reads a line: a section in brackets, or key=value. */
static cnr_status add_line(dn_config *c, char *line, int32_t number, const char *path,
                           cnr_error *err) {
    char where[300], *equals = strchr(line, '=');
    snprintf(where, sizeof where, "%.250s:%d", path, (int)number);
    if (!imp_grow((void **)&c->sections, c->n_sections, &c->sections_room, sizeof *c->sections) ||
        !imp_grow((void **)&c->keys, c->n_keys, &c->keys_room, sizeof *c->keys))
        return imp_host->fail(err, CNR_E_MEMORY, where, "out of memory");
    if (*line == '[') {
        char *close = strchr(line, ']');
        if (!close) return imp_host->fail(err, CNR_E_FORMAT, where, "a section has no ']'");
        *close = 0;
        c->sections[c->n_sections++] = (dn_section){line + 1, number, c->n_keys, 0};
        return CNR_OK;
    }
    if (!equals || c->n_sections == 0)
        return imp_host->fail(err, CNR_E_FORMAT, where, "[section] or key=value is wanted");
    *equals = 0;
    c->keys[c->n_keys++] = (struct dn_key){line, equals + 1};
    c->sections[c->n_sections - 1].n++;
    return CNR_OK;
}

cnr_status dn_config_parse(dn_config *c, char *text, const char *path, cnr_error *err) {
    int32_t number = 0;
    memset(c, 0, sizeof *c);
    c->text = text;
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        number++;
        strip(line);
        const cnr_status status = *line ? add_line(c, line, number, path, err) : CNR_OK;
        if (status) return status;
    }
    if (c->n_sections == 0 ||
        (strcmp(c->sections[0].name, "net") != 0 && strcmp(c->sections[0].name, "network") != 0))
        return imp_host->fail(err, CNR_E_FORMAT, path, "the first section must be [net]");
    return CNR_OK;
}

/* Frees text and lists, and zeroes c. */
void dn_config_free(dn_config *c) {
    imp_host->free(c->text);
    imp_host->free(c->sections);
    imp_host->free(c->keys);
    memset(c, 0, sizeof *c);
}

const char *dn_text(const dn_config *c, const dn_section *s, const char *key,
                    const char *fallback) {
    for (int32_t i = s->first; i < s->first + s->n; i++)
        if (strcmp(c->keys[i].name, key) == 0) return c->keys[i].value;
    return fallback;
}

double dn_float(const dn_config *c, const dn_section *s, const char *key, double fallback) {
    const char *text = dn_text(c, s, key, NULL), *end;
    if (!text) return fallback;
    const double value = imp_number(text, &end);
    return end == text ? fallback : value;
}

int64_t dn_int(const dn_config *c, const dn_section *s, const char *key, int64_t fallback) {
    const double value = dn_float(c, s, key, (double)fallback), most = 1 << 24;
    if (value != value) return fallback;
    return (int64_t)(value > most ? most : value < -most ? -most : value);
}

int32_t dn_list(const char *text, double *out, int32_t max) {
    int32_t n = 0;
    while (text && *text && n < max) {
        const char *end;
        out[n] = imp_number(text, &end);
        if (end == text) break;
        n++;
        text = *end == ',' ? end + 1 : NULL;
    }
    return n;
}
