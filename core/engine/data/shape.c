/* Sizes that a net leaves open: from the caller's words, the net's defaults, or a picture. */
#include "data/data.h"

int64_t cnri_dim_default(const cnr_graph *g, int64_t dim) {
    char key[300];
    int64_t value, range[2];
    const int32_t k = dim < 0 && dim != CNR_DIM_UNKNOWN ? CNR_SYMBOL_OF_DIM(dim) : -1;
    if (k < 0 || k >= g->symbols.n) return -1;
    snprintf(key, sizeof key, "symbol.%.200s.default", g->symbols.at[k]);
    const char *text = cnri_host.graph_meta(g, key);
    if (text && cnri_parse_int(text, &value) && value > 0) return value;
    return cnri_symbol_range(g, k, range) ? range[1] : -1;
}

/* Height and width of the picture (NULL: not known yet) after resizing and cropping. True: the
 * settings fix the size for every picture, so it is the net's size; else the net's default goes
 * before the picture's size. */
static bool picture_size(const cnri_preprocess *p, const cnr_tensor *picture, int64_t size[2]) {
    const int64_t resize[2] = {p->resize_h, p->resize_w}, crop[2] = {p->crop_h, p->crop_w};
    for (int i = 0; i < 2; i++) {
        const int64_t own = picture ? picture->dim[i] : 1, other = picture ? picture->dim[!i] : 1;
        size[i] = own;
        if (resize[0] > 0 && resize[1] > 0) size[i] = resize[i];
        else if (resize[0] > 0)
            size[i] = own <= other ? resize[0]
                                   : (int64_t)((double)resize[0] * (double)own / (double)other);
        if (crop[i] > 0 && (crop[i] < size[i] || !picture)) size[i] = crop[i];
    }
    return crop[0] > 0 || (resize[0] > 0 && resize[1] > 0);
}

static bool are_channels(int64_t dim) { return dim == 1 || dim == 3; }

cnri_axes cnri_picture_axes(const cnr_tensor *type) {
    const int32_t r = type->rank;
    if (r < 3) return (cnri_axes){.batch = r == 2 ? 0 : -1, .channels = -1, .height = -1};
    const bool last = are_channels(type->dim[r - 1]) && !are_channels(type->dim[r - 3]);
    const bool batch = r > 3 || (!last && (type->dim[0] < 0 || type->dim[0] == 1));
    return (cnri_axes){.batch = batch ? 0 : -1,
                       .channels = last ? r - 1 : r - 3,
                       .height = last ? r - 3 : r - 2};
}

/* The size given for the symbol of a dimension; -1: none was given. */
static int64_t given_for(const cnr_graph *g, const cnri_sizes *from, int64_t dim) {
    const int32_t k = dim == CNR_DIM_UNKNOWN ? -1 : CNR_SYMBOL_OF_DIM(dim);
    for (int32_t i = 0; k >= 0 && k < g->symbols.n && i < from->n_symbols; i++)
        if (strcmp(g->symbols.at[k], from->symbols[i]) == 0) return from->values[i];
    return -1;
}

void cnri_input_sizes(const cnr_graph *g, int32_t index, const cnri_sizes *from, cnr_tensor *out) {
    const cnri_preprocess *p = from->preprocess;
    int64_t size[2] = {1, 1};
    const bool fixed = (p && picture_size(p, from->picture, size)) || from->side;
    if (from->side) memcpy(size, from->side, sizeof size);
    *out = *g->values.at[g->inputs.at[index]].type;
    const cnri_axes axes = cnri_picture_axes(out);
    for (int32_t i = 0; i < out->rank; i++) {
        if (out->dim[i] >= 0) continue;
        const int64_t given = given_for(g, from, out->dim[i]);
        const int64_t fallback_size = cnri_dim_default(g, out->dim[i]);
        const int32_t side = axes.height < 0 ? -1 : i - axes.height; /* 0: height, 1: width */
        const bool is_side = p && (side == 0 || side == 1);
        if (given >= 0) out->dim[i] = given;
        else if (i == axes.batch && from->batch > 0) out->dim[i] = from->batch;
        else if (is_side && fixed) out->dim[i] = size[side];
        else if (fallback_size > 0) out->dim[i] = fallback_size;
        else if (is_side) out->dim[i] = size[side];
        else out->dim[i] = p && i == axes.channels && i != axes.batch && p->channels != 1 ? 3 : 1;
    }
    out->bytes = cnr_dense_bytes(out);
}

cnr_status cnri_symbols_check(const cnr_graph *g, const cnri_sizes *from, cnr_error *err) {
    for (int32_t i = 0; i < from->n_symbols; i++) {
        int32_t k = 0;
        while (k < g->symbols.n && strcmp(g->symbols.at[k], from->symbols[i]) != 0) k++;
        if (k < g->symbols.n) continue;
        const char *near =
            cnri_nearest_word(from->symbols[i], (const char *const *)g->symbols.at, g->symbols.n);
        return cnri_fail(err, CNR_E_ARG, from->symbols[i], "no such dimension in this net%s%s%s",
                         near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    }
    return CNR_OK;
}
