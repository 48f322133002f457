/* Sources: read samples (pictures, folders, digit files, cameras), and write pictures. */
#pragma once

#include <cnnrun/tensor.h>

/* What a source says of its samples. */
typedef struct cnr_source_info {
    uint32_t size;
    int64_t count;   /* number of samples; -1: a stream of unknown length */
    int64_t classes; /* number of classes; 0: unlabelled */
    /* 1: the samples are the requested one of several splits. 0: they are all samples, or those
     * that the spec selects. */
    int32_t is_split;
    int32_t is_live; /* 1: a camera or a stream; samples that are read too late are lost */
} cnr_source_info;

/* One sample. The picture is u8, rank 3, H W C with C 1 (grey) or 3 (RGB). Its data is from
 * host->alloc and passes to the caller. */
typedef struct cnr_sample {
    uint32_t size;
    int32_t label;  /* -1: none */
    char name[512]; /* the file, or a number */
    cnr_tensor picture;
    uint64_t time_ns; /* time of the picture, from any origin; 0: unknown, but see is_timed */
    int32_t is_timed; /* 1: time_ns is known even if it is 0 */
} cnr_sample;

/* Selects samples of a source that has times. */
typedef struct cnr_selection {
    uint32_t size;
    int32_t every;           /* N: every Nth sample, including the first one; 0 and 1: all */
    uint64_t from_ns, to_ns; /* from_ns <= time < to_ns; to_ns 0: to the end */
} cnr_selection;

/* A reader and writer of samples. A spec is "scheme:rest" or a path. */
typedef struct cnr_source {
    uint32_t size;
    const char *name;   /* such as "mnist" */
    const char *syntax; /* such as "mnist:DIR[:train|test]" */
    const char *summary;
    /* Returns > 0 if it can read the spec; the highest value wins. head: the first bytes if spec is
     * a file, else NULL. */
    int32_t (*accepts)(const char *spec, const uint8_t *head, size_t head_bytes);
    /* Opens a spec. split: "train", "eval" or NULL, by the purpose of the command. */
    cnr_status (*open)(const char *spec, const char *split, void **state, cnr_source_info *info,
                       cnr_error *err);
    cnr_status (*read)(void *state, int64_t index, cnr_sample *out, cnr_error *err);
    void (*close)(void *state);
    /* (optional) Writes a picture (u8 H W C) to a path with host->output_begin. The plugin is
     * selected by its answer to accepts for the path, with head NULL. */
    cnr_status (*write)(const char *path, const cnr_tensor *picture, cnr_error *err);
    /* (optional, all three) Write a series of pictures: to a film, a stream, "frames-%04d.png". The
     * plugin is selected as for `write`. It may ignore the names and times of samples. */
    cnr_status (*write_open)(const char *spec, void **state, cnr_error *err);
    cnr_status (*write_next)(void *state, const cnr_sample *sample, cnr_error *err);
    /* Releases the writer, after a failure too. status not CNR_OK: the output is discarded, and the
     * same status is returned with err unchanged. */
    cnr_status (*write_close)(void *state, int32_t status, cnr_error *err);
    /* (optional) Called before the first write_next: names the video from which the pictures are
     * made. Its sound and frame rate are kept; times count from the start of the span. */
    cnr_status (*write_from)(void *state, const char *spec, const cnr_selection *span,
                             cnr_error *err);
    /* (optional) Called before the first read: selects samples, which are then numbered from 0. If
     * info's count is -1, samples are read in order, 0 1 2 ..., until CNR_E_NOT_FOUND. */
    cnr_status (*select)(void *state, const cnr_selection *span, cnr_source_info *info,
                         cnr_error *err);
    /* (optional) Stops a waiting read, from any thread: it soon returns CNR_E_CANCELLED. */
    void (*stop)(void *state);
    /* (optional) Returns what opening the spec (writes: writing to it) touches, CNR_TOUCHES_...
     * Called for sources whose plugin touches more than files. Without this hook the user must name
     * the whole spec. */
    int32_t (*touches)(const char *spec, int32_t writes);
} cnr_source;
