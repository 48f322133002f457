/* host: plugins, the registry they fill, attribute schemas, and the devices they drive. */
#ifndef CNRI_HOST_H
#define CNRI_HOST_H

#include "base/base.h"
#include <stdatomic.h>
#include <cnnrun/kit.h>

/* ---- loader.c ---- */
/* A plugin that was found. */
typedef struct cnri_plugin {
    char *path; /* absolute path of the file */
    /* As the plugin gives them; name is the file's stem if it was refused earlier. */
    char *name, *version;
    const cnr_plugin *desc; /* NULL: it was refused */
    char *refused;          /* the reason for refusal; NULL: it was loaded */
    int32_t first, n_items; /* its descriptors in the registry: index of the first, and how many */
    int32_t precedence;     /* an enum cnri_precedence */
    /* descriptors that were left out because another plugin holds their name */
    struct cnri_collision *collisions;
    int32_t n_collisions;
} cnri_plugin;

/* Decides which of two plugins that bring the same name gets it: the higher one. Scores of
 * plugins count only at equal precedence. */
enum cnri_precedence {
    CNRI_INSTALLED_LATER, /* any other plugin */
    CNRI_SHIPPED,         /* built with this cnnrun */
    CNRI_ORDERED          /* cnri_plugin_search.order names it */
};

/* Where plugins are searched for, and which of them load. Lists end in NULL; a list may be NULL. */
typedef struct cnri_plugin_search {
    const char *const *dirs; /* searched first: folders, whose bad plugins are logged and skipped,
                                or files, which must load */
    bool default_dirs;
    const char *const *order; /* plugins that load before all others, in this order */
    const char *const *skip;  /* plugins that do not load */
    /* Plugins linked into the program; they load first, and must load. */
    const cnr_plugin_query_fn *linked;
} cnri_plugin_search;
/* Loads plugins for the whole process. They stay loaded, and the registry only grows. Calling it
 * again loads nothing twice; calls are serialised. The registry is read without locks at any
 * time. Plugins load by precedence, so no other plugin can take a name from one that is built
 * with this cnnrun, wherever its folder is. */
cnr_status cnri_plugins_search(const cnri_plugin_search *search, cnr_error *err);
/* Loads all plugins of the folders, once; default_dirs: also the built-in places. */
cnr_status cnri_plugins_load(const char *const *dirs, bool default_dirs, cnr_error *err);
/* Call this with an error of loading a net. If no plugins were found at all, the error becomes
 * that, with the folders that were searched. Returns status. */
cnr_status cnri_explain_missing_plugins(cnr_status status, cnr_error *err);
/* Loads one file and judges it: NULL if it is good, else the reason, which the caller frees. */
char *cnri_plugin_check(const char *path);
/* ---- neighbours.c ---- */
/* Reports each descriptor of the plugin that was left out because its name is taken, and each
 * that refers to an operator, device class or encoding that no plugin brings. Returns how many. */
typedef void (*cnri_problem_text_fn)(void *arg, const char *text);
/* Calls `tell` for each reason why a plugin was refused; returns how many. */
int32_t cnri_plugin_problems(const cnri_plugin *p, cnri_problem_text_fn tell, void *arg);
/* Reports descriptors of others that are left out as `p` has their name. Returns how many. */
int32_t cnri_plugin_displaces(const cnri_plugin *p, cnri_problem_text_fn tell, void *arg);
void cnri_plugins_warn(int32_t first); /* logs problems of the plugins from index `first` on */
/* ---- plugins.c, once more ---- */
/* Number of plugins that were found, refused ones included. */
int32_t cnri_plugin_count(void);
/* Plugin `index` of all that were found; NULL: there are no more. */
const cnri_plugin *cnri_plugin_at(int32_t index);
/* Kind and name of item `item` that plugin `index` registered; false past the end. */
bool cnri_plugin_item(int32_t index, int32_t item, int32_t *kind, const char **name);
/* Path of the plugin file that is being opened (its constructors and its init run), or NULL.
 * Signal handlers may call this. */
const char *cnri_plugin_being_opened(void);
/* Folder `index` of those that were searched for plugins; a missing one is "PATH (not there)".
 * NULL past the last. */
