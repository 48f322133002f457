/* Cells of recurrent layers: the gates of a step, and the new state. */

INLINE vec load_some(const float *p, int64_t n) { return n < VL ? load_part(p, n) : load(p); }
INLINE void store_some(float *p, vec v, int64_t n) {
    if (n < VL) store_part(p, v, n);
    else store(p, v);
}

INLINE void lstm_row(const float *gates, const float *peepholes, float *c, float *h, int64_t n,
                     const int peeps) {
    for (int64_t j = 0; j < n; j += VL) {
        const int64_t here = n - j < VL ? n - j : VL;
        vec in = load_some(gates + j, here), out = load_some(gates + n + j, here);
        vec keep = load_some(gates + 2 * n + j, here);
        const vec fresh = vtanh(load_some(gates + 3 * n + j, here));
        vec cell = load_some(c + j, here);
        if (peeps) {
            in = fuse(load_some(peepholes + j, here), cell, in);
            keep = fuse(load_some(peepholes + 2 * n + j, here), cell, keep);
        }
        cell = fuse(vsigmoid(keep), cell, vsigmoid(in) * fresh);
        if (peeps) out = fuse(load_some(peepholes + n + j, here), cell, out);
        store_some(c + j, cell, here);
        store_some(h + j, vsigmoid(out) * vtanh(cell), here);
    }
}

/* New cell and hidden state of n units of an lstm. */
static void lstm_cell(const float *gates, const float *peepholes, float *c, float *h, int64_t n) {
    if (peepholes) lstm_row(gates, peepholes, c, h, n, 1);
    else lstm_row(gates, peepholes, c, h, n, 0);
}

/* Hidden state times reset gate, for n units of a gru. */
static void gru_reset(const float *gates, const float *h, float *out, int64_t n) {
    for (int64_t j = 0; j < n; j += VL) {
        const int64_t here = n - j < VL ? n - j : VL;
        store_some(out + j, vsigmoid(load_some(gates + n + j, here)) * load_some(h + j, here),
                   here);
    }
}

/* New hidden state of n units of a gru. */
static void gru_cell(const float *gates, const float *from_h, float *h, int64_t n) {
    for (int64_t j = 0; j < n; j += VL) {
        const int64_t here = n - j < VL ? n - j : VL;
        const vec update = vsigmoid(load_some(gates + j, here));
        vec fresh = load_some(gates + 2 * n + j, here);
        if (from_h)
            fresh =
                fuse(vsigmoid(load_some(gates + n + j, here)), load_some(from_h + j, here), fresh);
        const vec old = load_some(h + j, here);
        store_some(h + j, fuse(update, old, (splat(1.0f) - update) * vtanh(fresh)), here);
    }
}
