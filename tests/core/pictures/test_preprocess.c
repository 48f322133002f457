/* Preprocessing: texts in metadata, and what they do to pictures. */
#include "graph/graph.h"
#include "pictures/pictures.h"
#include "run/run.h"
#include "tap.h"
#include <math.h>

static cnr_graph *graph;
static cnr_error err = CNR_ERROR_INIT;

/* A u8 picture tensor of H x W x C over data. */
static cnr_tensor picture(uint8_t *data, int64_t h, int64_t w, int64_t c) {
    return (cnr_tensor){.size = sizeof(cnr_tensor),
                        .dtype = CNR_u8,
                        .rank = 3,
                        .dim = {h, w, c},
                        .data = data,
                        .bytes = (uint64_t)(h * w * c)};
}

/* An f32 input tensor of 1 x C x H x W over data. */
static cnr_tensor input(float *data, int64_t c, int64_t h, int64_t w) {
    return (cnr_tensor){.size = sizeof(cnr_tensor),
                        .dtype = CNR_f32,
                        .rank = 4,
                        .dim = {1, c, h, w},
                        .data = data,
                        .bytes = (uint64_t)(c * h * w) * 4};
}

/* Sets the keys given as "key=text;key=text" in a new graph and applies them. */
static cnr_status apply(const char *settings, const cnr_tensor *from, cnr_tensor *to) {
    char text[512], *rest = text;
    cnri_preprocess p;
    cnr_status status = CNR_OK;
    snprintf(text, sizeof text, "%s", settings);
    if (!(graph = cnri_graph_new("test"))) return CNR_E_MEMORY;
    while (*rest && !status) {
        char *next = rest + strcspn(rest, ";");
        if (*next) *next++ = 0;
        char *equals = strchr(rest, '=');
        *equals = 0;
        status = cnri_preprocess_set(graph, "data", rest, equals + 1, &err);
        rest = next;
    }
    if (!status) status = cnri_preprocess_read(graph, "data", &p, &err);
    if (!status) {
        status = cnri_preprocess_apply(&p, from, to, &err);
        cnri_preprocess_free(&p);
    }
    cnri_graph_free(graph);
    return status;
}

/* 1: the n numbers agree. */
static int near(const float *got, const float *want, int n) {
    for (int i = 0; i < n; i++)
        if (fabsf(got[i] - want[i]) > 1e-5f) {
            note("element %d: got %g, want %g", i, (double)got[i], (double)want[i]);
            return 0;
        }
    return 1;
}

/* Channels, mean and scale change pixels as they say. */
static void test_values(void) {
    uint8_t rgb[] = {10, 20, 30, 40, 50, 60};
    cnr_tensor p = picture(rgb, 1, 2, 3);
    float out[6];
    cnr_tensor t = input(out, 3, 1, 2);
    is_int(apply("", &p, &t), CNR_OK, "no settings");
    ok(near(out, (float[]){10, 40, 20, 50, 30, 60}, 6), "planes of plain values");
    is_int(apply("channels=bgr;mean=1,2,3", &p, &t), CNR_OK, "bgr with a mean a channel");
    ok(near(out, (float[]){29, 59, 18, 48, 7, 37}, 6), "the mean is in the net's order");
    is_int(apply("mean=10;scale=0.5;std=2,4,5", &p, &t), CNR_OK, "mean, scale and std");
    ok(near(out, (float[]){0, 7.5f, 1.25f, 5, 2, 5}, 6), "(pixel - mean) * scale / std");
    is_int(apply("mean=1,2,3,4,5,6", &p, &t), CNR_OK, "a mean image");
    ok(near(out, (float[]){9, 38, 17, 46, 25, 54}, 6), "is taken off place by place");
    is_int(apply("mean=1,2,3,4,5,6,7", &p, &t), CNR_E_SHAPE, "a mean image of the wrong size");
    has_text(err.text, "7 values", "names its size");
    is_int(apply("channels=gray", &p, &t), CNR_OK, "grey into three channels");
    ok(out[0] == out[2] && out[2] == out[4], "fills all three alike");
    t.dtype = CNR_u8;
    uint8_t bytes[6];
    t.data = bytes;
    is_int(apply("channels=bgr", &p, &t), CNR_OK, "a u8 input");
    ok(bytes[0] == 30 && bytes[5] == 40, "gets bytes");
    t = input(out, 1, 1, 2);
    is_int(apply("", &p, &t), CNR_OK, "colours into one channel");
    ok(near(out, (float[]){18, 48}, 2), "by weights of red, green and blue");
    t = (cnr_tensor){.size = sizeof t, .dtype = CNR_f32, .rank = 2, .dim = {1, 6}, .data = out};
    is_int(apply("", &p, &t), CNR_OK, "a flat input");
    ok(near(out, (float[]){10, 40, 20, 50, 30, 60}, 6), "gets planes one after another");
    t.dim[1] = 5;
    is_int(apply("", &p, &t), CNR_E_SHAPE, "a flat input of another size is refused");
}

