/* The object "canvas": pictures, rectangles, dots and text on a picture. Lengths are pixels, places
 * from the top left corner, colours { red, green, blue, opacity } from 0 to 1. */
#include "draw.h"
#include <math.h>

enum { MOST_SIDE = 32000, MOST_PIXELS = 1 << 28 };

static cnr_status fail(cnr_error *err, int32_t code, const char *where, const char *text) {
    return draw_host->fail(err, code, where, "%s", text);
}

cnr_status draw_check(const draw_state *s, cnr_error *err) {
    const cairo_status_t status = cairo_status(s->pen);
    if (status == CAIRO_STATUS_SUCCESS) return CNR_OK;
    return fail(err, status == CAIRO_STATUS_NO_MEMORY ? CNR_E_MEMORY : CNR_E_STATE, "canvas",
                cairo_status_to_string(status));
}

/* ---- making ---- */

static void destroy(void *state) {
    draw_state *s = state;
    if (s->pen) cairo_destroy(s->pen);
    if (s->surface) cairo_surface_destroy(s->surface);
    draw_host->free(s);
}

typedef struct options {
    int64_t width, height;
    const char *font;
    int64_t bold;
} options;

static cnr_status read_options(const cnr_attr *const *list, int32_t n, options *o, cnr_error *err) {
    *o = (options){.font = "sans-serif"};
    for (int32_t i = 0; i < n; i++) {
        const cnr_attr *a = list[i];
        if (strcmp(a->name, "width") == 0 && a->type == CNR_ATTR_INT) o->width = a->i;
        else if (strcmp(a->name, "height") == 0 && a->type == CNR_ATTR_INT) o->height = a->i;
        else if (strcmp(a->name, "font") == 0 && a->type == CNR_ATTR_STRING) o->font = a->s;
        else if (strcmp(a->name, "bold") == 0 && a->type == CNR_ATTR_BOOL) o->bold = a->i;
        else
            return draw_host->fail(err, CNR_E_ARG, "canvas", "no option '%s' of this kind: width "
                                   "and height (whole numbers), font (a text), bold (true)",
                                   a->name);
    }
    if (o->width < 1 || o->height < 1 || o->width > MOST_SIDE || o->height > MOST_SIDE ||
        o->width * o->height > MOST_PIXELS)
        return fail(err, CNR_E_LIMIT, "canvas", "width and height: want 1 to 32000 pixels each");
    return CNR_OK;
}

static cnr_status create(const cnr_attr *const *list, int32_t n, void **state, cnr_error *err) {
    options o;
    cnr_status status = read_options(list, n, &o, err);
    if (status) return status;
    draw_state *s = draw_host->alloc(sizeof *s);
    if (!s) return fail(err, CNR_E_MEMORY, "canvas", "out of memory");
    s->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)o.width, (int)o.height);
    s->pen = cairo_create(s->surface);
    cairo_select_font_face(s->pen, o.font, CAIRO_FONT_SLANT_NORMAL,
                           o.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_line_join(s->pen, CAIRO_LINE_JOIN_ROUND);
    status = draw_check(s, err);
    if (status) destroy(s);
    else *state = s;
    return status;
}

/* ---- arguments ---- */

/* `n` numbers; cairo's own are fixed-point, so they are kept within what it can hold. */
static cnr_status numbers(const cnr_tensor *t, const char *what, int32_t n, double *out,
                          cnr_error *err) {
    const double *from = t->data;
    if (t->dtype != CNR_f64 || cnr_count(t) != n)
        return draw_host->fail(err, CNR_E_ARG, what, "want %d numbers", (int)n);
    for (int32_t i = 0; i < n; i++) {
        if (!isfinite(from[i])) return fail(err, CNR_E_ARG, what, "want finite numbers");
        out[i] = fmax(-2.0 * MOST_SIDE, fmin(2.0 * MOST_SIDE, from[i]));
    }
    return CNR_OK;
}

static cnr_status use_colour(const draw_state *s, const cnr_tensor *t, cnr_error *err) {
    double c[4] = {0, 0, 0, 1};
    const int32_t n = cnr_count(t) == 3 ? 3 : 4;
    const cnr_status status = numbers(t, "colour", n, c, err);
    if (!status) cairo_set_source_rgba(s->pen, c[0], c[1], c[2], c[3]);
    return status;
}

