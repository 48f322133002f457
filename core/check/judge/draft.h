/* Declarations shared by drawing and changing drafts; inside check/ only. */
#ifndef CNRI_CHECK_DRAFT_H
#define CNRI_CHECK_DRAFT_H

#include "judge/judge.h"

/* Draws a size near those of kernels' tiles, a prime, or 1. */
int64_t cnri_draw_size(cnri_dice *dice);
/* Draws a plausible integer: a small number, an axis, a size of the first input, or one that a
 * refusal named. */
int64_t cnri_draw_likely(const cnri_draft *d, cnri_dice *dice, const cnri_hints *hints);
/* Draws attribute i of the draft again, by the dice; hints, of what kernels like, may be NULL. */
void cnri_draw_attr(cnri_draft *d, int32_t i, cnri_dice *dice, const cnri_hints *hints);
/* Draws type, shape and kind of values of input i. */
void cnri_draw_input(cnri_draft *d, int32_t i, cnri_dice *dice);
/* Draws an element type, mostly f32. */
int32_t cnri_draw_dtype(cnri_dice *dice);
/* Draws a kind of values, mostly around 0. */
cnri_values cnri_draw_values(cnri_dice *dice);
/* Number of elements of the dense tensor; INT64_MAX if there are more. */
int64_t cnri_draft_elements(const cnri_draft_input *in);

#endif