const char *cnri_plugins_searched(int32_t index);
/* Opens the second modules of a loaded plugin (plugins/late-common). Returns NULL if all open,
 * else the dynamic linker's message for the first that does not, which the caller frees. */
char *cnri_plugin_lacks(const cnri_plugin *p);
void cnri_plugins_finish(void); /* calls fini of all plugins, once, at exit */
/* host.c: the host table, one for the process. core/engine/graph completes it
 * (cnri_graph_install(cnri_host_mutable())) before plugins load; then it is constant. */
extern cnr_host cnri_host;
/* The host table, for tests that replace a function of it. */
cnr_host *cnri_host_mutable(void);
/* The instruction set that cpu_isa of the host table reports from now; NULL: the processor's. */
void cnri_host_cpu_isa(const char *name);

/* ---- registry.c: descriptors by kind; each list in order of registration ---- */
/* Number of registered descriptors of a kind. */
int32_t cnri_descriptor_count(int32_t kind);
/* Descriptor `index` of a kind; NULL: there are no more. */
const void *cnri_descriptor_at(int32_t kind, int32_t index);
/* Descriptor of a kind by name; operators are found by alias too. NULL: not registered. */
const void *cnri_descriptor_find(int32_t kind, const char *name);
/* Operator by name or alias; NULL: not registered. */
static inline const cnr_op *cnri_op_find(const char *name) {
    return (const cnr_op *)cnri_descriptor_find(CNR_KIND_OPERATOR, name);
}
/* Name of a kind of descriptor, "operator"; NULL: there is no such kind. */
const char *cnri_kind_name(int32_t kind);
/* Name of a descriptor: every kind has it as the member `name`. */
const char *cnri_item_name(int32_t kind, const void *descriptor);
/* The kernels for an operator, in order of registration, then the kernels for any operator.
 * Returns their number. */
int32_t cnri_kernels_for(const cnr_op *op, const cnr_kernel *const **out);
/* The plugin that registered a descriptor; NULL: none is known. */
const cnri_plugin *cnri_owner(const void *descriptor);
#define CNRI_HAS CNR_HAS /* defined in kit.h */

/* ---- limits.c: limits of a script, which also hold for plugins that act for it ---- */
/* What a script may open. */
typedef struct cnri_limits {
    /* Fails unless the script may read (or write) this file or folder. Any thread may call it. */
    cnr_status (*file)(const void *script, const char *path, int32_t writes, cnr_error *err);
    bool (*named)(const void *script,
                  const char *name); /* True if the command line names this address or device. */
    /* True if the command line names this list, so that all entries of it are allowed. */
    bool (*vouched)(const void *script, const char *spec);
    const void *script;
} cnri_limits;
/* The limits of the script that this thread runs; NULL: it runs none, and nothing is limited.
 * `set` returns the limits before. */
const cnri_limits *cnri_limits_of_thread(void);
/* Sets the limits of the script that this thread works for (NULL: none); returns those before. */
const cnri_limits *cnri_limits_set_thread(const cnri_limits *limits);
/* Puts limits in force around a call of a plugin; files that it opens through the host table are
 * checked by them. Returns the limits before. */
const cnri_limits *cnri_limits_enter(const cnri_limits *limits);
cnr_status cnri_limits_file(const char *path, int32_t writes,
                            cnr_error *err); /* Checks a file by the limits in force. */
/* Fails unless a source may open or write the spec, or an object may have these options. */
cnr_status cnri_limits_source(const cnri_limits *limits, const cnr_source *source, const char *spec,
                              int32_t writes, cnr_error *err);
/* Fails if the script may not create this object with these options. limits NULL: it may. */
cnr_status cnri_limits_object(const cnri_limits *limits, const cnr_object *object,
                              const cnr_attr *const *options, int32_t n, cnr_error *err);
int32_t cnri_touches(const cnri_plugin *p); /* CNR_TOUCHES_... bits; 0: the plugin does not say */

/* ---- schema.c: attribute values against an operator's (or encoding's) schema ---- */
/* Row i of a schema whose rows may be shorter than this version's; copied to *row_buffer if so. */
const cnr_attr_spec *cnri_spec_at(const cnr_attr_spec *rows, uint32_t row_size, int32_t i,
                                  cnr_attr_spec *row_buffer);
