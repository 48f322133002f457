/* What a spec stands for, told without FFmpeg: by the plugin, before its libraries come in, and by
 * ffmpeg.so. */
#ifndef VID_PLACE_H
#define VID_PLACE_H

typedef enum vid_kind { VID_FILE, VID_PATTERN, VID_STDIN, VID_DEVICE, VID_URL } vid_kind;

typedef struct vid_place {
    vid_kind kind;
    const char *url;       /* what is opened: in the spec */
    char device[32];       /* of VID_DEVICE: "v4l2" */
    const char *protocols; /* of VID_URL: FFmpeg's, that may be used */
    int is_live;           /* what is not read is lost */
    int is_http;
} vid_place;

/* A file that is there is that file, whatever its name looks like. */
vid_place vid_place_of(const char *spec);
/* A prefix of ours, or the scheme of a URL that is known. */
int vid_has_prefix(const char *spec);

#endif
