/* From a picture (u8 H W C) to a net's input: crop, scale, order channels, subtract, divide.
 *
 *   picture --grey?--> part --> resize or letterbox --> crop --> (pixel - mean) * scale / std
 *
 * The settings are read in core/engine/data/preprocess.c. */
#include "pictures/pictures.h"

/* A picture on its way through the steps: u8, height x width x channels. */
typedef struct picture {
    int64_t h, w, c;
    const uint8_t *at;
    uint8_t *own;         /* the memory of `at` if this picture owns it */
    cnri_framing framing; /* of the whole picture up to this step */
    uint64_t limit;       /* bytes that any picture on the way may take */
    cnr_error *err;
} picture;

/* Allocates p->own for a picture of h x w x c that `from` is turned into; fails if it is over
 * from->limit bytes. */
static cnr_status picture_make(const picture *from, picture *p, int64_t h, int64_t w, int64_t c) {
    bool overflow = false;
    const size_t n = cnri_mul(cnri_mul((size_t)h, (size_t)w, &overflow), (size_t)c, &overflow);
    const cnr_status status = cnri_memory_fits(overflow ? UINT64_MAX : n, from->limit, "picture",
                                               "scaled or cut", from->err);
    if (status) return status;
    p->limit = from->limit;
    p->err = from->err;
    p->h = h;
    p->w = w;
    p->c = c;
    p->own = cnri_alloc(n);
    p->at = p->own;
    return p->own ? CNR_OK : cnri_fail(from->err, CNR_E_MEMORY, "picture", "out of memory");
}

/* Moves a step's result to *to, freeing what was there. */
static void picture_move(picture *to, picture *from) {
    cnri_free(to->own);
    from->framing = to->framing;
    *to = *from;
}

/* Notes that the picture starts y, x pixels further down and right. */
static void shift(picture *p, int64_t y, int64_t x) {
    p->framing.shift[0] += (double)y;
    p->framing.shift[1] += (double)x;
}

/* Converts to grey with Pillow's weights for red, green and blue, 16 bits each. */
static cnr_status to_grey(picture *p) {
    picture grey;
    if (p->c == 1) return CNR_OK;
    const cnr_status made = picture_make(p, &grey, p->h, p->w, 1);
    if (made) return made;
    for (int64_t i = 0; i < p->h * p->w; i++) {
        const uint8_t *v = p->at + 3 * i;
        grey.own[i] = (uint8_t)((v[0] * 19595u + v[1] * 38470u + v[2] * 7471u + 0x8000u) >> 16);
    }
    picture_move(p, &grey);
    return CNR_OK;
}

/* Replaces the picture by one scaled to h x w pixels, freeing the old; nothing if it has them. */
static cnr_status scale_to(picture *p, int64_t h, int64_t w) {
    picture scaled;
    if (p->h == h && p->w == w) return CNR_OK;
    const cnr_status made = picture_make(p, &scaled, h, w, p->c);
    if (made) return made;
    const double ratio[2] = {(double)h / (double)p->h, (double)w / (double)p->w};
    for (int i = 0; i < 2; i++) {
        p->framing.scale[i] *= ratio[i];
        p->framing.shift[i] *= ratio[i];
    }
    const cnr_status status = cnri_resize_u8(p->at, p->h, p->w, p->c, scaled.own, h, w);
    if (!status) {
        picture_move(p, &scaled);
        return CNR_OK;
    }
    cnri_free(scaled.own);
    return cnri_fail(p->err, status, "picture", "out of memory");
}

/* Cuts out the centre of h x w pixels, at most the whole picture, in place of *p. */
static cnr_status cut_to(picture *p, int64_t h, int64_t w) {
    picture cut;
    if (h > p->h) h = p->h;
    if (w > p->w) w = p->w;
    if (p->h == h && p->w == w) return CNR_OK;
    const cnr_status made = picture_make(p, &cut, h, w, p->c);
    if (made) return made;
    const int64_t y0 = (p->h - h) / 2, x0 = (p->w - w) / 2;
    for (int64_t y = 0; y < h; y++)
        memcpy(cut.own + y * w * p->c, p->at + ((y0 + y) * p->w + x0) * p->c, (size_t)(w * p->c));
    shift(p, -y0, -x0);
    picture_move(p, &cut);
    return CNR_OK;
}

/* Scales the picture to fit h x w and fills the rest (letterbox), in place of *p; it lies in the
 * centre or, by letterbox_corner, at the top left. */
