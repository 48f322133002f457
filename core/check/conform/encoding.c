/* Encodings: judges what decode returns, which bytes encode writes, and which bytes check
 * accepts. */
#include "conform/judging.h"
#include <math.h>

/* A tensor, and how an encoding stores it. */
typedef struct stored {
    cnri_judging *j;
    const cnr_encoding *how;
    cnr_tensor dense, encoded;
    cnr_attr **options;
    cnri_edge bytes; /* memory of the encoded data */
    bool may_refuse; /* encode_size may refuse the tensor because of its numbers */
} stored;

enum { ALIGNMENT = 64 }; /* alignment of tensors' data on the host, in bytes */

/* Shapes of weights: of layers, and some that do not divide evenly into blocks and rows. */
static const int64_t shapes[][4] = {{64, 96, 0, 0}, {17, 31, 0, 0}, {1, 1, 0, 0},  {1, 257, 0, 0},
                                    {255, 1, 0, 0}, {8, 3, 3, 3},   {13, 5, 1, 1}, {16, 16, 5, 5}};

/* Fills err with why an option is refused. */
static void refuse_option(void *arg, const char *path, const char *text) {
    cnri_fail(arg, CNR_E_ARG, path, "%s: %s", path, text);
}

/* Makes data of a type in which `share` tenths of the numbers are 0, in s->dense; false, with a
 * finding: out of memory. */
static bool make_dense(stored *s, int32_t dtype, int32_t rank, const int64_t *dim, int64_t share) {
    s->dense = (cnr_tensor){.size = sizeof s->dense,
                            .dtype = dtype,
                            .rank = rank,
                            .flags = CNR_TENSOR_CONST};
    memcpy(s->dense.dim, dim, (size_t)rank * sizeof *dim);
    s->dense.bytes = cnr_dense_bytes(&s->dense);
    s->dense.data = cnri_alloc_zero((size_t)s->dense.bytes + 1);
    if (!s->dense.data) return cnri_judging_fail(s->j, "out of memory");
    cnri_values_fill(&s->dense, CNRI_VALUES_SIGNED, NULL, &s->j->dice);
    const int64_t n = cnr_count(&s->dense);
    for (int64_t i = 0; i < n && share > 0; i++)
        if (cnri_dice_below(&s->j->dice, 10) < share) cnri_element_set(dtype, s->dense.data, i, 0);
    return true;
}

/* Resolves the options of an encoding. False: they were refused. */
static bool begin(stored *s, cnri_judging *j, const cnr_attr *const *given, int32_t n) {
    cnr_error err = CNR_ERROR_INIT;
    *s = (stored){.j = j, .how = j->descriptor};
    const cnr_status status =
        cnri_attrs_resolve(s->how->attrs, s->how->attr_spec_size, s->how->n_attrs, given, n, -1,
                           refuse_option, &err, &s->options);
    return cnri_judging_ok(j, "its options", status, &err);
}

/* Frees the dense data and the encoded bytes of one tensor. */
static void release(stored *s) {
    cnri_edge_free(&s->bytes);
    cnri_free(s->dense.data);
    s->dense.data = NULL;
}

/* Frees tensors and options. */
static void end(stored *s) {
    release(s);
    cnri_free(s->options);
}

/* Encodes the data; bytes that are not written stay `poison`. False: it failed. *refused:
 * encode_size refused, as it may. */
