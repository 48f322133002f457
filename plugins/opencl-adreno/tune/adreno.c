/* Numbers for Adreno GPUs, and for what else has local memory of its own. */
#include "adreno.h"

/* Work-items of 4 x 4 to 8 x 8 outputs; small tiles for layers of few pixels, whose launches would
 * have too few work-groups. Channels x pixels x terms. */
static const ocl_tile nvidia_tiles[] = {
    {128, 128, 8, 8, 8}, {128, 64, 8, 8, 8}, {64, 64, 16, 4, 4}, {64, 32, 16, 4, 4},
    {32, 64, 16, 4, 4},  {32, 32, 16, 4, 4}, {64, 16, 16, 4, 4}, {32, 32, 32, 4, 4},
};
#define TILES(rows) .tiles = rows, .n_tiles = CNR_ROWS(rows)

/* Waves are 16 or 32 wide on 3xx, 32 or 64 on 4xx and 5xx, 64 or 128 on 6xx and 7xx. Buffers skip
 * the first-level cache, which images go through, so weights are images. */
#define IMAGES .conv_buffer = 400, .conv_image = 600, .dense_buffer = 400, .dense_image = 600
const ocl_tune adreno_tunes[] = {
    {.family = "adreno3", .name = "Adreno(TM) 3", .line = 32, .dense_line = 32, IMAGES},
    {.family = "adreno", .name = "Adreno(TM) 6", .line = 128, .dense_line = 64, IMAGES},
    {.family = "adreno7", .name = "Adreno(TM) 7", .line = 128, .dense_line = 64, IMAGES},
    {.family = "adreno4", .name = "Adreno", .line = 64, .dense_line = 64, IMAGES},
    {.family = "nvidia",
     .name = "NVIDIA",
     .line = 128,
     .dense_line = 128,
     .conv_buffer = 420,
     .conv_image = 400,
     .dense_buffer = 500,
     .dense_image = 400,
     .gemv_line = 128,
     .gemv_wide = 4,
     .gemv_out = 4,
     TILES(nvidia_tiles)},
    {.family = "desktop",
     .name = "",
     .line = 64,
     .dense_line = 64,
     .conv_buffer = 420,
     .conv_image = 400,
     .dense_buffer = 500,
     .dense_image = 400,
     .gemv_line = 128,
     .gemv_wide = 4,
     .gemv_out = 4,
     TILES(nvidia_tiles)},
};
const int32_t adreno_n_tunes = sizeof adreno_tunes / sizeof adreno_tunes[0];
