/* NumPy: .npy and .npz files, as weights for a net that is described elsewhere. Saving arrays is
 * how Theano, Lasagne and Keras keep models: the files hold no layers. */
#include "numpy.h"

#include <stdio.h>

/* Files alone are no net: what they hold, and where to put them. */
static cnr_status not_a_net(const char *path, const imp_arrays *arrays, cnr_error *err) {
    char list[600] = "", text[160];
    size_t n = 0;
    for (int32_t i = 0; i < arrays->n && n < sizeof list - 200; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%.60s %s", i ? ", " : ": ",
                              arrays->at[i].name,
                              imp_shape_text(arrays->at[i].dim, arrays->at[i].rank, text));
    const char *slash = strrchr(path, '/');
    return imp_host->fail(err, CNR_E_UNSUPPORTED, path, "holds arrays but no net: describe the net "
                          "in Lua with weights = \"%.100s\" (plugins/IMPORTING.md shows how). It "
                          "holds %d array%s%s%s", slash ? slash + 1 : path, (int)arrays->n,
                          arrays->n == 1 ? "" : "s", list,
                          n < sizeof list - 200 ? "" : ", ...");
}

static cnr_status import(const cnr_import_args *args, struct cnr_graph *graph, cnr_error *err) {
    imp_net net = {.graph = graph, .path = args->paths[0]};
    np_set *set = np_set_new();
    cnr_status status = set ? CNR_OK
                            : imp_host->fail(err, CNR_E_MEMORY, net.path, "out of memory");
    for (int32_t i = 0; i < args->n_paths && !status; i++)
        status = np_set_add(set, &net, args->paths[i], err);
    if (!status) {
        imp_arrays arrays = np_set_arrays(set);
        arrays.listed = args->n_paths > 1;
        if (!arrays.at) status = imp_host->fail(err, CNR_E_MEMORY, net.path, "out of memory");
        else if (!imp_net_of(args)) status = not_a_net(net.path, &arrays, err);
        else status = imp_weights(args, &net, &arrays, err);
    }
    np_set_free(set);
    return status;
}

static int32_t accepts(const char *path, const uint8_t *head, size_t n) {
    if (n >= 10 && memcmp(head, "\x93NUMPY", 6) == 0) return 90;
    if (n == 0) return np_is_folder(path) ? 60 : 0;
    if (n < 22 || memcmp(head, "PK", 2) != 0) return 0;
    if (memcmp(head, "PK\3\4", 4) == 0 && n > 30) { /* its first member */
        const size_t length = (size_t)head[26] | (size_t)head[27] << 8;
        if (length > 4 && length <= n - 30 && memcmp(head + 30 + length - 4, ".npy", 4) == 0)
            return 90;
    }
    return imp_ends_with(path, ".npz") ? 60 : 0;
}

static const char *const option_rows[] = {
    IMP_LAYOUT_ROWS,
    NULL};

static const cnr_importer importer = {
    .size = sizeof importer,
    .name = "numpy",
    .summary = "NumPy: .npy, .npz or a folder of such, as weights of a net in Lua",
    .accepts = accepts,
    .import = import,
    .options = option_rows,
};

IMP_PLUGIN("import-numpy", "1.0", "reads NumPy's arrays", importer)
