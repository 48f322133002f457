/* What drawing and changing drafts share; inside check/ only. */
#ifndef CNRI_CHECK_DRAFT_H
#define CNRI_CHECK_DRAFT_H

#include "judge/judge.h"

/* A size round the tiles that kernels work in, a prime, or 1. */
int64_t cnri_draw_size(cnri_dice *dice);
/* What an integer may well be: small, an axis, a size of the first input, what was asked for. */
int64_t cnri_draw_likely(const cnri_draft *d, cnri_dice *dice, const cnri_hints *hints);
/* Attribute or input i, anew. hints may be NULL. */
void cnri_draw_attr(cnri_draft *d, int32_t i, cnri_dice *dice, const cnri_hints *hints);
void cnri_draw_input(cnri_draft *d, int32_t i, cnri_dice *dice);
int32_t cnri_draw_dtype(cnri_dice *dice);
cnri_values cnri_draw_values(cnri_dice *dice);
/* Of the dense tensor; INT64_MAX when there are more. */
int64_t cnri_draft_elements(const cnri_draft_input *in);

#endif