/* Checks `given` against the schema and fills in defaults and spatial lists. `spatial`: number
 * of spatial axes, -1: unknown. *out has the values in schema order, in one block that cnri_free
 * frees. Every mistake is reported through `problem` (path is "stride", "pads[2]"). */
typedef void (*cnri_problem_fn)(void *arg, const char *path, const char *text);
/* Checks given attributes against a schema and fills defaults; reports each problem. *out: one
 * block for cnri_free. */
cnr_status cnri_attrs_resolve(const cnr_attr_spec *rows, uint32_t row_size, int32_t n_rows,
                              const cnr_attr *const *given, int32_t n_given, int32_t spatial,
                              cnri_problem_fn problem, void *arg, cnr_attr ***out);
/* Copies such a list into one block for cnri_free; NULL: out of memory. */
cnr_attr **cnri_attrs_copy(const cnr_attr *const *from, int32_t n);
/* Appends the value as text, "2, 2", for show and dumps. */
void cnri_attr_print(const cnr_attr *attr, cnri_text *out);

/* ---- devices.c ---- */
/* A device of a plugin, and its state. */
typedef struct cnri_device {
    cnr_device device;
    cnr_device_info info;
    char name[32];
    bool open;
    atomic_bool lost; /* a call never returned (cnri_device_lose) */
    _Atomic uint64_t hang_ms;
    atomic_bool gives_up;
} cnri_device;
/* The devices known so far, best first, each with its best driver. A family is asked for its
 * devices only when a name or the search for the best device needs it, because drivers can be
 * slow to start, or fail. Entries keep their address until the set is closed. */
typedef struct cnri_devices {
    cnri_device **at;
    int32_t n, capacity;
    CNRI_VEC(const char *) asked_families; /* families that were asked */
    cnr_device_options options;
    char *cache_dir; /* folder where plugins keep files for these devices; NULL: the user's own */
} cnri_devices;
/* Prepares an empty set; threads: how many CPU threads devices may use, 0: all. */
void cnri_devices_init(cnri_devices *set, int32_t threads);
/* Asks the devices of one family, family NULL: of all, and adds them to the set, unless it was
 * asked before. A family that no plugin has adds nothing and is no error. Stops at the first
 * failure; families added before it stay. */
cnr_status cnri_devices_ask(cnri_devices *set, const char *family, cnr_error *err);
/* Finds a device by `name`: "cpu", "opencl:0", or "opencl" for the first. The error for an
 * unknown name lists the devices. */
cnr_status cnri_device_find(cnri_devices *set, const char *name, const cnri_device **out,
                            cnr_error *err);
/* Finds a device by name and opens it on first use; *out belongs to the set. CNR_E_NOT_FOUND: no
 * such device. */
cnr_status cnri_device_open(cnri_devices *set, const char *name, const cnr_device **out,
                            cnr_error *err);
/* Finds the best device that opens. `host`: it must have host memory; devices already open are
 * then tried first, so that no other driver is started for it. */
cnr_status cnri_device_best(cnri_devices *set, bool host, const cnri_device **out, cnr_error *err);
/* Says why `d` is the default device, or `best` is. Free with cnri_free; NULL: out of memory. */
char *cnri_device_reason(const cnri_device *d, const cnri_device *best);
/* True if the clock in force measures this device's work. The clock of a plugin with devices
 * measures only those devices. */
bool cnri_device_is_timed(const cnr_device *device);
/* Fails if the devices belong to different clocks, and names them: work of one would take no
 * time on the other's clock. */
cnr_status cnri_devices_check_clock(const cnri_device *const *devices, int32_t n, cnr_error *err);
/* Marks a device whose call never returned: neither it nor its plugin's fini is called again. */
void cnri_device_lose(const cnr_device *device);
/* True if a call of the device hangs, so that it must not be used again. */
bool cnri_device_is_lost(const cnr_device *device);
bool cnri_devices_any_lost(void); /* true if any device of the process is lost */
/* Sets the milliseconds after which a call outside sessions counts as hanging (0: the default), and
 * whether the device is then given up (gives_up). */
void cnri_device_set_hang_ms(const cnr_device *device, uint64_t ms, bool gives_up);
/* Milliseconds after which a call of the device counts as hanging, 0: the default; *gives_up: it is
 * then given up. */