static bool encode(stored *s, uint8_t poison, bool *refused) {
    const cnr_attr *const *options = (const cnr_attr *const *)s->options;
    cnr_error err = CNR_ERROR_INIT;
    uint64_t n = 0;
    *refused = false;
    cnr_status status = s->how->encode_size(&s->dense, options, &n, &err);
    if (status) {
        *refused = true;
        return cnri_judging_spoke(s->j, "encode_size", status, &err);
    }
    if (n > 64 * (s->dense.bytes + 4096))
        return cnri_judging_fail(s->j, "encode_size says %llu bytes for %llu",
                                 (unsigned long long)n, (unsigned long long)s->dense.bytes);
    if (!cnri_edge_make(&s->bytes, (size_t)n, ALIGNMENT))
        return cnri_judging_fail(s->j, "out of memory");
    memset(s->bytes.at, poison, (size_t)n);
    status = s->how->encode(&s->dense, options, s->bytes.at, n, &err);
    if (status && s->may_refuse) {
        *refused = true;
        return cnri_judging_spoke(s->j, "encode", status, &err);
    }
    if (!cnri_judging_ok(s->j, "encode, whose encode_size succeeded,", status, &err)) return false;
    if (!cnri_edge_is_whole(&s->bytes))
        return cnri_judging_fail(s->j, "encode wrote outside its %llu bytes",
                                 (unsigned long long)n);
    s->encoded = s->dense;
    s->encoded.data = s->bytes.at;
    s->encoded.bytes = n;
    s->encoded.encoding = cnri_intern(s->how->name);
    if (CNRI_HAS(s->how, check))
        return cnri_judging_ok(s->j, "check of what encode made", s->how->check(&s->encoded, &err),
                               &err);
    return true;
}

/* Decodes into memory of its own, which the caller frees. False: it failed. */
static bool decode(stored *s, cnri_edge *out, uint8_t poison) {
    cnr_error err = CNR_ERROR_INIT;
    if (!cnri_edge_make(out, (size_t)s->dense.bytes, ALIGNMENT))
        return cnri_judging_fail(s->j, "out of memory");
    memset(out->at, poison, out->bytes);
    if (!cnri_judging_ok(s->j, "decode", s->how->decode(&s->encoded, out->at, &err), &err))
        return false;
    return cnri_edge_is_whole(out) ||
           cnri_judging_fail(s->j, "decode wrote outside the tensor's %zu bytes", out->bytes);
}

/* Names the tensor that is judged now, with `more` behind, as the case of a finding. */
static void tell_case(stored *s, const char *more) {
    cnri_text text = {0};
    cnri_case_type(&s->dense, &text);
    cnri_judging_case(s->j, "%s%s", text.at ? text.at : "", more);
    cnri_text_free(&text);
}

/* ---- loss ---- */

/* Root mean square of the loss over that of the numbers; 0: nothing is lost. */
static double lost_share(const cnr_tensor *was, const void *is) {
    double size = 0, lost = 0;
    for (int64_t i = 0, n = cnr_count(was); i < n; i++) {
        const double v = cnri_element(was->dtype, was->data, i);
        const double off = cnri_element(was->dtype, is, i) - v;
        size += v * v;
        lost += off * off;
    }
    return lost == 0 ? 0 : sqrt(lost / size); /* of zeros: infinity */
}

enum { FEW = 64 }; /* with fewer numbers a loss says nothing */

/* Encodes, decodes and compares. *taken: counts tensors that were not refused. False: it failed. */
static bool round_trip(stored *s, bool compares, int32_t *taken) {
    cnri_edge out = {0};
    bool refused;
    bool good = encode(s, 0xff, &refused);
    if (!good || refused) return good;
    ++*taken;
    good = decode(s, &out, 0xff);
    const double share = good && compares ? lost_share(&s->dense, out.at) : 0;
    if (good && !(share <= CNRI_ENCODING_MOST_LOST) && cnr_count(&s->dense) >= FEW)
        good = cnri_judging_fail(s->j,
                                 "decode gives numbers that differ by %.3g of their root mean "
                                 "square from those that were encoded; at most %.3g is right",
                                 share, CNRI_ENCODING_MOST_LOST);
    if (good && CNRI_HAS(s->how, stored_count) &&
        s->how->stored_count(&s->encoded) > (uint64_t)cnr_count(&s->dense))
        good = cnri_judging_fail(s->j, "numbers says more than the tensor has");
    cnri_edge_free(&out);
    return good;
}

static int32_t rank_of(const int64_t *dim) { return dim[2] ? 4 : 2; }

/* Encodes numbers of which the one at `place` is far above the others, and decodes it. False: it
 * is lost. However few bits an encoding has, such a number keeps its sign and is not 0. */
