/* host: plugins, the registry they fill, attribute schemas, and the devices they drive. */
#ifndef CNRI_HOST_H
#define CNRI_HOST_H

#include "base/base.h"
#include <stdatomic.h>
#include <cnnrun/kit.h>

/* ---- loader.c ---- */
typedef struct cnri_plugin {
    char *path;             /* absolute */
    char *name, *version;   /* as the plugin says; name is the file's stem when refused early */
    const cnr_plugin *desc; /* NULL when refused */
    char *refused;          /* why; NULL: loaded */
    int32_t first, n_items; /* what it registered, in the registry's order */
    int32_t precedence;     /* cnri_precedence */
    /* Descriptors of it that were left out, since other plugins hold their names. */
    struct cnri_collision *collisions;
    int32_t n_collisions;
} cnri_plugin;

/* Between plugins that bring the same: the higher one has it. A plugin's own score decides among
 * equals only. */
enum cnri_precedence {
    CNRI_INSTALLED_LATER, /* any other plugin */
    CNRI_SHIPPED,         /* built with this cnnrun */
    CNRI_ORDERED          /* cnri_plugin_search.order names it */
};

/* Where plugins are searched for, and which of them load. Lists end in NULL; NULL: an empty one. */
typedef struct cnri_plugin_search {
    const char *const *dirs; /* searched first: folders, whose bad plugins are logged and skipped,
                                or files, which must load */
    bool default_dirs;
    const char *const *order;          /* plugins that load before all others, in this order */
    const char *const *skip;           /* plugins that do not load */
    const cnr_plugin_query_fn *linked; /* into the program; they load first, or it is an error */
} cnri_plugin_search;
/* Process-wide: plugins stay loaded and the registry only grows. Loading is idempotent and
 * serialised; the registry is read without locks at any time. Plugins load by precedence, so that
 * no folder's place in the search takes a name away from one that is built with this cnnrun. */
cnr_status cnri_plugins_search(const cnri_plugin_search *search, cnr_error *err);
cnr_status cnri_plugins_load(const char *const *dirs, bool default_dirs, cnr_error *err);
/* To be called with an error of loading: where there are no plugins at all, that is the reason, and
 * is told with the folders that were searched. Returns status. */
cnr_status cnri_explain_missing_plugins(cnr_status status, cnr_error *err);
/* Judges one file, loading it: NULL when good, else why not (caller frees). */
char *cnri_plugin_check(const char *path);
/* ---- neighbours.c ---- */
/* Tells each descriptor of the plugin that was left out for its name, and each that refers to an
 * operator, a device class or an encoding that nobody brings. Returns how many. */
typedef void (*cnri_problem_text_fn)(void *arg, const char *text);
int32_t cnri_plugin_problems(const cnri_plugin *p, cnri_problem_text_fn tell, void *arg);
/* Tells what of other plugins `p`, loaded before them, keeps out. Returns how many. */
int32_t cnri_plugin_displaces(const cnri_plugin *p, cnri_problem_text_fn tell, void *arg);
void cnri_plugins_warn(int32_t first); /* logs problems of the plugins from that index on */
/* ---- plugins.c, once more ---- */
int32_t cnri_plugin_count(void);
const cnri_plugin *cnri_plugin_at(int32_t index);
/* What plugin `index` registered: kind and name of item `item`; false past the end. */
bool cnri_plugin_item(int32_t index, int32_t item, int32_t *kind, const char **name);
/* The file that is being opened (its constructors and its init run), or NULL. A signal handler may
 * ask. */
const char *cnri_plugin_being_opened(void);
/* Folders that were searched for plugins, "PATH (not there)" among them; NULL past the last. */
const char *cnri_plugins_searched(int32_t index);
/* Opens the second modules of a loaded plugin (plugins/late-common). Why the first of those that
 * can't be opened can't, as the dynamic linker says it; NULL: all open. The caller frees it. */
char *cnri_plugin_lacks(const cnri_plugin *p);
void cnri_plugins_finish(void); /* calls fini of each; at exit */
/* host.c: one table a process; core/engine/graph completes it
 * (cnri_graph_install(cnri_host_mutable())) before plugins load; constant from then on. */
extern cnr_host cnri_host;
cnr_host *cnri_host_mutable(void);
void cnri_host_cpu_isa(const char *name); /* what cpu_isa says from now on; NULL: as before */

/* ---- registry.c: descriptors by kind; each list in order of registration ---- */
int32_t cnri_descriptor_count(int32_t kind);
const void *cnri_descriptor_at(int32_t kind, int32_t index);
const void *cnri_descriptor_find(int32_t kind, const char *name); /* operators: by alias too */
static inline const cnr_op *cnri_op_find(const char *name) {
    return (const cnr_op *)cnri_descriptor_find(CNR_KIND_OPERATOR, name);
}
const char *cnri_kind_name(int32_t kind);
const char *cnri_item_name(int32_t kind, const void *descriptor);
/* Kernels for an operator, in order of registration; those for any operator come last. */
int32_t cnri_kernels_for(const cnr_op *op, const cnr_kernel *const **out);
/* The plugin that registered a descriptor. */
const cnri_plugin *cnri_owner(const void *descriptor);
#define CNRI_HAS CNR_HAS /* of kit.h */

