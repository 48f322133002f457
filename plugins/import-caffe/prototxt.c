/* Parses Protobuf's text format into the messages of protobuf-c's descriptors. */
#include "caffe.h"

#include <ctype.h>
#include <stdio.h>

enum { MAX_DEPTH = 32 };

/* A text that is being read. */
typedef struct parser {
    const char *path, *at;
    int line;
    cnr_error *err;
    cnr_status status;
} parser;

/* Notes the first error with its line; returns 0. */
static int fail(parser *p, cnr_status code, const char *what, const char *detail) {
    char where[240];
    if (p->status) return 0;
    snprintf(where, sizeof where, "%.200s:%d", p->path, p->line);
    p->status = imp_host->fail(p->err, code, where, "%s%s", what, detail);
    return 0;
}

/* Skips spaces, line ends and comments. */
static void skip_space(parser *p) {
    for (;; p->at++) {
        if (*p->at == '\n') p->line++;
        else if (*p->at == '#') {
            while (p->at[1] && p->at[1] != '\n') p->at++;
        } else if (!*p->at || !isspace((unsigned char)*p->at)) return;
    }
}

/* Takes a character if it is next; 0: it is not. */
static int take(parser *p, char c) {
    skip_space(p);
    if (*p->at != c) return 0;
    p->at++;
    return 1;
}

/* Reads an unquoted word or number (letters, digits, . + - _) into out; 0: it is too long, or
 * missing. */
static int word(parser *p, char *out, size_t room) {
    size_t n = 0;
    skip_space(p);
    while (isalnum((unsigned char)*p->at) || (*p->at && strchr("._+-", *p->at))) {
        if (n + 1 >= room) return fail(p, CNR_E_FORMAT, "a word is too long", "");
        out[n++] = *p->at++;
    }
    out[n] = 0;
    return n > 0 ? 1 : fail(p, CNR_E_FORMAT, "a name or value is wanted", "");
}

/* Reads a quoted string into new host memory; adjacent strings are joined. NULL: failed, or there
 * is none. */
static char *quoted(parser *p) {
    char *out = NULL;
    size_t n = 0;
    for (skip_space(p); *p->at == '"' || *p->at == '\''; skip_space(p)) {
        const char quote = *p->at++;
        const char *end = p->at;
        while (*end && *end != quote && *end != '\n') end += end[0] == '\\' && end[1] ? 2 : 1;
        if (*end != quote) return fail(p, CNR_E_FORMAT, "a string has no end", ""), out;
        char *grown = (char *)imp_host->resize(out, n + (size_t)(end - p->at) + 1);
        if (!grown) return fail(p, CNR_E_MEMORY, "out of memory", ""), out;
        out = grown;
        for (const char *c = p->at; c < end; c++) {
            if (*c == '\\' && c + 1 < end) {
                c++;
                out[n++] = (char)(*c == 'n' ? '\n' : *c == 't' ? '\t' : *c);
            } else {
                out[n++] = *c;
            }
        }
        out[n] = 0;
        p->at = end + 1;
    }
    if (!out) fail(p, CNR_E_FORMAT, "a string in quotes is wanted", "");
    return out;
}

static int message(parser *p, ProtobufCMessage *out, int depth, char close);

/* Skips the value of a field that the schema does not have; 0: it is malformed. */
static int skip_value(parser *p, int depth) {
    char text[256];
    if (depth > MAX_DEPTH) return fail(p, CNR_E_LIMIT, "messages are nested too deeply", "");
    const int colon = take(p, ':');
    skip_space(p);
    if (*p->at == '{' || *p->at == '<') {
        const char close = *p->at++ == '{' ? '}' : '>';
        while (!take(p, close)) {
            if (!*p->at) return fail(p, CNR_E_FORMAT, "a brace is not closed", "");
            if (!word(p, text, sizeof text) || !skip_value(p, depth + 1)) return 0;
            take(p, ',');
            take(p, ';');
        }
        return 1;
    }
    if (!colon) return fail(p, CNR_E_FORMAT, "':' or '{' is wanted", "");
    if (*p->at == '[') {
        for (p->at++; !take(p, ']');) {
            if (!*p->at) return fail(p, CNR_E_FORMAT, "a bracket is not closed", "");
            if (*p->at == ',') p->at++;
            else if (*p->at == '"' || *p->at == '\'') imp_host->free(quoted(p));
            else if (!word(p, text, sizeof text)) return 0;
            if (p->status) return 0;
        }
        return 1;
    }
    if (*p->at == '"' || *p->at == '\'') {
        imp_host->free(quoted(p));
        return !p->status;
    }
    return word(p, text, sizeof text);
}

