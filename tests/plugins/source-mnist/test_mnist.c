/* IDX digits: splits, plain and compressed, and files that lie. */
#include "graph/graph.h"
#include "pictures/pictures.h"
#include "run/run.h"
#include "tap.h"
#include <stdlib.h>

static cnr_error err = CNR_ERROR_INIT;
static char scratch[] = "/tmp/cnnrun-mnist-XXXXXX";

/* Writes a file. */
static void put(const char *name, const void *data, size_t n) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    FILE *f = fopen(path, "wb");
    if (f) {
        fwrite(data, 1, n, f);
        fclose(f);
    }
}

/* Opens a set. */
static cnr_status open_set(const char *tail, const char *split, cnri_samples *s) {
    char spec[300];
    snprintf(spec, sizeof spec, "mnist:%s%s", scratch, tail);
    return cnri_samples_open(spec, split, s, &err);
}

/* A small set of digits, and damaged ones. */
static void test_small(void) {
    static const uint8_t pictures[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2,  0,  0,
                                       0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 4, 9};
    static const uint8_t lying[] = {0,    0,    8,    3,    0xff, 0xff, 0xff, 0xff, 0xff,
                                    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};
    cnri_samples s;
    cnr_sample sample;
    is_int(open_set("", "eval", &s), CNR_E_NOT_FOUND, "an empty folder");
    has_text(err.text, "t10k-images-idx3-ubyte", "names the file that is missing");
    put("t10k-images-idx3-ubyte", pictures, sizeof pictures);
    put("t10k-labels-idx1-ubyte", labels, sizeof labels);
    is_int(open_set("", "eval", &s), CNR_OK, "plain files, split by the command");
    ok(s.info.count == 2 && s.info.classes == 10, "two digits of ten classes");
    is_int(cnri_samples_read(&s, 1, &sample, &err), CNR_OK, "the second");
    ok(sample.label == 9 && sample.picture.dim[0] == 2 && sample.picture.dim[1] == 3 &&
           sample.picture.dim[2] == 1 && ((uint8_t *)sample.picture.data)[5] == 12,
       "is what was written");
    cnri_free(sample.picture.data);
    cnri_samples_close(&s);
    is_int(open_set(":test", "train", &s), CNR_OK, "the spec's split goes before the command's");
    cnri_samples_close(&s);
    is_int(open_set("", "train", &s), CNR_E_NOT_FOUND, "no training digits here");
    is_int(open_set(":trian", NULL, &s), CNR_E_ARG, "an unknown split");
    put("t10k-images-idx3-ubyte", lying, sizeof lying);
    is_int(open_set("", "eval", &s), CNR_E_FORMAT, "sizes beyond the file's");
    put("t10k-images-idx3-ubyte", pictures, sizeof pictures - 1);
    is_int(open_set("", "eval", &s), CNR_E_FORMAT, "a file cut short");
    put("t10k-images-idx3-ubyte", pictures, 9);
    is_int(open_set("", "eval", &s), CNR_E_FORMAT, "a header cut short");
    put("t10k-images-idx3-ubyte", labels, sizeof labels);
    is_int(open_set("", "eval", &s), CNR_E_FORMAT, "labels where pictures belong");
    put("t10k-images-idx3-ubyte", pictures, sizeof pictures);
    put("t10k-labels-idx1-ubyte", (const uint8_t[]){0, 0, 8, 1, 0, 0, 0, 1, 4}, 9);
    is_int(open_set("", "eval", &s), CNR_E_FORMAT, "other numbers of pictures and labels");
}

/* The real digits. */
static void test_real(void) {
    const char *shared = tap_shared();
    char spec[1100];
    cnri_samples s;
    cnr_sample sample;
    if (!shared) {
        skip("the real digits", "no folder of shared data");
        return;
    }
    snprintf(spec, sizeof spec, "mnist:%s/mnist", shared);
    is_int(cnri_samples_open(spec, "eval", &s, &err), CNR_OK, "the real test digits, compressed");
    ok(s.info.count == 10000 && s.info.classes == 10, "10,000 of 10 classes");
    if (s.source && cnri_samples_read(&s, 0, &sample, &err) == CNR_OK) {
        is_int(sample.label, 7, "the first is a seven");
        cnri_free(sample.picture.data);
    }
    cnri_samples_close(&s);
    is_int(cnri_samples_open(spec, "train", &s, &err), CNR_OK, "the training digits");
    is_int(s.info.count, 60000, "are 60,000");
    cnri_samples_close(&s);
}

int main(void) {
    const char *dirs[] = {CNRT_BUILD_DIR "/plugins", NULL};
    cnri_graph_install(cnri_host_mutable());
    cnri_plugins_load(dirs, false, &err);
    if (!cnri_descriptor_find(CNR_KIND_SOURCE, "mnist")) {
        skip("digits", "source-mnist was not built (zlib)");
        return done();
    }
    if (!mkdtemp(scratch)) return 1;
    test_small();
    test_real();
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", scratch);
    ok(system(command) == 0, "tidied up");
    return done();
}
