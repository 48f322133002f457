/* Tracks integers that shapes are computed from. In the core a value is known whole or not at all.
 * Here [batch, 7, 7, 4] of Shape keeps its known elements through the slicing, arithmetic and
 * packing of frozen graphs. */
#include "job.h"

enum { MOST = 64 };

/* Element i of a list of whole numbers. */
static int64_t element(const cnr_tensor *t, int64_t i) {
    return t->dtype == CNR_i32 ? ((const int32_t *)t->data)[i] : ((const int64_t *)t->data)[i];
}

static tf_size known_size(int64_t value) { return (tf_size){.value = value, .known = 1}; }

int64_t tf_in_sizes(const tf_job *j, int32_t k, tf_size *out, int64_t max) {
    if (k >= j->n_in) return -1;
    const tf_layouts *x = j->in[k];
    const cnr_tensor *t = tf_known(j->net, x);
    const int64_t n = t ? cnr_count(t) : x->sizes ? x->n_sizes : -1;
    if (n < 0 || n > max || (t && t->dtype != CNR_i32 && t->dtype != CNR_i64)) return -1;
    for (int64_t i = 0; i < n; i++) out[i] = t ? known_size(element(t, i)) : x->sizes[i];
    return n;
}

/* Writes the sizes of input k, which must all be known, to out; returns how many, at most max, -1
 * with a problem. */
int64_t tf_known_ints(tf_job *j, int32_t k, int64_t *out, int64_t max) {
    tf_size sizes[2 * CNR_MAX_RANK];
    const int64_t most = 2 * CNR_MAX_RANK, n = tf_in_sizes(j, k, sizes, max < most ? max : most);
    int known = n >= 0;
    for (int64_t i = 0; i < n; i++) {
        out[i] = sizes[i].value;
        known &= sizes[i].known;
    }
    if (known) return n;
    if (!j->entry->failed)
        tf_problem(j,
                   "input %d decides shapes and is not known: give --option shape=HEIGHT,WIDTH,"
                   "CHANNELS if sizes of the input are open",
                   (int)k);
    return -1;
}

/* ---- one function for each operator: returns how many integers, or -1 ---- */

/* Sizes that Shape gives; returns how many, -1: unknown. So do all of_... */
static int64_t of_shape(const tf_job *j, tf_size *out) {
    int64_t d[CNR_MAX_RANK];
    const int32_t rank = tf_in_dims(j, 0, d);
    for (int32_t i = 0; i < rank; i++)
        out[i] =
            (tf_size){.value = d[i], .known = d[i] >= 0, .axis = i, .of = j->in[0], .factor = 1};
    return rank;
}

/* Sizes of n inputs, one behind the other, into out; returns how many, -1: not known. */
static int64_t of_join(const tf_job *j, int32_t first, int32_t n, tf_size *out) {
    int64_t count = 0;
    for (int32_t i = 0; i < n; i++) {
        const int64_t more = tf_in_sizes(j, first + i, out + count, MOST - count);
        if (more < 0) return -1;
        count += more;
    }
    return count;
}

/* Sizes that x[begin:end:step] of a vector picks; returns how many, -1: not known. */
static int64_t of_slice(const tf_job *j, tf_size *out) {
    const int strided = strcmp(j->op, "StridedSlice") == 0;
    tf_size x[MOST], b, e, s = known_size(1);
    const int64_t n = tf_in_sizes(j, 0, x, MOST);
    if (n < 0 || tf_in_sizes(j, 1, &b, 1) != 1 || tf_in_sizes(j, 2, &e, 1) != 1 || !b.known ||
        !e.known || (strided && (tf_in_sizes(j, 3, &s, 1) != 1 || !s.known)))
        return -1;
    if (s.value < 1 || tf_attr_int(j, "ellipsis_mask", 0) || tf_attr_int(j, "new_axis_mask", 0))
        return -1;
    int64_t from = b.value < 0 ? b.value + n : b.value, to = e.value < 0 ? e.value + n : e.value;
    if (tf_attr_int(j, "begin_mask", 0)) from = 0;
    if (from > n) from = n;
    if (!strided) to = e.value < 0 || e.value > n ? n : from + e.value;
    else if (tf_attr_int(j, "end_mask", 0)) to = n;
    if (tf_attr_int(j, "shrink_axis_mask", 0)) to = from + 1;
    if (to > n) to = n;
    int64_t count = 0;
    for (int64_t i = from < 0 ? 0 : from; i < to && count < MOST; i += s.value) out[count++] = x[i];
    return count;
}

