/* Moves values: regions between devices, and between channel blocks and plain layout. */
#include "run/session.h"

/* True if the home is in host memory. */
static bool in_host(const cnr_plan *plan, int32_t home) {
    const cnri_home *h = &plan->homes.at[home];
    return (plan->devices[h->device]->memory[h->memory_class].flags & CNR_MEMORY_HOST) != 0;
}

/* Host address of a home in the session: of a weight without storage, the graph's data. */
static void *address(const cnr_session *s, int32_t home) {
    const cnri_home *h = &s->plan->homes.at[home];
    if (h->storage < 0) return s->plan->graph->values.at[h->value].type->data; /* a weight */
    return s->tensors[home].data;
}

/* ---- blocks ---- */

/* A conversion between channel blocks, which threads divide. */
typedef struct conversion {
    const char *from;
    char *to;
    int64_t channels, inner, unit; /* unit: channels that one task converts */
    int32_t from_block, to_block;
    size_t element;
} conversion;

/* Offset of channel c of one sample, and the stride of its elements, both in elements. */
static int64_t channel_at(int64_t c, int64_t inner, int32_t block, int64_t *stride) {
    const int64_t b = block > 1 ? block : 1;
    *stride = b;
    return c / b * inner * b + c % b;
}

/* Transposes eight rows of eight bytes in place; the lowest byte is the first. */
static void transpose_bytes(uint64_t row[8]) {
    for (int i = 0; i < 4; i++) {
        const uint64_t t = (row[i] >> 32 ^ row[i + 4]) & 0xffffffffu;
        row[i + 4] ^= t;
        row[i] ^= t << 32;
    }
    for (int k = 0; k < 4; k++) {
        const int i = k / 2 * 4 + k % 2;
        const uint64_t t = (row[i] >> 16 ^ row[i + 2]) & 0x0000ffff0000ffffu;
        row[i + 2] ^= t;
        row[i] ^= t << 16;
    }
    for (int i = 0; i < 8; i += 2) {
        const uint64_t t = (row[i] >> 8 ^ row[i + 1]) & 0x00ff00ff00ff00ffu;
        row[i + 1] ^= t;
        row[i] ^= t << 8;
    }
}

/* Copies `used` columns of n rows, transposed, with as many rows as an element has bytes. */
static inline void transpose_some(const char *from, int64_t from_step, int64_t n, char *to,
                                  int64_t to_step, int64_t used) {
    uint64_t row[8] = {0};
    for (int64_t r = 0; r < n; r++) memcpy(&row[r], from + r * from_step, (size_t)used);
    transpose_bytes(row);
    for (int64_t r = 0; r < used; r++) memcpy(to + r * to_step, &row[r], (size_t)n);
}

/* Converts eight channels from `c` on between plain and blocked. */
static void convert_eight(const conversion *k, int64_t base, int64_t c) {
    const bool packs = k->from_block <= 1;
    const int64_t inner = k->inner;
    int64_t block, one;
    const int64_t plain = base + channel_at(c, inner, 1, &one);
    const int64_t at = base + channel_at(c, inner, packs ? k->to_block : k->from_block, &block);
    const char *from = k->from + (packs ? plain : at);
    char *to = k->to + (packs ? at : plain);
    for (int64_t i = 0; i < inner; i += 8) {
        const int64_t n = inner - i < 8 ? inner - i : 8;
        if (n == 8 && packs) transpose_some(from + i, inner, 8, to + i * block, block, 8);
        else if (n == 8) transpose_some(from + i * block, block, 8, to + i, inner, 8);
        else if (packs) transpose_some(from + i, inner, 8, to + i * block, block, n);
        else transpose_some(from + i * block, block, n, to + i, inner, 8);
    }
}

typedef uint32_t quad __attribute__((vector_size(16)));