/* Resize, crop and letterbox take the pixels that they should. */
static void test_geometry(void) {
    uint8_t ramp[8 * 12];
    float out[8 * 12];
    for (int i = 0; i < 8 * 12; i++) ramp[i] = (uint8_t)(i / 12 * 16 + i % 12);
    cnr_tensor p = picture(ramp, 8, 12, 1), t = input(out, 1, 4, 4);
    is_int(apply("crop=4x4", &p, &t), CNR_OK, "a crop");
    ok(out[0] == ramp[2 * 12 + 4] && out[15] == ramp[5 * 12 + 7], "is the middle");
    is_int(apply("resize=8;crop=4", &p, &t), CNR_OK, "shorter side as it is, then a crop");
    ok(out[0] == ramp[2 * 12 + 4], "gives the same");
    is_int(apply("resize=8", &p, &t), CNR_OK, "shorter side alone");
    ok(out[0] == ramp[2 * 12 + 4], "is cut to the input");
    float part[24];
    cnr_tensor u = input(part, 1, 4, 6);
    is_int(apply("crop=0.5", &p, &u), CNR_OK, "a part");
    ok(part[0] == ramp[2 * 12 + 3], "is the middle half");
    uint8_t flat[2 * 8];
    memset(flat, 200, sizeof flat);
    cnr_tensor wide = picture(flat, 2, 8, 1);
    is_int(apply("letterbox=7", &wide, &t), CNR_OK, "letterbox");
    ok(out[0] == 7 && out[7] == 200 && out[15] == 7, "fills above and below");
    is_int(apply("resize=60000", &wide, &t), CNR_E_LIMIT, "a side beyond all bounds is refused");
    t = input(out, 2, 4, 4);
    is_int(apply("", &p, &t), CNR_E_SHAPE, "an input of two channels is refused");
}

/* Unknown steps and bad values are refused, with a hint. */
static void test_mistakes(void) {
    graph = cnri_graph_new("test");
    is_int(cnri_preprocess_set(graph, "data", "mena", "1", &err), CNR_E_ARG, "an unknown step");
    has_text(err.text, "mean", "is answered by the right one");
    static const char *const wrong[][2] = {{"resize", "0"},     {"resize", "256x"},
                                           {"resize", "12.5"},  {"crop", "-4"},
                                           {"mean", "1,,2"},    {"mean", ""},
                                           {"std", "0"},        {"std", "1,2,3,4,5"},
                                           {"scale", "x"},      {"scale", "inf"},
                                           {"channels", "rbg"}, {"letterbox", "300"}};
    for (size_t i = 0; i < CNRI_COUNT(wrong); i++)
        ok(cnri_preprocess_set(graph, "data", wrong[i][0], wrong[i][1], &err) == CNR_E_ARG,
           "%s=\"%s\" is refused: %s", wrong[i][0], wrong[i][1], err.text);
    cnri_graph_free(graph);
}

/* Preprocessing fails cleanly at each allocation. */
static void test_memory(void) {
    uint8_t rgb[5 * 4 * 3] = {0};
    float out[27];
    cnr_tensor p = picture(rgb, 5, 4, 3), t = input(out, 3, 3, 3);
    int bad = 0, n = 0;
    for (n = 1; n < 200; n++) {
        cnri_alloc_fail_at(n);
        const cnr_status status =
            apply("resize=4;mean=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,"
                  "19,20,21,22,23,24,25,26,27",
                  &p, &t);
        cnri_alloc_fail_at(0);
        if (status == CNR_OK) break;
        if (status != CNR_E_MEMORY) {
            note("allocation %d: %s: %s", n, err.where, err.text);
            bad++;
        }
    }
    ok(bad == 0 && n > 3, "each of %d allocations may fail", n - 1);
}

int main(void) {
    cnri_graph_install(cnri_host_mutable());
    test_values();
    test_geometry();
    test_mistakes();
    test_memory();
    return done();
}
