/* Caffe's layers: nets with their weights written in the text, against arithmetic done by hand; old
 * forms of layers, which data layer counts, and what is refused. */
#include "plugins/importing.h"

/* The model of a prototxt text; NULL: it is refused. */
static cnr_model *model(const char *text) {
    const char *path = cnrt_path("net.prototxt");
    cnrt_write(path, text, strlen(text));
    return cnrt_model("caffe", path, NULL, NULL);
}

/* Runs a net on x, of four dims, and a second input where it has one. */
static void gives(const char *what, const char *text, const float *x, const int64_t dim[4],
                  const float *x2, const int64_t dim2[2], const float *want, int n) {
    cnr_model *m = model(text);
    cnr_tensor in[2] = {{.size = sizeof in[0], .dtype = CNR_f32, .rank = 4, .data = (void *)x},
                        {.size = sizeof in[0], .dtype = CNR_f32, .rank = 2, .data = (void *)x2}};
    const cnr_tensor *ins[] = {&in[0], &in[1]}, *y = NULL;
    memcpy(in[0].dim, dim, 4 * sizeof dim[0]);
    if (x2) memcpy(in[1].dim, dim2, 2 * sizeof dim2[0]);
    for (int i = 0; i < 2; i++) in[i].bytes = x2 || i == 0 ? cnr_dense_bytes(&in[i]) : 0;
    if (!m || cnr_run_tensors(m, ins, x2 ? 2 : 1, &y, 1, &cnrt_err) != CNR_OK)
        note("%s: %s", cnrt_err.where, cnrt_err.text);
    if (!ok(cnrt_distance(y, want, n) < 1e-5, "%s", what))
        for (int64_t i = 0; y && i < cnr_count(y); i++)
            note("%g, wanted %g", (double)((const float *)y->data)[i],
                 i < n ? (double)want[i] : NAN);
    if (m) cnr_release(m);
}

/* An input layer of this shape. */
#define INPUT(C, H, W) \
    "layer { name: 'd' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: " C " dim: " H \
    " dim: " W " } } }\n"
/* A blob of these numbers. */
#define BLOB(SHAPE, DATA) " blobs { shape { " SHAPE " } data: [" DATA "] }"

/* What single layers compute. */
static void test_layers(void) {
    static const float x[] = {1, 2, 3, 4};
    gives("Upsample: each place becomes a square",
          INPUT("1", "1", "2") "layer { name: 'u' type: 'Upsample' bottom: 'x' top: 'y' "
                               "upsample_param { scale: 2 } }",
          x, (const int64_t[]){1, 1, 1, 2}, NULL, NULL, (const float[]){1, 1, 2, 2, 1, 1, 2, 2}, 8);
    gives("Interp to the size of another bottom",
          INPUT("1", "1", "2") "layer { name: 'c' type: 'Pooling' bottom: 'x' top: 'p' "
                               "pooling_param { kernel_size: 1 "
                               "pad: 0 } }\n"
                               "layer { name: 'k' type: 'Concat' bottom: 'x' bottom: 'p' top: 'k' "
                               "concat_param { axis: 3 "
                               "} }\n"
                               "layer { name: 'i' type: 'Interp' bottom: 'x' bottom: 'k' top: 'i' "
                               "interp_param { "
                               "use_blob_size: true } }",
          x, (const int64_t[]){1, 1, 1, 2}, NULL, NULL, (const float[]){1, 4 / 3.f, 5 / 3.f, 2}, 4);
    gives("ROIPooling: the largest of each bin",
          INPUT("1", "2",
                "2") "layer { name: 'e' type: 'Input' top: 'r' input_param { shape { dim: 2 dim: 5 "
                     "} } }\n"
                     "layer { name: 'p' type: 'ROIPooling' bottom: 'x' bottom: 'r' top: 'y' "
                     "roi_pooling_param { pooled_h: 1 pooled_w: 1 spatial_scale: 0.5 } }",
          x, (const int64_t[]){1, 1, 2, 2}, (const float[]){0, 0, 0, 2, 2, 0, 0, 0, 2, 0},
          (const int64_t[]){2, 5}, (const float[]){4, 2}, 2);
    gives("a loss without a top is the output",
          INPUT("2", "1", "1") "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'x' bottom: "
                               "'label' }",
          (const float[]){0, 1.0986123f}, (const int64_t[]){1, 2, 1, 1}, NULL, NULL,
          (const float[]){.25f, .75f}, 2);
    gives("statistics are divided by their count",
          INPUT("1", "1", "2") "layer { name: 'n' type: 'BatchNorm' bottom: 'x' top: 'y' "
                               "batch_norm_param { eps: 0 }" BLOB("dim: 1", "2") BLOB("dim: 1", "8")
                                   BLOB("dim: 1", "2") " }",
          x, (const int64_t[]){1, 1, 1, 2}, NULL, NULL, (const float[]){0, .5f}, 2);
}

