/* Sparse matrix times vector: blocks of rows in lanes, as the microkernels read them
 * (ukernel/ukernel.h shows a slice). Blocks of a window are sorted by length, so that the lanes of
 * a slice have similar lengths. A window's rows are adjacent, so that a range of rows is a range of
 * windows. */
#include "sparse.h"

enum { WINDOW = 4, TASKS = 6 }; /* slices of a window; tasks for each thread */
#define NO_BLOCK UINT32_MAX

/* The blob: this, then the parts at the offsets. */
struct csr_slices {
    uint64_t rows, columns;
    uint32_t slices, block, type, wide; /* wide: gaps of 2 bytes */
    uint64_t begin_at;                  /* u32[slices + 1], steps */
    uint64_t lane_at;                   /* u32[slices][16]: the block in each lane */
    uint64_t scale_at;                  /* byte place of an f32 for each row; 0: none */
    uint64_t gap_at, value_at, bytes;
};

static const void *part(const csr_slices *s, uint64_t at) { return (const char *)s + at; }

/* Type in which values are kept. */
static uint32_t type_of(const csr_header *h) {
    return h->value == CNR_f16 ? CSR_VALUE_F16 : h->value == CNR_i8 ? CSR_VALUE_I8 : CSR_VALUE_F32;
}
/* Bytes of a value of this type. */
static uint64_t width_of(uint32_t type) {
    return type == CSR_VALUE_F32 ? 4 : type == CSR_VALUE_F16 ? 2 : 1;
}

/* State of packing: where each block's indices begin is known only after reading all before. */
typedef struct making {
    const csr_matrix *m;
    uint32_t *column; /* columns of the entries of one block */
    uint32_t *length; /* number of steps of each block */
    uint32_t *place;  /* slice * 16 + lane of each block */
    csr_slices head;
} making;

/* Steps that a row of n entries takes, where a gap of more than `most` columns takes further
 * steps. */
static uint32_t steps_of(const making *k, uint64_t n, uint32_t most) {
    uint64_t steps = n, before = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (k->column[i] > before) steps += (k->column[i] - before - 1) / most;
        before = k->column[i];
    }
    return (uint32_t)steps;
}

/* Chooses gaps of a byte if this needs few additional steps. */
static void measure(making *k) {
    const csr_matrix *m = k->m;
    uint64_t steps[2] = {0, 0};
    if (csr_slices_are_told(&m->head)) {
        for (uint64_t b = 0; b < m->blocks; b++)
            k->length[b] = m->row_begin[b + 1] - m->row_begin[b];
        return;
    }
    for (uint32_t wide = 0; wide < 2; wide++) {
        uint64_t cursor = 0;
        for (uint64_t b = 0; b < m->blocks; b++) {
            csr_columns(m, b, &cursor, k->column);
            k->length[b] = steps_of(k, m->row_begin[b + 1] - m->row_begin[b], wide ? 65535 : 255);
            steps[wide] += k->length[b];
        }
        k->head.wide = wide;
        if (steps[0] <= m->head.entries + m->head.entries / 8) return;
    }
}

/* Assigns the blocks of each window to lanes, the longest first; *steps: total of all slices. */
static uint64_t place(making *k, uint32_t *begin, uint32_t *lane) {
    uint64_t steps = 0;
    for (uint64_t from = 0; from < k->m->blocks; from += WINDOW * CSR_LANES) {
        const uint64_t n = (uint64_t)cnr_min((int64_t)(k->m->blocks - from), WINDOW * CSR_LANES);
        uint32_t order[WINDOW * CSR_LANES];
        for (uint64_t i = 0; i < n; i++) {
            uint64_t at = i;
            for (; at > 0 && k->length[order[at - 1]] < k->length[from + i]; at--)
                order[at] = order[at - 1];
            order[at] = (uint32_t)(from + i);
        }
        for (uint64_t i = 0; i < (uint64_t)cnr_round_up((int64_t)n, CSR_LANES); i++) {
            const uint64_t slot = from + i;
            if (i % CSR_LANES == 0) {
                if (begin) begin[slot / CSR_LANES] = (uint32_t)steps;
                steps += k->length[order[i]];
            }
            if (lane) lane[slot] = i < n ? order[i] : NO_BLOCK;
            if (i < n) k->place[order[i]] = (uint32_t)slot;
        }
    }
    return steps;
}