/* A rectangle with round corners. */
static void trace(cairo_t *pen, const double r[4], double radius) {
    const double most = fmin(fabs(r[2]), fabs(r[3])) / 2;
    const double x0 = r[0], y0 = r[1], x1 = r[0] + r[2], y1 = r[1] + r[3];
    radius = fmax(0, fmin(radius, most));
    cairo_new_path(pen);
    if (radius <= 0) {
        cairo_rectangle(pen, r[0], r[1], r[2], r[3]);
        return;
    }
    cairo_arc(pen, x1 - radius, y0 + radius, radius, -M_PI / 2, 0);
    cairo_arc(pen, x1 - radius, y1 - radius, radius, 0, M_PI / 2);
    cairo_arc(pen, x0 + radius, y1 - radius, radius, M_PI / 2, M_PI);
    cairo_arc(pen, x0 + radius, y0 + radius, radius, M_PI, 3 * M_PI / 2);
    cairo_close_path(pen);
}

/* ---- methods ---- */

typedef struct call {
    draw_state *s;
    const cnr_tensor *const *in;
    int32_t n_in;
    cnr_tensor *const *out;
    cnr_error *err;
} call;

#define TRY(x)                        \
    do {                              \
        const cnr_status try_ = (x);  \
        if (try_) return try_;        \
    } while (0)

static cairo_surface_t *surface_of(const cnr_tensor *picture) {
    const int64_t h = picture->dim[0], w = picture->dim[1], c = picture->dim[2];
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)w, (int)h);
    if (cairo_surface_status(surface) != CAIRO_STATUS_SUCCESS) return surface;
    uint8_t *rows = cairo_image_surface_get_data(surface);
    const int64_t stride = cairo_image_surface_get_stride(surface);
    cairo_surface_flush(surface);
    for (int64_t y = 0; y < h; y++) {
        const uint8_t *from = (const uint8_t *)picture->data + y * w * c;
        for (int64_t x = 0; x < w; x++, from += c) {
            const uint32_t pixel = (uint32_t)from[0] << 16 | (uint32_t)from[c == 3] << 8 |
                                   from[c == 3 ? 2 : 0];
            memcpy(rows + y * stride + 4 * x, &pixel, sizeof pixel);
        }
    }
    cairo_surface_mark_dirty(surface);
    return surface;
}

static cnr_status paint(const call *c) {
    const cnr_tensor *p = c->in[0];
    double r[4];
    if (p->dtype != CNR_u8 || p->rank != 3 || (p->dim[2] != 1 && p->dim[2] != 3) || p->dim[0] < 1 ||
        p->dim[1] < 1 || p->dim[0] > MOST_SIDE || p->dim[1] > MOST_SIDE)
        return fail(c->err, CNR_E_ARG, "picture", "want a picture, u8 [height,width,1 or 3]");
    TRY(numbers(c->in[1], "rectangle", 4, r, c->err));
    if (r[2] <= 0 || r[3] <= 0) return fail(c->err, CNR_E_ARG, "rectangle", "it is empty");
    cairo_surface_t *surface = surface_of(p);
    cairo_t *pen = c->s->pen;
    cairo_save(pen);
    cairo_rectangle(pen, r[0], r[1], r[2], r[3]);
    cairo_clip(pen);
    cairo_translate(pen, r[0], r[1]);
    cairo_scale(pen, r[2] / (double)p->dim[1], r[3] / (double)p->dim[0]);
    cairo_set_source_surface(pen, surface, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(pen), CAIRO_FILTER_BEST);
    cairo_pattern_set_extend(cairo_get_source(pen), CAIRO_EXTEND_PAD);
    cairo_paint(pen);
    cairo_restore(pen);
    cairo_surface_destroy(surface);
    return draw_check(c->s, c->err);
}

static cnr_status fill(const call *c) {
    double r[4], radius = 0;
    TRY(numbers(c->in[0], "rectangle", 4, r, c->err));
    TRY(use_colour(c->s, c->in[1], c->err));
    if (c->n_in > 2) TRY(numbers(c->in[2], "radius", 1, &radius, c->err));
    trace(c->s->pen, r, radius);
    cairo_fill(c->s->pen);
    return draw_check(c->s, c->err);
}

static cnr_status outline(const call *c) {
    double r[4], thickness, radius = 0;
    TRY(numbers(c->in[0], "rectangle", 4, r, c->err));
    TRY(use_colour(c->s, c->in[1], c->err));
    TRY(numbers(c->in[2], "thickness", 1, &thickness, c->err));
    if (c->n_in > 3) TRY(numbers(c->in[3], "radius", 1, &radius, c->err));
    trace(c->s->pen, r, radius);
    cairo_set_line_width(c->s->pen, fmax(0, thickness));
    cairo_stroke(c->s->pen);
    return draw_check(c->s, c->err);
}

