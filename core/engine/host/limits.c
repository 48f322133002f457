/* Limits of what plugins may do for a script: open files by the script's rule, and use only
 * addresses and devices that the command line names. Threads that run no script have no limits. */
#include "host/host.h"

static _Thread_local const cnri_limits *owner, *in_force;

const cnri_limits *cnri_limits_of_thread(void) { return owner; }

const cnri_limits *cnri_limits_set_thread(const cnri_limits *limits) {
    const cnri_limits *before = owner;
    owner = limits;
    return before;
}

const cnri_limits *cnri_limits_enter(const cnri_limits *limits) {
    const cnri_limits *before = in_force;
    in_force = limits;
    return before;
}

cnr_status cnri_limits_file(const char *path, int32_t writes, cnr_error *err) {
    return in_force ? in_force->file(in_force->script, path, writes, err) : CNR_OK;
}

int32_t cnri_touches(const cnri_plugin *p) {
    return p && p->desc && CNRI_HAS(p->desc, touches) ? p->desc->touches : 0;
}

/* True if an object says that it touches nothing but files. */
static bool only_files(int32_t touches) {
    return touches && !(touches & ~(CNR_TOUCHES_NOTHING | CNR_TOUCHES_FILES));
}

/* Checks a use of something that a plugin brings. `touches`: CNR_TOUCHES_... of this use; 0: the
 * plugin does not say. */
static cnr_status judge(const cnri_limits *limits, const void *descriptor, const char *what,
                        int32_t touches, const char *name, cnr_error *err) {
    const cnri_plugin *p = cnri_owner(descriptor);
    const int32_t maximum = cnri_touches(p);
    if (only_files(maximum) || (maximum && only_files(touches)) ||
        (*name && limits->named(limits->script, name)))
        return CNR_OK;
    return cnri_fail(err, CNR_E_ARG, *name ? name : what,
                     "plugin %s %s for this, which the command line does not name (--trust lifts "
                     "this)",
                     p ? p->name : "?",
                     !maximum  ? "may touch anything, since it does not tell what it touches,"
                     : touches ? "reaches the network or devices"
                               : "may reach the network or devices");
}

cnr_status cnri_limits_source(const cnri_limits *limits, const cnr_source *source, const char *spec,
                              int32_t writes, cnr_error *err) {
    if (!limits) return CNR_OK;
    const int32_t touches = CNRI_HAS(source, touches) ? source->touches(spec, writes) : 0;
    return judge(limits, source, source->name, touches, spec, err);
}

cnr_status cnri_limits_object(const cnri_limits *limits, const cnr_object *object,
                              const cnr_attr *const *options, int32_t n, cnr_error *err) {
    char name[4096] = "";
    if (!limits) return CNR_OK;
    const int32_t touches =
        CNRI_HAS(object, touches) ? object->touches(options, n, name, sizeof name) : 0;
    return judge(limits, object, object->name, touches, name, err);
}
