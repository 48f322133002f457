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

/* A canvas: cairo's surface and pen, and the file's bytes so far. */
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

/* Returns from the function with the status x if it is a failure. */
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
/* Method fill: fills a rectangle (x, y, w, h) with a colour, with rounded corners if a radius is
 * given. The methods return CNR_E_ARG for wrong arguments. */
cnr_status draw_fill(const draw_call *c);
/* Method outline: draws the frame of a rectangle, of a thickness in pixels. */
cnr_status draw_outline(const draw_call *c);
/* Method dot: draws a filled circle. */
cnr_status draw_dot(const draw_call *c);
/* Method line: draws a line through points, dashed if lengths are given. */
cnr_status draw_line(const draw_call *c);
/* Method area: fills a polygon. */
cnr_status draw_area(const draw_call *c);
/* clip: limits what is drawn to a rectangle. */
cnr_status draw_clip(const draw_call *c);

/* ---- text.c: one line of text in bytes; invalid UTF-8 becomes '?' ---- */
/* Method text: draws one line of text at a place, turned by degrees if given. */
cnr_status draw_text(const draw_call *c);
/* Method extent(text, size): result 0 is f64 [width, height] in pixels: how far the text advances,
 * and ascent + descent of the font at that size (limited to 1 to 1000), whatever the text. Fails
 * if the text is no u8 list or the size not one number. */
cnr_status draw_extent(const draw_call *c);

/* ---- pictures.c: pixels in, pixels or SVG out ---- */
/* Method picture: draws a u8 picture (H W C, C 1 or 3) into a rectangle. */
cnr_status draw_picture(const draw_call *c);
/* Method pixels: gives the canvas as a u8 tensor H W 3. CNR_E_STATE: it writes SVG or PDF. */
cnr_status draw_pixels(const draw_call *c);
/* Method svg: ends the drawing and gives the file's text. CNR_E_STATE: the canvas is no SVG. */
cnr_status draw_svg(const draw_call *c);
/* Method pdf: ends the drawing and gives the file's bytes. CNR_E_STATE: the canvas is no PDF. */
cnr_status draw_pdf(const draw_call *c);
/* The surface of an SVG or PDF of this size; NULL: this cairo can't write it. */
cairo_surface_t *draw_file_surface(draw_state *s, int64_t width, int64_t height);

#endif