static cnr_status dot(const call *c) {
    double at[2], radius;
    TRY(numbers(c->in[0], "place", 2, at, c->err));
    TRY(numbers(c->in[1], "radius", 1, &radius, c->err));
    TRY(use_colour(c->s, c->in[2], c->err));
    cairo_new_path(c->s->pen);
    cairo_arc(c->s->pen, at[0], at[1], fmax(0, radius), 0, 2 * M_PI);
    cairo_fill(c->s->pen);
    return draw_check(c->s, c->err);
}

static cnr_status text(const call *c) {
    double at[2], size;
    TRY(numbers(c->in[1], "place", 2, at, c->err));
    TRY(numbers(c->in[2], "size", 1, &size, c->err));
    TRY(use_colour(c->s, c->in[3], c->err));
    return draw_text(c->s, c->in[0], at, fmax(1, fmin(size, 1000)), c->err);
}

static cnr_status extent(const call *c) {
    double size, both[2];
    cnr_tensor *out = c->out[0];
    TRY(numbers(c->in[1], "size", 1, &size, c->err));
    TRY(draw_extent(c->s, c->in[0], fmax(1, fmin(size, 1000)), both, c->err));
    out->dtype = CNR_f64;
    out->rank = 1;
    out->dim[0] = 2;
    out->data = draw_host->alloc(sizeof both);
    if (!out->data) return fail(c->err, CNR_E_MEMORY, "canvas", "out of memory");
    memcpy(out->data, both, sizeof both);
    return CNR_OK;
}

static cnr_status pixels(const call *c) {
    cnr_tensor *out = c->out[0];
    cairo_surface_t *surface = c->s->surface;
    cairo_surface_flush(surface);
    const int64_t w = cairo_image_surface_get_width(surface);
    const int64_t h = cairo_image_surface_get_height(surface);
    const int64_t stride = cairo_image_surface_get_stride(surface);
    const uint8_t *rows = cairo_image_surface_get_data(surface);
    uint8_t *to = out->data = draw_host->alloc((size_t)(w * h * 3));
    if (!to) return fail(c->err, CNR_E_MEMORY, "canvas", "out of memory");
    out->dtype = CNR_u8;
    out->rank = 3;
    out->dim[0] = h;
    out->dim[1] = w;
    out->dim[2] = 3;
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            uint32_t pixel;
            memcpy(&pixel, rows + y * stride + 4 * x, sizeof pixel);
            *to++ = (uint8_t)(pixel >> 16);
            *to++ = (uint8_t)(pixel >> 8);
            *to++ = (uint8_t)pixel;
        }
    return CNR_OK;
}

/* ---- the table ---- */

static const struct method {
    cnr_status (*run)(const call *c);
    int32_t least, most; /* arguments */
} table[] = {{paint, 2, 2}, {fill, 2, 3}, {outline, 3, 4}, {dot, 3, 3},
             {text, 4, 4},  {extent, 2, 2}, {pixels, 0, 0}};

static const char *const methods[] = {
    "picture(picture, { x, y, width, height })",
    "fill({ x, y, width, height }, colour, radius)",
    "outline({ x, y, width, height }, colour, thickness, radius)",
    "dot({ x, y }, radius, colour)",
    "text(text, { x, y }, size, colour)",
    "extent(text, size) -> width and height",
    "pixels() -> picture"};

static cnr_status call_method(void *state, int32_t method, const cnr_tensor *const *in,
                              int32_t n_in, cnr_tensor *const *out, int32_t n_out,
                              cnr_error *err) {
    const int32_t n = (int32_t)(sizeof table / sizeof table[0]);
    const call c = {state, in, n_in, out, err};
    if (method < 0 || method >= n) return fail(err, CNR_E_ARG, "canvas", "no such method");
    if (n_in < table[method].least || n_in > table[method].most ||
        n_out < (strstr(methods[method], "->") ? 1 : 0))
        return draw_host->fail(err, CNR_E_ARG, "canvas", "want %s", methods[method]);
    return table[method].run(&c);
}

const cnr_object draw_canvas = {
    .size = sizeof draw_canvas, .n_methods = sizeof methods / sizeof methods[0], .name = "canvas",
    .summary = "A picture to draw on: canvas { width, height, font, bold }.", .methods = methods,
    .create = create, .call = call_method, .destroy = destroy};
