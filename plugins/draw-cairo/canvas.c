/* The object "canvas": draws pictures, shapes and text on a picture or in an SVG or PDF file.
 * Lengths are pixels, positions count from the top left corner, colours are { red, green, blue,
 * opacity } from 0 to 1. */
#include "about.h"
#include "draw.h"
#include <math.h>

cnr_status draw_fail(cnr_error *err, int32_t code, const char *where, const char *text) {
    return draw_host->fail(err, code, where, "%s", text);
}

cnr_status draw_check(const draw_state *s, cnr_error *err) {
    const cairo_status_t status = cairo_status(s->pen);
    if (status == CAIRO_STATUS_SUCCESS) return CNR_OK;
    return draw_fail(err, status == CAIRO_STATUS_NO_MEMORY ? CNR_E_MEMORY : CNR_E_STATE, "canvas",
                     cairo_status_to_string(status));
}

/* ---- making ---- */

/* Frees a canvas. */
static void destroy(void *state) {
    draw_state *s = state;
    if (s->pen) cairo_destroy(s->pen);
    if (s->surface) cairo_surface_destroy(s->surface);
    draw_host->free(s->text);
    draw_host->free(s);
}

/* Options of a canvas. */
typedef struct options {
    int64_t width, height;
    const char *font;
    int64_t bold, svg, pdf;
    double scale;
} options;

/* Reads the options into *o, over the defaults; fails for unknown ones, those of another type, and
 * sizes out of range. */
static cnr_status read_options(const cnr_attr *const *list, int32_t n, options *o, cnr_error *err) {
    *o = (options){.font = "sans-serif", .scale = 1};
    for (int32_t i = 0; i < n; i++) {
        const cnr_attr *a = list[i];
        const bool number = a->type == CNR_ATTR_INT || a->type == CNR_ATTR_FLOAT;
        if (strcmp(a->name, "width") == 0 && a->type == CNR_ATTR_INT) o->width = a->i;
        else if (strcmp(a->name, "height") == 0 && a->type == CNR_ATTR_INT) o->height = a->i;
        else if (strcmp(a->name, "font") == 0 && a->type == CNR_ATTR_STRING) o->font = a->s;
        else if (strcmp(a->name, "bold") == 0 && a->type == CNR_ATTR_BOOL) o->bold = a->i;
        else if (strcmp(a->name, "svg") == 0 && a->type == CNR_ATTR_BOOL) o->svg = a->i;
        else if (strcmp(a->name, "pdf") == 0 && a->type == CNR_ATTR_BOOL) o->pdf = a->i;
        else if (strcmp(a->name, "scale") == 0 && number) o->scale = a->f;
        else
            return draw_host->fail(err, CNR_E_ARG, "canvas",
                                   "no option '%s' of this kind: width "
                                   "and height (whole numbers), font (a text), bold (true), scale "
                                   "(pixels a unit), svg (true), pdf (true)",
                                   a->name);
    }
    if (o->svg && o->pdf) return draw_fail(err, CNR_E_ARG, "canvas", "svg or pdf, not both");
    if (!(o->scale >= 0.1 && o->scale <= 16))
        return draw_fail(err, CNR_E_LIMIT, "canvas", "scale: want 0.1 to 16");
    if (o->width < 1 || o->height < 1 || (double)o->width * o->scale > DRAW_MOST_SIDE ||
        (double)o->height * o->scale > DRAW_MOST_SIDE ||
        (double)o->width * (double)o->height * o->scale * o->scale > DRAW_MOST_PIXELS)
        return draw_fail(err, CNR_E_LIMIT, "canvas",
                         "width and height: want 1 to 32000 pixels each");
    return CNR_OK;
}

/* A surface in memory (of scaled pixels), or one that writes SVG or PDF into s->text; to be
 * destroyed. */
static cairo_surface_t *surface_of(draw_state *s, const options *o) {
    if (s->file) return draw_file_surface(s, o->width, o->height);
    return cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)ceil((double)o->width * o->scale),
                                      (int)ceil((double)o->height * o->scale));
}

/* Makes letter widths proportional to the size, so that a text measured at one size fits at
 * another. */
static void scale_text(cairo_t *pen) {
    cairo_font_options_t *options = cairo_font_options_create();
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_set_font_options(pen, options);
    cairo_font_options_destroy(options);
}