uint64_t cnri_device_hang_ms(const cnr_device *device, bool *gives_up);
/* Sets the folder where plugins keep files for these devices. Only the first call has an effect. */
cnr_status cnri_devices_keep(cnri_devices *set, const char *folder, cnr_error *err);
void cnri_devices_close(cnri_devices *set); /* closes and frees all devices but lost ones */

/* ---- hang.c: calls of devices that may never return ---- */
enum { CNRI_HANG_MS = 10000 };          /* default limit of one call, in milliseconds */
typedef struct cnri_worker cnri_worker; /* a thread that makes such calls */
typedef cnr_status (*cnri_hang_fn)(void *arg, cnr_error *err);
/* What cnri_hang_call needs to know of a call that may never return. */
typedef struct cnri_hang_guard {
    const cnr_device *const *devices; /* the devices that fn calls */
    int32_t n_devices;
    uint64_t limit_ns; /* of one call into a plugin */
    /* True: the call runs on a worker thread, which can be given up; false: on the caller's, and
     * cnri_hang_tell's function reports it. */
    bool gives_up;
} cnri_hang_guard;
/* False for the CPU, and under a clock that is not the machine's. */
bool cnri_device_can_hang(const cnr_device *device);
/* Runs fn(arg). With gives_up, and if a device can hang, it runs on *worker's thread (NULL:
 * makes one). CNR_E_DEVICE: a call does not return, or a device was lost before. Then that
 * device is lost, *worker is NULL, and fn may still be using arg. */
cnr_status cnri_hang_call(cnri_worker **worker, const cnri_hang_guard *guard, cnri_hang_fn fn,
                          void *arg, cnr_error *err);
void cnri_worker_free(cnri_worker *worker); /* ends and joins its thread; NULL: nothing */
/* Called by the watchdog when a call that can't be given up exceeds its limit. NULL: a log. */
typedef void (*cnri_hang_told_fn)(const cnr_error *why);
/* Registers the function that is told of a hanging call; NULL: it is logged. */
void cnri_hang_tell(cnri_hang_told_fn fn);
void cnri_hang_finish(void); /* ends the watchdog's thread, unless calls are running */
/* Allocates memory of a device and checks that it was given if the status says so. */
cnr_status cnri_device_alloc(const cnr_device *device, cnr_mem *out, cnr_error *err);
/* Copies host data to a device's memory, and back, through a stream opened for it. */
cnr_status cnri_device_upload(const cnr_device *device, const cnr_mem *mem, const void *data,
                              uint64_t bytes, cnr_error *err);
/* Copies bytes of device memory to the host and waits for them. */
cnr_status cnri_device_download(const cnr_device *device, const cnr_mem *mem, void *data,
                                uint64_t bytes, cnr_error *err);

/* ---- board.c: values of a board file: numbers, texts and lists by their path, "units.2.name";
 * lists count from 1. One board is in force for the process, like the clock. ---- */
enum cnri_board_kind { CNRI_BOARD_NUMBER = 1, CNRI_BOARD_TEXT, CNRI_BOARD_LIST };
/* Value at one path of a board: kind 0 is none; a list has its length as number. */
typedef struct cnri_board_entry {
    int32_t kind; /* an enum cnri_board_kind; 0: there is no entry */
    double number;
    cnr_id text;
} cnri_board_entry;
typedef struct cnri_board { /* who makes it fills it (board/ of common) */
    /* The entry at a path; at path "" a digest of all entries. */
    cnri_board_entry (*look)(const struct cnri_board *b, const char *path);
    void (*free)(struct cnri_board *b);
} cnri_board;
void cnri_board_free(cnri_board *b); /* frees the board; NULL: nothing */
/* Puts b in force for the whole process in place of any other; b is not copied and must live until
 * cnri_board_leave. */
void cnri_board_use(const cnri_board *b);
void cnri_board_leave(const cnri_board *b); /* if it is in force, none is afterwards */
/* Length of the list at a path of the board in force; 0: it is no list, or there is none. */
int32_t cnri_board_count(const char *path);
/* The host table's board number, of the board in force; 0: there is none, *out is unchanged. */
int32_t cnri_board_number(const char *path, double *out);
/* The host table's board text; path "": the board's digest. NULL: there is none. */
const char *cnri_board_text(const char *path);

#endif
