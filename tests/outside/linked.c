/* A program with two plugins linked in: nothing is searched for, and no library is opened.
 *     linked NET.cnr    runs it on 1 ... n and prints what comes out */
#include <cnnrun/engine.h>
#include <stdio.h>
#include <stdlib.h>

/* cnr_add_plugin(NAME STATIC ...) calls a plugin's function so; - becomes _. */
const struct cnr_plugin *cnr_plugin_query_c_device(uint32_t host_abi);
/* The plugin that is linked into this program. */
const struct cnr_plugin *cnr_plugin_query_cpp_operator(uint32_t host_abi);

/* Prints an error; 1. */
static int fail(const cnr_error *err) {
    fprintf(stderr, "%s: %s\n", err->where, err->text);
    return 1;
}

int main(int argc, char **argv) {
    const struct cnr_plugin *(*const plugins[])(uint32_t) = {cnr_plugin_query_c_device,
                                                             cnr_plugin_query_cpp_operator, NULL};
    const cnr_open_options options = {.size = sizeof options,
                                      .no_default_dirs = 1,
                                      .linked_plugins = plugins};
    const cnr_load_options on = {.size = sizeof on, .device = "acme"};
    float data[6] = {1, -2, 3, -4, 0.25f, -0.25f};
    cnr_tensor x = {.size = sizeof x, .dtype = CNR_f32, .rank = 2, .dim = {2, 3}, .data = data};
    const cnr_tensor *in = &x, *out;
    cnr_runtime *rt;
    cnr_model *net;
    cnr_error err = CNR_ERROR_INIT;
    if (argc != 2 || cnr_open(&rt, &options, &err)) return fail(&err);
    if (cnr_load(rt, argv[1], &on, &net, &err) || cnr_run_tensors(net, &in, 1, &out, 1, &err))
        return fail(&err);
    for (int64_t i = 0; i < cnr_count(out); i++)
        printf("%g ", (double)((const float *)out->data)[i]);
    printf("\n");
    cnr_close(rt);
    return 0;
}
