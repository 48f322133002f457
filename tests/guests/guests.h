/* For tests with the real plugins: LeNet with its weights, and pictures of digits for it. */
#ifndef CNRT_GUESTS_H
#define CNRT_GUESTS_H

#include "pictures/pictures.h"
#include "run/run.h"
#include "tap.h"

enum { DIGIT = 784, MOST_DIGITS = 200 };

static cnr_runtime *guests_rt;
static float guests_digits[MOST_DIGITS * DIGIT];
static int32_t guests_labels[MOST_DIGITS];

__attribute__((unused)) static cnr_status guests_open(int32_t threads, cnr_error *err) {
    const char *dirs[] = {CNRT_BUILD_DIR "/plugins", CNRT_BUILD_DIR "/tests/guests/packed", NULL};
    const cnr_open_options options = {.size = sizeof options,
                                      .plugin_dirs = dirs,
                                      .threads = threads,
                                      .no_default_dirs = 1,
                                      .log_level = CNR_LOG_ERROR};
    return cnr_open(&guests_rt, &options, err);
}

__attribute__((unused)) static cnr_model *guests_lenet(const cnri_plan_options *options) {
    const cnr_load_options load = {.size = sizeof load, .device = "cpu"};
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = NULL;
    if (cnr_load(guests_rt, CNRT_SOURCE_DIR "/scripts/nets/lenet5.lua", &load, &m, &err))
        note("%s: %s", err.where, err.text);
    if (m && options) cnri_model_set_options(m, options, &err);
    return m;
}

/* Digits for the net, as its preprocessing makes them: the first of MNIST's test set where that is,
 * else the ten pictures that are drawn for the demo. Returns how many; 0: none. */
__attribute__((unused)) static int32_t guests_load_digits(const cnr_graph *net) {
    static const char *const names[] = {"zero", "one", "two",   "three", "four",
                                        "five", "six", "seven", "eight", "nine"};
    char spec[1200];
    cnri_preprocess p;
    cnr_error err = CNR_ERROR_INIT;
    int32_t n = 0;
    const char *shared = tap_shared();
    if (cnri_preprocess_read(net, "data", &p, &err)) return 0;
    for (int32_t at = 0; n < MOST_DIGITS && at < (shared ? 1 : 10); at++) {
        cnri_samples s;
        if (shared) snprintf(spec, sizeof spec, "mnist:%s/mnist:test", shared);
        else snprintf(spec, sizeof spec, CNRT_SOURCE_DIR "/scripts/nets/digits/%s.png", names[at]);
        if (cnri_samples_open(spec, "eval", &s, &err)) break;
        for (int64_t i = 0; n < MOST_DIGITS && (s.info.count < 0 ? i < 1 : i < s.info.count); i++) {
            cnr_sample sample = {.size = sizeof sample};
            cnr_tensor out = {.size = sizeof out,
                              .dtype = CNR_f32,
                              .rank = 4,
                              .dim = {1, 1, 28, 28},
                              .data = guests_digits + n * DIGIT,
                              .bytes = DIGIT * sizeof(float)};
            if (cnri_samples_read(&s, i, &sample, &err)) break;
            guests_labels[n] = shared ? sample.label : at;
            if (!cnri_preprocess_apply(&p, &sample.picture, &out, &err)) n++;
            cnri_free(sample.picture.data);
        }
        cnri_samples_close(&s);
    }
    cnri_preprocess_free(&p);
    if (err.code) note("%s: %s", err.where, err.text);
    return n;
}

/* Runs `n` digits in batches; scores gets 10 numbers per digit. */
__attribute__((unused)) static cnr_status guests_run(cnr_model *m, int32_t n, int32_t batch,
                                                     float *scores, cnr_error *err) {
    for (int32_t at = 0; at + batch <= n; at += batch) {
        const cnr_tensor in = {.size = sizeof in,
                               .dtype = CNR_f32,
                               .rank = 4,
                               .dim = {batch, 1, 28, 28},
                               .data = guests_digits + at * DIGIT,
                               .bytes = (uint64_t)batch * DIGIT * sizeof(float)};
        const cnr_tensor *list[] = {&in}, *out;
        const cnr_status status = cnr_run_tensors(m, list, 1, &out, 1, err);
        if (status) return status;
        memcpy(scores + at * 10, out->data, (size_t)batch * 10 * sizeof *scores);
    }
    return CNR_OK;
}

__attribute__((unused)) static int32_t guests_right(const float *scores, int32_t n) {
    int32_t right = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t best = 0;
        for (int32_t k = 1; k < 10; k++)
            if (scores[i * 10 + k] > scores[i * 10 + best]) best = k;
        right += best == guests_labels[i];
    }
    return right;
}

#endif