/* Returns the bytes that a value of a protobuf type takes in a message. */
static size_t value_bytes(ProtobufCType type) {
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_DOUBLE: return 8;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE: return sizeof(void *);
    default: return 4; /* protobuf_c_boolean is an int */
    }
}

/* Parses a whole text as a finite number in C's form, independent of the locale, into *out; 0: it
 * is none. */
static int number(const char *text, double *out) {
    const char *end;
    *out = imp_number(text, &end);
    if (end != text && *end == 'f') end++;
    return end != text && !*end && *out - *out == 0; /* reject inf and nan */
}

/* Reads a number, word or text into a field. 0: failed. */
static int scalar(parser *p, const ProtobufCFieldDescriptor *field, void *out) {
    char text[128];
    double d = 0;
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        *(char **)out = quoted(p);
        return !p->status;
    }
    if (!word(p, text, sizeof text)) return 0;
    if (field->type == PROTOBUF_C_TYPE_ENUM) {
        const ProtobufCEnumDescriptor *e = (const ProtobufCEnumDescriptor *)field->descriptor;
        const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value_by_name(e, text);
        if (!v && number(text, &d)) v = protobuf_c_enum_descriptor_get_value(e, (int)d);
        if (!v) return fail(p, CNR_E_FORMAT, "unknown value of an enumeration: ", text);
        *(int *)out = v->value;
        return 1;
    }
    if (field->type == PROTOBUF_C_TYPE_BOOL) {
        const int yes = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
        if (!yes && strcmp(text, "false") != 0 && strcmp(text, "0") != 0)
            return fail(p, CNR_E_FORMAT, "true or false is wanted, found ", text);
        *(protobuf_c_boolean *)out = yes;
        return 1;
    }
    if (!number(text, &d)) return fail(p, CNR_E_FORMAT, "a number is wanted, found ", text);
    const int whole = field->type != PROTOBUF_C_TYPE_FLOAT && field->type != PROTOBUF_C_TYPE_DOUBLE;
    if (whole && (d != (double)(int64_t)(d < 9e15 && d > -9e15 ? d : 0.5)))
        return fail(p, CNR_E_FORMAT, "a whole number is wanted, found ", text);
    switch (field->type) {
    case PROTOBUF_C_TYPE_FLOAT: *(float *)out = (float)d; return 1;
    case PROTOBUF_C_TYPE_DOUBLE: *(double *)out = d; return 1;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64: *(int64_t *)out = (int64_t)d; return 1;
    case PROTOBUF_C_TYPE_UINT32:
        if (d < 0 || d > 4294967295.0) return fail(p, CNR_E_FORMAT, "out of range: ", text);
        *(uint32_t *)out = (uint32_t)d;
        return 1;
    default:
        if (d < -2147483648.0 || d > 2147483647.0)
            return fail(p, CNR_E_FORMAT, "out of range: ", text);
        *(int32_t *)out = (int32_t)d;
        return 1;
    }
}

/* Address of the field's next value in `out`; grows repeated fields. NULL: out of memory. */
static void *place(parser *p, const ProtobufCFieldDescriptor *field, ProtobufCMessage *out) {
    char *base = (char *)out;
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        if (field->quantifier_offset) *(protobuf_c_boolean *)(base + field->quantifier_offset) = 1;
        return base + field->offset;
    }
    size_t *n = (size_t *)(base + field->quantifier_offset);
    char **at = (char **)(base + field->offset);
    const size_t bytes = value_bytes(field->type);
    if ((*n & (*n - 1)) == 0) { /* n is 0 or a power of two: the array is full */
        char *grown = (char *)imp_host->resize(*at, (*n ? *n * 2 : 1) * bytes);
        if (!grown) return fail(p, CNR_E_MEMORY, "out of memory", ""), (void *)NULL;
        *at = grown;
    }
    void *slot = *at + *n * bytes;
    memset(slot, 0, bytes);
    ++*n;
    return slot;
}