static bool keeps_peak(stored *s, int64_t place, int32_t *taken) {
    cnri_edge out = {0};
    double size = 0;
    bool refused;
    const int64_t n = cnr_count(&s->dense);
    for (int64_t i = 0; i < n; i++) size += pow(cnri_element(CNR_f32, s->dense.data, i), 2);
    const double peak = (cnri_dice_chance(&s->j->dice, 50) ? 6 : -6) * (sqrt(size / n) + 1e-3);
    cnri_element_set(CNR_f32, s->dense.data, place, peak);
    bool good = encode(s, 0xff, &refused);
    if (!good || refused) return good;
    ++*taken;
    good = decode(s, &out, 0xff);
    const double is = good ? cnri_element(CNR_f32, out.at, place) : 0;
    if (good && !(is / peak >= 0.05))
        good = cnri_judging_fail(s->j,
                                 "element %lld of %lld, %.3g, far above the others, is decoded as "
                                 "%.3g",
                                 (long long)place, (long long)n, peak, is);
    cnri_edge_free(&out);
    return good;
}

/* Judges tensors of drawn sizes with one large number at the end, near it, or anywhere: ends of
 * blocks and rows are where numbers get lost. */
static bool keep_peaks(stored *s, int32_t *taken) {
    bool good = true;
    for (int32_t k = 0; k < 64 && good; k++) {
        cnri_dice *dice = &s->j->dice;
        const int64_t dim[4] = {1 + cnri_dice_below(dice, 40), 1 + cnri_dice_below(dice, 70)};
        const int64_t n = dim[0] * dim[1], near = cnr_min(n, k % 3 == 0 ? 1 : k % 3 == 1 ? 9 : n);
        good = make_dense(s, CNR_f32, 2, dim, 0);
        tell_case(s, ", with one large number");
        good = good && keeps_peak(s, n - 1 - cnri_dice_below(dice, near), taken);
        release(s);
    }
    return good;
}

/* Judges that decoded numbers are as close as the encoding promises. False: a finding says why it
 * isn't so. */
bool cnri_judge_loss(cnri_judging *j) {
    stored s;
    int32_t taken = 0;
    bool good = begin(&s, j, NULL, 0);
    for (size_t i = 0; i < CNRI_COUNT(shapes) && good; i++)
        for (int64_t share = 0; share < 10 && good; share += 3) {
            good = make_dense(&s, CNR_f32, rank_of(shapes[i]), shapes[i], share);
            tell_case(&s, share ? ", with zeros" : "");
            good = good && round_trip(&s, true, &taken);
            release(&s);
        }
    good = good && keep_peaks(&s, &taken);
    end(&s);
    if (good && taken == 0) return cnri_judging_fail(j, "it takes no f32 tensor of any shape");
    return good;
}

/* ---- bytes ---- */

/* True if encoding twice over different old contents gives the same bytes, so that every byte is
 * written. */
static bool is_filled(stored *s, bool *refused) {
    cnri_edge a = {0}, b = {0}, first = {0};
    bool good = encode(s, 0x00, refused);
    if (!good || *refused) return good;
    first = s->bytes;
    s->bytes = (cnri_edge){0};
    good = encode(s, 0xff, refused);
    if (good && (first.bytes != s->bytes.bytes || memcmp(first.at, s->bytes.at, first.bytes) != 0))
        good = cnri_judging_fail(s->j,
                                 "encode leaves byte %zu of %zu as it was, or gives another "
                                 "each time",
                                 cnri_first_difference(first.at, s->bytes.at,
                                                       cnr_min(first.bytes, s->bytes.bytes)),
                                 first.bytes);
    good = good && decode(s, &a, 0x00) && decode(s, &b, 0xff);
    if (good && memcmp(a.at, b.at, a.bytes) != 0)
        good = cnri_judging_fail(s->j, "decode leaves byte %zu of %zu as it was",
                                 cnri_first_difference(a.at, b.at, a.bytes), a.bytes);
    cnri_edge_free(&a);
    cnri_edge_free(&b);
    cnri_edge_free(&first);
    return good;
}

/* Judges that encode_size gives the bytes that encode fills. False: a finding says why it isn't
 * so. */
