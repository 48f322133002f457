/* Writes pictures to a video, each at its time; the file appears complete when it is closed. */
#include "video.h"
#include <libavutil/avstring.h>
#include <libavutil/imgutils.h>
#include <libavutil/opt.h>

enum { PIECE = 1 << 16, USUAL_RATE = 25 };

/* A video that is written: output, encoder, sizes, and the times of the last frame. */
typedef struct writer {
    char *spec;
    struct cnr_output *out;
    AVFormatContext *format;
    AVCodecContext *encoder;
    AVStream *stream;
    AVFrame *frame;
    AVPacket *packet;
    struct SwsContext *scaler;
    int64_t w, h, c; /* width, height and colours of the pictures */
    /* in the encoder's time base: time of the last picture, and its distance from the one before */
    int64_t last, step;
    int64_t at; /* position in the file */
    int has_sound, began, scaled_w, scaled_h, scaled_c;
    vid_sound sound;
    AVRational rate, base, shape; /* of the source; 0/1: unknown */
    cnr_status failed;            /* error of the file */
    cnr_error why;
} writer;

/* ---- the file ---- */

#if LIBAVFORMAT_VERSION_MAJOR < 61
#define PIECE_DATA uint8_t
#else
#define PIECE_DATA const uint8_t
#endif
/* FFmpeg writes n bytes to the host's output; the first failure is kept in w->failed. n, or
 * AVERROR(EIO). */
static int give(void *arg, PIECE_DATA *data, int n) {
    writer *w = arg;
    if (!w->failed) w->failed = vid_host->output_write(w->out, data, (uint64_t)n, &w->why);
    w->at += n;
    return w->failed ? AVERROR(EIO) : n;
}

/* FFmpeg moves in the output; returns the new place or an error. */
static int64_t go_to(void *arg, int64_t to, int whence) {
    writer *w = arg;
    if (whence & AVSEEK_SIZE) return AVERROR(ENOSYS);
    if ((whence & ~AVSEEK_FORCE) == SEEK_CUR) to += w->at;
    else if ((whence & ~AVSEEK_FORCE) != SEEK_SET) return AVERROR(ENOSYS);
    if (!w->failed) w->failed = vid_host->output_seek(w->out, (uint64_t)to, &w->why);
    w->at = to;
    return w->failed ? AVERROR(EIO) : to;
}

/* Fails with the output's own error where there was one, else FFmpeg's `code`. */
static cnr_status fail(const writer *w, const char *what, int code, cnr_error *err) {
    if (w->failed) return vid_host->fail(err, w->failed, w->why.where, "%s", w->why.text);
    return vid_fail(err, w->spec, what, code);
}

/* The container by the name's ending, of those in a single file, which the host writes; NULL:
 * none. */
static const AVOutputFormat *format_of(const char *spec) {
    static const char allowed[] =
        "mp4,mov,ipod,3gp,3g2,matroska,webm,avi,gif,apng,mpegts,mpeg,vob,flv,ogg,ogv,"
        "nut,asf,mjpeg,mpjpeg,h264,hevc,m4v,yuv4mpegpipe,mxf,dv";
    const AVOutputFormat *format = av_guess_format(NULL, spec, NULL);
    return format && !(format->flags & AVFMT_NOFILE) && av_match_list(format->name, allowed, ',')
               ? format
               : NULL;
}

/* FFmpeg's io_open: refuses everything, with AVERROR(EPERM). */
static int open_nothing(AVFormatContext *f, AVIOContext **io, const char *url, int flags,
                        AVDictionary **options) {
    (void)f, (void)io, (void)url, (void)flags, (void)options;
    return AVERROR(EPERM);
}

cnr_status vid_write_open(const char *spec, void **state, cnr_error *err) {
    if (!format_of(spec))
        return vid_host->fail(err, CNR_E_UNSUPPORTED, spec, "no kind of video has this ending");
    writer *w = vid_host->alloc(sizeof *w);
    if (!w) return vid_host->fail(err, CNR_E_MEMORY, spec, "out of memory");
    memset(w, 0, sizeof *w);
    w->last = -1;
    w->sound.in.file = -1;
    w->why.size = sizeof w->why;
    w->spec = av_strdup(spec);
    const cnr_status status = w->spec ? vid_host->output_begin(spec, 0, &w->out, err)
                                      : vid_fail(err, spec, "", AVERROR(ENOMEM));
    if (status) {
        av_free(w->spec);
        vid_host->free(w);
        return status;
    }
    *state = w;
    return CNR_OK;
}

