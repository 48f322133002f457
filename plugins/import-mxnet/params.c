/* MXNet's file of arrays, in its four forms.
 *
 *   u64 0x112, u64 0, u64 n, n arrays, u64 n, n x {u64 length, name}
 *   array: u32 rank, rank x u32                             before 2017
 *          u32 0xF993FAC8, u32 rank, rank x i64             version 1
 *          u32 0xF993FAC9 or A, i32 storage (0: dense), u32 rank, rank x i64
 *          then, unless it is empty: i32 device, i32 its number, i32 type, the elements */
#include "mxnet.h"

#include <unistd.h>

enum { MAGIC_LIST = 0x112, MOST_ARRAYS = 1 << 16 };
static const uint32_t magic_v1 = 0xF993FAC8u, magic_v2 = 0xF993FAC9u, magic_v3 = 0xF993FACAu;

static const int32_t types[] = {CNR_f32, CNR_f64, CNR_f16, CNR_u8,
                                CNR_i32, CNR_i8,  CNR_i64, CNR_bool};

/* Position in a file of parameters. */
typedef struct reader {
    int fd;
    uint64_t at, size;
    const char *path;
    cnr_error *err;
} reader;

/* Fills err: damaged at this place; returns 0. */
static int bad(reader *r, const char *why) {
    imp_host->fail(r->err, CNR_E_FORMAT, r->path, "damaged at byte %llu: %s",
                   (unsigned long long)r->at, why);
    return 0;
}

/* Reads n bytes into out and moves on; 0: the file ends before. */
static int raw(reader *r, void *out, uint64_t n) {
    if (r->size - r->at < n || !imp_pread(r->fd, out, n, r->at))
        return bad(r, "the file ends early");
    r->at += n;
    return 1;
}

/* Reads dimensions of 4 or, wide, 8 bytes. 0: failed. */
static int read_dims(reader *r, mx_array *a, uint32_t rank, int wide) {
    if (rank > CNR_MAX_RANK) return bad(r, "an array has too many dimensions");
    a->rank = (int32_t)rank;
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t narrow = 0;
        if (wide ? !raw(r, &a->dim[i], 8) : !raw(r, &narrow, 4)) return 0;
        if (!wide) a->dim[i] = narrow;
        if (a->dim[i] < 0) return bad(r, "an array's size is negative");
    }
    return 1;
}

/* Reads an array's type, dims and place into a; 0: failed, with the reason in r->err. */
static int read_array(reader *r, mx_array *a) {
    uint32_t magic, rank;
    int32_t storage = 0, device[2];
    if (!raw(r, &magic, 4)) return 0;
    const int wide = magic == magic_v1 || magic == magic_v2 || magic == magic_v3;
    rank = magic;
    if ((magic == magic_v2 || magic == magic_v3) && !raw(r, &storage, 4)) return 0;
    if (storage != 0 && storage != -1) return bad(r, "sparse arrays are not supported");
    if (wide && !raw(r, &rank, 4)) return 0;
    a->value = -1;
    if (magic == magic_v3 && rank == UINT32_MAX) return 1; /* unknown shape */
    if (!read_dims(r, a, rank, wide)) return 0;
    if (rank == 0 && magic != magic_v3) {
        a->dim[0] = 0;
        a->rank = 1;
        return 1;
    }
    if (!raw(r, device, 8) || !raw(r, &a->type, 4)) return 0;
    if (a->type < 0 || a->type >= CNR_ROWS(types)) return bad(r, "an array of an unknown type");
    const int64_t n = imp_count(a->dim, a->rank);
    const int64_t bytes = cnr_dtype_bits(types[a->type]) / 8;
    if (n < 0 || (uint64_t)n > (r->size - r->at) / (uint64_t)bytes)
        return bad(r, "an array is longer than the file");
    a->fd = r->fd;
    a->has_data = 1;
    a->offset = r->at;
    r->at += (uint64_t)(n * bytes);
    return 1;
}

/* Reads the names of all arrays; 0: failed, with the reason in r->err. */
static int read_names(reader *r, mx_params *p) {
    uint64_t n, length;
    if (!raw(r, &n, 8)) return 0;
    if (n == 0 && p->n) return bad(r, "its arrays have no names");
    if (n != (uint64_t)p->n) return bad(r, "it has not as many names as arrays");
    for (int32_t i = 0; i < p->n; i++) {
        if (!raw(r, &length, 8)) return 0;
        if (length > r->size - r->at) return bad(r, "a name is longer than the file");
        mx_array *a = &p->at[i];
        char *name = (char *)imp_take(&p->names, (size_t)length + 1);
        if (!name) return imp_host->fail(r->err, CNR_E_MEMORY, r->path, "out of memory"), 0;
        if (!raw(r, name, length)) return 0;
        a->name = name;
        a->n_name = (size_t)length;
        if (length > 4 && (memcmp(a->name, "arg:", 4) == 0 || memcmp(a->name, "aux:", 4) == 0))
            a->name += 4, a->n_name -= 4;
    }
    return 1;
}