static uint64_t to_line(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

/* Begins the making: rows in order of length, and the image's head. */
static cnr_status begin(making *k, const csr_matrix *m, cnr_error *err) {
    uint64_t longest = 0;
    *k = (making){.m = m};
    for (uint64_t b = 0; b < m->blocks; b++)
        longest = (uint64_t)cnr_max((int64_t)longest, m->row_begin[b + 1] - m->row_begin[b]);
    k->column = (uint32_t *)csr_host->alloc((longest + 2 * m->blocks + 1) * sizeof(uint32_t));
    if (!k->column) return csr_host->fail(err, CNR_E_MEMORY, "sparse-csr", "out of memory");
    k->length = k->column + longest;
    k->place = k->length + m->blocks;
    measure(k);
    csr_slices *h = &k->head;
    h->rows = m->head.rows;
    h->columns = m->head.columns;
    h->block = m->head.block;
    h->type = type_of(&m->head);
    h->slices = (uint32_t)cnr_div_up((int64_t)m->blocks, CSR_LANES);
    const uint64_t steps = place(k, NULL, NULL);
    h->begin_at = to_line(sizeof *h);
    h->lane_at = to_line(h->begin_at + (h->slices + 1) * 4ull);
    h->gap_at = to_line(h->lane_at + h->slices * 4ull * CSR_LANES);
    if (m->head.value == CNR_i8) {
        h->scale_at = h->gap_at;
        h->gap_at = to_line(h->scale_at + h->rows * 4);
    }
    h->value_at = to_line(h->gap_at + steps * CSR_LANES * (h->wide ? 2 : 1));
    h->bytes = to_line(h->value_at + steps * CSR_LANES * h->block * width_of(h->type));
    return CNR_OK;
}

cnr_status csr_slices_size(const csr_matrix *m, uint64_t *bytes, cnr_error *err) {
    making k;
    CNR_TRY(begin(&k, m, err));
    *bytes = k.head.bytes;
    csr_host->free(k.column);
    return CNR_OK;
}

/* Copies n values, `step` apart, as stored or from their table, to every `pitch`-th place. */
static void put_values(const csr_matrix *m, uint32_t type, uint64_t first, uint64_t step,
                       uint64_t n, void *to, uint64_t at, uint64_t pitch) {
    const uint8_t *bytes = (const uint8_t *)m->value + first;
    const uint16_t *halves = (const uint16_t *)m->value + first;
    const float *floats = (const float *)m->value + first;
    if (type == CSR_VALUE_F16)
        for (uint64_t i = 0; i < n; i++) ((uint16_t *)to)[at + i * pitch] = halves[i * step];
    else if (type == CSR_VALUE_I8)
        for (uint64_t i = 0; i < n; i++) ((uint8_t *)to)[at + i * pitch] = bytes[i * step];
    else if (m->head.value == CSR_SHARED)
        for (uint64_t i = 0; i < n; i++) ((float *)to)[at + i * pitch] = m->table[bytes[i * step]];
    else
        for (uint64_t i = 0; i < n; i++) ((float *)to)[at + i * pitch] = floats[i * step];
}

/* Writes the gap of step `at`, as one or two bytes. */
static void put_gap(const csr_slices *h, void *gap, uint64_t at, uint32_t columns) {
    if (h->wide) ((uint16_t *)gap)[at] = (uint16_t)columns;
    else ((uint8_t *)gap)[at] = (uint8_t)columns;
}

/* Writes block b into its lane. */
static void put_block(const making *k, uint64_t b, uint64_t first_step, char *blob) {
    const csr_slices *h = &k->head;
    const csr_matrix *m = k->m;
    const uint32_t lane = k->place[b] % CSR_LANES, most = h->wide ? 65535 : 255;
    const uint64_t entry = m->row_begin[b], n = m->row_begin[b + 1] - entry;
    uint64_t step = first_step, done = 0;
    uint32_t before = 0;
    for (uint64_t i = 0; i <= n; i++) { /* values between two fillers are copied together */
        const int fills = i < n && k->column[i] - before > most;
        if (fills || i == n) {
            for (uint32_t r = 0; r < h->block; r++)
                put_values(m, h->type, (entry + done) * h->block + r, h->block, i - done,
                           blob + h->value_at,
                           ((step - (i - done)) * h->block + r) * CSR_LANES + lane,
                           (uint64_t)h->block * CSR_LANES);
            done = i;
        }
        if (i == n) return;
        for (; k->column[i] - before > most; before += most, step++)
            put_gap(h, blob + h->gap_at, step * CSR_LANES + lane, most);
        put_gap(h, blob + h->gap_at, step * CSR_LANES + lane, k->column[i] - before);
        before = k->column[i];
        step++;
    }
}

/* Writes the image of m by slices into blob, which has csr_slices_size bytes; fails with
 * CNR_E_MEMORY. */
cnr_status csr_slices_make(const csr_matrix *m, void *blob, cnr_error *err) {
    making k;
    CNR_TRY(begin(&k, m, err));
    const csr_slices *h = &k.head;
    char *to = (char *)blob;
    uint32_t *step = (uint32_t *)(void *)(to + h->begin_at);
    uint64_t cursor = 0;
    memset(blob, 0, h->bytes);
    memcpy(blob, h, sizeof *h);
    step[h->slices] = (uint32_t)place(&k, step, (uint32_t *)(void *)(to + h->lane_at));
    if (h->scale_at) memcpy(to + h->scale_at, m->table, h->rows * 4);
    for (uint64_t b = 0; b < m->blocks; b++) {
        csr_columns(m, b, &cursor, k.column);
        put_block(&k, b, step[k.place[b] / CSR_LANES], to);
    }
    csr_host->free(k.column);
    return CNR_OK;
}

/* ---- running ---- */

/* Arguments of the tasks of a product by slices. */
typedef struct slices_job {
    const csr_vector_job *job;
    int64_t first, end, tasks; /* range of windows, and number of tasks */
} slices_job;

/* First step of a window. */
static int64_t window_begin(const csr_slices *s, int64_t window) {
    const uint32_t *begin = (const uint32_t *)part(s, s->begin_at);
    return begin[cnr_min(window * WINDOW, s->slices)];
}

/* First window of a task; tasks have about equal numbers of steps. */
static int64_t task_begin(const slices_job *j, int64_t task) {
    const csr_slices *s = j->job->blob;
    const int64_t from = window_begin(s, j->first), all = window_begin(s, j->end) - from;
    int64_t low = j->first, high = j->end;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if ((window_begin(s, middle) - from) * j->tasks < all * task) low = middle + 1;
        else high = middle;
    }
    return task == j->tasks ? j->end : low;
}

