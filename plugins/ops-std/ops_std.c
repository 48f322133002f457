/* The plugin's entry: registers every operator listed in ops.inc. */
#include "ops.h"

const cnr_host *ops_host;
extern const cnr_rewrite ops_fuse_activations;   /* rewrite_activation.c */
extern const cnr_rewrite ops_fuse_normalization; /* rewrite_norm.c */
extern const cnr_rewrite ops_clip_limits;        /* rewrite_clip.c */
extern const cnr_rewrite ops_merge_transposes;   /* rewrite_transpose.c */
extern const cnr_rewrite ops_einsum_to_matmul;   /* rewrite_einsum.c */
extern const cnr_rewrite ops_drop_copies;        /* rewrite_copies.c */
extern const cnr_rewrite ops_drop_neutral;       /* rewrite_neutral.c */
extern const cnr_rewrite ops_scale_products;     /* rewrite_scale.c */
extern const cnr_rewrite ops_gather_to_slice;    /* rewrite_gather.c */
extern const cnr_rewrite ops_fuse_attention;     /* rewrite_attention.c */
extern const cnr_rewrite ops_fold_pads;          /* rewrite_pad.c */
extern const cnr_rewrite ops_spread_row_norms;   /* rewrite_rows.c */
extern const cnr_rewrite ops_merge_branches;     /* rewrite_branches.c */
extern const cnr_rewrite ops_fuse_rms;           /* rewrite_norm.c */
extern const cnr_rewrite ops_trim_taps;          /* rewrite_taps.c */

static const cnr_item items[] = {
/* the registered item of operator NAME */
#define OP(name) {CNR_KIND_OPERATOR, &ops_##name},
#include "ops.inc"
#undef OP
    {CNR_KIND_REWRITE, &ops_fuse_activations}, {CNR_KIND_REWRITE, &ops_fuse_normalization},
    {CNR_KIND_REWRITE, &ops_clip_limits},      {CNR_KIND_REWRITE, &ops_einsum_to_matmul},
    {CNR_KIND_REWRITE, &ops_merge_transposes}, {CNR_KIND_REWRITE, &ops_gather_to_slice},
    {CNR_KIND_REWRITE, &ops_scale_products},   {CNR_KIND_REWRITE, &ops_drop_copies},
    {CNR_KIND_REWRITE, &ops_fuse_attention},   {CNR_KIND_REWRITE, &ops_trim_taps},
    {CNR_KIND_REWRITE, &ops_fold_pads},        {CNR_KIND_REWRITE, &ops_spread_row_norms},
    {CNR_KIND_REWRITE, &ops_drop_neutral},     {CNR_KIND_REWRITE, &ops_merge_branches},
    {CNR_KIND_REWRITE, &ops_fuse_rms},
};

/* Registers all operators and rewrites. */
static cnr_status start(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    ops_host = host;
    return cnr_add_all(host, registrar, items, CNR_ROWS(items));
}

CNR_PLUGIN("ops-std", CNNRUN_VERSION,
           "the standard operators: contracts, gradients and plain C references", "MIT", start,
           CNR_TOUCHES_NOTHING)
