/* Text: one line, in the font that the canvas was made with. */
#include "draw.h"

enum { MOST_BYTES = 1000 };

/* How many bytes the character at p has; 0: it is none. */
static int32_t character(const uint8_t *p, int64_t room) {
    const int32_t n = *p < 0x80 ? 1 : *p >= 0xc2 && *p < 0xe0 ? 2
                                    : *p >= 0xe0 && *p < 0xf0 ? 3
                                    : *p >= 0xf0 && *p < 0xf5 ? 4 : 0;
    if (n > room) return 0;
    for (int32_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if (n == 3 && ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f))) return 0;
    if (n == 4 && ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))) return 0;
    return n;
}

/* cairo takes proper UTF-8 only, and remembers an error for ever. */
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

cnr_status draw_extent(draw_state *s, const cnr_tensor *text, double size, double extent[2],
                       cnr_error *err) {
    char line[MOST_BYTES];
    cairo_text_extents_t about;
    cairo_font_extents_t font;
    const cnr_status status = clean(text, line, err);
    if (status) return status;
    cairo_set_font_size(s->pen, size);
    cairo_font_extents(s->pen, &font);
    cairo_text_extents(s->pen, line, &about);
    extent[0] = about.x_advance;
    extent[1] = font.ascent + font.descent;
    return draw_check(s, err);
}

cnr_status draw_text(draw_state *s, const cnr_tensor *text, const double at[2], double size,
                     cnr_error *err) {
    char line[MOST_BYTES];
    cairo_font_extents_t font;
    const cnr_status status = clean(text, line, err);
    if (status) return status;
    cairo_set_font_size(s->pen, size);
    cairo_font_extents(s->pen, &font);
    cairo_move_to(s->pen, at[0], at[1] + font.ascent);
    cairo_show_text(s->pen, line);
    return draw_check(s, err);
}
