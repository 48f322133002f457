/* Inside draw-cairo: a picture being drawn on. */
#ifndef DRAW_CAIRO_DRAW_H
#define DRAW_CAIRO_DRAW_H

#include <cairo.h>
#include <cnnrun/plugin.h>

extern const cnr_host *draw_host;
extern const cnr_object draw_canvas;

typedef struct draw_state {
    cairo_surface_t *surface; /* RGB24 */
    cairo_t *pen;
} draw_state;

/* Failed when cairo ran into something (out of memory). */
cnr_status draw_check(const draw_state *s, cnr_error *err);

/* ---- text.c: one line of text, 8 bits a unit; what is no UTF-8 becomes '?' ---- */
cnr_status draw_text(draw_state *s, const cnr_tensor *text, const double at[2], double size,
                     cnr_error *err);
/* Width and height of the line. */
cnr_status draw_extent(draw_state *s, const cnr_tensor *text, double size, double extent[2],
                       cnr_error *err);

#endif