/* Writes the sums of a slice, with bias and epilogue. */
static void put_rows(const csr_vector_job *j, int64_t slice, const float *sum) {
    const csr_slices *s = j->blob;
    const uint32_t *lane = (const uint32_t *)part(s, s->lane_at) + slice * CSR_LANES;
    const float *scale = s->scale_at ? (const float *)part(s, s->scale_at) : NULL;
    for (int64_t l = 0; l < CSR_LANES; l++) {
        if (lane[l] == NO_BLOCK) continue;
        for (int64_t r = 0; r < s->block; r++) {
            const int64_t row = (int64_t)lane[l] * s->block + r;
            if (row < j->first || row >= j->end) continue;
            const float product = sum[r * CSR_LANES + l] * (scale ? scale[row] : 1.0f);
            j->y[row] = product + (j->bias ? j->bias[row] : 0.0f);
        }
    }
}

/* Task: computes some windows. */
static void some_windows(void *arg, int64_t task, int32_t thread) {
    const slices_job *w = (const slices_job *)arg;
    const csr_vector_job *j = w->job;
    const csr_slices *s = j->blob;
    const uint32_t *begin = (const uint32_t *)part(s, s->begin_at);
    const int64_t from = task_begin(w, task), to = task_begin(w, task + 1);
    const int64_t gap = s->wide ? 2 : 1, value = (int64_t)width_of(s->type) * s->block;
    const csr_slice_fn run = csr_uk->slice[s->block > 1][s->wide][s->type];
    (void)thread;
    if (from >= to || cnr_cancelled(j->run->stream)) return;
    for (int64_t i = from * WINDOW; i < cnr_min(to * WINDOW, s->slices); i++) {
        float sum[CSR_BLOCK * CSR_LANES];
        const int64_t step = (int64_t)begin[i] * CSR_LANES;
        run((const char *)part(s, s->gap_at) + step * gap,
            (const char *)part(s, s->value_at) + step * value, begin[i + 1] - begin[i], j->x, sum);
        put_rows(j, i, sum);
    }
    const int64_t rows = WINDOW * CSR_LANES * s->block;
    const int64_t first = cnr_max(j->first, from * rows), end = cnr_min(j->end, to * rows);
    if (end > first)
        csr_chain_run(&j->chain, 0, j->run->node, j->y + first, j->at + first, end - first);
}

/* Multiplies by the slices that hold the rows [first, end), on the threads of the run. */
void csr_slices_run(const csr_vector_job *job) {
    const int64_t rows = WINDOW * CSR_LANES * (int64_t)job->blob->block;
    slices_job w = {.job = job, .first = job->first / rows, .end = cnr_div_up(job->end, rows)};
    w.tasks = cnr_min(w.end - w.first, (int64_t)TASKS * job->run->stream->device->concurrency);
    if (w.tasks > 0) cnr_parallel(job->run->stream, w.tasks, some_windows, &w);
}
