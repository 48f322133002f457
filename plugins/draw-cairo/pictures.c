/* Pixels: draws pictures on a canvas, and returns the canvas as pixels, SVG or PDF. */
#include "draw.h"
#include <math.h>
#ifdef CAIRO_HAS_SVG_SURFACE
#include <cairo-svg.h>
#endif
#ifdef CAIRO_HAS_PDF_SURFACE
#include <cairo-pdf.h>
#endif

/* A new surface with the pixels of a picture, to be destroyed; cairo's status tells of a
 * failure. */
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
            const uint32_t pixel =
                (uint32_t)from[0] << 16 | (uint32_t)from[c == 3] << 8 | from[c == 3 ? 2 : 0];
            memcpy(rows + y * stride + 4 * x, &pixel, sizeof pixel);
        }
    }
    cairo_surface_mark_dirty(surface);
    return surface;
}

cnr_status draw_picture(const draw_call *c) {
    const cnr_tensor *p = c->in[0];
    double r[4];
    if (p->dtype != CNR_u8 || p->rank != 3 || (p->dim[2] != 1 && p->dim[2] != 3) || p->dim[0] < 1 ||
        p->dim[1] < 1 || p->dim[0] > DRAW_MOST_SIDE || p->dim[1] > DRAW_MOST_SIDE)
        return draw_fail(c->err, CNR_E_ARG, "picture", "want a picture, u8 [height,width,1 or 3]");
    DRAW_TRY(draw_numbers(c->in[1], "rectangle", 4, r, c->err));
    if (r[2] <= 0 || r[3] <= 0) return draw_fail(c->err, CNR_E_ARG, "rectangle", "it is empty");
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

cnr_status draw_pixels(const draw_call *c) {
    cairo_surface_t *surface = c->s->surface;
    if (c->s->file)
        return draw_fail(c->err, CNR_E_STATE, "canvas",
                         "one with svg or pdf = true has no pixels: svg(), pdf()");
    cairo_surface_flush(surface);
    const int64_t w = cairo_image_surface_get_width(surface);
    const int64_t h = cairo_image_surface_get_height(surface);
    const int64_t stride = cairo_image_surface_get_stride(surface), dim[] = {h, w, 3};
    const uint8_t *rows = cairo_image_surface_get_data(surface);
    uint8_t *to = draw_host->alloc((size_t)(w * h * 3));
    DRAW_TRY(draw_give(c, CNR_u8, 3, dim, to));
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

/* ---- vector files ---- */

#if defined(CAIRO_HAS_SVG_SURFACE) || defined(CAIRO_HAS_PDF_SURFACE)
/* Cairo's write function: appends n bytes to s->text. */
static cairo_status_t keep(void *state, const unsigned char *data, unsigned n) {
    draw_state *s = state;
    if (s->room - s->bytes < n) {
        const size_t room = 2 * (s->room + n);
        uint8_t *text = draw_host->resize(s->text, room);
        if (!text) return CAIRO_STATUS_NO_MEMORY;
        s->text = text;
        s->room = room;
    }
    memcpy(s->text + s->bytes, data, n);
    s->bytes += n;
    return CAIRO_STATUS_SUCCESS;
}
#endif

cairo_surface_t *draw_file_surface(draw_state *s, int64_t width, int64_t height) {
    cairo_surface_t *surface = NULL;
#ifdef CAIRO_HAS_SVG_SURFACE
    if (s->file == DRAW_SVG) {
        surface = cairo_svg_surface_create_for_stream(keep, s, (double)width, (double)height);
        if (cairo_surface_status(surface) == CAIRO_STATUS_SUCCESS)
            cairo_svg_surface_set_document_unit(surface, CAIRO_SVG_UNIT_PX);
    }
#endif
#ifdef CAIRO_HAS_PDF_SURFACE
    if (s->file == DRAW_PDF) { /* a point is 1/72 inch, a unit of ours 1/96; without a date, so that
                                  files are reproducible */
        const double unit = 72.0 / 96;
        surface = cairo_pdf_surface_create_for_stream(keep, s, unit * (double)width,
                                                      unit * (double)height);
        cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE, NULL);
        cairo_surface_set_device_scale(surface, unit, unit);
    }
#endif
    return surface;
}

/* Finishes the picture and gives the file's contents (CNR_E_STATE with `wanted` if the canvas makes
 * no such file); nothing can be drawn after that. */
static cnr_status finished(const draw_call *c, draw_file file, const char *wanted) {
    draw_state *s = c->s;
    if (s->file != file) return draw_fail(c->err, CNR_E_STATE, "canvas", wanted);
    cairo_surface_finish(s->surface);
    const cairo_status_t status = cairo_surface_status(s->surface);
    if (status != CAIRO_STATUS_SUCCESS)
        return draw_fail(c->err, status == CAIRO_STATUS_NO_MEMORY ? CNR_E_MEMORY : CNR_E_STATE,
                         "canvas", cairo_status_to_string(status));
    const int64_t dim[] = {(int64_t)s->bytes};
    uint8_t *text = draw_host->alloc(s->bytes);
    DRAW_TRY(draw_give(c, CNR_u8, 1, dim, text));
    memcpy(text, s->text, s->bytes);
    return CNR_OK;
}

cnr_status draw_svg(const draw_call *c) {
    return finished(c, DRAW_SVG, "want a canvas with svg = true");
}

cnr_status draw_pdf(const draw_call *c) {
    return finished(c, DRAW_PDF, "want a canvas with pdf = true");
}