/* ---- limits.c: the limits of a script, which whatever it has plugins do gets ---- */
typedef struct cnri_limits {
    /* An error unless the file, or the folder, may be read (or written). From any thread. */
    cnr_status (*file)(const void *script, const char *path, int32_t writes, cnr_error *err);
    bool (*named)(const void *script,
                  const char *name); /* the command line names the address or device */
    bool (*vouched)(const void *script,
                    const char *spec); /* ... a list, and so all that stands in it */
    const void *script;
} cnri_limits;
/* Whose script this thread runs; NULL: nobody's, and nothing is limited. `own` returns what was
 * before. */
const cnri_limits *cnri_limits_of_thread(void);
const cnri_limits *cnri_limits_set_thread(const cnri_limits *limits);
/* Around calls of a plugin: what it opens through the host gets these limits. Returns what was
 * before. */
const cnri_limits *cnri_limits_enter(const cnri_limits *limits);
cnr_status cnri_limits_file(const char *path, int32_t writes,
                            cnr_error *err); /* by those in force */
/* An error unless a source may open (write) the spec, an object may be made with these options. */
cnr_status cnri_limits_source(const cnri_limits *limits, const cnr_source *source, const char *spec,
                              int32_t writes, cnr_error *err);
cnr_status cnri_limits_object(const cnri_limits *limits, const cnr_object *object,
                              const cnr_attr *const *options, int32_t n, cnr_error *err);
int32_t cnri_touches(const cnri_plugin *p); /* CNR_TOUCHES_...; 0: it does not tell */

/* ---- schema.c: attribute values against an operator's (or encoding's) schema ---- */
/* Row i of a schema whose rows may be shorter than ours. */
const cnr_attr_spec *cnri_spec_at(const cnr_attr_spec *rows, uint32_t row_size, int32_t i,
                                  cnr_attr_spec *row_buffer);
/* Checks `given` against the schema, fills defaults and spatial lists (spatial = spatial rank, -1
 * unknown), and returns new values in schema order: one block, cnri_free frees all of it. Reports
 * EVERY mistake through `problem` (path is "stride", "pads[2]"), not only the first. */
typedef void (*cnri_problem_fn)(void *arg, const char *path, const char *text);
cnr_status cnri_attrs_resolve(const cnr_attr_spec *rows, uint32_t row_size, int32_t n_rows,
                              const cnr_attr *const *given, int32_t n_given, int32_t spatial,
                              cnri_problem_fn problem, void *arg, cnr_attr ***out);
/* What that made, once more: one block. NULL: no memory. */
cnr_attr **cnri_attrs_copy(const cnr_attr *const *from, int32_t n);
/* "2, 2" as text, for show and dumps. */
void cnri_attr_print(const cnr_attr *attr, cnri_text *out);

/* ---- devices.c ---- */
typedef struct cnri_device {
    cnr_device device;
    cnr_device_info info;
    char name[32];
    bool open;
    atomic_bool lost; /* cnri_device_lose */
    _Atomic uint64_t hang_ms;
    atomic_bool gives_up;
} cnri_device;
/* The devices that are known so far, best first, each with its best driver. A family is asked for
 * its devices when a name or the search for the best wants it, and no earlier: drivers can be slow
 * to wake, or worse. Entries stay where they are until the set is closed. */
typedef struct cnri_devices {
    cnri_device **at;
    int32_t n, capacity;
    CNRI_VEC(const char *) asked_families; /* families */
    cnr_device_options options;
    char *cache_dir; /* where plugins keep things for its devices; NULL: the user's own folder */
} cnri_devices;
void cnri_devices_init(cnri_devices *set, int32_t threads);
cnr_status cnri_devices_ask(cnri_devices *set, const char *family, cnr_error *err); /* NULL: all */
/* `name` "cpu", "opencl:0", "opencl" (the first). Unknown: lists those there. */
cnr_status cnri_device_find(cnri_devices *set, const char *name, const cnri_device **out,
                            cnr_error *err);
cnr_status cnri_device_open(cnri_devices *set, const char *name, const cnr_device **out,
                            cnr_error *err); /* on first use */
/* The best device that opens; with `host`, that has host memory: then those already open come
 * first, so that looking for one does not wake up the others. */