cnr_status vid_write_from(void *state, const char *spec, const cnr_selection *span,
                          cnr_error *err) {
    writer *w = state;
    if (w->began) return vid_host->fail(err, CNR_E_STATE, w->spec, "pictures were written already");
    if (vid_is_single(spec)) return CNR_OK; /* whoever reads it occupies it */
    const cnr_status status = vid_input_open(&w->sound.in, spec, err);
    if (status) return status;
    w->sound.span = *span;
    const AVStream *video = w->sound.in.format->streams[w->sound.in.video];
    w->rate = video->avg_frame_rate.num > 0 ? video->avg_frame_rate : video->r_frame_rate;
    w->base = video->time_base;
    w->shape = video->sample_aspect_ratio;
    if (vid_turns(video) % 2 && w->shape.num) w->shape = av_inv_q(w->shape);
    w->has_sound = !w->sound.in.is_live;
    if (!w->has_sound) vid_input_close(&w->sound.in);
    return CNR_OK;
}

/* ---- start, at the first picture ---- */

/* A time base in which the source's times are integers, if the container accepts it. */
static AVRational time_base(const writer *w, const AVCodec *codec) {
    const AVRational rate = w->rate.num > 0 ? w->rate : (AVRational){USUAL_RATE, 1};
    const int even =
        strcmp(w->format->oformat->name, "avi") == 0 || codec->id == AV_CODEC_ID_MPEG4 ||
        w->format->oformat->flags & AVFMT_NOTIMESTAMPS; /* frames have numbers instead of times */
    if (even) return av_inv_q(rate);
    if (codec->id == AV_CODEC_ID_GIF) return (AVRational){1, 100};
    return w->base.num ? w->base : (AVRational){1, 90000};
}

/* The encoder for the container; NULL: none is built in. */
static const AVCodec *codec_of(const AVOutputFormat *format) {
    /* widely supported codecs, if the container's default is slow or missing */
    static const enum AVCodecID choices[] = {AV_CODEC_ID_H264, AV_CODEC_ID_VP8, AV_CODEC_ID_MPEG4};
    const AVCodec *codec = NULL;
    if (format->video_codec == AV_CODEC_ID_GIF) return avcodec_find_encoder(AV_CODEC_ID_GIF);
    for (size_t i = 0; !codec && i < sizeof choices / sizeof choices[0]; i++)
        if (avformat_query_codec(format, choices[i], FF_COMPLIANCE_NORMAL) == 1)
            codec = avcodec_find_encoder(choices[i]);
    return codec ? codec : avcodec_find_encoder(format->video_codec);
}

/* Opens the encoder for pictures of this size. */
static cnr_status open_encoder(writer *w, cnr_error *err) {
    const AVCodec *codec = codec_of(w->format->oformat);
    AVDictionary *options = NULL;
    if (!codec)
        return vid_host->fail(err, CNR_E_UNSUPPORTED, w->spec, "FFmpeg has no encoder for it");
    w->encoder = avcodec_alloc_context3(codec);
    if (!w->encoder) return vid_fail(err, w->spec, "", AVERROR(ENOMEM));
    AVCodecContext *e = w->encoder;
    const int planes = codec->id != AV_CODEC_ID_GIF;
    e->pix_fmt = planes ? AV_PIX_FMT_YUV420P : AV_PIX_FMT_RGB8;
    e->width = (int)(planes ? (w->w + 1) & ~1 : w->w); /* subsampled colours need even sizes */
    e->height = (int)(planes ? (w->h + 1) & ~1 : w->h);
    e->time_base = time_base(w, codec);
    e->framerate = w->rate.num > 0 ? w->rate : (AVRational){USUAL_RATE, 1};
    e->sample_aspect_ratio = w->shape;
    e->max_b_frames = 0;
    e->color_range = planes ? AVCOL_RANGE_MPEG : AVCOL_RANGE_UNSPECIFIED;
    e->colorspace = planes ? AVCOL_SPC_SMPTE170M : AVCOL_SPC_UNSPECIFIED;
    if (codec->id == AV_CODEC_ID_H264) {
        av_dict_set(&options, "preset", "veryfast", 0);
        av_dict_set(&options, "crf", "20", 0);
    } else {
        e->bit_rate = w->w * w->h * 8;
        av_dict_set(&options, "deadline", "realtime", 0);
        av_dict_set(&options, "cpu-used", "8", 0);
    }
    if (w->format->oformat->flags & AVFMT_GLOBALHEADER) e->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    const int code = avcodec_open2(e, codec, &options);
    av_dict_free(&options);
    return code < 0 ? vid_fail(err, w->spec, "its encoder can't be opened", code) : CNR_OK;
}