/* Implements cnr_object.create: makes a canvas by its options; *state for destroy. */
static cnr_status create(const cnr_attr *const *list, int32_t n, void **state, cnr_error *err) {
    options o;
    cnr_status status = read_options(list, n, &o, err);
    if (status) return status;
    draw_state *s = draw_host->alloc(sizeof *s);
    if (!s) return draw_fail(err, CNR_E_MEMORY, "canvas", "out of memory");
    *s = (draw_state){.file = o.pdf ? DRAW_PDF : o.svg ? DRAW_SVG : DRAW_PIXELS};
    s->surface = surface_of(s, &o);
    if (!s->surface) {
        destroy(s);
        return draw_fail(err, CNR_E_UNSUPPORTED, "canvas",
                         "this cairo was built without such files");
    }
    s->pen = cairo_create(s->surface);
    if (!s->file) cairo_scale(s->pen, o.scale, o.scale);
    if (s->file || o.scale != 1) scale_text(s->pen);
    cairo_select_font_face(s->pen, o.font, CAIRO_FONT_SLANT_NORMAL,
                           o.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_line_join(s->pen, CAIRO_LINE_JOIN_ROUND);
    status = draw_check(s, err);
    if (status) destroy(s);
    else *state = s;
    return status;
}

/* ---- arguments and results ---- */

cnr_status draw_numbers(const cnr_tensor *t, const char *what, int32_t n, double *out,
                        cnr_error *err) {
    const double *from = t->data;
    if (t->dtype != CNR_f64 || cnr_count(t) != n)
        return draw_host->fail(err, CNR_E_ARG, what, "want %d numbers", (int)n);
    for (int32_t i = 0; i < n; i++) {
        if (!isfinite(from[i])) return draw_fail(err, CNR_E_ARG, what, "want finite numbers");
        out[i] = fmax(-2.0 * DRAW_MOST_SIDE, fmin(2.0 * DRAW_MOST_SIDE, from[i]));
    }
    return CNR_OK;
}

cnr_status draw_colour(const draw_state *s, const cnr_tensor *t, cnr_error *err) {
    double c[4] = {0, 0, 0, 1};
    const int32_t n = cnr_count(t) == 3 ? 3 : 4;
    const cnr_status status = draw_numbers(t, "colour", n, c, err);
    if (!status) cairo_set_source_rgba(s->pen, c[0], c[1], c[2], c[3]);
    return status;
}

/* Fills result 0 with type, sizes and `data`, which the caller of the method then owns;
 * CNR_E_MEMORY if data is NULL. */
cnr_status draw_give(const draw_call *c, int32_t dtype, int32_t rank, const int64_t *dim,
                     void *data) {
    cnr_tensor *out = c->out[0];
    if (!data) return draw_fail(c->err, CNR_E_MEMORY, "canvas", "out of memory");
    out->dtype = dtype;
    out->rank = rank;
    memcpy(out->dim, dim, (size_t)rank * sizeof *dim);
    out->data = data;
    return CNR_OK;
}

/* ---- the table ---- */

static const struct method {
    cnr_status (*run)(const draw_call *c);
    int32_t least, most; /* least and most arguments */
} table[] = {
/* Row of one method: function and numbers of arguments. */
#define X(run, least, most, text) {run, least, most},
    DRAW_METHODS(X)
#undef X
};

/* Calls method number `method` of the canvas; CNR_E_ARG: there is none, or the number of inputs is
 * wrong. */
static cnr_status call_method(void *state, int32_t method, const cnr_tensor *const *in,
                              int32_t n_in, cnr_tensor *const *out, int32_t n_out, cnr_error *err) {
    const int32_t n = (int32_t)(sizeof table / sizeof table[0]);
    const draw_call c = {state, in, n_in, out, err};
    if (method < 0 || method >= n) return draw_fail(err, CNR_E_ARG, "canvas", "no such method");
    if (n_in < table[method].least || n_in > table[method].most ||
        n_out < (strstr(draw_methods[method], "->") ? 1 : 0))
        return draw_host->fail(err, CNR_E_ARG, "canvas", "want %s", draw_methods[method]);
    return table[method].run(&c);
}

const cnr_object draw_canvas = {.size = sizeof draw_canvas,
                                .n_methods = sizeof table / sizeof table[0],
                                .name = DRAW_NAME,
                                .summary = DRAW_SUMMARY,
                                .methods = draw_methods,
                                .create = create,
                                .call = call_method,
                                .destroy = destroy};

const cnr_host *draw_host;

CNR_EXPORT const cnr_object *late_object(const cnr_host *host);
/* Returns the canvas's object, and keeps the host; the plugin calls it once the library is
 * loaded. */
const cnr_object *late_object(const cnr_host *host) {
    draw_host = host;
    return &draw_canvas;
}
