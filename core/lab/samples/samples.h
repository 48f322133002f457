/* samples: which samples of a source, varied for training; pictures written. */
#ifndef CNRI_SAMPLES_H
#define CNRI_SAMPLES_H

#include "data/data.h"
/* Varies a picture (u8 H W C) in place: by nothing but seed, round (of training: the epoch) and
 * index. */
cnr_status cnri_augment_apply(const cnri_augment *o, uint64_t seed, int64_t round, int64_t index,
                              cnr_tensor *picture, cnr_error *err);
/* Only these, counted anew; before the first read. */
cnr_status cnri_samples_choose(cnri_samples *s, const cnr_selection *span, cnr_error *err);
/* A read of a stream gave this status: it is behind the stream's end, which is no mistake. */
bool cnri_samples_ended(const cnri_samples *s, cnr_status status);
cnr_status cnri_samples_vary(cnri_samples *s, int64_t index, uint64_t seed, int64_t round,
                             cnr_sample *out, cnr_error *err);
/* Some source writes pictures to a path of this name. */
bool cnri_picture_writable(const char *path);
cnr_status cnri_picture_write(const char *path, const cnr_tensor *picture, cnr_error *err);

#endif
