/* Torch's serialisation, binary and ASCII, as a tree.
 *
 *   int type; number: double; string: int length, bytes; boolean: int;
 *   table:  int index, [int n, n x (key, value)]         [...]: at the first time only
 *   object: int index, [string "V 1", string class, its content]
 *   tensor: int rank, rank longs of sizes, of strides, long offset (from 1), a storage
 *   storage: long n, n elements */
#include "torch7.h"

#include <ctype.h>

enum { DEPTH = 200 };

static const t7_element elements[] = {
    {"Float", 4, CNR_f32}, {"Double", 8, CNR_f64}, {"Half", 2, CNR_f16},
    {"Long", 8, CNR_i64},  {"Int", 4, CNR_i32},    {"Short", 2, CNR_i16},
    {"Char", 1, CNR_i8},   {"Byte", 1, CNR_u8},    {"", 4, CNR_f32}, /* CudaStorage */
};

static const t7_value nil = {.kind = T7_NIL};

/* Fills err: out of memory; returns 0. */
static int no_memory(t7_file *f) {
    imp_host->fail(f->err, CNR_E_MEMORY, f->path, "out of memory");
    return 0;
}

/* Memory that lives as long as the file; NULL: out of memory. */
static void *take(t7_file *f, size_t bytes) {
    void *at = imp_take(&f->pool, bytes);
    if (!at) no_memory(f);
    return at;
}

void t7_release(t7_file *f) {
    imp_pool_free(&f->pool);
    imp_host->free(f->objects);
    f->objects = NULL;
}

/* Fills err: damaged at this byte; returns 0. */
static int bad(t7_file *f, const char *why) {
    imp_host->fail(f->err, CNR_E_FORMAT, f->path, "damaged at byte %zu: %s", f->at, why);
    return 0;
}

/* ---- scalars ---- */

static size_t left(const t7_file *f) { return f->bytes - f->at; }

/* Reads bytes into out and moves on; 0: the file ends before. */
static int raw(t7_file *f, void *out, size_t bytes) {
    if (left(f) < bytes) return bad(f, "the file ends early");
    memcpy(out, f->data + f->at, bytes);
    f->at += bytes;
    return 1;
}

/* Skips one newline, if the file is at one. */
static void skip_line(t7_file *f) {
    if (left(f) && f->data[f->at] == '\n') f->at++;
}

/* Reads a number in text into *out, and moves behind it, with 1; 0: failed. The file's bytes are
 * followed by a zero, so a number ends there at the latest. */
static int ascii_number(t7_file *f, double *out) {
    const char *text = (const char *)f->data + f->at, *end;
    *out = imp_number(text, &end);
    if (end == text || (size_t)(end - text) > left(f)) return bad(f, "no number");
    f->at += (size_t)(end - text);
    skip_line(f);
    return 1;
}

/* Reads a whole number of that many bytes, or its text, into *out; 0: failed, with err. */
static int read_long(t7_file *f, int64_t *out, int bytes) {
    int32_t narrow = 0;
    double number;
    if (f->ascii) {
        if (!ascii_number(f, &number)) return 0;
        if (!(number >= -9e15 && number <= 9e15)) return bad(f, "a whole number is too large");
        *out = (int64_t)number;
        return 1;
    }
    if (bytes == 8) return raw(f, out, 8);
    if (!raw(f, &narrow, 4)) return 0;
    *out = narrow;
    return 1;
}

static int read_int(t7_file *f, int64_t *out) { return read_long(f, out, 4); }

/* Reads a text with its length: *text and *n, inside the file; 0: failed, with err. */
static int read_string(t7_file *f, const char **text, size_t *n) {
    int64_t length;
    if (!read_int(f, &length)) return 0;
    if (length < 0 || (uint64_t)length > left(f)) return bad(f, "a string is longer than the file");
    *text = (const char *)f->data + f->at;
    *n = (size_t)length;
    f->at += *n;
    if (f->ascii) skip_line(f);
    return 1;
}

/* ---- objects ---- */

static const t7_value *read_value(t7_file *f);

/* A value of a kind; NULL: out of memory. */
static t7_value *make(t7_file *f, t7_kind kind) {
    t7_value *v = (t7_value *)take(f, sizeof *v);
    if (v) v->kind = kind;
    return v;
}