/* Transposes four rows and columns of four bytes each. */
static inline void transpose_quad(const char *from, size_t from_step, char *to, size_t to_step) {
    quad row[4];
    for (size_t r = 0; r < 4; r++) memcpy(&row[r], from + r * from_step, sizeof row[r]);
    const quad a = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
    const quad b = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
    const quad c = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
    const quad d = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
    row[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
    row[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
    row[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
    row[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
    for (size_t r = 0; r < 4; r++) memcpy(to + r * to_step, &row[r], sizeof row[r]);
}

/* Converts n positions of four channels of 4-byte elements. A step, in bytes, leads from one
 * position to the next; the channels of a plain side are `plane` bytes apart. */
static void convert_four(const char *from, size_t from_step, char *to, size_t to_step, size_t plane,
                         int64_t n) {
    const size_t from_channel = from_step == 4 ? plane : 4, to_channel = to_step == 4 ? plane : 4;
    for (; n >= 4; n -= 4, from += 4 * from_step, to += 4 * to_step) {
        if (from_step == 4) transpose_quad(from, plane, to, to_step);
        else if (to_step == 4) transpose_quad(from, from_step, to, plane);
        else
            for (size_t i = 0; i < 4; i++) memcpy(to + i * to_step, from + i * from_step, 16);
    }
    for (; n > 0; n--, from += from_step, to += to_step)
        for (size_t c = 0; c < 4; c++) memcpy(to + c * to_channel, from + c * from_channel, 4);
}

enum { POSITIONS = 64 }; /* converted at a time: they stay in the L1 cache */

/* Converts a unit of channels of 4-byte elements, four at a time, from channel c0 on. */
static void convert_words(const conversion *k, int64_t base, int64_t c0) {
    for (int64_t i = 0; i < k->inner; i += POSITIONS) {
        const int64_t n = k->inner - i < POSITIONS ? k->inner - i : POSITIONS;
        for (int64_t c = c0; c < c0 + k->unit; c += 4) {
            int64_t step_from, step_to;
            const int64_t at = base + channel_at(c, k->inner, k->from_block, &step_from);
            const int64_t into = base + channel_at(c, k->inner, k->to_block, &step_to);
            convert_four(k->from + (at + i * step_from) * 4, (size_t)step_from * 4,
                         k->to + (into + i * step_to) * 4, (size_t)step_to * 4,
                         (size_t)k->inner * 4, n);
        }
    }
}

/* True if elements have 4 bytes and both layouts keep four channels together. */
static bool whole_quads(const conversion *k) {
    return k->element == 4 && k->unit % 4 == 0 && (k->from_block <= 1 || k->from_block % 4 == 0) &&
           (k->to_block <= 1 || k->to_block % 4 == 0);
}

/* Converts one unit of channels of one sample between layouts; `arg` is the conversion. */
static void convert_task(void *arg, int64_t task, int32_t thread) {
    const conversion *k = arg;
    const int64_t units = k->channels / k->unit, sample = task / units;
    const int64_t base = sample * k->channels * k->inner;
    (void)thread;
    if (k->element == 1 && k->unit % 8 == 0 && (k->from_block <= 1) != (k->to_block <= 1)) {
        for (int64_t c = task % units * k->unit, i = 0; i < k->unit; i += 8)
            convert_eight(k, base, c + i);
        return;
    }
    if (whole_quads(k)) {
        convert_words(k, base, task % units * k->unit);
        return;
    }
    for (int64_t c = task % units * k->unit, end = c + k->unit; c < end; c++) {
        int64_t step_from, step_to;
        const int64_t at = base + channel_at(c, k->inner, k->from_block, &step_from);
        const int64_t into = base + channel_at(c, k->inner, k->to_block, &step_to);
        const char *from = k->from + (size_t)at * k->element;
        char *to = k->to + (size_t)into * k->element;
        const size_t e = k->element, df = (size_t)step_from * e, dt = (size_t)step_to * e;
        for (int64_t i = 0; i < k->inner; i++, from += df, to += dt) memcpy(to, from, e);
    }
}

/* Converts a tensor between two channel blocks, on the stream's threads. */
static void convert_blocks(const void *from, int32_t from_block, void *to, int32_t to_block,
                           const cnr_tensor *type, cnr_stream *stream) {
    conversion k = {.from = from, .to = to, .from_block = from_block, .to_block = to_block};
    k.element = cnr_dtype_bits(type->dtype) / 8;
    k.channels = type->dim[1];
    k.inner = cnr_span(type, 2, type->rank);
    if (cnr_count(type) == 0) return;
    const int32_t a = from_block > 1 ? from_block : 1, b = to_block > 1 ? to_block : 1;
    k.unit = a % b == 0 ? a : b % a == 0 ? b : k.channels;
    const int64_t tasks = type->dim[0] * (k.channels / k.unit);
    if (stream && stream->parallel && tasks > 1 && cnr_count(type) > 16384)
        stream->parallel(stream, tasks, convert_task, &k);
    else
        for (int64_t i = 0; i < tasks; i++) convert_task(&k, i, 0);
}

/* Bytes of the largest home that a conversion or copy of this plan stages in host memory. */
uint64_t cnri_staging_bytes(const cnr_plan *plan) {
    uint64_t maximum = 0;
    for (int32_t i = 0; i < plan->steps.n; i++) {
        const cnri_step *step = &plan->steps.at[i];
        if (step->kind == CNRI_STEP_KERNEL) continue;
        if (in_host(plan, step->from) || in_host(plan, step->to)) {
            if (step->kind == CNRI_STEP_COPY) continue;
            if (in_host(plan, step->from) && in_host(plan, step->to)) continue;
        }
        if (plan->homes.at[step->to].bytes > maximum) maximum = plan->homes.at[step->to].bytes;
    }
    return maximum;
}

/* ---- between places ---- */

/* Copies `bytes` from offset `at` on of home step->from to the same place in step->to, between
 * devices or host. */
static cnr_status move(cnr_session *s, const cnri_step *step, uint64_t at, uint64_t bytes,
                       cnr_error *err) {
    const cnr_plan *plan = s->plan;
    cnr_stream *stream = &s->streams[step->device];
    const cnr_device_class *cls = stream->device->cls;
    const bool from_host = in_host(plan, step->from), to_host = in_host(plan, step->to);
    if (bytes == 0) return CNR_OK;
    if (from_host && to_host) {
        memcpy((char *)address(s, step->to) + at, (const char *)address(s, step->from) + at, bytes);
        return CNR_OK;
    }
    if (from_host)
        return cls->write(stream, &s->tensors[step->to].mem, at,
                          (const char *)address(s, step->from) + at, bytes, err);
    return cls->read(stream, &s->tensors[step->from].mem, at, (char *)address(s, step->to) + at,
                     bytes, err);
}

/* Copies a range on one axis: one piece for each index of the dimensions before it. */
static cnr_status copy_region(cnr_session *s, const cnri_step *step, cnr_error *err) {
    const cnri_home *home = &s->plan->homes.at[step->to];
    const cnr_input_range r = step->region;
    if (r.axis < 0) return move(s, step, 0, home->bytes, err);
    const uint64_t element = cnr_dtype_bits(home->type.dtype) / 8;
    const uint64_t inner = (uint64_t)cnr_span(&home->type, r.axis + 1, home->type.rank) * element;
    const int64_t outer = cnr_span(&home->type, 0, r.axis);
    for (int64_t o = 0; o < outer; o++) {
        const uint64_t at = (uint64_t)(o * home->type.dim[r.axis] + r.begin) * inner;
        const cnr_status status = move(s, step, at, (uint64_t)(r.end - r.begin) * inner, err);
        if (status) return status;
    }
    return CNR_OK;
}

/* Converts on a device without host memory: copies down, converts, copies up. */
static cnr_status convert_away(cnr_session *s, const cnri_step *step, cnr_error *err) {
    const cnri_home *a = &s->plan->homes.at[step->from], *b = &s->plan->homes.at[step->to];
    cnr_stream *stream = &s->streams[step->device];
    const cnr_device_class *cls = stream->device->cls;
    const cnr_mem *from = &s->tensors[step->from].mem, *to = &s->tensors[step->to].mem;
    const bool from_host = in_host(s->plan, step->from), to_host = in_host(s->plan, step->to);
    if (a->bytes == 0) return CNR_OK;
    if (a->block_of == b->block_of && !from_host && !to_host && CNRI_HAS(cls, copy))
        return cls->copy(stream, from, to, a->bytes, err);
    void *low = from_host ? address(s, step->from) : s->staging[0];
    void *high = to_host ? address(s, step->to) : s->staging[1];
    cnr_status status = CNR_OK;
    if (!from_host) status = cls->read(stream, from, 0, low, a->bytes, err);
    if (!status) status = cls->sync(stream, err);
    if (status) return status;
    if (a->block_of == b->block_of) memcpy(high, low, a->bytes);
    else convert_blocks(low, a->block_of, high, b->block_of, &a->flat, NULL);
    if (!to_host) status = cls->write(stream, to, 0, high, b->bytes, err);
    return status ? status : cls->sync(stream, err); /* the staging memory is reused */
}

/* Converts a home to the layout of another. */
static cnr_status convert(cnr_session *s, const cnri_step *step, cnr_error *err) {
    const cnri_home *a = &s->plan->homes.at[step->from], *b = &s->plan->homes.at[step->to];
    if (!in_host(s->plan, step->from) || !in_host(s->plan, step->to))
        return convert_away(s, step, err);
    if (a->block_of == b->block_of) memcpy(address(s, step->to), address(s, step->from), a->bytes);
    else
        convert_blocks(address(s, step->from), a->block_of, address(s, step->to), b->block_of,
                       &a->flat, &s->streams[step->device]);
    return CNR_OK;
}

cnr_status cnri_transfer(cnr_session *s, const cnri_step *step, cnr_error *err) {
    const cnr_tensor *from = &s->tensors[step->from];
    if (from->flags & CNR_TENSOR_DYNAMIC)
        memcpy(s->tensors[step->to].dim, from->dim, sizeof from->dim);
    return step->kind == CNRI_STEP_LAYOUT ? convert(s, step, err) : copy_region(s, step, err);
}

cnr_status cnri_download(cnr_session *s, int32_t home, void *to, cnr_error *err) {
    const cnri_home *h = &s->plan->homes.at[home];
    cnr_stream *stream = &s->streams[h->device];
    const cnr_device_class *cls = stream->device->cls;
    void *raw = h->block_of ? cnri_alloc((size_t)h->bytes + 1) : to;
    if (!raw) return cnri_out_of_memory(err, "session");
    cnr_status status = CNR_OK;
    if (in_host(s->plan, home)) memcpy(raw, address(s, home), h->bytes);
    else if (h->bytes) status = cls->read(stream, &s->tensors[home].mem, 0, raw, h->bytes, err);
    if (!status) status = cls->sync(stream, err);
    if (h->block_of) {
        if (!status) convert_blocks(raw, h->block_of, to, 0, &h->flat, NULL);
        cnri_free(raw);
    }
    return status;
}
