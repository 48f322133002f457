/* Reads frames in order with their times; skips broken ones; reopens a stream that was
 * interrupted. */
#include "video.h"
#include <libavutil/imgutils.h>

enum { AGAIN_S = 30, MOST_FAULTS = 1000, BIG = 1 << 20 };
#define SECOND UINT64_C(1000000000)

const cnr_host *vid_host;

/* A video that is read: input, decoder, the span that is wanted, and times in ns. */
typedef struct reader {
    vid_input in;
    AVCodecContext *decoder;
    AVPacket *packet;
    AVFrame *frame;
    vid_painter painter;
    cnr_selection span;
    int turns, drained, closed; /* drained: no more packets; closed: the input is closed */
    int64_t next, seen;         /* samples returned; frames decoded in the span */
    /* time of the last frame; added to times; between two frames */
    int64_t last_ns, offset_ns, step_ns;
    uint64_t last_came;
    int64_t faults; /* number of broken packets and frames */
} reader;

/* ---- opening ---- */

/* Opens the decoder of the stream; fails where there is none. */
static cnr_status open_decoder(reader *r, cnr_error *err) {
    const AVStream *stream = r->in.format->streams[r->in.video];
    const AVCodec *codec = avcodec_find_decoder(stream->codecpar->codec_id);
    const char *where = r->in.spec;
    if (!codec)
        return vid_host->fail(err, CNR_E_UNSUPPORTED, where, "no decoder for %s",
                              avcodec_get_name(stream->codecpar->codec_id));
    r->decoder = avcodec_alloc_context3(codec);
    if (!r->decoder) return vid_fail(err, where, "", AVERROR(ENOMEM));
    int code = avcodec_parameters_to_context(r->decoder, stream->codecpar);
    r->decoder->pkt_timebase = stream->time_base;
    r->decoder->max_pixels = VID_MAX_PIXELS;
    const int64_t pixels = (int64_t)r->decoder->width * r->decoder->height;
    r->decoder->thread_count = pixels > BIG && !r->in.is_live ? 4 : 1;
    if (code >= 0) code = avcodec_open2(r->decoder, codec, NULL);
    if (code < 0) return vid_fail(err, where, "its decoder can't be opened", code);
    r->turns = vid_turns(stream);
    const AVRational rate =
        stream->avg_frame_rate.num ? stream->avg_frame_rate : stream->r_frame_rate;
    r->step_ns =
        rate.num > 0 && rate.den > 0 ? av_rescale(1000000000, rate.den, rate.num) : 40000000;
    return CNR_OK;
}

/* Closes input and decoder; nothing if that was done. */
static void close_input(reader *r) {
    if (r->closed) return;
    avcodec_free_context(&r->decoder);
    vid_input_close(&r->in);
    r->closed = 1;
}

/* Opens input and decoder; fails with a reason. */
static cnr_status open_input(reader *r, const char *spec, cnr_error *err) {
    cnr_status status = vid_input_open(&r->in, spec, err);
    r->closed = status != CNR_OK;
    if (status) return status;
    status = open_decoder(r, err);
    if (status) close_input(r);
    r->drained = 0;
    return status;
}

/* Logs how many broken pieces were passed over, and forgets them. */
static void tell_faults(reader *r) {
    if (r->faults)
        vid_host->log(CNR_LOG_WARN, "source-video", "%s: %lld broken pieces were passed over",
                      r->in.spec ? r->in.spec : "input", (long long)r->faults);
    r->faults = 0;
}

/* Logs what was damaged, and closes and frees all. */
static void reader_close(void *state) {
    reader *r = state;
    tell_faults(r);
    close_input(r);
    vid_painter_close(&r->painter);
    av_packet_free(&r->packet);
    av_frame_free(&r->frame);
    vid_host->free(r);
}

/* Method open: *state receives the reader, *info what is known of the video. */
static cnr_status reader_open(const char *spec, const char *split, void **state,
                              cnr_source_info *info, cnr_error *err) {
    (void)split;
    reader *r = vid_host->alloc(sizeof *r);
    if (!r) return vid_host->fail(err, CNR_E_MEMORY, spec, "out of memory");
    memset(r, 0, sizeof *r);
    r->closed = 1;
    r->last_ns = -1;
    r->packet = av_packet_alloc();
    r->frame = av_frame_alloc();
    const cnr_status status =
        r->packet && r->frame ? open_input(r, spec, err) : vid_fail(err, spec, "", AVERROR(ENOMEM));
    if (status) {
        reader_close(r);
        return status;
    }
    info->count = -1;
    info->is_live = r->in.is_live;
    *state = r;
    return CNR_OK;
}

/* Method select: frames of this span only; fails for a time in a live input. */
static cnr_status reader_choose(void *state, const cnr_selection *span, cnr_source_info *info,
                                cnr_error *err) {
    reader *r = state;
    (void)info;
    if (r->in.is_live && (span->from_ns || span->to_ns))
        return vid_host->fail(err, CNR_E_ARG, r->in.spec,
                              "has no beginning and no end to count from");
    r->span = *span;
    if (span->from_ns) /* seeks to the key frame before it; if that fails, reads until there */
        (void)av_seek_frame(r->in.format, -1,
                            (int64_t)(span->from_ns / 1000) + r->in.base_ns / 1000,
                            AVSEEK_FLAG_BACKWARD);
    return CNR_OK;
}

