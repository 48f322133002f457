/* WebP by libwebp; of an animation the first picture. */
#include "images.h"
#include <webp/demux.h>

enum { PIXELS_A_BYTE = 1 << 16 };

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
                     info.canvas_width == (uint32_t)out->w && info.canvas_height == (uint32_t)out->h &&
                     WebPAnimDecoderGetNext(decoder, &pixels, &time);
    for (int64_t i = 0; good && i < out->h * out->w; i++) memcpy(out->data + 3 * i, pixels + 4 * i, 3);
    if (decoder) WebPAnimDecoderDelete(decoder);
    if (good) return CNR_OK;
    img_drop(out);
    return img_host->fail(err, CNR_E_FORMAT, file->path, "damaged WebP: it can't be decoded");
}
