/* Comparing models with given outputs: which file is the model is asked of who reads it, not its
 * name. */
#include "../../guests/guests.h"
#include "work/work.h"
#include <sys/stat.h>
#include <unistd.h>

/* What a comparison told. */
typedef struct heard {
    int32_t n, differences;
    cnri_outcome last;
    char name[64];
    int32_t stop_at;
} heard;

/* Keeps what is told; 1: stop. */
static int32_t hear(void *arg, int32_t kind, const void *of) {
    heard *h = arg;
    const cnri_compared *c = of;
    if (kind != CNRI_EVENT_CASE) return 0;
    h->n++;
    h->last = c->outcome;
    h->differences = c->n_differences;
    snprintf(h->name, sizeof h->name, "%s", c->name);
    return h->stop_at && h->n >= h->stop_at;
}

static char folder[] = "/tmp/cnnrun-compare-XXXXXX";

/* Copies a file into a folder; false: it cannot be. */
static bool copy(const char *from, const char *to) {
    char line[3000];
    snprintf(line, sizeof line, "mkdir -p \"$(dirname %s/%s)\" && cp %s %s/%s", folder, to, from,
             folder, to);
    return system(line) == 0;
}

/* Copies a case, with another model or output unless these are NULL. True: it could. */
static bool copy_case(const char *data, const char *name, const char *model, const char *output) {
    char from[1200], to[200];
    snprintf(from, sizeof from, "%s/onnx-node/test_abs/model.onnx", data);
    snprintf(to, sizeof to, "%s/%s", name, model);
    bool good = copy(from, to);
    snprintf(from, sizeof from, "%s/onnx-node/test_abs/test_data_set_0/input_0.pb", data);
    snprintf(to, sizeof to, "%s/test_data_set_0/input_0.pb", name);
    good = good && copy(from, to);
    snprintf(from, sizeof from, "%s/onnx-node/test_abs/test_data_set_0/%s", data, output);
    snprintf(to, sizeof to, "%s/test_data_set_0/output_0.tensor", name);
    return good && copy(from, to);
}

int main(void) {
    const char *data = tap_shared();
    cnr_error err = CNR_ERROR_INIT;
    const cnr_load_options how = {.size = sizeof how, .device = "cpu"};
    const cnri_compare_options o = {.rtol = 1e-3, .atol = 1e-7, .how = &how};
    heard h = {0};
    const cnr_observer observer = {.size = sizeof observer, .arg = &h, .event = hear};
    cnri_comparison got;
    char path[200];
    if (!data) {
        skip("models compared", "no shared data");
        return done();
    }
    if (guests_open(1, &err) || !mkdtemp(folder) ||
        !copy_case(data, "a", "model.onnx", "output_0.pb") ||
        !copy_case(data, "b/right", "whatever", "output_0.pb") ||
        !copy_case(data, "b/wrong", "net.onnx", "input_0.pb")) {
        ok(0, "cases: %s", err.text);
        return done();
    }
    snprintf(path, sizeof path, "%s/a", folder);
    ok(!cnri_compare_models(guests_rt, path, &o, &observer, &got, &err) &&
           got.n[CNRI_CASE_RIGHT] == 1 && h.n == 1 && strcmp(h.name, "a") == 0,
       "one case: %s", err.text);
    ok(!cnri_compare_models(guests_rt, folder, &o, &observer, &got, &err), "a folder of folders");
    is_int(got.n[CNRI_CASE_RIGHT], 2, "a model of any name is found");
    is_int(got.n[CNRI_CASE_WRONG], 1, "one is wrong");
    ok(h.n == 4 && h.last == CNRI_CASE_WRONG && h.differences == 1 && strcmp(h.name, "wrong") == 0,
       "and is told with where");
    h = (heard){.stop_at = 1};
    ok(cnri_compare_models(guests_rt, folder, &o, &observer, &got, &err) == CNR_E_CANCELLED &&
           h.n == 1,
       "an observer stops it");
    snprintf(path, sizeof path, "%s/a/test_data_set_0", folder);
    ok(cnri_compare_models(guests_rt, path, &o, NULL, &got, &err) == CNR_E_NOT_FOUND,
       "nothing to compare: %s", err.text);
    snprintf(path, sizeof path, "rm -r %s", folder);
    if (system(path) != 0) note("left behind");
    cnr_close(guests_rt);
    return done();
}
