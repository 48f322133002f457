/* Numbers for Mali GPUs and, in the last row, for whatever else is driven from here. */
#include "mali.h"

/* Warps are 4 wide up to G72, 8 on G52 and G76, 16 from G57 and G77 on; work-groups of some warps.
 * Images gain nothing on Mali. In the last row dense weights go through images, which GPUs of other
 * kinds have a cache for. */
const ocl_tune mali_tunes[] = {
    {.name = "Mali-T", .line = 32, .dense_line = 16, .conv_buffer = 600, .conv_image = 200,
     .dense_buffer = 600, .dense_image = 200},
    {.name = "Mali-G31", .line = 32, .dense_line = 16, .conv_buffer = 600, .conv_image = 200,
     .dense_buffer = 600, .dense_image = 200},
    {.name = "Mali", .line = 64, .dense_line = 16, .conv_buffer = 600, .conv_image = 200,
     .dense_buffer = 600, .dense_image = 200},
    {.name = "", .line = 64, .dense_line = 32, .conv_buffer = 600, .conv_image = 500,
     .dense_buffer = 500, .dense_image = 600},
};
const int32_t mali_n_tunes = sizeof mali_tunes / sizeof mali_tunes[0];