/* Indices count objects from 1, so none exceeds the number of bytes of the file. */
static int remember(t7_file *f, int64_t index, const t7_value *v) {
    if (index < 1 || (uint64_t)index > f->bytes / 4) return bad(f, "an object's index is wrong");
    if (index >= f->n_objects) {
        const int64_t n = index < 64 ? 128 : index * 2;
        const t7_value **grown =
            (const t7_value **)imp_host->resize(f->objects, (size_t)n * sizeof *grown);
        if (!grown) return no_memory(f);
        memset(grown + f->n_objects, 0, (size_t)(n - f->n_objects) * sizeof *grown);
        f->objects = grown;
        f->n_objects = n;
    }
    f->objects[index] = v;
    return 1;
}

/* Reads a table's pairs into v; 0: failed, with err. */
static int read_pairs(t7_file *f, t7_value *v) {
    int64_t n, room = 0;
    if (!read_int(f, &n)) return 0;
    if (n < 0 || (uint64_t)n > left(f) / 2) return bad(f, "a table is longer than the file");
    for (v->n = 0; v->n < n;) {
        if (v->n == room) { /* grown while reading, so that a wrong n costs no memory */
            room = room ? room * 2 : 8;
            if (room > n) room = n;
            const t7_value **grown = (const t7_value **)take(f, (size_t)room * 2 * sizeof *grown);
            if (!grown) return 0;
            if (v->n) memcpy(grown, v->pairs, (size_t)v->n * 2 * sizeof *grown);
            v->pairs = grown;
        }
        const t7_value *key = read_value(f), *value = key ? read_value(f) : NULL;
        if (!value) return 0;
        v->pairs[2 * v->n] = key;
        v->pairs[2 * v->n + 1] = value;
        v->n++;
    }
    return 1;
}

/* Reads a tensor's dims, strides and storage into v; 0: failed, with err. */
static int read_tensor(t7_file *f, t7_value *v) {
    int64_t rank;
    if (!read_int(f, &rank)) return 0;
    if (rank < 0 || rank > T7_MAX_DIMS) return bad(f, "a tensor's rank is wrong");
    int64_t *dim = (int64_t *)take(f, (size_t)rank * 16 + 1);
    if (!dim) return 0;
    for (int64_t i = 0; i < 2 * rank; i++)
        if (!read_long(f, &dim[i], f->long_bytes)) return 0;
    if (f->ascii && rank == 0) { /* sizes and strides of rank 0 are empty lines */
        skip_line(f);
        skip_line(f);
    }
    if (!read_long(f, &v->n, f->long_bytes)) return 0;
    v->rank = (int32_t)rank;
    v->dim = dim;
    v->content = read_value(f);
    if (!v->content) return 0;
    if (v->content->kind != T7_STORAGE && v->content->kind != T7_NIL)
        return bad(f, "a tensor's storage is something else");
    return 1;
}

/* Reads a storage of an ASCII file: numbers become doubles, bytes stay bytes; 0: it is damaged. */
static int read_ascii_storage(t7_file *f, t7_value *v) {
    static const t7_element as_double = {"Double", 8, CNR_f64};
    const t7_element *element = v->element;
    const int64_t n = v->n;
    v->n = 0;
    if ((uint64_t)n > left(f)) return bad(f, "a storage is longer than the file");
    if (element->bytes == 1) {
        v->data = f->data + f->at;
        f->at += (size_t)n;
    } else {
        double *out = (double *)take(f, (size_t)n * sizeof *out + 1);
        if (!out) return 0;
        for (int64_t i = 0; i < n; i++)
            if (!ascii_number(f, &out[i])) return 0;
        v->data = (const uint8_t *)out;
        v->element = &as_double;
    }
    if (element->bytes == 1 || n == 0) skip_line(f);
    v->n = n;
    return 1;
}

/* Reads the numbers of a storage into v; 0: failed, with err. */
static int read_storage(t7_file *f, t7_value *v) {
    static const t7_element narrow_long = {"Int", 4, CNR_i32};
    if (!read_long(f, &v->n, f->long_bytes)) return 0;
    if (v->n < 0) return bad(f, "a storage's size is negative");
    if (f->ascii) return read_ascii_storage(f, v);
    if (v->element->dtype == CNR_i64 && f->long_bytes == 4) v->element = &narrow_long;
    const uint64_t bytes = (uint64_t)v->element->bytes;
    if ((uint64_t)v->n > left(f) / bytes) return bad(f, "a storage is longer than the file");
    v->data = f->data + f->at;
    f->at += (size_t)((uint64_t)v->n * bytes);
    return 1;
}

/* "torch.CudaDoubleTensor": the element type of a class that ends in `tail`; NULL: another
 * class. */
