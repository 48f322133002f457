/* PNG by libpng: every colour type and depth, alpha dropped as in Pillow's convert("RGB"); and
 * writing. */
#include "images.h"
#include <setjmp.h>

#include <png.h>

/* Deflate compresses 1,032 times at most; a pixel of one bit gives 8 times as many pixels. */
enum { PIXELS_A_BYTE = 8400, MAX_SIDE = 1 << 20, MAX_CHUNK = 64 << 20 };

/* State that must survive a longjmp. */
typedef struct coder {
    png_structp png;
    png_infop info;
    img_bytes from;
    size_t at;
    struct cnr_output *out;
    cnr_error *err;
    cnr_status failed; /* status of writing to `out` */
    img_picture picture;
    png_bytep *rows;
    int starved; /* out of memory while libpng worked */
    char text[200];
} coder;

/* Keeps libpng's error text and leaves libpng by longjmp. */
static void fail(png_structp png, png_const_charp text) {
    coder *c = png_get_error_ptr(png);
    snprintf(c->text, sizeof c->text, "%s", text);
    longjmp(png_jmpbuf(png), 1);
}

/* libpng's alloc: NULL for blocks above the limit, since libpng only warns about such chunks but
 * allocates them nevertheless, and where there is no memory (c->starved). */
static png_voidp get_memory(png_structp png, png_alloc_size_t n) {
    coder *c = png_get_mem_ptr(png);
    if (n > MAX_CHUNK + 4096) return NULL;
    void *block = img_host->alloc(n);
    if (!block) c->starved = 1;
    return block;
}

/* libpng's free. */
static void free_memory(png_structp png, png_voidp block) {
    (void)png;
    img_host->free(block);
}

/* Logs a warning of libpng with the file's path, at level INFO. */
static void warn(png_structp png, png_const_charp text) {
    const coder *c = png_get_error_ptr(png);
    img_host->log(CNR_LOG_INFO, "source-images", "%s: %s", c->from.path, text);
}

/* Gives libpng the next n bytes of the file; fewer are an error. */
static void take(png_structp png, png_bytep to, size_t n) {
    coder *c = png_get_io_ptr(png);
    if (n > c->from.n - c->at) png_error(png, "the file ends too early");
    memcpy(to, c->from.at + c->at, n);
    c->at += n;
}

/* 1: the head of a file is a PNG's. */
int img_is_png(const uint8_t *head, size_t n) { return n >= 8 && png_sig_cmp(head, 0, 8) == 0; }

/* How the picture is to be turned, by its EXIF data: 1 to 8; 1: not at all. */
static int orientation_of(coder *c) {
    png_uint_32 n = 0;
    png_bytep exif = NULL;
    if (!png_get_eXIf_1(c->png, c->info, &n, &exif) || !exif) return 1;
    return img_exif_orientation(exif, n);
}