static cnr_status box_to(picture *p, int64_t h, int64_t w, const cnri_preprocess *how) {
    picture boxed;
    double ratio = (double)h / (double)p->h;
    if ((double)w / (double)p->w < ratio) ratio = (double)w / (double)p->w;
    int64_t ih = (int64_t)((double)p->h * ratio + 0.5), iw = (int64_t)((double)p->w * ratio + 0.5);
    ih = ih < 1 ? 1 : ih > h ? h : ih;
    iw = iw < 1 ? 1 : iw > w ? w : iw;
    cnr_status status = scale_to(p, ih, iw);
    if (status) return status;
    const cnr_status made = picture_make(p, &boxed, h, w, p->c);
    if (made) return made;
    memset(boxed.own, (int)(how->letterbox_fill + 0.5f), (size_t)(h * w * p->c));
    const int64_t y0 = how->letterbox_corner ? 0 : (h - ih) / 2;
    const int64_t x0 = how->letterbox_corner ? 0 : (w - iw) / 2;
    for (int64_t y = 0; y < ih; y++)
        memcpy(boxed.own + ((y0 + y) * w + x0) * p->c, p->at + y * iw * p->c, (size_t)(iw * p->c));
    shift(p, y0, x0);
    picture_move(p, &boxed);
    return CNR_OK;
}

/* Scales the picture so that its shorter side has this length; the ratio stays. */
static cnr_status shorter_side_to(picture *p, int64_t side) {
    const bool tall = p->h > p->w;
    const int64_t shorter = tall ? p->w : p->h, longer = tall ? p->h : p->w;
    const int64_t other = (int64_t)((double)side * (double)longer / (double)shorter);
    if (other > CNRI_MAX_PICTURE_SIDE)
        return cnri_fail(p->err, CNR_E_LIMIT, "picture", "too long and thin to scale");
    return scale_to(p, tall ? other : side, tall ? side : other);
}

/* Brings the picture to h x w by the settings; -1: the side may have any size. */
static cnr_status geometry(const cnri_preprocess *p, picture *pic, int64_t h, int64_t w) {
    cnr_status status = CNR_OK;
    if (p->crop_part > 0) {
        const int64_t ph = (int64_t)((double)pic->h * p->crop_part + 0.5);
        const int64_t pw = (int64_t)((double)pic->w * p->crop_part + 0.5);
        status = cut_to(pic, ph < 1 ? 1 : ph, pw < 1 ? 1 : pw);
    }
    if (!status && p->letterbox && h > 0 && w > 0) return box_to(pic, h, w, p);
    if (!status && p->resize_h > 0)
        status = p->resize_w > 0 ? scale_to(pic, p->resize_h, p->resize_w)
                                 : shorter_side_to(pic, p->resize_h);
    if (!status && p->crop_h > 0) status = cut_to(pic, p->crop_h, p->crop_w);
    if (h < 0) h = pic->h;
    if (w < 0) w = pic->w;
    if (!status && p->resize_h > 0 && p->resize_w < 0 && p->crop_h == 0) status = cut_to(pic, h, w);
    return status ? status : scale_to(pic, h, w);
}

/* ---- numbers ---- */

/* The layout of the input: strides in elements. */
typedef struct layout {
    int64_t c, h, w, stride_c, stride_h, stride_w;
} layout;

/* Sizes and strides, in elements, of an input for the picture; rank below 3: h and w are -1. */
static layout layout_of(const cnr_tensor *t, const picture *p) {
    layout l = {0};
    /* Flat: as many numbers as the picture has, one channel plane after another. */
    if (t->rank < 3) {
        l.c = p->c;
        l.h = l.w = -1;
        return l;
    }
    const cnri_axes axes = cnri_picture_axes(t);
    const bool last = axes.channels > axes.height;
    l.c = t->dim[axes.channels];
    l.h = t->dim[axes.height];
    l.w = t->dim[axes.height + 1];
    l.stride_c = last ? 1 : l.h * l.w;
    l.stride_h = last ? l.w * l.c : l.w;
    l.stride_w = last ? l.c : 1;
    return l;
}

/* Stores one value as a float of 32 or 16 bits, or rounded and limited as u8. */
static void store(const cnr_tensor *out, int64_t index, float value) {
    if (out->dtype == CNR_f32) {
        ((float *)out->data)[index] = value;
    } else if (out->dtype == CNR_u8) {
        const float v = value < 0 ? 0 : value > 255 ? 255 : value;
        ((uint8_t *)out->data)[index] = (uint8_t)(v + 0.5f);
    } else {
        cnri_element_set(out->dtype, out->data, index, value);
    }
}

/* Writes one channel: scaled, minus mean, divided by std. */
static void write_channel(const cnri_preprocess *p, const picture *pic, const layout *l, int64_t c,
                          cnr_tensor *out) {
    const int64_t from = pic->c == 1 ? 0 : p->channels == -3 ? 2 - c : c;
    const double std = p->n_std == 0 ? 1 : p->std[c < p->n_std ? c : p->n_std - 1];
    const double mean = p->n_mean == 0 ? 0 : p->mean[c < p->n_mean ? c : p->n_mean - 1];
    const double factor = p->scale / std;
    const float *image = p->mean_image ? p->mean_image + c * l->h * l->w : NULL;
    for (int64_t y = 0; y < l->h; y++)
        for (int64_t x = 0; x < l->w; x++) {
            const double pixel = pic->at[(y * l->w + x) * pic->c + from];
            const double less = image ? (double)image[y * l->w + x] : mean;
            store(out, c * l->stride_c + y * l->stride_h + x * l->stride_w,
                  (float)((pixel - less) * factor));
        }
}

