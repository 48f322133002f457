/* Reads nested arrays of numbers in MessagePack with the library's callback parser: its objects
 * would take 24 bytes a number, and would allocate an array's claimed length at once. */
#include "cnndroid.h"

#include <msgpack/unpack.h>
#include <msgpack/unpack_define.h>

/* State of reading an array: where it goes, the depth, and why it failed. */
typedef struct cd_user {
    cd_array *out;
    int64_t room, level, most; /* most: bound on an array's length, from the file's size */
    int64_t have[4];           /* number of items of the arrays at each level, once known */
    const char *why;
} cd_user;

/* Notes why; returns the code that stops the reader. */
static int wrong(cd_user *u, const char *why) {
    u->why = why;
    return MSGPACK_UNPACK_PARSE_ERROR;
}

/* Appends a number to the array; 0 or more: go on, negative: it does not fit (u->why). */
static int number(cd_user *u, double value) {
    cd_array *a = u->out;
    if (a->n == 0) a->rank = (int32_t)u->level;
    if (u->level != a->rank || u->level == 0) return wrong(u, "numbers at different depths");
    if (a->n == u->room) {
        const int64_t room = u->room ? u->room * 2 : 256;
        float *grown = (float *)imp_host->resize(a->data, (size_t)room * sizeof(float));
        if (!grown) return wrong(u, "out of memory");
        a->data = grown;
        u->room = room;
    }
    a->data[a->n++] = (float)value;
    return 0;
}

/* Begins an array of n items, one level deeper. 0; negative: it does not fit (u->why). */
static int array(cd_user *u, int64_t n) {
    if (u->level == 4) return wrong(u, "arrays are nested too deeply");
    if (n < 1 || n > u->most) return wrong(u, "an array is empty, or longer than the file");
    int64_t *have = &u->have[u->level++];
    if (*have == 0) *have = n;
    return *have == n ? 0 : wrong(u, "arrays beside each other differ in length");
}

/* Parameters of the parser's template: function names, types, and a callback for each kind of
 * value. */
typedef int cd_object;
/* Names that MessagePack's reader is built with. */
#define msgpack_unpack_struct(name) struct cd_parser##name
/* Names that MessagePack's reader is built with. */
#define msgpack_unpack_func(ret, name) static inline ret cd_parser##name
/* Names that MessagePack's reader is built with. */
#define msgpack_unpack_callback(name) cd_on##name
#define msgpack_unpack_object cd_object
#define msgpack_unpack_user cd_user

/* Defines the callback for one type of number, which takes the value as a double. */
#define CD_NUMBER(name, type) \
    static inline int cd_on##name(cd_user *u, type value, cd_object *o) { \
        *o = 0; \
        return number(u, (double)value); \
    }
CD_NUMBER(_uint8, uint8_t)
CD_NUMBER(_uint16, uint16_t)
CD_NUMBER(_uint32, uint32_t)
CD_NUMBER(_uint64, uint64_t)
CD_NUMBER(_int8, int8_t)
CD_NUMBER(_int16, int16_t)
CD_NUMBER(_int32, int32_t)
CD_NUMBER(_int64, int64_t)
CD_NUMBER(_float, float)
CD_NUMBER(_double, double)

/* Callback for a value that is no number: refuses it. */
#define CD_SIMPLE(name) \
    static inline int cd_on##name(cd_user *u, cd_object *o) { \
        *o = 0; \
        return wrong(u, "something else than numbers"); \
    }
CD_SIMPLE(_nil)
CD_SIMPLE(_true)
CD_SIMPLE(_false)

/* Callback for bytes: refuses them. */
#define CD_BYTES(name) \
    static inline int cd_on##name(cd_user *u, const char *base, const char *at, unsigned int n, \
                                  cd_object *o) { \
        (void)base, (void)at, (void)n; \
        *o = 0; \
        return wrong(u, "something else than numbers"); \
    }
CD_BYTES(_str)
CD_BYTES(_bin)
CD_BYTES(_ext)

/* Callback: begins to read. */
static inline cd_object cd_on_root(cd_user *u) {
    (void)u;
    return 0;
}
/* Callback: an array begins. */
static inline int cd_on_array(cd_user *u, unsigned int n, cd_object *o) {
    const int result = array(u, n);
    *o = (cd_object)u->level; /* the level of its items */
    return result;
}
/* Callback: an item has ended; returns 0, to go on. */
static inline int cd_on_array_item(cd_user *u, cd_object *c, cd_object o) {
    (void)o;
    u->level = *c; /* the item may have been an array, which ends here */
    return 0;
}
/* Callback for a map: refuses it. */
static inline int cd_on_map(cd_user *u, unsigned int n, cd_object *o) {
    (void)n;
    *o = 0;
    return wrong(u, "something else than numbers");
}
/* Callback for an entry of a map, which was refused before; returns 0. */
static inline int cd_on_map_item(cd_user *u, cd_object *c, cd_object key, cd_object value) {
    (void)u, (void)c, (void)key, (void)value;
    return 0;
}

#include <msgpack/unpack_template.h>

/* Reads one array from data + *at on, and moves *at behind it. */
static cnr_status read_one(const char *path, const uint8_t *data, size_t bytes, size_t *at,
                           cd_array *out, cnr_error *err) {
    struct cd_parser_context parser;
    memset(&parser, 0, sizeof parser);
    parser.user.out = out;
    parser.user.most = (int64_t)bytes;
    cd_parser_init(&parser);
    const int done = cd_parser_execute(&parser, (const char *)data, bytes, at);
    const cd_user *u = &parser.user;
    memcpy(out->dim, u->have, sizeof out->dim);
    if (done < 0 && u->why && strcmp(u->why, "out of memory") == 0)
        return imp_host->fail(err, CNR_E_MEMORY, path, "out of memory");
    if (done <= 0 || out->n != imp_count(out->dim, out->rank))
        return imp_host->fail(err, CNR_E_FORMAT, path, "is no array of numbers in MessagePack: %s",
                              u->why ? u->why : "it is damaged or ends early");
    return CNR_OK;
}

cnr_status cd_message_read(const char *path, cd_array *out, int32_t max, int32_t *n,
                           cnr_error *err) {
    uint8_t *data;
    size_t bytes, at = 0;
    *n = 0;
    memset(out, 0, (size_t)max * sizeof *out);
    cnr_status status = imp_read_file(path, &data, &bytes, err);
    while (!status && at < bytes && *n < max)
        status = read_one(path, data, bytes, &at, &out[(*n)++], err);
    if (!status && at < bytes)
        status = imp_host->fail(err, CNR_E_FORMAT, path, "holds more than %d arrays", (int)max);
    imp_host->free(data);
    if (status) {
        cd_message_free(out, max);
        *n = 0;
    }
    return status;
}

void cd_message_free(cd_array *arrays, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        imp_host->free(arrays[i].data);
        arrays[i].data = NULL;
        arrays[i].n = 0;
    }
}