static const t7_element *element_of(const t7_value *v, const char *tail) {
    const size_t k = strlen(tail);
    const char *text = v->text;
    size_t n = v->n_text;
    if (n < 6 + k || memcmp(text, "torch.", 6) != 0 || memcmp(text + n - k, tail, k) != 0)
        return NULL;
    text += 6;
    n -= 6 + k;
    const int cuda = n >= 4 && memcmp(text, "Cuda", 4) == 0;
    if (cuda) text += 4, n -= 4;
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++)
        if (strlen(elements[i].name) == n && memcmp(elements[i].name, text, n) == 0)
            return n || cuda ? &elements[i] : NULL;
    return NULL;
}

/* Reads an object by its class into v; 0: failed, with err. */
static int read_object(t7_file *f, t7_value *v) {
    if (!read_string(f, &v->text, &v->n_text)) return 0;
    if (v->n_text > 2 && memcmp(v->text, "V ", 2) == 0 && !read_string(f, &v->text, &v->n_text))
        return 0; /* the oldest files have no version before the class */
    if (element_of(v, "Tensor")) {
        v->kind = T7_TENSOR;
        return read_tensor(f, v);
    }
    if ((v->element = element_of(v, "Storage")) != NULL) {
        v->kind = T7_STORAGE;
        return read_storage(f, v);
    }
    v->content = read_value(f);
    return v->content != NULL;
}

/* Reads an object or table that has an index, or finds it by index; NULL: failed. A reference may
 * point to an object that is still being read, and thereby to itself: walks of the tree must limit
 * their steps. */
static const t7_value *read_indexed(t7_file *f, int64_t type) {
    int64_t index;
    if (!read_int(f, &index)) return NULL;
    if (index > 0 && index < f->n_objects && f->objects[index]) return f->objects[index];
    t7_value *v = make(f, type == 3 ? T7_TABLE : type == 4 ? T7_OBJECT : T7_FUNCTION);
    if (!v || !remember(f, index, v)) return NULL;
    if (type == 3) return read_pairs(f, v) ? v : NULL;
    if (type == 4) return read_object(f, v) ? v : NULL;
    if (!read_string(f, &v->text, &v->n_text)) return NULL;
    return read_value(f) ? v : NULL; /* skips its upvalues */
}

/* Reads a value of any type, owned by f; NULL: failed, with err. */
static const t7_value *read_inner(t7_file *f) {
    int64_t type, number;
    t7_value *v;
    if (!read_int(f, &type)) return NULL;
    switch (type) {
    case 0: return &nil;
    case 1:
        if (!(v = make(f, T7_NUMBER))) return NULL;
        return (f->ascii ? ascii_number(f, &v->number) : raw(f, &v->number, 8)) ? v : NULL;
    case 2:
        if (!(v = make(f, T7_STRING))) return NULL;
        return read_string(f, &v->text, &v->n_text) ? v : NULL;
    case 5:
        if (!(v = make(f, T7_BOOLEAN)) || !read_int(f, &number)) return NULL;
        v->number = number == 1;
        return v;
    case 6: /* a function of the old format: not indexed */
        if (!(v = make(f, T7_FUNCTION)) || !read_string(f, &v->text, &v->n_text)) return NULL;
        return read_value(f) ? v : NULL;
    case 3:
    case 4:
    case 7:
    case 8: return read_indexed(f, type);
    default: bad(f, "an object of an unknown type"); return NULL;
    }
}

/* Reads a value, unless it is nested too deeply; NULL: failed. */
static const t7_value *read_value(t7_file *f) {
    if (f->depth >= DEPTH) {
        bad(f, "objects are nested too deeply");
        return NULL;
    }
    f->depth++;
    const t7_value *v = read_inner(f);
    f->depth--;
    return v;
}

const t7_value *t7_read(t7_file *f) {
    f->ascii = f->bytes > 1 && isdigit(f->data[0]) && f->data[1] == '\n';
    return read_value(f);
}

/* Whether the bytes begin with a table or an object with index 1 (and a class, for an object). */
int t7_looks_right(const uint8_t *head, size_t n) {
    int32_t word[3];
    if (n > 4 && (head[0] == '3' || head[0] == '4') && memcmp(head + 1, "\n1\n", 3) == 0) return 1;
    if (n < 16) return 0;
    memcpy(word, head, sizeof word);
    if ((word[0] != 3 && word[0] != 4) || word[1] != 1 || word[2] < 0) return 0;
    return word[0] == 3 ? word[2] < 1 << 16 : word[2] > 2 && word[2] < 64 && isalpha(head[12]);
}
