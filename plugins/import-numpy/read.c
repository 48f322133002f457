/* Reads .npy and .npz as weights for a net that is described elsewhere. Theano, Lasagne and Keras
 * save models so: the files hold arrays, but no layers. */
#include "numpy.h"

#include <stdio.h>

/* The error for files without a net: lists the arrays, and how to use them. */
static cnr_status not_a_net(const char *path, const imp_arrays *arrays, cnr_error *err) {
    char list[600] = "", text[160];
    size_t n = 0;
    for (int32_t i = 0; i < arrays->n && n < sizeof list - 200; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%.60s %s", i ? ", " : ": ",
                              arrays->at[i].name,
                              imp_shape_text(arrays->at[i].dim, arrays->at[i].rank, text));
    const char *slash = strrchr(path, '/');
    return imp_host->fail(err, CNR_E_UNSUPPORTED, path,
                          "holds arrays but no net: describe the net "
                          "in Lua with weights = \"%.100s\" (plugins/IMPORTING.md shows how). It "
                          "holds %d array%s%s%s",
                          slash ? slash + 1 : path, (int)arrays->n, arrays->n == 1 ? "" : "s", list,
                          n < sizeof list - 200 ? "" : ", ...");
}

/* Imports arrays as weights of a net, or as constants. */
cnr_status np_import(const cnr_host *host, const cnr_import_args *args, struct cnr_graph *graph,
                     cnr_error *err) {
    imp_host = host;
    imp_net net = {.graph = graph, .path = args->paths[0]};
    np_set *set = np_set_new();
    cnr_status status = set ? CNR_OK : imp_host->fail(err, CNR_E_MEMORY, net.path, "out of memory");
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
