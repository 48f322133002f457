/* Numbers for Adreno GPUs. */
#include "adreno.h"

/* Waves are 16 or 32 wide on 3xx, 32 or 64 on 4xx and 5xx, 64 or 128 on 6xx and 7xx. Buffers skip
 * the first-level cache, which images go through, so weights are images. */
const ocl_tune adreno_tunes[] = {
    {.name = "Adreno(TM) 3", .line = 32, .dense_line = 32, .conv_buffer = 400, .conv_image = 600,
     .dense_buffer = 400, .dense_image = 600},
    {.name = "Adreno(TM) 6", .line = 128, .dense_line = 64, .conv_buffer = 400, .conv_image = 600,
     .dense_buffer = 400, .dense_image = 600},
    {.name = "Adreno(TM) 7", .line = 128, .dense_line = 64, .conv_buffer = 400, .conv_image = 600,
     .dense_buffer = 400, .dense_image = 600},
    {.name = "", .line = 64, .dense_line = 64, .conv_buffer = 400, .conv_image = 600,
     .dense_buffer = 400, .dense_image = 600},
};
const int32_t adreno_n_tunes = sizeof adreno_tunes / sizeof adreno_tunes[0];