/* Requests 8 bits without palette and alpha; colours of transparent pixels stay as in the file. */
static void ask_for_bytes(coder *c) {
    const int type = png_get_color_type(c->png, c->info);
    if (png_get_bit_depth(c->png, c->info) == 16) png_set_scale_16(c->png);
    if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(c->png);
    if (type == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(c->png);
    png_set_strip_alpha(c->png);
    png_set_interlace_handling(c->png);
    png_read_update_info(c->png, c->info);
}

/* Decodes the file into the coder's picture as grey or RGB, turned upright; libpng's errors leave
 * by longjmp. */
static cnr_status decode(coder *c, cnr_error *err) {
    png_set_read_fn(c->png, c, take);
    png_set_user_limits(c->png, MAX_SIDE, MAX_SIDE);
    png_set_chunk_malloc_max(c->png, MAX_CHUNK);
    png_read_info(c->png, c->info);
    const int64_t w = png_get_image_width(c->png, c->info);
    const int64_t h = png_get_image_height(c->png, c->info);
    const int64_t colours = png_get_color_type(c->png, c->info) & PNG_COLOR_MASK_COLOR ? 3 : 1;
    const cnr_status status = img_make(&c->picture, h, w, colours, &c->from, PIXELS_A_BYTE, err);
    if (status) return status;
    ask_for_bytes(c);
    const int64_t row = w * colours;
    if ((int64_t)png_get_rowbytes(c->png, c->info) != row) png_error(c->png, "odd row size");
    c->rows = img_host->alloc((size_t)h * sizeof *c->rows);
    if (!c->rows) return img_host->fail(err, CNR_E_MEMORY, c->from.path, "out of memory");
    for (int64_t y = 0; y < h; y++) c->rows[y] = c->picture.data + y * row;
    png_read_image(c->png, c->rows);
    png_read_end(c->png, c->info);
    return img_orient(&c->picture, orientation_of(c), c->from.path, err);
}

/* Frees the coder; reading: it was made to read. */
static void coder_free(coder *c, int reading) {
    if (reading) png_destroy_read_struct(&c->png, &c->info, NULL);
    else png_destroy_write_struct(&c->png, &c->info);
    img_host->free(c->rows);
    img_host->free(c);
}

/* A coder to read a file, or else to write one, for coder_free; NULL: no memory. */
static coder *coder_new(const img_bytes *from, int reading) {
    coder *c = img_host->alloc(sizeof *c);
    if (!c) return NULL;
    memset(c, 0, sizeof *c);
    c->from = *from;
    c->png = reading ? png_create_read_struct_2(PNG_LIBPNG_VER_STRING, c, fail, warn, c, get_memory,
                                                free_memory)
                     : png_create_write_struct_2(PNG_LIBPNG_VER_STRING, c, fail, warn, c,
                                                 get_memory, free_memory);
    c->info = c->png ? png_create_info_struct(c->png) : NULL;
    if (c->info) return c;
    coder_free(c, reading);
    return NULL;
}

/* Reads a PNG into *out, turned upright, with pixels for img_drop; fails with CNR_E_FORMAT or
 * CNR_E_MEMORY. */
cnr_status img_read_png(const img_bytes *file, img_picture *out, cnr_error *err) {
    coder *c = coder_new(file, 1);
    if (!c) return img_host->fail(err, CNR_E_MEMORY, file->path, "out of memory");
    cnr_status status;
    if (setjmp(png_jmpbuf(c->png)) == 0) status = decode(c, err);
    else if (c->starved) status = img_host->fail(err, CNR_E_MEMORY, file->path, "out of memory");
    else status = img_host->fail(err, CNR_E_FORMAT, file->path, "damaged PNG: %s", c->text);
    if (status) img_drop(&c->picture);
    else *out = c->picture;
    coder_free(c, 1);
    return status;
}

/* ---- writing ---- */

/* libpng writes n bytes; a failure leaves the encoder. */
static void give(png_structp png, png_bytep data, size_t n) {
    coder *c = png_get_io_ptr(png);
    c->failed = img_host->output_write(c->out, data, n, c->err);
    if (c->failed) longjmp(png_jmpbuf(png), 1);
}

/* Encodes a picture [height, width, 1 or 3 colours] to the coder's output; libpng's errors leave by
 * longjmp. */
static void encode(coder *c, const cnr_tensor *picture) {
    const int64_t h = picture->dim[0], w = picture->dim[1], colours = picture->dim[2];
    png_set_write_fn(c->png, c, give, NULL);
    png_set_IHDR(c->png, c->info, (png_uint_32)w, (png_uint_32)h, 8,
                 colours == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(c->png, c->info);
    for (int64_t y = 0; y < h; y++)
        png_write_row(c->png, (png_const_bytep)picture->data + y * w * colours);
    png_write_end(c->png, NULL);
}

/* Encodes, and turns a jump out of libpng into a failure. */
static cnr_status encode_guarded(coder *c, const cnr_tensor *picture, cnr_error *err) {
    if (setjmp(png_jmpbuf(c->png)) == 0) {
        encode(c, picture);
        return CNR_OK;
    }
    if (!*c->text) return c->failed; /* the host has reported it */
    return img_host->fail(err, CNR_E_IO, c->from.path, "can't write: %s", c->text);
}

/* Writes a u8 tensor [height, width, colours] as a PNG. */
cnr_status img_write_png(const char *path, const cnr_tensor *t, cnr_error *err) {
    const img_bytes name = {NULL, 0, path};
    if (t->dtype != CNR_u8 || t->rank != 3 || !t->data || t->dim[0] < 1 || t->dim[1] < 1 ||
        t->dim[0] > MAX_SIDE || t->dim[1] > MAX_SIDE || (t->dim[2] != 1 && t->dim[2] != 3))
        return img_host->fail(err, CNR_E_ARG, path, "a picture is u8, H W C with C 1 or 3");
    coder *c = coder_new(&name, 0);
    if (!c) return img_host->fail(err, CNR_E_MEMORY, path, "out of memory");
    c->err = err;
    cnr_status status = img_host->output_begin(path, 0, &c->out, err);
    if (!status) status = img_host->output_end(c->out, encode_guarded(c, t, err), err);
    coder_free(c, 0);
    return status;
}
