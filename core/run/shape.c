/* Sizes that a net leaves open: what its author meant, and what a picture has. */
#include "core/run/run.h"

int64_t cnri_dim_default(const cnr_graph *g, int64_t dim) {
    char key[300];
    int64_t value;
    const int32_t k = dim < 0 && dim != CNR_DIM_UNKNOWN ? CNR_SYMBOL_OF_DIM(dim) : -1;
    if (k < 0 || k >= g->symbols.n) return -1;
    snprintf(key, sizeof key, "symbol.%.200s.default", g->symbols.at[k]);
    const char *text = cnri_host.graph_meta(g, key);
    return text && cnri_parse_int(text, &value) && value > 0 ? value : -1;
}

bool cnri_picture_size(const cnri_preprocess *p, const cnr_tensor *picture, int64_t size[2]) {
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
