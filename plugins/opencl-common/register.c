/* Registers the kernels for the device class of the plugin that links this library. */
#include "support.h"

#include <stdio.h>

static const cnr_kernel *const all[] = {
/* the address of one kernel */
#define X(name) &name,
    OCL_KERNEL_LIST(X)
#undef X
};
enum { COUNT = sizeof all / sizeof all[0] };

/* The plugin's own rows, alike but for the class that runs them and a name that no other has. */
static cnr_kernel rows[COUNT];
static char names[COUNT][64];

/* The largest number of rows that a tune has, of tiles or else of panels. */
static int32_t most_rows(const ocl_tune *tunes, int32_t n, int tiles) {
    int32_t most = 0;
    for (int32_t i = 0; i < n; i++)
        most = (int32_t)cnr_max(most, tiles ? tunes[i].n_tiles : tunes[i].n_panels);
    return most;
}

/* Whether any of the tables has the row that the kernel is for; products of matrices take any. */
static int has_row(const cnr_kernel *k, const ocl_tune *tunes, int32_t n) {
    static const cnr_kernel *const tiles[] = {&ocl_dense_tile, &ocl_gemm_tile, &ocl_matmul_tile};
    static const cnr_kernel *const panels[] = {&ocl_dense_panel, &ocl_gemm_panel,
                                               &ocl_matmul_panel};
    static const struct {
        const cnr_kernel *const *rows;
        int32_t n;
        int tiles;
    } lists[] = {{ocl_tile_rows[0], OCL_MOST_TILES, 1},
                 {ocl_tile_rows[1], OCL_MOST_TILES, 1},
                 {ocl_panel_rows[0], OCL_MOST_PANELS, 0},
                 {ocl_panel_rows[1], OCL_MOST_PANELS, 0},
                 {ocl_panel_rows[2], OCL_MOST_PANELS, 0}};
    for (int32_t i = 0; i < CNR_ROWS(tiles); i++)
        if (tiles[i] == k || panels[i] == k) return most_rows(tunes, n, tiles[i] == k) > 0;
    for (size_t list = 0; list < sizeof lists / sizeof lists[0]; list++)
        for (int32_t row = 0; row < lists[list].n; row++)
            if (lists[list].rows[row] == k) return row < most_rows(tunes, n, lists[list].tiles);
    return 1;
}

cnr_status ocl_register(const cnr_host *host, struct cnr_registrar *registrar,
                        const cnr_device_class *cls, const ocl_tune *tunes, int32_t n) {
    const char *dash = strrchr(cls->name, '-'), *prefix = dash ? dash + 1 : cls->name;
    ocl_host = host;
    cnr_status status = host->add(registrar, CNR_KIND_DEVICE, cls);
    for (int32_t i = 0; status == CNR_OK && i < COUNT; i++) {
        if (!has_row(all[i], tunes, n)) continue;
        rows[i] = *all[i];
        snprintf(names[i], sizeof names[i], "%s_%s", prefix, all[i]->name);
        rows[i].name = names[i];
        rows[i].device = cls->name;
        status = host->add(registrar, CNR_KIND_KERNEL, &rows[i]);
    }
    return status;
}