/* Reads the value of a field: a message, a list, or one value. 0: failed. */
static int field_value(parser *p, const ProtobufCFieldDescriptor *field, ProtobufCMessage *out,
                       int depth) {
    void *slot;
    if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
        if (!take(p, ':')) return fail(p, CNR_E_FORMAT, "':' is wanted after ", field->name);
        const int list = take(p, '[');
        if (list && take(p, ']')) return 1;
        do {
            if (field->label != PROTOBUF_C_LABEL_REPEATED &&
                field->type == PROTOBUF_C_TYPE_STRING) { /* the last one counts */
                char **text = (char **)((char *)out + field->offset);
                if (*text != field->default_value) imp_host->free(*text);
                *text = NULL;
            }
            slot = place(p, field, out);
            if (!slot || !scalar(p, field, slot)) return 0;
        } while (list && take(p, ','));
        return !list || take(p, ']') ? 1 : fail(p, CNR_E_FORMAT, "']' is wanted", "");
    }
    take(p, ':');
    const char close = take(p, '{') ? '}' : take(p, '<') ? '>' : 0;
    if (!close) return fail(p, CNR_E_FORMAT, "'{' is wanted after ", field->name);
    const ProtobufCMessageDescriptor *desc = (const ProtobufCMessageDescriptor *)field->descriptor;
    ProtobufCMessage *inner = NULL;
    if (field->label != PROTOBUF_C_LABEL_REPEATED)
        inner = *(ProtobufCMessage **)((char *)out + field->offset); /* merged */
    if (!inner) {
        slot = place(p, field, out);
        inner = slot ? (ProtobufCMessage *)imp_host->alloc(desc->sizeof_message) : NULL;
        if (!inner) {
            if (slot && field->label == PROTOBUF_C_LABEL_REPEATED)
                --*(size_t *)((char *)out + field->quantifier_offset);
            return fail(p, CNR_E_MEMORY, "out of memory", "");
        }
        desc->message_init(inner);
        *(ProtobufCMessage **)slot = inner;
    }
    return message(p, inner, depth + 1, close);
}

/* Reads a message up to its closing bracket. 0: failed. */
static int message(parser *p, ProtobufCMessage *out, int depth, char close) {
    if (depth > MAX_DEPTH) return fail(p, CNR_E_LIMIT, "messages are nested too deeply", "");
    for (;;) {
        char name[258];
        skip_space(p);
        if (close ? *p->at == close : !*p->at) {
            if (close) p->at++;
            return 1;
        }
        if (!*p->at) return fail(p, CNR_E_FORMAT, "a brace is not closed", "");
        if (!word(p, name, sizeof name - 1)) return 0;
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field_by_name(out->descriptor, name);
        if (!field) { /* the schema appends _ to names that clash with protobuf-c's own */
            strcat(name, "_");
            field = protobuf_c_message_descriptor_get_field_by_name(out->descriptor, name);
        }
        if (field ? !field_value(p, field, out, depth) : !skip_value(p, depth)) return 0;
        take(p, ',');
        take(p, ';');
    }
}

ProtobufCMessage *caffe_parse_text(const ProtobufCMessageDescriptor *desc, const char *path,
                                   const char *text, cnr_error *err) {
    parser p = {path, text, 1, err, CNR_OK};
    ProtobufCMessage *out = (ProtobufCMessage *)imp_host->alloc(desc->sizeof_message);
    if (!out) {
        imp_host->fail(err, CNR_E_MEMORY, path, "out of memory");
        return NULL;
    }
    desc->message_init(out);
    if (message(&p, out, 0, 0)) return out;
    protobuf_c_message_free_unpacked(out, &caffe_allocator);
    return NULL;
}
