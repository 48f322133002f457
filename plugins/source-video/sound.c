/* Copies a video's own sound, packet by packet, between the pictures that are written. */
#include "video.h"

cnr_status vid_sound_begin(vid_sound *s, AVFormatContext *to, cnr_error *err) {
    AVFormatContext *from = s->in.format;
    s->to = to;
    s->ahead = av_packet_alloc();
    s->streams = av_calloc(from->nb_streams, sizeof *s->streams);
    if (!s->ahead || !s->streams) return vid_fail(err, s->in.spec, "", AVERROR(ENOMEM));
    s->ended = 1;
    for (unsigned i = 0; i < from->nb_streams; i++) {
        const AVCodecParameters *about = from->streams[i]->codecpar;
        s->streams[i] = -1;
        if (about->codec_type != AVMEDIA_TYPE_AUDIO) continue;
        if (avformat_query_codec(to->oformat, about->codec_id, FF_COMPLIANCE_NORMAL) != 1) {
            vid_host->log(CNR_LOG_WARN, "source-video",
                          "%s: its sound (%s) has no place in %s: left out", s->in.spec,
                          avcodec_get_name(about->codec_id), to->oformat->name);
            continue;
        }
        AVStream *stream = avformat_new_stream(to, NULL);
        int code = stream ? avcodec_parameters_copy(stream->codecpar, about) : AVERROR(ENOMEM);
        if (code < 0) return vid_fail(err, s->in.spec, "its sound", code);
        stream->codecpar->codec_tag = 0;
        stream->time_base = from->streams[i]->time_base;
        av_dict_copy(&stream->metadata, from->streams[i]->metadata, 0);
        from->streams[i]->discard = AVDISCARD_DEFAULT;
        s->streams[i] = stream->index;
        s->ended = 0;
    }
    from->streams[s->in.video]->discard = AVDISCARD_ALL;
    if (!s->ended && s->span.from_ns)
        (void)av_seek_frame(from, -1, (int64_t)(s->span.from_ns / 1000) + s->in.base_ns / 1000,
                            AVSEEK_FLAG_BACKWARD);
    return CNR_OK;
}

/* Writes the packet read ahead, with times relative to the span's begin; 0, or an error of
 * FFmpeg. */
static int write_ahead(vid_sound *s) {
    const AVStream *from = s->in.format->streams[s->ahead->stream_index];
    const AVStream *to = s->to->streams[s->streams[s->ahead->stream_index]];
    const int64_t shift =
        av_rescale_q(s->in.base_ns + (int64_t)s->span.from_ns, VID_NS, from->time_base);
    if (s->ahead->pts != AV_NOPTS_VALUE) s->ahead->pts -= shift;
    if (s->ahead->dts != AV_NOPTS_VALUE) s->ahead->dts -= shift;
    av_packet_rescale_ts(s->ahead, from->time_base, to->time_base);
    s->ahead->stream_index = to->index;
    s->ahead->pos = -1;
    s->has_ahead = 0;
    return av_interleaved_write_frame(s->to, s->ahead); /* takes ownership */
}

cnr_status vid_sound_until(vid_sound *s, int64_t ns, cnr_error *err) {
    while (!s->ended) {
        if (!s->has_ahead) {
            if (av_read_frame(s->in.format, s->ahead) < 0) {
                s->ended = 1;
                break;
            }
            if (s->streams[s->ahead->stream_index] < 0) {
                av_packet_unref(s->ahead);
                continue;
            }
            s->has_ahead = 1;
        }
        const AVStream *from = s->in.format->streams[s->ahead->stream_index];
        const int64_t pts = s->ahead->pts == AV_NOPTS_VALUE ? s->ahead->dts : s->ahead->pts;
        const int64_t at = pts == AV_NOPTS_VALUE ? 0
                                                 : av_rescale_q(pts, from->time_base, VID_NS) -
                                                       s->in.base_ns - (int64_t)s->span.from_ns;
        if (at > ns) return CNR_OK;
        if (at < 0 && s->span.from_ns) { /* before the span */
            av_packet_unref(s->ahead);
            s->has_ahead = 0;
            continue;
        }
        const int code = write_ahead(s);
        if (code < 0) return vid_fail(err, s->in.spec, "its sound can't be written", code);
    }
    return CNR_OK;
}

/* Frees the packet and list, and closes the sound's input. */
void vid_sound_close(vid_sound *s) {
    av_packet_free(&s->ahead);
    av_freep(&s->streams);
    vid_input_close(&s->in);
}