/* Reads the list of arrays and their names. */
static cnr_status read_list(mx_params *p, reader *r) {
    uint64_t head[3];
    cnr_error why = CNR_ERROR_INIT;
    reader first = {r->fd, 0, r->size, r->path, &why};
    if (!raw(&first, head, sizeof head) || head[0] != MAGIC_LIST)
        return imp_host->fail(r->err, CNR_E_FORMAT, r->path, "is no file of MXNet's parameters");
    if (head[2] > MOST_ARRAYS || head[2] > r->size / 4)
        return imp_host->fail(r->err, CNR_E_FORMAT, r->path, "claims %llu arrays",
                              (unsigned long long)head[2]);
    p->at = (mx_array *)imp_host->alloc((size_t)(head[2] + 1) * sizeof p->at[0]);
    if (!p->at) return imp_host->fail(r->err, CNR_E_MEMORY, r->path, "out of memory");
    memset(p->at, 0, (size_t)(head[2] + 1) * sizeof p->at[0]);
    p->n = (int32_t)head[2];
    r->at = first.at;
    for (int32_t i = 0; i < p->n; i++)
        if (!read_array(r, &p->at[i])) return CNR_E_FORMAT;
    if (read_names(r, p)) return CNR_OK;
    return r->err && r->err->code ? (cnr_status)r->err->code : CNR_E_FORMAT;
}

cnr_status mx_params_open(mx_params *p, const char *path, cnr_error *err) {
    memset(p, 0, sizeof *p);
    reader r = {.path = path, .err = err};
    p->fd = r.fd = imp_host->file_open(path, &r.size, err);
    if (r.fd < 0) return (cnr_status)(err && err->code ? err->code : CNR_E_IO);
    p->is_open = 1;
    p->bytes = r.size;
    return read_list(p, &r);
}

void mx_params_close(mx_params *p) {
    if (p->is_open) close(p->fd);
    imp_host->free(p->at);
    imp_pool_free(&p->names);
    memset(p, 0, sizeof *p);
}

int mx_params_looks_right(const uint8_t *head, size_t n) {
    uint64_t word[2];
    if (n < 24) return 0;
    memcpy(word, head, sizeof word);
    return word[0] == MAGIC_LIST && word[1] == 0;
}

/* The array of that name; NULL: none. Searches from after the last match, since nodes mostly read
 * parameters in the file's order. */
mx_array *mx_params_find(mx_params *p, const char *name) {
    const size_t n = strlen(name);
    for (int32_t k = 0; p && k < p->n; k++) {
        const int32_t i = (p->next + k) % p->n;
        if (p->at[i].n_name != n || memcmp(p->at[i].name, name, n) != 0) continue;
        p->next = i + 1;
        return &p->at[i];
    }
    return NULL;
}

int64_t mx_array_count(const mx_array *a) { return a->has_data ? imp_count(a->dim, a->rank) : 0; }

int mx_array_floats(const mx_array *a, int64_t first, int64_t n, float *out) {
    enum { PART = 4096 };
    double part[PART / sizeof(double)], v;
    const int64_t bytes = cnr_dtype_bits(types[a->type]) / 8, most = PART / 8;
    if (types[a->type] == CNR_f32)
        return imp_pread(a->fd, out, (uint64_t)n * 4, a->offset + (uint64_t)first * 4);
    for (int64_t at = 0; at < n; at += most) {
        const int64_t here = n - at < most ? n - at : most;
        if (!imp_pread(a->fd, part, (uint64_t)(here * bytes),
                       a->offset + (uint64_t)((first + at) * bytes)))
            return 0;
        for (int64_t i = 0; i < here; i++) {
            imp_host->elements_read(types[a->type], part, i, 1, 1, CNR_f64, &v);
            out[at + i] = (float)v;
        }
    }
    return 1;
}

/* Reads a piece of an array's floats, as graph_constant_read asks for it. */
static cnr_status read_piece(void *state, uint64_t offset, void *out, uint64_t bytes) {
    const int64_t size = (int64_t)sizeof(float);
    return mx_array_floats((const mx_array *)state, (int64_t)offset / size, (int64_t)bytes / size,
                           (float *)out)
               ? CNR_OK
               : CNR_E_IO;
}

cnr_value mx_array_weight(imp_net *net, const mx_array *a, const char *name, const char *suffix,
                          const int64_t *dim, int32_t rank) {
    mx_array own = *a;
    return imp_weight_read(net, name, suffix, dim, rank, read_piece, &own);
}