bool cnri_judge_encoded_size(cnri_judging *j) {
    stored s;
    bool refused;
    bool good = begin(&s, j, NULL, 0);
    for (size_t i = 0; i < CNRI_COUNT(shapes) && good; i++) {
        good = make_dense(&s, CNR_f32, rank_of(shapes[i]), shapes[i], 4);
        tell_case(&s, "");
        good = good && is_filled(&s, &refused);
        release(&s);
    }
    end(&s);
    return good;
}

/* ---- options ---- */

/* Judges the encoding with one option set. False: it failed. */
static bool with_setting(cnri_judging *j, const cnr_attr *one) {
    stored s;
    int32_t taken = 0;
    cnri_text text = {0};
    cnri_attr_print(one, &text);
    cnri_judging_case(j, "%s=%s", one->name, text.at ? text.at : "");
    bool good = begin(&s, j, &one, 1) && make_dense(&s, CNR_f32, 2, shapes[0], 5) &&
                round_trip(&s, false, &taken);
    if (!good && j->why.n) cnri_text_add(&j->why, " (%s=%s)", one->name, text.at ? text.at : "");
    cnri_text_free(&text);
    end(&s);
    return good;
}

/* Judges a numeric option at both ends of its range. False: it failed. */
static bool with_numbers(cnri_judging *j, const cnr_attr_spec *row) {
    const bool bounded = row->flags & CNR_ATTR_BOUNDED;
    const double ends[2] = {bounded ? row->min : 0, bounded ? row->max : 1};
    bool good = true;
    for (int32_t i = 0; i < 2 && good; i++) {
        const double v = fmax(-1e9, fmin(1e9, ends[i]));
        const cnr_attr one = {.name = row->name,
                              .type = row->type,
                              .set = 1,
                              .i = (int64_t)v,
                              .f = v};
        good = with_setting(j, &one);
    }
    return good;
}

/* Judges each option of the encoding at the ends of its range. False: a finding says why it isn't
 * so. */
bool cnri_judge_settings(cnri_judging *j) {
    const cnr_encoding *how = j->descriptor;
    bool good = true;
    if (how->n_attrs < 1) return cnri_judging_skip(j, "it has no options");
    for (int32_t i = 0; i < how->n_attrs && good; i++) {
        cnr_attr_spec room;
        const cnr_attr_spec *row = cnri_spec_at(how->attrs, how->attr_spec_size, i, &room);
        if (row->type == CNR_ATTR_INT || row->type == CNR_ATTR_FLOAT || row->type == CNR_ATTR_BOOL)
            good = with_numbers(j, row);
        for (int32_t k = 0; good && row->choices && row->choices[k]; k++) {
            const cnr_attr one = {.name = row->name,
                                  .type = row->type,
                                  .set = 1,
                                  .i = k,
                                  .s = row->choices[k]};
            if (row->type == CNR_ATTR_ENUM || row->type == CNR_ATTR_STRING)
                good = with_setting(j, &one);
        }
    }
    return good;
}

/* ---- other tensors ---- */

/* Judges that types and shapes that don't fit are refused, with an error. False: a finding says why
 * it isn't so. */
bool cnri_judge_refusals(cnri_judging *j) {
    static const int64_t others[][CNR_MAX_RANK] =
        {{16, 24}, {0, 24}, {16, 0}, {5}, {1, 1, 1, 1, 1, 1, 1, 3}, {7, 3, 2}, {0}};
    static const int32_t ranks[] = {2, 2, 2, 1, 8, 3, 0};
    stored s;
    int32_t taken = 0;
    bool good = begin(&s, j, NULL, 0);
    for (int32_t dtype = CNR_f32; dtype <= CNR_u4 && good; dtype++)
        for (size_t i = 0; i < CNRI_COUNT(ranks) && good; i++) {
            good = make_dense(&s, dtype, ranks[i], others[i], 0);
            tell_case(&s, "");
            good = good && round_trip(&s, false, &taken);
            release(&s);
        }
    good = good && make_dense(&s, CNR_f32, 2, shapes[0], 0);
    if (good) cnri_values_specials(&s.dense, &j->dice);
    tell_case(&s, ", with NaN and infinities");
    s.may_refuse = true;
    good = good && round_trip(&s, false, &taken);
    end(&s);
    return good;
}