/* Method stop, from any thread: reading ends soon. */
static void reader_stop(void *state) {
    reader *r = state;
    atomic_store(&r->in.stopped, 1);
}

/* ---- packets to frames ---- */

/* Counts a broken piece, and logs the first. */
static void note_fault(reader *r, const char *what) {
    if (r->faults++ == 0)
        vid_host->log(CNR_LOG_WARN, "source-video", "%s: %s after %.2f s: passed over", r->in.spec,
                      what, r->last_ns < 0 ? 0 : (double)r->last_ns * 1e-9);
}

/* Sends the next packet of the video to the decoder. 0; AVERROR_EOF: there is none; else an error
 * of FFmpeg. */
static int feed(reader *r) {
    for (int tries = 0; tries < MOST_FAULTS; tries++) {
        int code;
        if (r->in.is_network || r->in.is_live)
            atomic_store(&r->in.until, vid_host->now_ns() + VID_PATIENCE_S * SECOND);
        while ((code = av_read_frame(r->in.format, r->packet)) ==
               AVERROR(EAGAIN)) { /* from a device */
            if (vid_gives_up(&r->in)) return AVERROR_EXIT;
            vid_host->wait_until(vid_host->now_ns() + SECOND / 1000);
        }
        if (code == AVERROR_INVALIDDATA) {
            note_fault(r, "broken data");
            continue;
        }
        if (code < 0) return code;
        if (r->packet->stream_index != r->in.video) {
            av_packet_unref(r->packet);
            tries--;
            continue;
        }
        code = avcodec_send_packet(r->decoder, r->packet);
        av_packet_unref(r->packet);
        if (code >= 0) return 0;
        if (code == AVERROR(ENOMEM) || code == AVERROR_EXIT) return code;
        note_fault(r, "a broken frame");
    }
    return AVERROR_EOF;
}

/* Decodes the next frame, broken ones noted; 0, or AVERROR_EOF at the end, or another error of
 * FFmpeg. */
static int next_frame(reader *r) {
    for (int tries = 0; tries < MOST_FAULTS;) {
        int code = avcodec_receive_frame(r->decoder, r->frame);
        if (code >= 0) {
            if (r->frame->flags & AV_FRAME_FLAG_CORRUPT || r->frame->decode_error_flags)
                note_fault(r, "a broken frame");
            return 0;
        }
        if (code == AVERROR_EOF) return code;
        if (code != AVERROR(EAGAIN)) {
            note_fault(r, "a broken frame");
            tries++;
            continue;
        }
        if (r->drained) return AVERROR_EOF;
        code = feed(r);
        if (code == AVERROR_EOF || (code < 0 && !r->in.is_live && !atomic_load(&r->in.stopped))) {
            if (code != AVERROR_EOF) note_fault(r, "the input fails");
            r->drained = 1;
            avcodec_send_packet(r->decoder, NULL);
        } else if (code < 0) {
            return code;
        }
    }
    return AVERROR_EOF;
}

/* ---- times ---- */

/* Time of the frame in nanoseconds from the beginning; where none is stored, it follows from the
 * last. */
static int64_t time_of(reader *r) {
    const AVRational base = r->in.format->streams[r->in.video]->time_base;
    int64_t pts = r->frame->best_effort_timestamp, ns;
    if (pts == AV_NOPTS_VALUE) ns = r->last_ns < 0 ? 0 : r->last_ns + r->step_ns;
    else ns = av_rescale_q(pts, base, VID_NS) - r->in.base_ns;
    if (r->in.is_live &&
        pts != AV_NOPTS_VALUE) { /* time since the first frame; after an interruption, since then */
        if (r->last_came == 0) r->offset_ns = (r->last_ns < 0 ? 0 : r->last_ns + r->step_ns) - ns;
        ns += r->offset_ns;
    }
    return ns < 0 ? 0 : ns;
}

/* Reopens a stream that was interrupted by error `code`, waiting longer each time; fails when it is
 * given up. */
static cnr_status reconnect(reader *r, int code, cnr_error *err) {
    char *spec = av_strdup(r->in.spec);
    const uint64_t begun = vid_host->now_ns();
    cnr_status status = CNR_E_IO;
    if (!spec) return vid_fail(err, "stream", "", AVERROR(ENOMEM));
    vid_fail(err, spec, "the stream dropped", code);
    vid_host->log(CNR_LOG_WARN, "source-video", "%s: the stream dropped, trying again", spec);
    close_input(r);
    for (uint64_t pause = SECOND / 4; status && vid_host->now_ns() - begun < AGAIN_S * SECOND;) {
        const uint64_t until = vid_host->now_ns() + pause;
        while (vid_host->now_ns() < until && !atomic_load(&r->in.stopped))
            vid_host->wait_until(vid_host->now_ns() + SECOND / 20);
        if (atomic_load(&r->in.stopped)) break;
        status = open_input(r, spec, err);
        if (pause < 4 * SECOND) pause *= 2;
    }
    if (!status) {
        const int64_t gap = (int64_t)(vid_host->now_ns() - (r->last_came ? r->last_came : begun));
        if (r->last_ns >= 0) r->last_ns += gap > r->step_ns ? gap - r->step_ns : 0;
        r->last_came = 0;
        vid_host->log(CNR_LOG_INFO, "source-video", "%s: is back", spec);
    }
    av_free(spec);
    return status;
}

