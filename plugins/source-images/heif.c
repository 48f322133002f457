/* HEIC and AVIF by libheif: the file's primary picture. */
#include "images.h"
#include <libheif/heif.h>

enum { PIXELS_A_BYTE = 1 << 16 };

/* Decodes the picture into *out as u8 red, green, blue, for the caller to free with img_drop;
 * after an error there is nothing to free. The handle stays the caller's; `file` bounds the size
 * and names errors. CNR_E_UNSUPPORTED: libheif can't decode it, CNR_E_FORMAT: it is damaged. */
static cnr_status decode(struct heif_image_handle *handle, const img_bytes *file, img_picture *out,
                         cnr_error *err) {
    struct heif_image *image = NULL;
    const int64_t w = heif_image_handle_get_width(handle), h = heif_image_handle_get_height(handle);
    cnr_status status = img_make(out, h, w, 3, file, PIXELS_A_BYTE, err);
    if (status) return status;
    const struct heif_error e =
        heif_decode_image(handle, &image, heif_colorspace_RGB, heif_chroma_interleaved_RGB, NULL);
    int stride = 0;
    const uint8_t *rows = NULL;
    if (e.code == heif_error_Ok)
        rows = heif_image_get_plane_readonly(image, heif_channel_interleaved, &stride);
    const int good = rows && heif_image_get_width(image, heif_channel_interleaved) == (int)w &&
                     heif_image_get_height(image, heif_channel_interleaved) == (int)h;
    for (int64_t y = 0; good && y < h; y++)
        memcpy(out->data + y * w * 3, rows + y * stride, (size_t)w * 3);
    if (image) heif_image_release(image);
    if (good) return CNR_OK;
    img_drop(out);
    return img_host->fail(err,
                          e.code == heif_error_Unsupported_feature ||
                                  e.code == heif_error_Unsupported_filetype
                              ? CNR_E_UNSUPPORTED
                              : CNR_E_FORMAT,
                          file->path, "damaged HEIF: %s",
                          e.code && e.message ? e.message : "odd sizes");
}

/* Reads the main picture of a HEIF or AVIF file into *out. */
cnr_status img_read_heif(const img_bytes *file, img_picture *out, cnr_error *err) {
    struct heif_context *context = heif_context_alloc();
    struct heif_image_handle *handle = NULL;
    cnr_status status;
    if (!context) return img_host->fail(err, CNR_E_MEMORY, file->path, "out of memory");
    struct heif_error e =
        heif_context_read_from_memory_without_copy(context, file->at, file->n, NULL);
    if (e.code == heif_error_Ok) e = heif_context_get_primary_image_handle(context, &handle);
    if (e.code == heif_error_Ok) status = decode(handle, file, out, err);
    else
        status = img_host->fail(err, CNR_E_FORMAT, file->path, "damaged HEIF: %s",
                                e.message ? e.message : "its header");
    if (handle) heif_image_handle_release(handle);
    heif_context_free(context);
    return status;
}
