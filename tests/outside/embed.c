/* An application in five calls: open, load, run, top-k, close. Builds as C and as C++. */
#include <cnnrun/cnnrun.h>
#include <stdio.h>

/* Prints an error; 1. */
static int fail(const cnr_error *err) {
    fprintf(stderr, "%s: %s\n", err->where, err->text);
    return 1;
}

int main(int argc, char **argv) {
    cnr_runtime *rt = NULL;
    cnr_model *net = NULL;
    const cnr_tensor *scores = NULL;
    cnr_top best[3];
    cnr_error err = CNR_ERROR_INIT;
    if (argc != 3) return 2;
    if (cnr_open(&rt, NULL, &err)) return fail(&err);
    int status = 1;
    if (cnr_load(rt, argv[1], NULL, &net, &err) || cnr_run_picture(net, argv[2], &scores, &err)) {
        fail(&err);
    } else {
        const int n = cnr_topk(scores, 3, best);
        for (int i = 0; i < n; i++) printf("%d %.4f\n", (int)best[i].index, (double)best[i].score);
        status = 0;
    }
    cnr_close(rt);
    return status;
}
