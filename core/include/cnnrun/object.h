/* What plugins bring beside operators: objects with a state, and writers of pictures and videos. */
#ifndef CNNRUN_OBJECT_H
#define CNNRUN_OBJECT_H

#include <cnnrun/engine.h>

CNR_BEGIN_EXPORTS

/* ---- pictures one behind the other, to whatever a source plugin writes: "out-%04d.png" ---- */

typedef struct cnr_writer cnr_writer;
cnr_status cnr_writer_open(cnr_runtime *rt, const char *spec, cnr_writer **out, cnr_error *err);
/* u8, H W C with C 1 or 3. name may be NULL; time_ns: when it is to be seen, or CNR_NO_TIME. */
#define CNR_NO_TIME UINT64_MAX
cnr_status cnr_writer_put(cnr_writer *writer, const cnr_tensor *picture, const char *name,
                          uint64_t time_ns, cnr_error *err);
/* Before the first put: what the pictures are made of (a video); its sound and times are kept, from
 * from_ns up to to_ns (0: the end). Writers that have no use for it do nothing. */
cnr_status cnr_writer_from(cnr_writer *writer, const char *spec, uint64_t from_ns, uint64_t to_ns,
                           cnr_error *err);
/* Frees it. What was written stands, unless a put failed: then that status comes back. */
cnr_status cnr_writer_close(cnr_writer *writer, cnr_error *err);

/* ---- pictures one behind the other, from whatever a source plugin reads: "film.mp4",
 * "/dev/video0", a folder, "frames-%04d.png" ---- */

typedef struct cnr_reader cnr_reader; /* one thread at a time */
cnr_status cnr_reader_open(cnr_runtime *rt, const char *spec, cnr_reader **out, cnr_error *err);
/* The next picture, u8 H W C with C 1 or 3, which is valid until the next call; NULL behind the
 * last. time_ns: when it is to be seen, or CNR_NO_TIME; name: the file, or a number. Both may be
 * NULL. */
cnr_status cnr_reader_next(cnr_reader *reader, const cnr_tensor **picture, uint64_t *time_ns,
                           const char **name, cnr_error *err);
void cnr_reader_close(cnr_reader *reader); /* NULL: nothing */

/* ---- objects: what plugins bring with a state and methods on tensors: a tracker ---- */

typedef struct cnr_instance cnr_instance; /* one thread at a time */
/* options: "name=value", NULL-terminated, or NULL; a value is a number, numbers with commas
 * between, true, false or a text. plugin.h (cnr_object) says what tensors stand for numbers, lists
 * and texts. */
cnr_status cnr_object_make(cnr_runtime *rt, const char *name, const char *const *options,
                           cnr_instance **out, cnr_error *err);
/* The method whose signature begins with that name. Results are the object's until its next
 * call. */
cnr_status cnr_object_call(cnr_instance *object, const char *method,
                           const cnr_tensor *const *inputs, int32_t n_inputs,
                           const cnr_tensor **outputs, int32_t n_outputs, cnr_error *err);
void cnr_object_free(cnr_instance *object); /* before cnr_close */

CNR_END_EXPORTS
#endif