/* Sizes that Gather picks, into out; returns how many, -1: not known. */
static int64_t of_gather(const tf_job *j, tf_size *out) {
    tf_size x[MOST], at[MOST];
    const int64_t n = tf_in_sizes(j, 0, x, MOST), count = tf_in_sizes(j, 1, at, MOST);
    for (int64_t i = 0; i < count; i++) {
        const int64_t k = at[i].value < 0 ? at[i].value + n : at[i].value;
        if (!at[i].known || k < 0 || k >= n) return -1;
        out[i] = x[k];
    }
    return n < 0 ? -1 : count;
}

/* An open size combined with a known number b: itself, a multiple, or unknown. */
static tf_size combine_open(const char *op, tf_size a, int64_t b) {
    const int64_t most = INT32_MAX;
    const int by_one = b == 1 && (strcmp(op, "mul") == 0 || strcmp(op, "floor_div") == 0);
    const int by_none = b == 0 && (strcmp(op, "add") == 0 || strcmp(op, "sub") == 0);
    tf_size out = a;
    if (by_one || by_none) return a;
    out.value = CNR_DIM_UNKNOWN;
    if (strcmp(op, "add") == 0) out.shift += b;
    else if (strcmp(op, "sub") == 0) out.shift -= b;
    else if (strcmp(op, "mul") == 0) out.shift *= b, out.factor *= b;
    else out.of = NULL;
    if (out.shift > most || out.shift < -most || out.factor > most || out.factor < -most)
        out.of = NULL;
    return out;
}

/* Combines two sizes by an operator; known ones are below 2^31 in magnitude, so nothing
 * overflows. */
static tf_size combine(const char *op, tf_size a, tf_size b) {
    const tf_size open = {.value = CNR_DIM_UNKNOWN};
    const int64_t most = INT32_MAX, x = a.value, y = b.value;
    const int turns = strcmp(op, "add") == 0 || strcmp(op, "mul") == 0;
    if ((a.known && (x > most || x < -most)) || (b.known && (y > most || y < -most))) return open;
    if (!a.known && !b.known) return open;
    if (!a.known) return combine_open(op, a, y);
    if (!b.known) return turns ? combine_open(op, b, x) : open;
    if (strcmp(op, "add") == 0) return known_size(x + y);
    if (strcmp(op, "sub") == 0) return known_size(x - y);
    if (strcmp(op, "mul") == 0) return known_size(x * y);
    if (strcmp(op, "max") == 0) return known_size(x > y ? x : y);
    if (strcmp(op, "min") == 0) return known_size(x < y ? x : y);
    if (strcmp(op, "floor_div") == 0 && y > 0 && x >= 0) return known_size(x / y);
    return open;
}

/* Sizes computed from two lists, one of which may have one size; returns how many, -1: not
 * known. */
static int64_t of_two(const tf_job *j, tf_size *out) {
    tf_size a[MOST], b[MOST];
    const int64_t n = tf_in_sizes(j, 0, a, MOST), m = tf_in_sizes(j, 1, b, MOST);
    if (n < 1 || m < 1 || (n != m && n != 1 && m != 1)) return -1;
    const int64_t count = n > m ? n : m;
    for (int64_t i = 0; i < count; i++)
        out[i] = combine(j->ours, a[n > 1 ? i : 0], b[m > 1 ? i : 0]);
    return count;
}

