/* samples: selects samples of a source, augments them for training, and writes pictures. */
#ifndef CNRI_SAMPLES_H
#define CNRI_SAMPLES_H

#include "pictures/pictures.h"

/* words.c: words behind any spec that vary pictures for training, "DIR,shift=2,flip". */
/* Returns the length of the part of a spec that names files, before the words of augmentation; of
 * an existing file's name, all of it. */
size_t cnri_augment_cut(const char *spec);
/* Reads the words of augmentation behind the files' names into *out, and cuts them off the spec. */
cnr_status cnri_augment_read(char *spec, cnri_augment *out, cnr_error *err);
/* cnri_samples_open for a spec that may end in words of augmentation, which it sets in *out. */
cnr_status cnri_augment_open(const char *spec, const char *split, cnri_samples *out,
                             cnr_error *err);

/* vary.c, choose.c, write.c */
/* Augments a picture (u8, H W C) in place. The result depends only on the picture, the options,
 * seed, round (in training: the epoch) and index. */
cnr_status cnri_augment_apply(const cnri_augment *o, uint64_t seed, int64_t round, int64_t index,
                              cnr_tensor *picture, cnr_error *err);
/* Restricts the source to the selected samples and updates their count. Call before the first
 * read. */
cnr_status cnri_samples_choose(cnri_samples *s, const cnr_selection *span, cnr_error *err);
/* Whether `status`, which a read returned, means the end of a stream of unknown length. */
bool cnri_samples_ended(const cnri_samples *s, cnr_status status);
/* Reads sample `index` and augments its picture by random numbers of (seed, round, index). The
 * caller frees the picture. */
cnr_status cnri_samples_vary(cnri_samples *s, int64_t index, uint64_t seed, int64_t round,
                             cnr_sample *out, cnr_error *err);
/* Whether some source plugin writes pictures to a path of this name. */
bool cnri_picture_writable(const char *path);
/* Writes a picture (u8, height x width x channels) in the format of the path's ending. */
cnr_status cnri_picture_write(const char *path, const cnr_tensor *picture, cnr_error *err);

#endif
