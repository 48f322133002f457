/* Converts frames to RGB by their colour matrix and range, and rotates them upright. */
#include "video.h"
#include <libavutil/display.h>
#include <libavutil/pixdesc.h>
#include <math.h>

int vid_turns(const AVStream *stream) {
    size_t bytes = 0;
#if LIBAVCODEC_VERSION_MAJOR < 61
    const uint8_t *side = av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, &bytes);
#else
    const AVCodecParameters *c = stream->codecpar;
    const AVPacketSideData *data =
        av_packet_side_data_get(c->coded_side_data, c->nb_coded_side_data,
                                AV_PKT_DATA_DISPLAYMATRIX);
    const uint8_t *side = data ? data->data : NULL;
    if (data) bytes = data->size;
#endif
    int32_t matrix[9];
    if (!side || bytes < sizeof matrix) return 0;
    memcpy(matrix, side, sizeof matrix);
    const double degrees = av_display_rotation_get(matrix);
    if (isnan(degrees)) return 0;
    return (int)(lrint(-degrees / 90) & 3);
}

/* Frees the scaler and clears p. */
void vid_painter_close(vid_painter *p) {
    sws_freeContext(p->scaler);
    *p = (vid_painter){0};
}

/* Prepares the painter's scaler for frames like f, with their colours. 1: it is ready; 0:
 * failed. */
static int prepare(vid_painter *p, const AVFrame *f) {
    const int hd = f->height >= 720;
    const int space = f->colorspace == AVCOL_SPC_UNSPECIFIED ? (hd ? SWS_CS_ITU709 : SWS_CS_ITU601)
                                                             : (int)f->colorspace;
    const int full = f->color_range == AVCOL_RANGE_JPEG || f->format == AV_PIX_FMT_YUVJ420P ||
                     f->format == AV_PIX_FMT_YUVJ422P || f->format == AV_PIX_FMT_YUVJ444P;
    if (p->scaler && p->w == f->width && p->h == f->height && p->format == f->format &&
        p->space == space && p->range == full)
        return 1;
    vid_painter_close(p);
    p->scaler =
        sws_getContext(f->width, f->height, (enum AVPixelFormat)f->format, f->width, f->height,
                       AV_PIX_FMT_RGB24, SWS_BILINEAR | SWS_ACCURATE_RND, NULL, NULL, NULL);
    if (!p->scaler) return 0;
    const int *matrix = sws_getCoefficients(space);
    sws_setColorspaceDetails(p->scaler, matrix, full, matrix, 1, 0, 1 << 16, 1 << 16);
    p->w = f->width;
    p->h = f->height;
    p->format = f->format;
    p->space = space;
    p->range = full;
    return 1;
}

/* Rotates RGB pixels of h x w by quarter turns clockwise, into `to`. */
static void turn(const uint8_t *from, int64_t h, int64_t w, int turns, uint8_t *to) {
    const int64_t th = turns % 2 ? w : h, tw = turns % 2 ? h : w;
    for (int64_t y = 0; y < th; y++)
        for (int64_t x = 0; x < tw; x++, to += 3) {
            const int64_t fy = turns == 1 ? h - 1 - x : turns == 2 ? h - 1 - y : x;
            const int64_t fx = turns == 1 ? y : turns == 2 ? w - 1 - x : w - 1 - y;
            memcpy(to, from + (fy * w + fx) * 3, 3);
        }
}

/* *out receives the frame as u8 [height, width, 3], after `turns` quarter turns clockwise. */
cnr_status vid_paint(vid_painter *p, const AVFrame *frame, int turns, cnr_tensor *out,
                     const char *where, cnr_error *err) {
    const int64_t h = frame->height, w = frame->width;
    if (h < 1 || w < 1 || w > VID_MAX_PIXELS / h)
        return vid_host->fail(err, CNR_E_LIMIT, where, "frames of %lld x %lld", (long long)w,
                              (long long)h);
    /* the scaler writes slightly beyond a row of odd width */
    const size_t bytes = (size_t)(h * w * 3), spare = 64;
    uint8_t *data = vid_host->alloc(bytes + spare);
    uint8_t *turned = turns && data ? vid_host->alloc(bytes) : NULL;
    if (!data || (turns && !turned) || !prepare(p, frame)) {
        vid_host->free(data);
        vid_host->free(turned);
        return vid_host->fail(err, data ? CNR_E_UNSUPPORTED : CNR_E_MEMORY, where,
                              data ? "its pixels can't be made RGB" : "out of memory");
    }
    uint8_t *planes[4] = {data};
    const int strides[4] = {(int)(w * 3)};
    sws_scale(p->scaler, (const uint8_t *const *)frame->data, frame->linesize, 0, (int)h, planes,
              strides);
    if (turns) {
        turn(data, h, w, turns, turned);
        vid_host->free(data);
        data = turned;
    }
    out->dtype = CNR_u8;
    out->rank = 3;
    out->dim[0] = turns % 2 ? w : h;
    out->dim[1] = turns % 2 ? h : w;
    out->dim[2] = 3;
    out->data = data;
    out->bytes = bytes;
    return CNR_OK;
}