/* Begins the file by the first picture's size. */
static cnr_status begin(writer *w, const cnr_tensor *picture, cnr_error *err) {
    w->began = 1;
    w->h = picture->dim[0];
    w->w = picture->dim[1];
    int code = avformat_alloc_output_context2(&w->format, format_of(w->spec), NULL, w->spec);
    if (code < 0) return vid_fail(err, w->spec, "can't be begun", code);
    w->format->io_open = open_nothing;
    uint8_t *piece = av_malloc(PIECE);
    AVIOContext *io = piece ? avio_alloc_context(piece, PIECE, 1, w, NULL, give, go_to) : NULL;
    if (!io) {
        av_free(piece);
        return vid_fail(err, w->spec, "", AVERROR(ENOMEM));
    }
    w->format->pb = io;
    cnr_status status = open_encoder(w, err);
    if (status) return status;
    w->stream = avformat_new_stream(w->format, NULL);
    w->frame = av_frame_alloc();
    w->packet = av_packet_alloc();
    if (!w->stream || !w->frame || !w->packet) return vid_fail(err, w->spec, "", AVERROR(ENOMEM));
    avcodec_parameters_from_context(w->stream->codecpar, w->encoder);
    w->stream->time_base = w->encoder->time_base;
    w->stream->avg_frame_rate = w->encoder->framerate;
    w->stream->sample_aspect_ratio = w->shape;
    w->frame->format = w->encoder->pix_fmt;
    w->frame->width = w->encoder->width;
    w->frame->height = w->encoder->height;
    code = av_frame_get_buffer(w->frame, 0);
    if (code < 0) return vid_fail(err, w->spec, "", code);
    if (w->has_sound) {
        status = vid_sound_begin(&w->sound, w->format, err);
        if (status) return status;
        av_dict_copy(&w->format->metadata, w->sound.in.format->metadata, 0);
    }
    code = avformat_write_header(w->format, NULL);
    return code < 0 ? fail(w, "can't be begun", code, err) : CNR_OK;
}

/* ---- pictures ---- */

/* Converts to the encoder's pixel format; scales pictures whose size differs from the first. */
static cnr_status paint(writer *w, const cnr_tensor *p, cnr_error *err) {
    const int width = (int)p->dim[1], height = (int)p->dim[0], c = (int)p->dim[2];
    if (!w->scaler || w->scaled_w != width || w->scaled_h != height || w->scaled_c != c) {
        sws_freeContext(w->scaler);
        w->scaler = sws_getContext(width, height, c == 1 ? AV_PIX_FMT_GRAY8 : AV_PIX_FMT_RGB24,
                                   (int)w->w, (int)w->h, w->encoder->pix_fmt,
                                   SWS_BILINEAR | SWS_ACCURATE_RND, NULL, NULL, NULL);
        w->scaled_w = width;
        w->scaled_h = height;
        w->scaled_c = c;
        if (!w->scaler) return vid_fail(err, w->spec, "", AVERROR(ENOMEM));
    }
    int code = av_frame_make_writable(w->frame);
    if (code < 0) return vid_fail(err, w->spec, "", code);
    const uint8_t *const planes[4] = {p->data};
    const int strides[4] = {width * c};
    sws_scale(w->scaler, planes, strides, 0, height, w->frame->data, w->frame->linesize);
    if (w->encoder->width > w->w) /* fills the column and row that make the size even */
        for (int y = 0; y < (int)w->h; y++)
            w->frame->data[0][y * w->frame->linesize[0] + w->w] =
                w->frame->data[0][y * w->frame->linesize[0] + w->w - 1];
    if (w->encoder->height > w->h)
        memcpy(w->frame->data[0] + w->h * w->frame->linesize[0],
               w->frame->data[0] + (w->h - 1) * w->frame->linesize[0], (size_t)w->encoder->width);
    return CNR_OK;
}

