/* Numbers for Mali GPUs, for PoCL and, in the last row, for whatever else is driven from here. */
#include "tune.h"

/* Panels for 64 registers of a work-item: 4 x 8 sums, their operands, and addresses. */
static const ocl_panel mali_panels[] = {{4, 2, 4, 32}, {8, 1, 4, 32}, {4, 1, 4, 32}};
/* 32 registers of 16 floats, or of 8; a work-group is a function that one core runs, so that one
 * work-item is all it needs. */
static const ocl_panel pocl_panels[] = {{8, 3, 16, 1},  {14, 2, 16, 1}, {6, 4, 16, 1},
                                        {16, 1, 16, 1}, {6, 2, 8, 1},   {12, 1, 8, 1}};
/* Fields of a tune: Winograd, and the panels of the array rows. */
#define PANELS(rows) .winograd = 1, .panels = rows, .n_panels = CNR_ROWS(rows)

/* Warps are 4 wide up to G72, 8 on G52 and G76, 16 from G57 and G77 on; work-groups of some warps.
 * Images gain nothing on Mali. In the last row dense weights go through images, which GPUs of other
 * kinds have a cache for. PoCL's mad is a product and a sum. */
#define BUFFERS .conv_buffer = 600, .conv_image = 200, .dense_buffer = 600, .dense_image = 200
const ocl_tune ocl_mali_tunes[] = {
    {.family = "midgard",
     .name = "Mali-T",
     .line = 32,
     .dense_line = 16,
     BUFFERS,
     PANELS(mali_panels)},
    {.family = "mali31",
     .name = "Mali-G31",
     .line = 32,
     .dense_line = 16,
     BUFFERS,
     PANELS(mali_panels)},
    {.family = "mali", .name = "Mali", .line = 64, .dense_line = 16, BUFFERS, PANELS(mali_panels)},
    {.family = "pocl",
     .name = "Portable Computing Language",
     .line = 64,
     .dense_line = 32,
     .wide = 16,
     .rows = 1,
     .fused = 1,
     .cache = 1800000,
     .conv_buffer = 500,
     .conv_image = 400,
     .dense_buffer = 500,
     .dense_image = 400,
     .gemv_line = 1,
     .gemv_wide = 16,
     .gemv_out = 4,
     .winograd = 16,
     .panels = pocl_panels,
     .n_panels = CNR_ROWS(pocl_panels)},
    {.family = "other",
     .name = "",
     .line = 64,
     .dense_line = 32,
     .conv_buffer = 600,
     .conv_image = 500,
     .dense_buffer = 500,
     .dense_image = 600,
     PANELS(mali_panels)},
};
const int32_t ocl_n_mali_tunes = CNR_ROWS(ocl_mali_tunes);
