/* WebP by libwebp; the first picture of an animation. */
#include "images.h"
#include <webp/demux.h>
#include <webp/encode.h>

enum { PIXELS_A_BYTE = 1 << 16, WRITTEN_QUALITY = 90 };

/* Reads a WebP into *out; of an animation, the first picture. */
cnr_status img_read_webp(const img_bytes *file, img_picture *out, cnr_error *err) {
    const WebPData data = {file->at, file->n};
    WebPBitstreamFeatures about;
    WebPAnimDecoderOptions options;
    uint8_t *pixels = NULL;
    int time;
    if (WebPGetFeatures(file->at, file->n, &about) != VP8_STATUS_OK)
        return img_host->fail(err, CNR_E_FORMAT, file->path, "damaged WebP: its header");
    cnr_status status = img_make(out, about.height, about.width, 3, file, PIXELS_A_BYTE, err);
    if (status) return status;
    WebPAnimDecoderOptionsInit(&options);
    options.color_mode = MODE_RGBA;
    options.use_threads = 0;
    WebPAnimDecoder *decoder = WebPAnimDecoderNew(&data, &options);
    WebPAnimInfo info;
    const int good = decoder && WebPAnimDecoderGetInfo(decoder, &info) &&
                     info.canvas_width == (uint32_t)out->w &&
                     info.canvas_height == (uint32_t)out->h &&
                     WebPAnimDecoderGetNext(decoder, &pixels, &time);
    for (int64_t i = 0; good && i < out->h * out->w; i++)
        memcpy(out->data + 3 * i, pixels + 4 * i, 3);
    if (decoder) WebPAnimDecoderDelete(decoder);
    if (good) return CNR_OK;
    img_drop(out);
    return img_host->fail(err, CNR_E_FORMAT, file->path, "damaged WebP: it can't be decoded");
}

/* Encodes a u8 picture (H W C, C 1 or 3) as lossy WebP; free *data with host->free. `path` is for
 * messages. Shape and type are not checked; too large: CNR_E_LIMIT. */
CNR_EXPORT cnr_status img_encode_webp(const cnr_host *host, const cnr_tensor *t, const char *path,
                                      uint8_t **data, size_t *n, cnr_error *err);
/* *data receives the tensor's picture as a lossless WebP of n bytes, which the caller frees. */
cnr_status img_encode_webp(const cnr_host *host, const cnr_tensor *t, const char *path,
                           uint8_t **data, size_t *n, cnr_error *err) {
    const int64_t h = t->dim[0], w = t->dim[1], c = t->dim[2];
    img_host = host;
    uint8_t *pixels = img_host->alloc((size_t)(h * w * 3)), *made = NULL;
    *data = NULL;
    if (!pixels) return img_host->fail(err, CNR_E_MEMORY, path, "out of memory");
    for (int64_t i = 0; i < h * w * 3; i++)
        pixels[i] = ((const uint8_t *)t->data)[c == 3 ? i : i / 3];
    *n = h <= WEBP_MAX_DIMENSION && w <= WEBP_MAX_DIMENSION
             ? WebPEncodeRGB(pixels, (int)w, (int)h, (int)w * 3, WRITTEN_QUALITY, &made)
             : 0;
    img_host->free(pixels);
    *data = *n ? img_host->alloc(*n) : NULL;
    if (*data) memcpy(*data, made, *n);
    WebPFree(made);
    if (*data) return CNR_OK;
    return img_host->fail(err, *n ? CNR_E_MEMORY : CNR_E_LIMIT, path, "%s",
                          *n ? "out of memory" : "WebP can't hold this picture");
}
