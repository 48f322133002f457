/* Internals of draw-cairo: a canvas. */
#ifndef DRAW_CAIRO_DRAW_H
#define DRAW_CAIRO_DRAW_H

#include <cairo.h>
#include <cnnrun/kit.h>
#include <stdbool.h>

extern const cnr_host *draw_host;
extern const cnr_object draw_canvas;

enum { DRAW_MOST_SIDE = 32000, DRAW_MOST_PIXELS = 1 << 28 };

/* What a canvas makes. */
typedef enum draw_file { DRAW_PIXELS, DRAW_SVG, DRAW_PDF } draw_file;

/* A canvas. */
typedef struct draw_state {
    cairo_surface_t *surface; /* RGB24, or a file's */
    cairo_t *pen;
    draw_file file;
    uint8_t *text; /* what the file's surface has written */
    size_t bytes, room;
} draw_state;

/* One call of a method. */
typedef struct draw_call {
    draw_state *s;
    const cnr_tensor *const *in;
    int32_t n_in;
    cnr_tensor *const *out;
    cnr_error *err;
} draw_call;

/* Returns a failure. */
#define DRAW_TRY(x) \
    do { \
        const cnr_status try_ = (x); \
        if (try_) return try_; \
    } while (0)

/* ---- canvas.c ---- */
/* Fails with code and text, for the object `where`. */
cnr_status draw_fail(cnr_error *err, int32_t code, const char *where, const char *text);
/* Fails if cairo had an error (out of memory). */
cnr_status draw_check(const draw_state *s, cnr_error *err);
/* Reads `n` numbers, clamped to what cairo's fixed-point numbers hold. */
cnr_status draw_numbers(const cnr_tensor *t, const char *what, int32_t n, double *out,
                        cnr_error *err);
/* Sets the colour of later drawing from three or four numbers. */
cnr_status draw_colour(const draw_state *s, const cnr_tensor *t, cnr_error *err);
/* Creates a result, whose data the caller of the method owns. */
cnr_status draw_give(const draw_call *c, int32_t dtype, int32_t rank, const int64_t *dim,
                     void *data);

/* ---- shapes.c ---- */
/* fill: a filled rectangle. */
cnr_status draw_fill(const draw_call *c);
/* outline: the frame of a rectangle. */
cnr_status draw_outline(const draw_call *c);
/* dot: a filled circle. */
cnr_status draw_dot(const draw_call *c);
/* line: through points, also dashed. */
cnr_status draw_line(const draw_call *c);
/* area: a filled polygon. */
cnr_status draw_area(const draw_call *c);
/* clip: limits what is drawn to a rectangle. */
cnr_status draw_clip(const draw_call *c);

/* ---- text.c: one line of text in bytes; invalid UTF-8 becomes '?' ---- */
/* text: one line of text. */
cnr_status draw_text(const draw_call *c);
/* extent: width and height of a text. */
cnr_status draw_extent(const draw_call *c);

/* ---- pictures.c: pixels in, pixels or SVG out ---- */
/* picture: draws a picture. */
cnr_status draw_picture(const draw_call *c);
/* pixels: the picture as a tensor. */
cnr_status draw_pixels(const draw_call *c);
/* svg: the text of the file. */
cnr_status draw_svg(const draw_call *c);
/* pdf: the bytes of the file. */
cnr_status draw_pdf(const draw_call *c);
/* The surface of an SVG or PDF of this size; NULL: this cairo can't write it. */
cairo_surface_t *draw_file_surface(draw_state *s, int64_t width, int64_t height);

#endif
