/* Numbers for Adreno GPUs. */
#include "tune.h"

/* Waves are 16 or 32 wide on 3xx, 32 or 64 on 4xx and 5xx, 64 or 128 on 6xx and 7xx. Buffers skip
 * the first-level cache, which images go through, so weights are images. */
#define IMAGES .conv_buffer = 400, .conv_image = 600, .dense_buffer = 400, .dense_image = 600
const ocl_tune ocl_adreno_tunes[] = {
    {.family = "adreno3", .name = "Adreno(TM) 3", .line = 32, .dense_line = 32, IMAGES},
    {.family = "adreno", .name = "Adreno(TM) 6", .line = 128, .dense_line = 64, IMAGES},
    {.family = "adreno7", .name = "Adreno(TM) 7", .line = 128, .dense_line = 64, IMAGES},
    {.family = "adreno4", .name = "Adreno", .line = 64, .dense_line = 64, IMAGES},
};
const int32_t ocl_n_adreno_tunes = CNR_ROWS(ocl_adreno_tunes);