/* ---- hostile bytes ---- */

enum { MUTANTS = 1200 };

/* Changes some of the n bytes in place, or returns a smaller number of bytes to keep; else n. */
static size_t damage(uint8_t *at, size_t n, cnri_dice *dice) {
    static const uint32_t words[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0xffff, 0x10000};
    const int64_t way = cnri_dice_below(dice, 8);
    if (way == 0) return (size_t)cnri_dice_below(dice, (int64_t)n + 1);
    for (int64_t k = 1 + cnri_dice_below(dice, 3); k > 0 && n >= 4; k--) {
        /* headers lie in front */
        const int64_t within = cnri_dice_chance(dice, 60) ? cnr_min((int64_t)n, 96) : (int64_t)n;
        const size_t to = (size_t)cnri_dice_below(dice, within - 3);
        uint32_t word = words[cnri_dice_below(dice, CNRI_COUNT(words))];
        if (way == 1) at[to] = (uint8_t)cnri_dice_next(dice);
        else if (way == 2) at[to] ^= (uint8_t)(1 << cnri_dice_below(dice, 8));
        else if (way == 3) {
            memcpy(&word, at + to, 4);
            word += (uint32_t)cnri_dice_below(dice, 5) - 2;
            memcpy(at + to, &word, 4);
        } else memcpy(at + (to & ~(size_t)3), &word, 4);
    }
    return n;
}

/* True if check refuses damaged bytes, or decode and numbers end, well or with an error, without
 * touching memory outside. */
static bool survives(stored *s, const uint8_t *good_bytes, size_t n) {
    cnri_edge in = {0}, out = {0};
    cnr_error err = CNR_ERROR_INIT;
    uint8_t *changed = cnri_alloc(n + 1);
    if (!changed) return cnri_judging_fail(s->j, "out of memory");
    memcpy(changed, good_bytes, n);
    const size_t left = damage(changed, n, &s->j->dice);
    bool good = cnri_edge_make(&in, left, ALIGNMENT);
    good = cnri_edge_make(&out, (size_t)s->dense.bytes, ALIGNMENT) && good;
    if (!good) cnri_judging_fail(s->j, "out of memory");
    if (good) memcpy(in.at, changed, left);
    cnr_tensor t = s->encoded;
    t.data = in.at;
    t.bytes = left;
    cnr_status status = good && CNRI_HAS(s->how, check) ? s->how->check(&t, &err) : CNR_OK;
    good = good && cnri_judging_spoke(s->j, "check", status, &err);
    if (good && !status) {
        if (CNRI_HAS(s->how, stored_count)) (void)s->how->stored_count(&t);
        status = s->how->decode(&t, out.at, &err);
        good = cnri_judging_spoke(s->j, "decode", status, &err);
        if (good && !cnri_edge_is_whole(&out))
            good = cnri_judging_fail(s->j, "check takes damaged bytes, with which decode writes "
                                           "outside the tensor");
    }
    cnri_edge_free(&in);
    cnri_edge_free(&out);
    cnri_free(changed);
    return good;
}

/* Judges that damaged data is refused by check, or decoded within bounds. False: a finding says why
 * it isn't so. */
bool cnri_judge_hostile(cnri_judging *j) {
    stored s;
    bool refused = true;
    bool good = begin(&s, j, NULL, 0);
    if (good && !CNRI_HAS(s.how, check)) {
        end(&s);
        return cnri_judging_fail(j, "it has no check: files are hostile");
    }
    for (size_t i = 0; i < CNRI_COUNT(shapes) && good; i += 2) {
        good = make_dense(&s, CNR_f32, rank_of(shapes[i]), shapes[i], 5) && encode(&s, 0, &refused);
        for (int32_t k = 0; k < MUTANTS / 4 && good && !refused; k++) {
            cnri_judging_case(j, "%lldx%lld ... encoded, damaged in way %d of seed %lld",
                              (long long)shapes[i][0], (long long)shapes[i][1], (int)k,
                              (long long)j->o->check.seed);
            good = survives(&s, s.bytes.at, s.bytes.bytes);
        }
        release(&s);
    }
    end(&s);
    return good;
}
