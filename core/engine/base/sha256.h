/* What sha256.c and sha256_mix.c share, and tests compare. */
#ifndef CNRI_SHA256_H
#define CNRI_SHA256_H

#include "base/base.h"
#include <string.h>

/* Takes n blocks of 64 bytes in. */
typedef void (*cnri_sha256_fn)(uint32_t h[8], const uint8_t *blocks, uint64_t n);

void cnri_sha256_plain(uint32_t h[8], const uint8_t *blocks,
                       uint64_t n);   /* runs anywhere; the judge */
cnri_sha256_fn cnri_sha256_mix(void); /* the fastest that this processor has */

#endif