/* Fails unless the picture is u8 H W C, and the input floats or u8 of 1 or 3 (rgb, bgr) channels.
 */
static cnr_status check(const cnri_preprocess *p, const cnr_tensor *picture_, const cnr_tensor *out,
                        const layout *l, cnr_error *err) {
    if (out->dtype != CNR_f32 && out->dtype != CNR_u8 && out->dtype != CNR_f16 &&
        out->dtype != CNR_bf16)
        return cnri_fail(err, CNR_E_UNSUPPORTED, "input",
                         "pictures go into inputs of f32, f16, bf16 or u8, this one is %s",
                         cnr_dtype_name(out->dtype));
    if (picture_->dtype != CNR_u8 || picture_->rank != 3 || !picture_->data || !out->data)
        return cnri_fail(err, CNR_E_ARG, "picture", "wanted u8, H W C");
    if (out->rank > 4)
        return cnri_fail(err, CNR_E_SHAPE, "input",
                         "a picture has up to 4 sizes, this input has %d", (int)out->rank);
    if (l->c != 1 && l->c != 3)
        return cnri_fail(err, CNR_E_SHAPE, "input",
                         "pictures have 1 or 3 channels, this input wants %lld", (long long)l->c);
    if (l->c == 1 && p->channels != 0 && p->channels != 1)
        return cnri_fail(err, CNR_E_SHAPE, "input",
                         "channels rgb or bgr, but the input has one channel");
    return CNR_OK;
}

/* Checks, once the size is known, that input, mean and picture fit together. */
static cnr_status check_size(const cnri_preprocess *p, const layout *l, const cnr_tensor *out,
                             cnr_error *err) {
    if (cnr_count(out) != l->c * l->h * l->w)
        return cnri_fail(err, CNR_E_SHAPE, "input",
                         "%lld x %lld x %lld values do not fill an input of %lld (one sample)",
                         (long long)l->c, (long long)l->h, (long long)l->w,
                         (long long)cnr_count(out));
    const struct {
        const char *what;
        int32_t n;
    } lists[] = {{"means", p->n_mean}, {"stds", p->n_std}};
    for (int32_t i = 0; i < 2; i++)
        if (lists[i].n > 1 && lists[i].n != l->c)
            return cnri_fail(err, CNR_E_SHAPE, lists[i].what,
                             "%d numbers for an input of %lld channel%s; want one, or one a "
                             "channel",
                             (int)lists[i].n, (long long)l->c, l->c == 1 ? "" : "s");
    if (p->mean_image && p->mean_count != (uint64_t)(l->c * l->h * l->w))
        return cnri_fail(err, CNR_E_SHAPE, "mean image",
                         "it has %llu values, the input %lld x %lld x %lld",
                         (unsigned long long)p->mean_count, (long long)l->c, (long long)l->h,
                         (long long)l->w);
    return CNR_OK;
}

/* Like cnri_preprocess_apply, into out's data; *framing says which part of the picture the input
 * shows. */
cnr_status cnri_preprocess_framed(const cnri_preprocess *p, const cnr_tensor *from, cnr_tensor *out,
                                  cnri_framing *framing, cnr_error *err) {
    picture pic = {.h = from->dim[0],
                   .w = from->dim[1],
                   .c = from->dim[2],
                   .at = from->data,
                   .framing = {.scale = {1, 1}},
                   .limit = p->memory_limit,
                   .err = err};
    layout l = layout_of(out, &pic);
    cnr_status status = check(p, from, out, &l, err);
    if (status) return status;
    if (l.c == 1 || p->channels == 1) status = to_grey(&pic);
    if (!status) status = geometry(p, &pic, l.h, l.w);
    if (!status) {
        if (out->rank < 3) l = (layout){pic.c, pic.h, pic.w, pic.h * pic.w, pic.w, 1};
        status = check_size(p, &l, out, err);
    }
    for (int64_t c = 0; c < l.c && !status; c++) write_channel(p, &pic, &l, c, out);
    cnri_free(pic.own);
    *framing = pic.framing;
    return status;
}

cnr_status cnri_preprocess_apply(const cnri_preprocess *p, const cnr_tensor *from, cnr_tensor *out,
                                 cnr_error *err) {
    cnri_framing framing;
    return cnri_preprocess_framed(p, from, out, &framing, err);
}