/* Writes all packets that the encoder has ready; frame NULL: flushes it. */
static cnr_status encode(writer *w, const AVFrame *frame, cnr_error *err) {
    int code = avcodec_send_frame(w->encoder, frame);
    while (code >= 0) {
        code = avcodec_receive_packet(w->encoder, w->packet);
        if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return CNR_OK;
        if (code < 0) break;
        w->packet->stream_index = w->stream->index;
        if (!w->packet->duration) w->packet->duration = w->step;
        av_packet_rescale_ts(w->packet, w->encoder->time_base, w->stream->time_base);
        code = av_interleaved_write_frame(w->format, w->packet);
    }
    return fail(w, "can't be written", code, err);
}

/* Time of the sample in the stream's units: its own, else one frame after the last. */
static int64_t time_of(const writer *w, const cnr_sample *sample) {
    const int timed = sample->time_ns || (sample->is_timed && w->last < 0);
    const int64_t usual = av_rescale_q(1, av_inv_q(w->encoder->framerate), w->encoder->time_base);
    const int64_t next = w->last < 0 ? 0 : w->last + (usual > 0 ? usual : 1);
    if (!timed) return next;
    const int64_t ns = (int64_t)(sample->time_ns - w->sound.span.from_ns);
    const int64_t at = av_rescale_q(ns < 0 ? 0 : ns, VID_NS, w->encoder->time_base);
    return at > w->last ? at : w->last + 1;
}

cnr_status vid_write_next(void *state, const cnr_sample *sample, cnr_error *err) {
    writer *w = state;
    cnr_status status = w->began ? CNR_OK : begin(w, &sample->picture, err);
    if (!status) status = paint(w, &sample->picture, err);
    if (status) return status;
    const int64_t at = time_of(w, sample);
    if (w->has_sound)
        status = vid_sound_until(&w->sound, av_rescale_q(at, w->encoder->time_base, VID_NS), err);
    if (status) return status;
    w->step = w->last < 0 ? av_rescale_q(1, av_inv_q(w->encoder->framerate), w->encoder->time_base)
                          : at - w->last;
    w->frame->pts = w->last = at;
    w->frame->pict_type = AV_PICTURE_TYPE_NONE;
    return encode(w, w->frame, err);
}

/* Encodes what is left and ends the file. */
static cnr_status finish(writer *w, cnr_error *err) {
    if (!w->format || !w->encoder)
        return vid_host->fail(err, CNR_E_STATE, w->spec, "no picture was written");
    cnr_status status = encode(w, NULL, err);
    if (!status && w->has_sound) /* sound ends with the pictures if these were cut */
        status = vid_sound_until(&w->sound,
                                 w->sound.span.to_ns ? av_rescale_q(w->last + w->step,
                                                                    w->encoder->time_base, VID_NS)
                                                     : INT64_MAX,
                                 err);
    const int code = status ? 0 : av_write_trailer(w->format);
    if (code < 0) status = fail(w, "can't be ended", code, err);
    if (!status && w->format->pb) avio_flush(w->format->pb);
    if (!status && w->failed) status = fail(w, "", 0, err);
    return status;
}

cnr_status vid_write_close(void *state, int32_t status, cnr_error *err) {
    writer *w = state;
    if (!status) status = finish(w, err);
    if (w->format && w->format->pb) {
        av_freep(&w->format->pb->buffer);
        avio_context_free(&w->format->pb);
    }
    vid_sound_close(&w->sound);
    sws_freeContext(w->scaler);
    av_frame_free(&w->frame);
    av_packet_free(&w->packet);
    avcodec_free_context(&w->encoder);
    avformat_free_context(w->format);
    status = vid_host->output_end(w->out, status, err);
    av_free(w->spec);
    vid_host->free(w);
    return (cnr_status)status;
}
