/* Draws one line of text in the canvas's font. */
#include "draw.h"
#include <math.h>

enum { MOST_BYTES = 1000 };

/* Bytes (1 to 4) of the UTF-8 character at p, of which `room` bytes are there; 0: invalid or
 * cut. */
static int32_t character(const uint8_t *p, int64_t room) {
    const int32_t n = *p < 0x80                 ? 1
                      : *p >= 0xc2 && *p < 0xe0 ? 2
                      : *p >= 0xe0 && *p < 0xf0 ? 3
                      : *p >= 0xf0 && *p < 0xf5 ? 4
                                                : 0;
    if (n > room) return 0;
    for (int32_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if (n == 3 && ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f))) return 0;
    if (n == 4 && ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))) return 0;
    return n;
}

/* Copies a text to `out`, cut to MOST_BYTES, with "?" for invalid UTF-8, at which cairo would fail
 * and stay in error, and spaces for control characters; fails if it is no text. */
static cnr_status clean(const cnr_tensor *text, char *out, cnr_error *err) {
    if (text->dtype != CNR_u8 || text->rank != 1)
        return draw_host->fail(err, CNR_E_ARG, "text", "want a text");
    const uint8_t *p = text->data;
    int64_t left = text->dim[0], n = 0;
    while (left > 0 && n < MOST_BYTES - 4) {
        const int32_t bytes = character(p, left);
        if (bytes > 1) memcpy(out + n, p, (size_t)bytes);
        else out[n] = !bytes ? '?' : *p < ' ' || *p == 127 ? ' ' : (char)*p;
        n += bytes ? bytes : 1;
        p += bytes ? bytes : 1;
        left -= bytes ? bytes : 1;
    }
    out[n] = 0;
    return CNR_OK;
}

/* Sets the size of the font, in pixels, from input `at`, limited to 1 to 1000; fails unless that is
 * one number. */
static cnr_status use_size(const draw_call *c, int32_t at) {
    double size;
    const cnr_status status = draw_numbers(c->in[at], "size", 1, &size, c->err);
    if (!status) cairo_set_font_size(c->s->pen, fmax(1, fmin(size, 1000)));
    return status;
}

cnr_status draw_extent(const draw_call *c) {
    char line[MOST_BYTES];
    cairo_text_extents_t about;
    cairo_font_extents_t font;
    const int64_t dim[] = {2};
    double *both;
    DRAW_TRY(use_size(c, 1));
    DRAW_TRY(clean(c->in[0], line, c->err));
    cairo_font_extents(c->s->pen, &font);
    cairo_text_extents(c->s->pen, line, &about);
    DRAW_TRY(draw_check(c->s, c->err));
    DRAW_TRY(draw_give(c, CNR_f64, 1, dim, both = draw_host->alloc(2 * sizeof *both)));
    both[0] = about.x_advance;
    both[1] = font.ascent + font.descent;
    return CNR_OK;
}

/* The top left corner of the text is at the given position, about which it is rotated anticlockwise
 * by degrees. */
cnr_status draw_text(const draw_call *c) {
    char line[MOST_BYTES];
    double at[2], degrees = 0;
    cairo_font_extents_t font;
    cairo_t *pen = c->s->pen;
    DRAW_TRY(draw_numbers(c->in[1], "place", 2, at, c->err));
    DRAW_TRY(use_size(c, 2));
    DRAW_TRY(draw_colour(c->s, c->in[3], c->err));
    if (c->n_in > 4) DRAW_TRY(draw_numbers(c->in[4], "degrees", 1, &degrees, c->err));
    DRAW_TRY(clean(c->in[0], line, c->err));
    cairo_font_extents(pen, &font);
    cairo_save(pen);
    cairo_translate(pen, at[0], at[1]);
    cairo_rotate(pen, -degrees * M_PI / 180);
    cairo_move_to(pen, 0, font.ascent);
    cairo_show_text(pen, line);
    cairo_restore(pen);
    return draw_check(c->s, c->err);
}
