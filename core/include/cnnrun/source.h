/* Sources: where samples come from (pictures, folders, digit files), and where pictures go. */
#ifndef CNNRUN_SOURCE_H
#define CNNRUN_SOURCE_H

#include <cnnrun/tensor.h>

CNR_BEGIN_C

typedef struct cnr_source_info {
    uint32_t size;
    int64_t count;   /* samples; -1: a stream without known end */
    int64_t classes; /* 0: unlabelled */
    /* 1: there are several splits, and these are the samples of the one asked for; 0:
     * they are all that there is, or those that the spec names */
    int32_t is_split;
    int32_t is_live; /* 1: a camera or a stream; what is not read in time is lost */
} cnr_source_info;

/* One sample. The picture is u8, rank 3, H W C with C 1 (grey) or 3 (RGB); its data is from
 * host->alloc and passes to the caller. */
typedef struct cnr_sample {
    uint32_t size;
    int32_t label;  /* -1: none */
    char name[512]; /* the file, or a number */
    cnr_tensor picture;
    uint64_t time_ns; /* when it was taken, since some moment; 0: not told */
    int32_t is_timed; /* 1: that moment was at 0 */
} cnr_sample;

/* Which samples are wanted of those with times. */
typedef struct cnr_selection {
    uint32_t size;
    int32_t every;           /* each so-manyth, the first one included; 0 and 1: all */
    uint64_t from_ns, to_ns; /* from that time on, before that one; to_ns 0: to the end */
} cnr_selection;

/* A reader of samples. spec is "scheme:rest" or a path. */
typedef struct cnr_source {
    uint32_t size;
    const char *name;   /* "mnist" */
    const char *syntax; /* "mnist:DIR[:train|test]" */
    const char *summary;
    /* > 0: reads it, highest wins. head: the first bytes when spec is a file, else NULL. */
    int32_t (*accepts)(const char *spec, const uint8_t *head, size_t head_bytes);
    /* split: "train", "eval" or NULL: what the command is about to do. */
    cnr_status (*open)(const char *spec, const char *split, void **state, cnr_source_info *info,
                       cnr_error *err);
    cnr_status (*read)(void *state, int64_t index, cnr_sample *out, cnr_error *err);
    void (*close)(void *state);
    /* (optional) Writes a picture (u8 H W C) to a path; chosen by what accepts says of the path
     * with head NULL. Through host->output_begin. */
    cnr_status (*write)(const char *path, const cnr_tensor *picture, cnr_error *err);
    /* (optional, all three) A writer of pictures one behind the other: to a film, a stream,
     * "frames-%04d.png". Chosen as `write` is. The names and times of samples are wishes. */
    cnr_status (*write_open)(const char *spec, void **state, cnr_error *err);
    cnr_status (*write_next)(void *state, const cnr_sample *sample, cnr_error *err);
    /* Releases it, after a failure too. status not CNR_OK: what was begun is given up, and the same
     * status returned with err as it was. */
    cnr_status (*write_close)(void *state, int32_t status, cnr_error *err);
    /* (optional) Before the first write_next: what the pictures are made of. Its sound
     * and frame rate are kept; times are counted from the span's begin. */
    cnr_status (*write_from)(void *state, const char *spec, const cnr_selection *span,
                             cnr_error *err);
    /* (optional) Before the first read: only these, counted anew. count -1 in info:
     * samples are read in order, 0 1 2 ..., until CNR_E_NOT_FOUND. */
    cnr_status (*select)(void *state, const cnr_selection *span, cnr_source_info *info,
                         cnr_error *err);
    /* (optional) From any thread: a read that waits returns CNR_E_CANCELLED soon. */
    void (*stop)(void *state);
    /* (optional) What opening (writes: writing) the spec touches, CNR_TOUCHES_...; asked
     * of sources whose plugin touches more than files. Without it the whole spec must be named by
     * the user. */
    int32_t (*touches)(const char *spec, int32_t writes);
} cnr_source;

CNR_END_C
#endif
