/* JPEG by libjpeg-turbo: grey, YCbCr, CMYK; library errors become a cnr_error. */
#include "images.h"
#include <setjmp.h>

#include <jpeglib.h>
#include <jerror.h>

/* A progressive file may repeat scans without end; each is a pass over the picture. */
enum { MAX_SCANS = 200, PIXELS_A_BYTE = 4096, EXIF_HEADER = 6 };

/* State that must survive a longjmp. */
typedef struct reader {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr manager;
    struct jpeg_progress_mgr progress;
    jmp_buf out;
    char text[JMSG_LENGTH_MAX];
    img_picture picture;
    JSAMPROW row; /* a row of CMYK as it is read */
} reader;

/* libjpeg's error: keeps its text and leaves the decoder. */
static void fail(j_common_ptr jpeg) {
    reader *r = jpeg->client_data;
    jpeg->err->format_message(jpeg, r->text);
    longjmp(r->out, 1);
}

/* libjpeg's messages; level -1: a warning, which means damaged data, except for some that valid
 * files cause. */
static void message(j_common_ptr jpeg, int level) {
    if (level >= 0) return;
    switch (jpeg->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_TOO_MUCH_DATA: return;
    default: fail(jpeg);
    }
}

/* Leaves the decoder at a file of too many scans. */
static void watch_scans(j_common_ptr jpeg) {
    reader *r = jpeg->client_data;
    if (jpeg->is_decompressor && ((j_decompress_ptr)jpeg)->input_scan_number > MAX_SCANS) {
        snprintf(r->text, sizeof r->text, "more than %d scans", MAX_SCANS);
        longjmp(r->out, 1);
    }
}

/* 1: the head of a file is a JPEG's. */
int img_is_jpeg(const uint8_t *head, size_t n) {
    return n >= 3 && head[0] == 0xff && head[1] == 0xd8 && head[2] == 0xff;
}

/* How the picture is to be turned, by its EXIF data: 1 to 8; 1: not at all. */
static int orientation_of(const struct jpeg_decompress_struct *jpeg) {
    for (jpeg_saved_marker_ptr m = jpeg->marker_list; m; m = m->next)
        if (m->marker == JPEG_APP0 + 1 && m->data_length > EXIF_HEADER &&
            memcmp(m->data, "Exif\0\0", EXIF_HEADER) == 0)
            return img_exif_orientation(m->data + EXIF_HEADER, m->data_length - EXIF_HEADER);
    return 1;
}

/* Converts CMYK to RGB; Adobe's programs store inverted values. */
static void from_cmyk(const uint8_t *in, uint8_t *out, int64_t n, int inverted) {
    for (int64_t i = 0; i < n; i++, in += 4) {
        const unsigned black = inverted ? in[3] : 255u - in[3];
        for (int c = 0; c < 3; c++)
            *out++ = (uint8_t)((black * (inverted ? in[c] : 255u - in[c]) + 127) / 255);
    }
}

/* Decodes the file into the reader's picture as grey or RGB, turned upright; libjpeg's errors leave
 * by longjmp. */
static cnr_status decode(reader *r, const img_bytes *file, cnr_error *err) {
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    jpeg_create_decompress(jpeg);
    jpeg->client_data = r;
    jpeg->progress = &r->progress;
    r->progress.progress_monitor = watch_scans;
    jpeg_mem_src(jpeg, file->at, (unsigned long)file->n);
    jpeg_save_markers(jpeg, JPEG_APP0 + 1, 0xffff);
    jpeg_read_header(jpeg, TRUE);
    const int cmyk = jpeg->num_components == 4, grey = jpeg->num_components == 1;
    if (!cmyk && !grey && jpeg->num_components != 3)
        return img_host->fail(err, CNR_E_UNSUPPORTED, file->path,
                              "a JPEG of %d components; 1, 3 and 4 are known",
                              jpeg->num_components);
    jpeg->out_color_space = cmyk ? JCS_CMYK : grey ? JCS_GRAYSCALE : JCS_RGB;
    const int64_t w = jpeg->image_width, h = jpeg->image_height;
    const cnr_status status = img_make(&r->picture, h, w, grey ? 1 : 3, file, PIXELS_A_BYTE, err);
    if (status) return status;
    jpeg_start_decompress(jpeg);
    if (cmyk) r->row = jpeg->mem->alloc_small((j_common_ptr)jpeg, JPOOL_IMAGE, (size_t)w * 4);
    while (jpeg->output_scanline < jpeg->output_height) {
        uint8_t *to = r->picture.data + (int64_t)jpeg->output_scanline * w * r->picture.c;
        JSAMPROW row = cmyk ? r->row : to;
        jpeg_read_scanlines(jpeg, &row, 1);
        if (cmyk) from_cmyk(r->row, to, w, jpeg->saw_Adobe_marker);
    }
    const int orientation = orientation_of(jpeg);
    jpeg_finish_decompress(jpeg);
    return img_orient(&r->picture, orientation, file->path, err);
}

/* Reads a JPEG into *out, turned upright, with pixels for img_drop; fails with CNR_E_FORMAT or
 * CNR_E_MEMORY. */
cnr_status img_read_jpeg(const img_bytes *file, img_picture *out, cnr_error *err) {
    reader *r = img_host->alloc(sizeof *r);
    if (!r) return img_host->fail(err, CNR_E_MEMORY, file->path, "out of memory");
    memset(r, 0, sizeof *r);
    r->jpeg.err = jpeg_std_error(&r->manager);
    r->jpeg.client_data = r; /* errors may occur before the library is set up */
    r->manager.error_exit = fail;
    r->manager.emit_message = message;
    cnr_status status;
    if (setjmp(r->out) == 0) status = decode(r, file, err);
    else status = img_host->fail(err, CNR_E_FORMAT, file->path, "damaged JPEG: %s", r->text);
    jpeg_destroy_decompress(&r->jpeg);
    if (status) img_drop(&r->picture);
    else *out = r->picture;
    img_host->free(r);
    return status;
}
