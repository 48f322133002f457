/* The host table: the functions that plugins may call. */
#include "host/internal.h"
#include <stdlib.h>
#include <sys/stat.h>

/* The host table's registration function. */
static cnr_status add(struct cnr_registrar *registrar, int32_t kind, const void *descriptor) {
    return cnri_registrar_add(registrar, kind, descriptor);
}

/* The host table's function that fills an error; format NULL: "no reason given". */
static cnr_status fail(cnr_error *err, int32_t code, const char *where, const char *format, ...) {
    va_list args;
    if (!format) return cnri_fail(err, code, where, "no reason given");
    va_start(args, format);
    const cnr_status status = cnri_failv(err, code, where, format, args);
    va_end(args);
    return status;
}

/* The host table's log. */
static void log_for(int32_t level, const char *plugin, const char *format, ...) {
    va_list args;
    if (!format) return;
    va_start(args, format);
    cnri_logv(level, plugin, format, args);
    va_end(args);
}

static const cnr_op *find_op(const char *name) { return name ? cnri_op_find(name) : NULL; }

/* ---- files ---- */

/* A file that a plugin writes. */
typedef struct cnr_output {
    cnri_writer writer;
} cnr_output;

/* Opens an output file for a plugin, in *out, if scripts may write there; fails else. */
static cnr_status output_begin(const char *path, uint32_t flags, cnr_output **out, cnr_error *err) {
    cnr_status status = cnri_require_arguments(err, "path", path, "out", out, NULL);
    if (out) *out = NULL;
    if (!status) status = cnri_limits_file(path, 1, err);
    if (status) return status;
    cnr_output *output = cnri_alloc(sizeof *output);
    if (!output) return cnri_out_of_memory(err, path);
    status = cnri_write_begin(&output->writer, path,
                              flags & CNR_OUTPUT_PRIVATE ? CNRI_WRITE_PRIVATE : 0, err);
    if (status) cnri_free(output);
    else *out = output;
    return status;
}

/* Writes bytes at the current position. */
static cnr_status output_write(cnr_output *output, const void *data, uint64_t bytes,
                               cnr_error *err) {
    const cnr_status missing = cnri_require_arguments(err, "output", output, NULL);
    if (missing) return missing;
    if (!data && bytes) return cnri_require_arguments(err, "data", data, NULL);
    return cnri_write(&output->writer, data, bytes, err);
}

/* Plugins are shared by the whole process, and so is this name. */
static char isa[32];

void cnri_host_cpu_isa(const char *name) {
    if (name) snprintf(isa, sizeof isa, "%s", name);
}

static const char *cpu_isa(void) { return *isa ? isa : getenv("CNNRUN_CPU_ISA"); }

/* Moves the position to a byte offset from the file's start. */
static cnr_status output_seek(cnr_output *output, uint64_t offset, cnr_error *err) {
    const cnr_status missing = cnri_require_arguments(err, "output", output, NULL);
    return missing ? missing : cnri_write_seek(&output->writer, offset, err);
}

/* Ends an output file: keeps it if status is CNR_OK, else drops it. Frees it; returns the status.
 */
static cnr_status output_end(cnr_output *output, int32_t status, cnr_error *err) {
    if (!output) return (cnr_status)status;
    if (status) cnri_write_abandon(&output->writer);
    else status = cnri_write_commit(&output->writer, err);
    cnri_free(output);
    return (cnr_status)status;
}

/* Reads a whole file of at most `limit` bytes, if scripts may. The plugin frees *data. */
static cnr_status file_read(const char *path, uint64_t limit, void **data, uint64_t *bytes,
                            cnr_error *err) {
    char *text = NULL;
    size_t n = 0;
    cnr_status status =
        cnri_require_arguments(err, "path", path, "data", data, "bytes", bytes, NULL);
    if (!status) status = cnri_limits_file(path, 0, err);
    if (status) return status;
    status = cnri_read_file(path, limit, &text, &n, err);
    *data = text;
    *bytes = n;
    return status;
}

