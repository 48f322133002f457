/* Readers and writers of pictures and videos, and objects with state, which plugins provide. */
#pragma once

#include <cnnrun/engine.h>

CNR_BEGIN_EXPORTS

/* ---- writers: store a series of pictures where a source plugin can write: "out-%04d.png" ---- */

typedef struct cnr_writer cnr_writer; /* one thread at a time */
/* Opens a file or sequence for writing pictures. Close *out with cnr_writer_close. */
cnr_status cnr_writer_open(cnr_runtime *rt, const char *spec, cnr_writer **out, cnr_error *err);
/* Presentation time of a picture that has none. */
#define CNR_NO_TIME UINT64_MAX
/* Writes a picture: u8, H W C with C 1 or 3. name may be NULL. time_ns is its presentation time, or
 * CNR_NO_TIME. */
cnr_status cnr_writer_put(cnr_writer *writer, const cnr_tensor *picture, const char *name,
                          uint64_t time_ns, cnr_error *err);
/* Names the video from which the pictures were made; call it before the first put. The writer
 * copies sound and times from it, from from_ns to to_ns (0: the end). Writers without sound and
 * times ignore it. */
cnr_status cnr_writer_from(cnr_writer *writer, const char *spec, uint64_t from_ns, uint64_t to_ns,
                           cnr_error *err);
/* Closes and frees the writer. The output stays, unless a put failed: its status is then
 * returned. */
cnr_status cnr_writer_close(cnr_writer *writer, cnr_error *err);

/* ---- readers: load a series of pictures from what a source plugin can read: "film.mp4",
 * "/dev/video0", a folder, "frames-%04d.png" ---- */

typedef struct cnr_reader cnr_reader; /* one thread at a time */
/* Opens a source of pictures. Close *out with cnr_reader_close. */
cnr_status cnr_reader_open(cnr_runtime *rt, const char *spec, cnr_reader **out, cnr_error *err);
/* Reads the next picture, u8 H W C with C 1 or 3, valid until the next call; NULL after the last
 * one. time_ns: presentation time, or CNR_NO_TIME. name: the file, or a number. Both may be
 * NULL. */
cnr_status cnr_reader_next(cnr_reader *reader, const cnr_tensor **picture, uint64_t *time_ns,
                           const char **name, cnr_error *err);
/* Closes a reader; NULL: nothing. */
void cnr_reader_close(cnr_reader *reader);

/* ---- objects: state and methods on tensors, provided by plugins, such as a tracker ---- */

typedef struct cnr_instance cnr_instance; /* one thread at a time */
/* Makes an object. options: "name=value", NULL-terminated, or NULL. A value is a number, numbers
 * separated by commas, true, false or a text. plugin.h (cnr_object) describes how tensors represent
 * numbers, lists and texts. */
cnr_status cnr_object_make(cnr_runtime *rt, const char *name, const char *const *options,
                           cnr_instance **out, cnr_error *err);
/* Calls the method of that name. The object owns the results, which are valid until its next
 * call. */
cnr_status cnr_object_call(cnr_instance *object, const char *method,
                           const cnr_tensor *const *inputs, int32_t n_inputs,
                           const cnr_tensor **outputs, int32_t n_outputs, cnr_error *err);
/* Frees an object; call it before cnr_close. */
void cnr_object_free(cnr_instance *object);

CNR_END_EXPORTS
