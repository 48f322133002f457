/* Numbers for GPUs of desktops: with local memory of their own. */
#include "tune.h"

/* Work-items of 4 x 4 to 8 x 8 outputs; small tiles for layers of few pixels, whose launches would
 * have too few work-groups. Channels x pixels x terms. */
static const ocl_tile nvidia_tiles[] = {
    {128, 128, 8, 8, 8}, {128, 64, 8, 8, 8}, {64, 64, 16, 4, 4}, {64, 32, 16, 4, 4},
    {32, 64, 16, 4, 4},  {32, 32, 16, 4, 4}, {64, 16, 16, 4, 4}, {32, 32, 32, 4, 4},
};
#define BUFFERS .conv_buffer = 420, .conv_image = 400, .dense_buffer = 500, .dense_image = 400
#define GEMV .gemv_line = 128, .gemv_wide = 4, .gemv_out = 4
#define TILES .tiles = nvidia_tiles, .n_tiles = CNR_ROWS(nvidia_tiles)

const ocl_tune ocl_desktop_tunes[] = {
    {.family = "nvidia", .name = "NVIDIA", .line = 128, .dense_line = 128, BUFFERS, GEMV, TILES},
    {.family = "desktop", .name = "", .line = 64, .dense_line = 64, BUFFERS, GEMV, TILES},
};
const int32_t ocl_n_desktop_tunes = CNR_ROWS(ocl_desktop_tunes);
