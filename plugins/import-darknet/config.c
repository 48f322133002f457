/* Darknet's .cfg: sections in brackets, key=value lines, comments by # or ;. */
#include "darknet.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static int grow(void **at, int32_t n, int32_t *room, size_t bytes) {
    if (n < *room) return 1;
    const int32_t more = *room ? *room * 2 : 64;
    void *grown = darknet_host->resize(*at, (size_t)more * bytes);
    if (!grown) return 0;
    *at = grown;
    *room = more;
    return 1;
}

/* Cuts blanks off both ends, in place. */
static char *trim(char *text) {
    while (isspace((unsigned char)*text)) text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1])) *--end = 0;
    return text;
}

static cnr_status add_line(darknet_config *c, char *line, int32_t number, const char *path,
                           cnr_error *err) {
    char where[300];
    snprintf(where, sizeof where, "%.250s:%d", path, (int)number);
    if (*line == '[') {
        char *close = strchr(line, ']');
        if (!close || !grow((void **)&c->sections, c->n_sections, &c->sections_room,
                            sizeof *c->sections))
            return darknet_host->fail(err, close ? CNR_E_MEMORY : CNR_E_FORMAT, where,
                                      close ? "out of memory" : "a section has no ']'");
        *close = 0;
        c->sections[c->n_sections++] = (darknet_section){line + 1, number, c->n_keys, 0};
        return CNR_OK;
    }
    char *equals = strchr(line, '=');
    if (!equals || c->n_sections == 0)
        return darknet_host->fail(err, CNR_E_FORMAT, where, "[section] or key=value is wanted");
    if (!grow((void **)&c->keys, c->n_keys, &c->keys_room, sizeof *c->keys))
        return darknet_host->fail(err, CNR_E_MEMORY, where, "out of memory");
    *equals = 0;
    c->keys[c->n_keys++] = (struct darknet_key){trim(line), trim(equals + 1), number};
    c->sections[c->n_sections - 1].n++;
    return CNR_OK;
}

cnr_status darknet_config_parse(darknet_config *c, char *text, const char *path, cnr_error *err) {
    int32_t number = 0;
    memset(c, 0, sizeof *c);
    c->text = text;
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        number++;
        line[strcspn(line, "#;")] = 0;
        line = trim(line);
        if (!*line) continue;
        const cnr_status status = add_line(c, line, number, path, err);
        if (status) return status;
    }
    if (c->n_sections == 0 || (strcmp(c->sections[0].name, "net") != 0 &&
                               strcmp(c->sections[0].name, "network") != 0))
        return darknet_host->fail(err, CNR_E_FORMAT, path, "the first section must be [net]");
    return CNR_OK;
}

void darknet_config_free(darknet_config *c) {
    darknet_host->free(c->text);
    darknet_host->free(c->sections);
    darknet_host->free(c->keys);
    memset(c, 0, sizeof *c);
}

const char *darknet_text(const darknet_config *c, const darknet_section *s, const char *key,
                         const char *fallback) {
    for (int32_t i = s->first; i < s->first + s->n; i++)
        if (strcmp(c->keys[i].name, key) == 0) return c->keys[i].value;
    return fallback;
}

double darknet_number(const char *text, const char **end) {
    const char *at = text;
    double sign = 1, value = 0, scale = 1;
    while (isspace((unsigned char)*at)) at++;
    if (*at == '-' || *at == '+') sign = *at++ == '-' ? -1 : 1;
    const char *digits = at;
    for (; isdigit((unsigned char)*at); at++) value = value * 10 + (*at - '0');
    if (*at == '.')
        for (at++; isdigit((unsigned char)*at); at++) value += (*at - '0') * (scale /= 10);
    if (at == digits) {
        if (end) *end = text;
        return 0;
    }
    if ((*at == 'e' || *at == 'E') && (isdigit((unsigned char)at[1]) || at[1] == '-')) {
        char *stop;
        long power = strtol(at + 1, &stop, 10);
        at = stop;
        for (; power > 0 && value < 1e300; power--) value *= 10;
        for (; power < 0 && value > 0; power++) value /= 10;
    }
    if (end) *end = at;
    return sign * value;
}

double darknet_float(const darknet_config *c, const darknet_section *s, const char *key,
                     double fallback) {
    const char *text = darknet_text(c, s, key, NULL), *end;
    if (!text) return fallback;
    const double value = darknet_number(text, &end);
    return end == text ? fallback : value;
}

int64_t darknet_int(const darknet_config *c, const darknet_section *s, const char *key,
                    int64_t fallback) {
    const double value = darknet_float(c, s, key, (double)fallback);
    return value > 1e15 || value < -1e15 ? fallback : (int64_t)value;
}

int32_t darknet_list(const char *text, double *out, int32_t max) {
    int32_t n = 0;
    while (text && *text && n < max) {
        const char *end;
        out[n] = darknet_number(text, &end);
        if (end == text) break;
        n++;
        while (isspace((unsigned char)*end)) end++;
        text = *end == ',' ? end + 1 : NULL;
    }
    return n;
}
