/* Declarations shared by sha256.c and sha256_mix.c and compared by tests. */
#ifndef CNRI_SHA256_H
#define CNRI_SHA256_H

#include "base/base.h"
#include <string.h>

/* Hashes n blocks of 64 bytes into the state h. */
typedef void (*cnri_sha256_fn)(uint32_t h[8], const uint8_t *blocks, uint64_t n);

/* Plain C, which runs anywhere; tests compare the others with it. */
void cnri_sha256_plain(uint32_t h[8], const uint8_t *blocks, uint64_t n);
cnri_sha256_fn cnri_sha256_mix(void); /* returns the fastest one that this processor supports */

#endif