/* ---- samples ---- */

/* Opens the input again at its beginning, with the same span; fails with a reason. */
static cnr_status begin_again(reader *r, cnr_error *err) {
    char *spec = av_strdup(r->in.spec);
    const cnr_selection span = r->span;
    cnr_source_info info;
    if (!spec) return vid_fail(err, "input", "", AVERROR(ENOMEM));
    close_input(r);
    cnr_status status = open_input(r, spec, err);
    r->next = r->seen = 0;
    r->last_ns = -1;
    if (!status) status = reader_choose(r, &span, &info, err);
    av_free(spec);
    return status;
}

/* Whether the frame at ns is within the span; -1: after it. */
static int wanted(reader *r, int64_t ns) {
    if (ns < (int64_t)r->span.from_ns) return 0;
    if (r->span.to_ns && ns >= (int64_t)r->span.to_ns) return -1;
    return r->seen++ % (r->span.every > 1 ? r->span.every : 1) == 0;
}

/* Method read: *out receives frame `index`; only 0 may go back. */
static cnr_status reader_read(void *state, int64_t index, cnr_sample *out, cnr_error *err) {
    reader *r = state;
    cnr_status status = CNR_OK;
    if (index == 0 && r->next > 0 && !r->in.is_live) status = begin_again(r, err);
    if (status) return status;
    if (r->closed) return vid_host->fail(err, CNR_E_NOT_FOUND, "video", "it has ended");
    if (index != r->next)
        return vid_host->fail(err, CNR_E_ARG, r->in.spec,
                              "frames come one behind the other: want %lld",
                              (long long)r->next + 1);
    for (;;) {
        const int code = next_frame(r);
        if (atomic_load(&r->in.stopped))
            return vid_host->fail(err, CNR_E_CANCELLED, r->in.spec, "stopped");
        if (code < 0 && r->in.is_live && r->in.is_network) {
            status = reconnect(r, code, err);
            if (status)
                return atomic_load(&r->in.stopped)
                           ? vid_host->fail(err, CNR_E_CANCELLED, "stream", "stopped")
                           : status;
            continue;
        }
        if (code < 0) {
            tell_faults(r);
            if (code != AVERROR_EOF) return vid_fail(err, r->in.spec, "can't be read on", code);
            return vid_host->fail(err, CNR_E_NOT_FOUND, r->in.spec, "no more frames");
        }
        const int64_t ns = time_of(r);
        r->last_ns = ns;
        r->last_came = vid_host->now_ns();
        const int want = wanted(r, ns);
        if (want < 0) return vid_host->fail(err, CNR_E_NOT_FOUND, r->in.spec, "no more frames");
        if (want) break;
    }
    status = vid_paint(&r->painter, r->frame, r->turns, &out->picture, r->in.spec, err);
    av_frame_unref(r->frame);
    if (status) return status;
    out->time_ns = (uint64_t)r->last_ns;
    out->is_timed = 1;
    snprintf(out->name, sizeof out->name, "%s #%lld", r->in.spec, (long long)++r->next);
    return CNR_OK;
}

/* ---- entry point ---- */

/* FFmpeg's messages: the worst go to the log. */
static void say(void *of, int level, const char *format, va_list list) {
    char line[500];
    int first = 1;
    va_list copy;
    va_copy(copy, list);
    vid_hear(of, format, copy);
    va_end(copy);
    if (level > AV_LOG_WARNING) return;
    av_log_format_line2(of, level, format, list, line, sizeof line, &first);
    line[strcspn(line, "\r\n")] = 0;
    if (*line) vid_host->log(CNR_LOG_INFO, "source-video", "%s", line);
}

static const cnr_source source = {.size = sizeof source,
                                  .name = "video",
                                  .open = reader_open,
                                  .read = reader_read,
                                  .close = reader_close,
                                  .write_open = vid_write_open,
                                  .write_next = vid_write_next,
                                  .write_close = vid_write_close,
                                  .write_from = vid_write_from,
                                  .select = reader_choose,
                                  .stop = reader_stop};

CNR_EXPORT const cnr_source *video_source(const cnr_host *host);
/* The table of the source with FFmpeg; called once, after the library was loaded, with the host's
 * functions. */
const cnr_source *video_source(const cnr_host *host) {
    vid_host = host;
    av_log_set_callback(say);
    avformat_network_init();
    return &source;
}
