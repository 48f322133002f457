/* Median microseconds of a call with 227x227x3 floats, as Call.java has it. call NET CALLS */
#include <cnnrun/engine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Microseconds by the monotonic clock. */
static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Compares two doubles, for qsort. */
static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Runs the net by a session. */
static cnr_status call_session(cnr_session *s, const cnr_tensor *in, float *out, cnr_error *err) {
    const cnr_tensor *y;
    cnr_status status = cnr_session_set_input(s, 0, in, err);
    if (!status) status = cnr_session_run(s, err);
    if (!status) status = cnr_session_output(s, 0, &y, err);
    if (!status) memcpy(out, y->data, y->bytes);
    return status;
}

/* Runs the net by cnr_run. */
static cnr_status call_net(cnr_model *net, const cnr_tensor *in, float *out, cnr_error *err) {
    const cnr_tensor *y;
    const cnr_status status = cnr_run_tensors(net, &in, 1, &y, 1, err);
    if (!status) memcpy(out, y->data, y->bytes);
    return status;
}

/* Median microseconds of `calls` runs of the session, with the same input; NaN: a call failed. */
static double median(cnr_model *net, cnr_session *s, const cnr_tensor *in, int calls,
                     cnr_error *err) {
    double *us = calloc((size_t)calls, sizeof *us), result = 0;
    float out[3];
    cnr_status status = us ? CNR_OK : CNR_E_MEMORY;
    for (int i = -calls; i < calls && !status; i++) {
        const double begin = now_us();
        status = s ? call_session(s, in, out, err) : call_net(net, in, out, err);
        if (i >= 0) us[i] = now_us() - begin;
    }
    if (!status) {
        qsort(us, (size_t)calls, sizeof *us, compare);
        result = us[calls / 2];
    }
    free(us);
    return status ? 0. / 0. : result;
}

int main(int argc, char **argv) {
    const cnr_open_options options = {.size = sizeof options, .threads = 1};
    cnr_tensor in = {.size = sizeof in, .dtype = CNR_f32, .rank = 4, .dim = {1, 3, 227, 227}};
    cnr_runtime *rt = NULL;
    cnr_model *net;
    cnr_plan *plan;
    cnr_session *session;
    cnr_error err = CNR_ERROR_INIT;
    in.bytes = cnr_dense_bytes(&in);
    in.data = calloc(1, in.bytes);
    const int calls = argc == 3 ? atoi(argv[2]) : 0;
    if (calls < 1 || !in.data) return 2;
    if (cnr_open(&rt, &options, &err) || cnr_load(rt, argv[1], NULL, &net, &err) ||
        cnr_plan_for(net, NULL, 0, &plan, &err) || cnr_session_open(plan, &session, &err)) {
        fprintf(stderr, "%s: %s\n", err.where, err.text);
        return 1;
    }
    const double of_net = median(net, NULL, &in, calls, &err);
    printf("%.2f %.2f\n", of_net, median(net, session, &in, calls, &err));
    cnr_close(rt);
    free(in.data);
    return 0;
}