/* Opens a file for reading, if scripts may; returns a descriptor, or -1. *bytes (may be NULL): its
 * length. */
static int file_open(const char *path, uint64_t *bytes, cnr_error *err) {
    struct stat info;
    if (bytes) *bytes = 0;
    if (cnri_require_arguments(err, "path", path, NULL) || cnri_limits_file(path, 0, err))
        return -1;
    const int fd = cnri_open_file(path, &info, err);
    if (bytes) *bytes = fd < 0 ? 0 : (uint64_t)info.st_size;
    return fd;
}

/* ---- numbers, maps, elements ---- */

/* Reads a number independently of the locale; 0: there is none. */
static int32_t parse_number(const char *text, const char **end, double *out) {
    double value;
    if (!cnri_parse_double(text, end, &value)) return 0;
    if (out) *out = value;
    return 1;
}

/* Prints a number so that it reads back the same; returns its length. */
static int32_t print_number(char *text, size_t capacity, int32_t dtype, double value) {
    if (!text) capacity = 0;
    return dtype == CNR_f32 ? cnri_print_float(text, capacity, (float)value)
                            : cnri_print_double(text, capacity, value);
}

/* A map as plugins see it. */
typedef struct cnr_map {
    cnri_map names;
} cnr_map;

/* Frees a plugin's map with its keys; NULL: nothing. */
static void map_free(cnr_map *map) {
    if (map) cnri_map_free(&map->names);
    cnri_free(map);
}

/* Sets a key; makes the map if *map is NULL. */
static cnr_status map_set(cnr_map **map, const char *key, size_t length, void *value) {
    if (!map || !key) return CNR_E_ARG;
    cnr_map *to = *map ? *map : cnri_alloc_zero(sizeof *to);
    const cnr_status status = to ? cnri_map_set_n(&to->names, key, length, value) : CNR_E_MEMORY;
    if (status && !*map) map_free(to);
    else *map = to;
    return status;
}

/* The value of a key; NULL: none, or no map. */
static void *map_get(const cnr_map *map, const char *key, size_t length) {
    return map ? cnri_map_get_n(&map->names, key, length) : NULL;
}

/* Reads elements of a type as doubles or int64; ignores NULL. */
static void elements_read(int32_t dtype, const void *data, int64_t first, int64_t stride, int64_t n,
                          int32_t as, void *out) {
    if (data && out) cnri_elements_read(dtype, data, first, stride, n, as, out);
}

/* Writes elements of a type from doubles or int64; ignores NULL. */
static void elements_write(int32_t dtype, void *data, int64_t first, int64_t n, int32_t as,
                           const void *in) {
    if (data && in) cnri_elements_write(dtype, data, first, n, as, in);
}

cnr_host cnri_host = {
    .size = sizeof(cnr_host),
    .abi = CNR_ABI,
    .add = add,
    .intern = cnri_intern,
    .name_of = cnri_name,
    .alloc = cnri_alloc,
    .resize = cnri_resize,
    .free = cnri_free,
    .fail = fail,
    .log = log_for,
    .now_ns = cnri_now_ns,
    .sha256 = cnri_sha256_of,
    .find_op = find_op,
    .wait_until = cnri_wait_until,
    .output_begin = output_begin,
    .output_write = output_write,
    .output_end = output_end,
    .file_read = file_read,
    .file_open = file_open,
    .file_beside = cnri_path_beside,
    .cache_load = cnri_kept_load,
    .cache_save = cnri_kept_save,
    .parse_number = parse_number,
    .print_number = print_number,
    .map_set = map_set,
    .map_get = map_get,
    .map_free = map_free,
    .elements_read = elements_read,
    .elements_write = elements_write,
    .board_count = cnri_board_count,
    .board_number = cnri_board_number,
    .board_text = cnri_board_text,
    .output_seek = output_seek,
    .cpu_isa = cpu_isa,
    .may_open = cnri_limits_file,
    .window_resolve = cnri_window_resolve,
    .link_fits = cnri_link_fits,
    .chain_length = cnri_chain_length,
};

cnr_host *cnri_host_mutable(void) { return &cnri_host; }