static const char v1[] =
    "input: 'x' input_dim: 1 input_dim: 1 input_dim: 1 input_dim: 2\n"
    "layers { name: 'c' type: CONVOLUTION bottom: 'x' top: 'c' convolution_param { num_output: 1 "
    "kernel_size: 1 } blobs { num: 1 channels: 1 height: 1 width: 1 data: 3f } blobs { num: 1 "
    "channels: 1 height: 1 width: 1 data: 1e0 } }\n"
    "layers { name: 'r' type: RELU bottom: 'c' top: 'c' relu_param { negative_slope: 0.5 } }\n";

static const char v0[] =
    "input: 'x' input_dim: 1 input_dim: 1 input_dim: 1 input_dim: 3\n"
    "layers { layer { name: 'p' type: 'padding' pad: 1 } bottom: 'x' top: 'p' }\n"
    "layers { layer { name: 'c' type: 'conv' num_output: 1 kernelsize: 3 stride: 2 biasterm: false "
    "blobs { num: 1 channels: 1 height: 3 width: 3 data: [0, 0, 0, 1, 2, 3, 0, 0, 0] } } "
    "bottom: 'p' top: 'c' }\n"
    "layers { layer { name: 'f' type: 'innerproduct' num_output: 1 blobs { num: 1 channels: 1 "
    "height: 1 width: 2 data: [1, 10] } blobs { num: 1 channels: 1 height: 1 width: 1 data: 5 } } "
    "bottom: 'c' top: 'f' }\n"
    "layers { layer { name: 'r' type: 'relu' } bottom: 'f' top: 'f' }\n";

/* Files of several forms give the same net. */
static void test_forms(void) {
    static const char data[] =
        "layer { name: 'd' type: 'Data' top: 'x' top: 'label' include { phase: TRAIN } "
        "transform_param { crop_size: 2 } }\n"
        "layer { name: 'p' type: 'Pooling' bottom: 'x' top: 'p' pooling_param { pool: AVE "
        "global_pooling: true } }\n"
        "layer { name: 'l' type: 'EuclideanLoss' bottom: 'p' bottom: 'label' top: 'l' include { "
        "phase: TRAIN } }\n";
    static const float x[] = {-1, 2, 3, 4, 1, 1, 1, 1, 2, 2, 2, 2};
    gives("layers and blobs of 2014", v1, x, (const int64_t[]){1, 1, 1, 2}, NULL, NULL,
          (const float[]){-1, 7}, 2);
    gives("layers of 2013, padded by one of their own", v0, x + 1, (const int64_t[]){1, 1, 1, 3},
          NULL, NULL, (const float[]){13 + 110 + 5}, 1);
    gives("training's data where testing has none", data, x, (const int64_t[]){1, 3, 2, 2}, NULL,
          NULL, (const float[]){2, 1, 2}, 3);
}

/* A test: the text is refused. */
static void refused(const char *text, const char *what) {
    cnr_model *m = model(text);
    ok(!m, "refused: %s", what);
    has_text(cnrt_err.text, what, "and named");
    if (m) cnr_release(m);
}

/* What is not supported is refused with its reason. */
static void test_refused(void) {
    refused("net: 'train_val.prototxt'\nbase_lr: 0.01\nmax_iter: 10\n", "solver");
    refused("layer { name: 'd' type: 'Data' top: 'x' }", "shape=CHANNELS");
    refused(INPUT("1", "1", "1") "layer { name: 'q' type: 'Python' bottom: 'x' top: 'y' }\n"
                                 "layer { name: 's' type: 'Strange' bottom: 'y' top: 'z' }",
            "Strange");
    refused(INPUT("1", "1", "1") "layer { name: 'u' type: 'Upsample' bottom: 'x' top: 'y' "
                                 "upsample_param { scale: 0 } }",
            "scale");
    refused(INPUT("1", "1",
                  "1") "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'y' "
                       "convolution_param { num_output: 1 kernel_size: 1 }" BLOB("dim: 2",
                                                                                 "1, 2") " }",
            "blob 0 holds 2 values, 1 are wanted");
    refused("layer { name: 'x' unknown: 1e999 relu_param { negative_slope: 1e999 } }", "number");
}

int main(void) {
    if (!cnrt_begin("caffe")) {
        ok(1, "# SKIP import-caffe was not built");
        return cnrt_end();
    }
    test_layers();
    test_forms();
    test_refused();
    cnrt_write(cnrt_path("v1.prototxt"), v1, strlen(v1));
    char path[256];
    const char *const paths[] = {strcpy(path, cnrt_path("v1.prototxt"))};
    cnrt_survives("caffe", paths, 1, 0, NULL, 1000);
    cnrt_write(paths[0], v0, strlen(v0));
    cnrt_survives("caffe", paths, 1, 0, NULL, 1000);
    return cnrt_end();
}
