/* Recognises NumPy's files. The reader is in arrays.so, which links libzip and libcrypto and is
 * loaded at the first use. */
#include "late.h"
#include "numpy.h"

#include <dirent.h>
#include <stdatomic.h>

/* 1 if a path is a folder with a .npy file. */
static int is_folder(const char *path) {
    int found = 0;
    DIR *d = opendir(path);
    for (struct dirent *e; d && !found && (e = readdir(d));)
        found = imp_ends_with(e->d_name, ".npy");
    if (d) closedir(d);
    return found;
}

/* How surely a file or folder holds arrays, 0 to 100. */
static int32_t accepts(const char *path, const uint8_t *head, size_t n) {
    if (n >= 10 && memcmp(head, "\x93NUMPY", 6) == 0) return 90;
    if (n == 0) return is_folder(path) ? 60 : 0;
    if (n < 22 || memcmp(head, "PK", 2) != 0) return 0;
    if (memcmp(head, "PK\3\4", 4) == 0 && n > 30) { /* the first member of a zip archive */
        const size_t length = (size_t)head[26] | (size_t)head[27] << 8;
        if (length > 4 && length <= n - 30 && memcmp(head + 30 + length - 4, ".npy", 4) == 0)
            return 90;
    }
    return imp_ends_with(path, ".npz") ? 60 : 0;
}

typedef cnr_status (*import_fn)(const cnr_host *host, const cnr_import_args *args,
                                struct cnr_graph *graph, cnr_error *err);

/* Opens the module that reads arrays, and imports. */
static cnr_status import(const cnr_import_args *args, struct cnr_graph *graph, cnr_error *err) {
    static _Atomic(import_fn) read;
    if (!read)
        read = (import_fn)late_function(imp_host, &read, "import-numpy/arrays", "np_import", err);
    return read ? read(imp_host, args, graph, err) : CNR_E_IO;
}

static const char *const option_rows[] = {IMP_LAYOUT_ROWS, NULL};

static const cnr_importer importer = {
    .size = sizeof importer,
    .name = "numpy",
    .summary = "NumPy: .npy, .npz or a folder of such, as weights of a net in Lua",
    .accepts = accepts,
    .import = import,
    .options = option_rows,
};

IMP_PLUGIN("import-numpy", "1.0", "reads NumPy's arrays", importer)
