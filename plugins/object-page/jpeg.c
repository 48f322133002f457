/* Pictures as JPEG, by libjpeg-turbo. */
#include "page.h"
#include <setjmp.h>
#include <stdlib.h>

#include <jpeglib.h>

/* A picture that is being compressed. */
typedef struct writer {
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr manager;
    jmp_buf out;
    unsigned char *data;
    unsigned long n;
} writer;

/* libjpeg's error function: leaves by longjmp. */
static void fail(j_common_ptr jpeg) {
    writer *w = jpeg->client_data;
    longjmp(w->out, 1);
}

static void say_nothing(j_common_ptr jpeg) { (void)jpeg; }

/* Compresses a picture into w->data and w->n, which libjpeg allocates. 0: failed. */
static int encode(writer *w, const cnr_tensor *p) {
    if (setjmp(w->out)) return 0;
    jpeg_create_compress(&w->jpeg);
    w->jpeg.client_data = w;
    jpeg_mem_dest(&w->jpeg, &w->data, &w->n);
    w->jpeg.image_width = (JDIMENSION)p->dim[1];
    w->jpeg.image_height = (JDIMENSION)p->dim[0];
    w->jpeg.input_components = (int)p->dim[2];
    w->jpeg.in_color_space = p->dim[2] == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&w->jpeg);
    jpeg_set_quality(&w->jpeg, 80, TRUE);
    w->jpeg.dct_method = JDCT_FASTEST;
    jpeg_start_compress(&w->jpeg, TRUE);
    while (w->jpeg.next_scanline < w->jpeg.image_height) {
        JSAMPROW row =
            (JSAMPROW)p->data + (size_t)w->jpeg.next_scanline * (size_t)(p->dim[1] * p->dim[2]);
        jpeg_write_scanlines(&w->jpeg, &row, 1);
    }
    jpeg_finish_compress(&w->jpeg);
    return 1;
}

/* A new block with the picture as a JPEG, for page_block_drop; NULL: out of memory. */
page_block *page_jpeg(const cnr_tensor *picture) {
    writer *w = page_host->alloc(sizeof *w);
    page_block *b = NULL;
    if (!w) return NULL;
    memset(w, 0, sizeof *w);
    w->jpeg.err = jpeg_std_error(&w->manager);
    w->jpeg.client_data = w;
    w->manager.error_exit = fail;
    w->manager.output_message = say_nothing;
    if (encode(w, picture)) b = page_block_new(w->data, w->n);
    jpeg_destroy_compress(&w->jpeg);
    free(w->data); /* libjpeg's own */
    page_host->free(w);
    return b;
}