cnr_status cnri_device_best(cnri_devices *set, bool host, const cnri_device **out, cnr_error *err);
/* Why `d` is the default device, or why it is not: `best` is. cnri_free; NULL: no memory. */
char *cnri_device_reason(const cnri_device *d, const cnri_device *best);
/* Does the clock in force measure its work? That of a plugin with devices measures those alone. */
bool cnri_device_is_timed(const cnr_device *device);
/* Refuses devices of two clocks, by their names: work of one would take no time on the other's
 * clock. */
cnr_status cnri_devices_check_clock(const cnri_device *const *devices, int32_t n, cnr_error *err);
/* Refuses to time one that the clock in force does not measure. */
cnr_status cnri_device_check_timed(const cnr_device *device, cnr_error *err);
/* A call of it has not returned: it is never called again, nor is its plugin's fini. */
void cnri_device_lose(const cnr_device *device);
bool cnri_device_is_lost(const cnr_device *device);
bool cnri_devices_any_lost(void); /* of the process */
/* After so many milliseconds one of its calls outside sessions counts as one that hangs; 0: usual.
 * Whether it is given up then. */
void cnri_device_set_hang_ms(const cnr_device *device, uint64_t ms, bool gives_up);
uint64_t cnri_device_hang_ms(const cnr_device *device, bool *gives_up);
/* The first folder that is named stays. */
cnr_status cnri_devices_keep(cnri_devices *set, const char *folder, cnr_error *err);
void cnri_devices_close(cnri_devices *set);

/* ---- hang.c: calls of devices that may never return ---- */
enum { CNRI_HANG_MS = 10000 };          /* a call may last so long if nothing else is said */
typedef struct cnri_worker cnri_worker; /* a thread for such calls */
typedef cnr_status (*cnri_hang_fn)(void *arg, cnr_error *err);
typedef struct cnri_hang_guard {
    const cnr_device *const *devices; /* that fn calls */
    int32_t n_devices;
    uint64_t limit_ns; /* of one call into a plugin */
    bool gives_up;     /* on a thread that is left; else here, and cnri_hang_tell's is called */
} cnri_hang_guard;
bool cnri_device_can_hang(const cnr_device *device); /* not the CPU, and the clock is real */
/* fn(arg); with gives_up on *worker's thread (NULL: one is made) if a device can hang.
 * CNR_E_DEVICE: a call does not return, or a device was lost before. Then that device is lost,
 * *worker is NULL, and fn may still use arg. */
cnr_status cnri_hang_call(cnri_worker **worker, const cnri_hang_guard *guard, cnri_hang_fn fn,
                          void *arg, cnr_error *err);
void cnri_worker_free(cnri_worker *worker); /* NULL: nothing */
/* Called on another thread where a call that can't be given up outlasts its limit; NULL: it is
 * logged. */
typedef void (*cnri_hang_told_fn)(const cnr_error *why);
void cnri_hang_tell(cnri_hang_told_fn fn);
void cnri_hang_finish(void); /* the watchdog's thread ends, unless it has calls */
/* Memory of a device, which is there when the status says so. */
cnr_status cnri_device_alloc(const cnr_device *device, cnr_mem *out, cnr_error *err);
/* Host data to memory of a device, and back, by a stream that is opened for it. */
cnr_status cnri_device_upload(const cnr_device *device, const cnr_mem *mem, const void *data,
                              uint64_t bytes, cnr_error *err);
cnr_status cnri_device_download(const cnr_device *device, const cnr_mem *mem, void *data,
                                uint64_t bytes, cnr_error *err);

/* ---- board.c: what a file says that describes the machine: numbers, texts and lists by their
 * path, "units.2.name", lists counting from 1. One is in force for the process, as the clock is.
 * ---- */
typedef struct cnri_board cnri_board;
enum cnri_board_kind { CNRI_BOARD_NUMBER = 1, CNRI_BOARD_TEXT, CNRI_BOARD_LIST };
cnri_board *cnri_board_new(void);
void cnri_board_free(cnri_board *b);
/* `number` of a list is its length. False: out of memory. */
bool cnri_board_set(cnri_board *b, const char *path, int32_t kind, double number, const char *text);
int32_t cnri_board_kind(const cnri_board *b, const char *path); /* 0: it has nothing there */
const char *cnri_board_at(const cnri_board *b, int32_t i,
                          int32_t *kind);                  /* path of entry i; NULL past the end */
cnr_status cnri_board_seal(cnri_board *b, cnr_error *err); /* all is set: its digest is taken */
/* Of this one; NULL has nothing. */
int32_t cnri_board_get_count(const cnri_board *b, const char *path);
bool cnri_board_get_number(const cnri_board *b, const char *path, double *out);
const char *cnri_board_get_text(const cnri_board *b, const char *path);
void cnri_board_use(const cnri_board *b);
void cnri_board_leave(const cnri_board *b); /* none, if it is in force */
/* Of the one in force, as in the host table; the text "" is its digest. */
int32_t cnri_board_count(const char *path);
int32_t cnri_board_number(const char *path, double *out);
const char *cnri_board_text(const char *path);

#endif
