/* Facts about the object "canvas" that are known before cairo is loaded. */
#ifndef DRAW_ABOUT_H
#define DRAW_ABOUT_H

#include <cnnrun/kit.h>

#define DRAW_NAME "canvas"
#define DRAW_SUMMARY "A picture to draw on: canvas { width, height, font, bold, scale, svg, pdf }."
/* Methods, with the minimum and maximum number of arguments. */
/* clang-format off */
#define DRAW_METHODS(X) \
    X(draw_picture, 2, 2, "picture(picture, { x, y, width, height })") \
    X(draw_fill, 2, 3, "fill({ x, y, width, height }, colour, radius)") \
    X(draw_outline, 3, 4, "outline({ x, y, width, height }, colour, thickness, radius)") \
    X(draw_dot, 3, 3, "dot({ x, y }, radius, colour)") \
    X(draw_line, 3, 4, "line({ x, y, x, y ... }, colour, thickness, { dash, gap ... })") \
    X(draw_area, 2, 2, "area({ x, y, x, y ... }, colour)") \
    X(draw_clip, 0, 1, "clip({ x, y, width, height })") \
    X(draw_text, 4, 5, "text(text, { x, y }, size, colour, degrees)") \
    X(draw_extent, 2, 2, "extent(text, size) -> width and height") \
    X(draw_pixels, 0, 0, "pixels() -> picture") \
    X(draw_svg, 0, 0, "svg() -> text") \
    X(draw_pdf, 0, 0, "pdf() -> text")
/* clang-format on */

static const char *const draw_methods[] = {
/* Text of one method. */
#define X(run, least, most, text) text,
    DRAW_METHODS(X)
#undef X
};

#endif