/* Product of all sizes of input 0, as one size; returns 1, -1: not known. */
static int64_t of_product(const tf_job *j, tf_size *out) {
    tf_size x[MOST];
    const int64_t n = tf_in_sizes(j, 0, x, MOST);
    *out = known_size(1);
    for (int64_t i = 0; i < n; i++) *out = combine("mul", *out, x[i]);
    return n < 0 ? -1 : 1;
}

/* Sizes that the node gives, by its operator, into out; returns how many, -1: not known. */
static int64_t sizes_of(const tf_job *j, tf_size *out) {
    const char *op = j->op;
    const int32_t last = j->n_in - 1;
    if (strcmp(op, "Shape") == 0) return of_shape(j, out);
    if (strcmp(op, "Pack") == 0) return of_join(j, 0, j->n_in, out);
    if (strcmp(op, "ConcatV2") == 0) return of_join(j, 0, last, out);
    if (strcmp(op, "Concat") == 0) return of_join(j, 1, last, out);
    if (strcmp(op, "StridedSlice") == 0 || strcmp(op, "Slice") == 0) return of_slice(j, out);
    if (strcmp(op, "GatherV2") == 0 || strcmp(op, "Gather") == 0) return of_gather(j, out);
    if (strcmp(op, "Prod") == 0) return of_product(j, out);
    if (strcmp(op, "Cast") == 0 || strcmp(op, "Squeeze") == 0 || strcmp(op, "ExpandDims") == 0 ||
        strcmp(op, "Reshape") == 0)
        return tf_in_sizes(j, 0, out, MOST);
    const tf_row *row = j->entry->row;
    return row->convert == tf_op_binary || row->convert == tf_op_floor_div ? of_two(j, out) : -1;
}

/* Replaces the value by a constant if all its integers are known. */
static void make_known(tf_job *j, tf_layouts *y, const cnr_tensor *type, const tf_size *sizes,
                       int64_t n) {
    int64_t values[MOST];
    for (int64_t i = 0; i < n; i++) values[i] = sizes[i].value;
    cnr_value v = tf_vector(j, values, n, type->dtype);
    if (type->rank == 0) {
        const int64_t zero = 0;
        imp_attrs l = {.n = 0};
        imp_ints(&l, "axes", &zero, 1);
        v = tf_step(j, "squeeze", &v, 1, &l);
    }
    y->plain = v;
}

/* Notes the sizes in a value, as constant or by their origin. */
static void note(tf_job *j, tf_layouts *y, const tf_size *sizes, int64_t n) {
    const cnr_tensor *type = imp_type(&j->net->b, y->plain);
    int known = 1;
    if (!type ||
        (type->dtype && ((type->dtype != CNR_i32 && type->dtype != CNR_i64) || type->rank > 1 ||
                         (type->data && type->flags & CNR_TENSOR_CONST))))
        return;
    for (int64_t i = 0; i < n; i++) known &= sizes[i].known;
    if (known && type->dtype) return make_known(j, y, type, sizes, n);
    tf_size *kept = (tf_size *)tf_block(j->net, (size_t)(n + 1) * sizeof *kept);
    if (!kept) return;
    memcpy(kept, sizes, (size_t)n * sizeof *kept);
    y->sizes = kept;
    y->n_sizes = (int32_t)n;
}

void tf_note_sizes(tf_job *j) {
    tf_size sizes[MOST];
    if (j->n_in < 1 || j->entry->dead || j->entry->out[0].plain < 0) return;
    if (strcmp(j->op, "Unpack") == 0 || strcmp(j->op, "Split") == 0) {
        const int64_t n = tf_in_sizes(j, j->n_in - 1, sizes, MOST);
        for (int32_t i = 0; i < n && n == tf_attr_int(j, j->ours, 0) && i < j->entry->n_out; i++)
            note(j, &j->entry->out[i], &sizes[i], 1);
        return;
    }
    const int64_t n = sizes_of(j, sizes);
    if (n >= 0) note(j, &j->entry->out[0], sizes, n);
}
