/* libcnnrun-jni: the native functions of cnnrun.Native over the C API. */
#include <cnnrun/engine.h>
#include <cnnrun/object.h>
#include <jni.h>
#include <stdbool.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    jclass error, tensor;
    jmethodID make_error, allocate;
    jfieldID code, dims, data;
} java;

/* ---- errors ---- */

/* Leaves a Java exception of the named class pending; none if the class is not found (then that
 * failure is). */
static void throw_java(JNIEnv *env, const char *class, const char *text) {
    jclass found = (*env)->FindClass(env, class);
    if (found) (*env)->ThrowNew(env, found, text);
}

/* Leaves an OutOfMemoryError pending in the Java thread. */
static void throw_memory(JNIEnv *env) {
    throw_java(env, "java/lang/OutOfMemoryError", "cnnrun: out of memory");
}

/* A Java byte array of a text, without its end; NULL: an exception is pending. */
static jbyteArray bytes_of(JNIEnv *env, const char *text) {
    const jsize n = (jsize)strlen(text);
    jbyteArray bytes = (*env)->NewByteArray(env, n);
    if (bytes) (*env)->SetByteArrayRegion(env, bytes, 0, n, (const jbyte *)text);
    return bytes;
}

/* Leaves a CnnrunException with status, place and text pending; OutOfMemoryError if it can't be
 * made. */
static void throw_error(JNIEnv *env, cnr_status status, const cnr_error *err) {
    jbyteArray where = bytes_of(env, err->where);
    jbyteArray text =
        where ? bytes_of(env, err->text[0] ? err->text : cnr_status_text(status)) : NULL;
    jobject error =
        text ? (*env)->NewObject(env, java.error, java.make_error, (jint)status, where, text)
             : NULL;
    if (error) (*env)->Throw(env, error);
}

__attribute__((format(printf, 4, 5))) static void fail(JNIEnv *env, cnr_status status,
                                                       const char *where, const char *format, ...) {
    cnr_error err = CNR_ERROR_INIT;
    va_list args;
    va_start(args, format);
    vsnprintf(err.text, sizeof err.text, format, args);
    va_end(args);
    snprintf(err.where, sizeof err.where, "%s", where);
    throw_error(env, status, &err);
}

/* ---- texts ---- */

/* Returns a NUL-terminated copy, to be freed; NULL: an exception is pending. */
static char *copy_text(JNIEnv *env, jbyteArray bytes) {
    const jsize n = (*env)->GetArrayLength(env, bytes);
    char *text = malloc((size_t)n + 1);
    if (!text) throw_memory(env);
    else {
        (*env)->GetByteArrayRegion(env, bytes, 0, n, (jbyte *)text);
        text[n] = 0;
    }
    return text;
}

/* ---- options ---- */

/* Types of members that options set. */
typedef enum member_kind { MEMBER_TEXT, MEMBER_LIST, MEMBER_I32, MEMBER_U64 } member_kind;
/* A member of an options struct: name, offset, type. */
typedef struct member {
    const char *name;
    size_t at;
    member_kind kind;
} member;

/* A row for a member of cnr_open_options. */
#define OPEN(name, kind) \
    { #name, offsetof(cnr_open_options, name), kind }
static const member open_members[] = {OPEN(threads, MEMBER_I32),
                                      OPEN(plugin_dirs, MEMBER_LIST),
                                      OPEN(no_default_dirs, MEMBER_I32),
                                      OPEN(trust_scripts, MEMBER_I32),
                                      OPEN(clock, MEMBER_TEXT),
                                      OPEN(cache, MEMBER_TEXT),
                                      OPEN(sysfs_root, MEMBER_TEXT),
                                      OPEN(meter_address, MEMBER_TEXT),
                                      OPEN(board, MEMBER_TEXT),
                                      OPEN(cpu_isa, MEMBER_TEXT),
                                      OPEN(plugin_order, MEMBER_LIST),
                                      OPEN(skip_plugins, MEMBER_LIST),
                                      {NULL, 0, MEMBER_TEXT}};
#undef OPEN
/* A row for a member of cnr_load_options. */
#define LOAD(name, kind) \
    { #name, offsetof(cnr_load_options, name), kind }
static const member load_members[] =
    {LOAD(weights, MEMBER_TEXT),        LOAD(net, MEMBER_TEXT),
     LOAD(no_rewrite, MEMBER_LIST),     LOAD(symbol_ranges, MEMBER_LIST),
     LOAD(device, MEMBER_TEXT),         LOAD(memory_bound, MEMBER_U64),
     LOAD(deterministic, MEMBER_I32),   LOAD(cache, MEMBER_TEXT),
     LOAD(cache_bytes, MEMBER_U64),     LOAD(import_options, MEMBER_LIST),
     LOAD(preset, MEMBER_TEXT),         LOAD(no_verify, MEMBER_I32),
     LOAD(kernels, MEMBER_LIST),        LOAD(memory_limit, MEMBER_U64),
     LOAD(policy, MEMBER_TEXT),         LOAD(policy_options, MEMBER_LIST),
     LOAD(devices, MEMBER_LIST),        LOAD(labels, MEMBER_TEXT),
     LOAD(fallback, MEMBER_LIST),       LOAD(weights_type, MEMBER_TEXT),
     LOAD(arithmetic, MEMBER_TEXT),     LOAD(cache_policy, MEMBER_TEXT),
     LOAD(hang_ms, MEMBER_U64),         LOAD(adapt, MEMBER_I32),
     LOAD(no_cache, MEMBER_I32),        LOAD(cache_codec, MEMBER_TEXT),
     LOAD(cache_key_file, MEMBER_TEXT), {NULL, 0, MEMBER_TEXT}};
#undef LOAD

/* An option struct that "name=value" texts fill. Owns the texts and lists that its members point
 * at. */
typedef struct options {
    const char *call; /* name of the call for messages, such as "open" */
    const member *members;
    void *base;
    int n; /* number of texts */
    char **texts;
    const char ***lists; /* at most n, one for each member that is a list */
} options;

/* Frees the texts and lists of load options; the options struct itself is the caller's. */
static void free_options(options *o) {
    for (int i = 0; i < o->n; i++) {
        if (o->texts) free(o->texts[i]);
        if (o->lists) free(o->lists[i]);
    }
    free(o->texts);
    free(o->lists);
}

/* The member of that name; NULL: an exception is pending, which lists the names. */
static const member *find_member(JNIEnv *env, const options *o, const char *text, size_t length) {
    char known[512] = "";
    const member *m = o->members;
    for (; m->name; m++) {
        if (strlen(m->name) == length && memcmp(m->name, text, length) == 0) return m;
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", m->name);
    }
    fail(env, CNR_E_ARG, o->call, "%s: expected NAME=VALUE with one of the names %s", text, known);
    return NULL;
}

/* Sets a number; false: an exception is pending. */
static bool set_number(JNIEnv *env, const options *o, const member *m, const char *value) {
    char *end;
    errno = 0;
    const unsigned long long n = strtoull(value, &end, 10);
    const unsigned long long most = m->kind == MEMBER_I32 ? INT32_MAX : UINT64_MAX;
    if (*value < '0' || *value > '9' || *end || errno || n > most) {
        fail(env, CNR_E_ARG, o->call, "%s=%s: expected a whole number up to %llu", m->name, value,
             most);
        return false;
    }
    if (m->kind == MEMBER_I32) *(int32_t *)((char *)o->base + m->at) = (int32_t)n;
    else *(uint64_t *)((char *)o->base + m->at) = n;
    return true;
}

/* Appends to the member's list, which has room for all options and a NULL. False: an exception is
 * pending. */
static bool set_listed(JNIEnv *env, options *o, const member *m, const char *value) {
    const char ***list = (const char ***)((char *)o->base + m->at);
    if (!*list) {
        const char **fresh = calloc((size_t)o->n + 1, sizeof *fresh);
        if (!fresh) return throw_memory(env), false;
        int slot = 0;
        while (o->lists[slot]) slot++;
        *list = o->lists[slot] = fresh;
    }
    int i = 0;
    while ((*list)[i]) i++;
    (*list)[i] = value;
    return true;
}

/* Sets an option from NAME=VALUE; false: an exception is pending. */
static bool set_option(JNIEnv *env, options *o, char *text) {
    char *equals = strchr(text, '=');
    const member *m = find_member(env, o, text, equals ? (size_t)(equals - text) : 0);
    if (!m) return false;
    switch (m->kind) {
    case MEMBER_TEXT: *(const char **)((char *)o->base + m->at) = equals + 1; return true;
    case MEMBER_LIST: return set_listed(env, o, m, equals + 1);
    default: return set_number(env, o, m, equals + 1);
    }
}

/* Reads all options. False: an exception is pending. Call free_options in either case. */
static bool read_options(JNIEnv *env, options *o, jobjectArray from) {
    o->n = (*env)->GetArrayLength(env, from);
    o->texts = calloc((size_t)o->n + 1, sizeof *o->texts);
    o->lists = calloc((size_t)o->n + 1, sizeof *o->lists);
    if (!o->texts || !o->lists) return throw_memory(env), false;
    for (int i = 0; i < o->n; i++) {
        jbyteArray bytes = (*env)->GetObjectArrayElement(env, from, i);
        o->texts[i] = copy_text(env, bytes);
        (*env)->DeleteLocalRef(env, bytes);
        if (!o->texts[i] || !set_option(env, o, o->texts[i])) return false;
    }
    return true;
}

/* ---- tensors ---- */

/* Makes *to a view of a Java Tensor, whose buffer must outlive it. False: an exception is
 * pending. */
static bool view_tensor(JNIEnv *env, jobject from, cnr_tensor *to) {
    *to = (cnr_tensor){.size = sizeof *to};
    if (!from) return throw_java(env, "java/lang/NullPointerException", "a tensor is null"), false;
    jlongArray shape = (*env)->GetObjectField(env, from, java.dims);
    jobject data = (*env)->GetObjectField(env, from, java.data);
    to->dtype = (*env)->GetIntField(env, from, java.code);
    to->rank = (*env)->GetArrayLength(env, shape); /* Tensor's constructor bounds it */
    (*env)->GetLongArrayRegion(env, shape, 0, to->rank, (jlong *)to->dim);
    to->data = (*env)->GetDirectBufferAddress(env, data);
    to->bytes = (uint64_t)(*env)->GetDirectBufferCapacity(env, data);
    (*env)->DeleteLocalRef(env, shape);
    (*env)->DeleteLocalRef(env, data);
    const uint32_t size = cnr_dtype_bits(to->dtype) / 8;
    if (size < 2 || (uintptr_t)to->data % size == 0) return true;
    throw_java(env, "java/lang/IllegalArgumentException",
               "a buffer whose address is no multiple of its elements' size; begin at a position "
               "that is one");
    return false;
}

/* Makes a Java Tensor with a copy of `from`. NULL: an exception is pending. */
static jobject make_tensor(JNIEnv *env, const cnr_tensor *from) {
    jlongArray shape = (*env)->NewLongArray(env, from->rank);
    if (!shape) return NULL;
    (*env)->SetLongArrayRegion(env, shape, 0, from->rank, (const jlong *)from->dim);
    jobject made =
        (*env)->CallStaticObjectMethod(env, java.tensor, java.allocate, (jint)from->dtype, shape);
    (*env)->DeleteLocalRef(env, shape);
    cnr_tensor to;
    if (!made || (*env)->ExceptionCheck(env) || !view_tensor(env, made, &to)) return NULL;
    if (to.bytes) memcpy(to.data, from->data, to.bytes);
    return made;
}

/* Makes `n` views of a call's inputs or outputs, and pointers to them, to be freed by free(). NULL:
 * an exception is pending. */
static cnr_tensor *view_tensors(JNIEnv *env, jobjectArray from, int32_t *n,
                                const cnr_tensor ***at) {
    *n = (*env)->GetArrayLength(env, from);
    cnr_tensor *views = malloc(((size_t)*n + 1) * (sizeof *views + sizeof **at));
    if (!views) return throw_memory(env), NULL;
    *at = (const cnr_tensor **)(views + *n);
    for (int32_t i = 0; i < *n; i++) {
        jobject one = (*env)->GetObjectArrayElement(env, from, i);
        const bool good = view_tensor(env, one, &views[i]);
        (*env)->DeleteLocalRef(env, one);
        if (!good) return free(views), NULL;
        (*at)[i] = &views[i];
    }
    return views;
}

/* Copies output i into the caller's tensor. False: an exception is pending. */
static bool fill_tensor(JNIEnv *env, const cnr_tensor *from, jobjectArray into, int32_t i) {
    cnr_tensor to;
    jobject one = (*env)->GetObjectArrayElement(env, into, i);
    const bool viewed = view_tensor(env, one, &to);
    (*env)->DeleteLocalRef(env, one);
    if (!viewed) return false;
    if (to.dtype != from->dtype || !cnr_same_shape(&to, from)) {
        fail(env, CNR_E_SHAPE, "run",
             "output %d is %s with %lld elements in %d dimensions, the tensor for it %s with %lld "
             "in %d",
             i, cnr_dtype_name(from->dtype), (long long)cnr_count(from), from->rank,
             cnr_dtype_name(to.dtype), (long long)cnr_count(&to), to.rank);
        return false;
    }
    if (to.bytes) memcpy(to.data, from->data, to.bytes);
    return true;
}

/* Copies the outputs of a run into the caller's tensors, or (into NULL) into new ones. NULL: an
 * exception is pending. */
static jobjectArray give_outputs(JNIEnv *env, const cnr_tensor *const *from, int32_t n,
                                 jobjectArray into) {
    jobjectArray out = into ? into : (*env)->NewObjectArray(env, n, java.tensor, NULL);
    for (int32_t i = 0; out && i < n; i++) {
        if (!from[i]->data || from[i]->encoding || cnr_dense_bytes(from[i]) == UINT64_MAX)
            return fail(env, CNR_E_UNSUPPORTED, "run", "output %d is encoded, or not on the host",
                        i),
                   NULL;
        if (into && !fill_tensor(env, from[i], into, i)) return NULL;
        if (into) continue;
        jobject made = make_tensor(env, from[i]);
        if (!made) return NULL;
        (*env)->SetObjectArrayElement(env, out, i, made);
        (*env)->DeleteLocalRef(env, made);
    }
    return out;
}

/* Checks the length of a Java array; false: an exception is pending. */
static bool counts_fit(JNIEnv *env, jobjectArray given, int32_t want, const char *what) {
    const int32_t n = given ? (*env)->GetArrayLength(env, given) : want;
    if (n != want) fail(env, CNR_E_ARG, "run", "%d %ss; expected %d", n, what, want);
    return n == want;
}

/* ---- engines and nets ---- */

static jlong JNICALL engine_open(JNIEnv *env, jclass class, jobjectArray given) {
    (void)class;
    cnr_open_options c = {.size = sizeof c};
    options o = {.call = "open", .members = open_members, .base = &c};
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt = NULL;
    if (read_options(env, &o, given)) {
        const cnr_status status = cnr_open(&rt, &c, &err);
        if (status) throw_error(env, status, &err);
    }
    free_options(&o);
    return (jlong)(intptr_t)rt;
}

static void JNICALL engine_close(JNIEnv *env, jclass class, jlong engine) {
    (void)env, (void)class;
    cnr_close((cnr_runtime *)(intptr_t)engine);
}

static jlong JNICALL net_load(JNIEnv *env, jclass class, jlong engine, jbyteArray path,
                              jobjectArray given) {
    (void)class;
    cnr_load_options c = {.size = sizeof c};
    options o = {.call = "load", .members = load_members, .base = &c};
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *model = NULL;
    char *file = copy_text(env, path);
    if (file && read_options(env, &o, given)) {
        const cnr_status status = cnr_load((cnr_runtime *)(intptr_t)engine, file, &c, &model, &err);
        if (status) throw_error(env, status, &err);
    }
    free_options(&o);
    free(file);
    return (jlong)(intptr_t)model;
}

static const cnr_model *model_of(jlong model) { return (const cnr_model *)(intptr_t)model; }

static void JNICALL net_release(JNIEnv *env, jclass class, jlong model) {
    (void)env, (void)class;
    cnr_release((cnr_model *)(intptr_t)model);
}

static jint JNICALL port_count(JNIEnv *env, jclass class, jlong model, jboolean output) {
    (void)env, (void)class;
    return output ? cnr_output_count(model_of(model)) : cnr_input_count(model_of(model));
}

static jbyteArray JNICALL port_name(JNIEnv *env, jclass class, jlong model, jboolean output,
                                    jint i) {
    (void)class;
    const char *name =
        output ? cnr_output_name(model_of(model), i) : cnr_input_name(model_of(model), i);
    return bytes_of(env, name ? name : "");
}

/* Type of input or output i of the model behind the handle; NULL if there is none. The model owns
 * it. */
static const cnr_tensor *port_tensor(jlong model, jboolean output, jint i) {
    return output ? cnr_output_type(model_of(model), i) : cnr_input_type(model_of(model), i);
}

static jint JNICALL port_type(JNIEnv *env, jclass class, jlong model, jboolean output, jint i) {
    (void)env, (void)class;
    return port_tensor(model, output, i)->dtype;
}

static jlongArray JNICALL port_shape(JNIEnv *env, jclass class, jlong model, jboolean output,
                                     jint i) {
    (void)class;
    const cnr_tensor *t = port_tensor(model, output, i);
    jlongArray shape = (*env)->NewLongArray(env, t->rank);
    for (int32_t k = 0; shape && k < t->rank; k++) {
        const jlong d = t->dim[k] < 0 ? -1 : t->dim[k]; /* symbolic dimensions are open, too */
        (*env)->SetLongArrayRegion(env, shape, k, 1, &d);
    }
    return shape;
}

static jbyteArray JNICALL net_label(JNIEnv *env, jclass class, jlong model, jlong index) {
    (void)class;
    const char *name = cnr_label(model_of(model), index);
    return name ? bytes_of(env, name) : NULL;
}

static jobjectArray JNICALL net_run(JNIEnv *env, jclass class, jlong model, jobjectArray inputs,
                                    jobjectArray outputs) {
    (void)class;
    cnr_model *m = (cnr_model *)(intptr_t)model;
    const int32_t n_out = cnr_output_count(m);
    const cnr_tensor **in, **out = calloc((size_t)n_out + 1, sizeof *out);
    cnr_error err = CNR_ERROR_INIT;
    int32_t n_in = 0;
    jobjectArray result = NULL;
    if (!out) return throw_memory(env), NULL;
    cnr_tensor *views =
        counts_fit(env, outputs, n_out, "output") ? view_tensors(env, inputs, &n_in, &in) : NULL;
    if (views) {
        const cnr_status status = cnr_run_tensors(m, in, n_in, out, n_out, &err);
        if (status) throw_error(env, status, &err);
        else result = give_outputs(env, out, n_out, outputs);
    }
    free(views);
    free(out);
    return result;
}

static jobject JNICALL net_run_picture(JNIEnv *env, jclass class, jlong model, jbyteArray path) {
    (void)class;
    cnr_error err = CNR_ERROR_INIT;
    const cnr_tensor *out = NULL;
    char *file = copy_text(env, path);
    if (!file) return NULL;
    const cnr_status status = cnr_run_picture((cnr_model *)(intptr_t)model, file, &out, &err);
    free(file);
    if (status) return throw_error(env, status, &err), NULL;
    jobjectArray one = give_outputs(env, &out, 1, NULL);
    return one ? (*env)->GetObjectArrayElement(env, one, 0) : NULL;
}

/* ---- sessions ---- */

/* A session with its plan, for one set of shapes. */
typedef struct session {
    const cnr_model *model;
    cnr_plan *plan;
    cnr_session *session;
    const cnr_tensor **outputs; /* cnr_output_count(model) elements */
} session;

/* Closes a session, releases its plan and frees the struct; no run may be under way. */
static void free_session(session *s) {
    cnr_session_close(s->session);
    cnr_plan_release(s->plan);
    free(s->outputs);
    free(s);
}

/* Makes input types from the given shapes and the net's element types. NULL: an exception is
 * pending. */
static cnr_tensor *shaped_inputs(JNIEnv *env, const cnr_model *model, jobjectArray shapes,
                                 int32_t n) {
    cnr_tensor *types = calloc((size_t)n + 1, sizeof *types);
    if (!types) throw_memory(env);
    for (int32_t i = 0; types && i < n; i++) {
        const cnr_tensor *port = cnr_input_type(model, i);
        jlongArray shape = (*env)->GetObjectArrayElement(env, shapes, i);
        const int32_t rank = shape ? (*env)->GetArrayLength(env, shape) : 0;
        if (!shape) throw_java(env, "java/lang/NullPointerException", "a shape is null");
        else if (rank > CNR_MAX_RANK)
            fail(env, CNR_E_SHAPE, "session", "%d dimensions; expected at most %d", rank,
                 CNR_MAX_RANK);
        else {
            types[i] = (cnr_tensor){.size = sizeof *types,
                                    .dtype = port ? port->dtype : CNR_f32,
                                    .rank = rank};
            (*env)->GetLongArrayRegion(env, shape, 0, rank, (jlong *)types[i].dim);
        }
        (*env)->DeleteLocalRef(env, shape);
        if ((*env)->ExceptionCheck(env)) return free(types), NULL;
    }
    return types;
}

/* Makes plan and session for the shapes; false: an exception is pending. */
static bool plan_session(JNIEnv *env, session *s, jobjectArray shapes) {
    const int32_t n = (*env)->GetArrayLength(env, shapes);
    cnr_error err = CNR_ERROR_INIT;
    cnr_tensor *types = shaped_inputs(env, s->model, shapes, n);
    const cnr_tensor **at = types ? calloc((size_t)n + 1, sizeof *at) : NULL;
    if (types && !at) throw_memory(env);
    bool good = false;
    if (at) {
        for (int32_t i = 0; i < n; i++) at[i] = &types[i];
        cnr_status status =
            cnr_plan_for((cnr_model *)(uintptr_t)s->model, n ? at : NULL, n, &s->plan, &err);
        if (!status) status = cnr_session_open(s->plan, &s->session, &err);
        if (status) throw_error(env, status, &err);
        good = !status;
    }
    free(at);
    free(types);
    return good;
}

static jlong JNICALL session_open(JNIEnv *env, jclass class, jlong model, jobjectArray shapes) {
    (void)class;
    session *s = calloc(1, sizeof *s);
    if (s) s->model = model_of(model);
    if (s) s->outputs = calloc((size_t)cnr_output_count(s->model) + 1, sizeof(cnr_tensor *));
    if (s && s->outputs && plan_session(env, s, shapes)) return (jlong)(intptr_t)s;
    if (!s || !s->outputs) throw_memory(env);
    if (s) free_session(s);
    return 0;
}

static void JNICALL session_close(JNIEnv *env, jclass class, jlong at) {
    (void)env, (void)class;
    free_session((session *)(intptr_t)at);
}

static jobjectArray JNICALL session_run(JNIEnv *env, jclass class, jlong at, jobjectArray inputs,
                                        jobjectArray outputs) {
    (void)class;
    session *s = (session *)(intptr_t)at;
    const int32_t n_out = cnr_output_count(s->model);
    cnr_error err = CNR_ERROR_INIT;
    cnr_status status = CNR_OK;
    if (!counts_fit(env, inputs, cnr_input_count(s->model), "input") ||
        !counts_fit(env, outputs, n_out, "output"))
        return NULL;
    const int32_t n_in = (*env)->GetArrayLength(env, inputs);
    for (int32_t i = 0; i < n_in && !status; i++) {
        cnr_tensor view;
        jobject one = (*env)->GetObjectArrayElement(env, inputs, i);
        if (!view_tensor(env, one, &view)) return NULL;
        status = cnr_session_set_input(s->session, i, &view, &err);
        (*env)->DeleteLocalRef(env, one);
    }
    if (!status) status = cnr_session_run(s->session, &err);
    for (int32_t i = 0; i < n_out && !status; i++)
        status = cnr_session_output(s->session, i, &s->outputs[i], &err);
    if (status) return throw_error(env, status, &err), NULL;
    return give_outputs(env, s->outputs, n_out, outputs);
}

static void JNICALL session_cancel(JNIEnv *env, jclass class, jlong at) {
    (void)env, (void)class;
    cnr_session_cancel(((session *)(intptr_t)at)->session);
}

/* ---- the k largest scores ---- */

static jlongArray JNICALL topk(JNIEnv *env, jclass class, jobject scores, jfloatArray values) {
    (void)class;
    cnr_tensor view;
    const int32_t k = (*env)->GetArrayLength(env, values);
    cnr_top *best = calloc((size_t)k + 1, sizeof *best);
    jlongArray indices = NULL;
    if (!best) throw_memory(env);
    else if (view_tensor(env, scores, &view)) {
        const int32_t n = cnr_topk(&view, k, best);
        indices = (*env)->NewLongArray(env, n);
        for (int32_t i = 0; indices && i < n; i++) {
            const jlong index = best[i].index;
            (*env)->SetLongArrayRegion(env, indices, i, 1, &index);
            (*env)->SetFloatArrayRegion(env, values, i, 1, &best[i].score);
        }
    }
    free(best);
    return indices;
}

/* ---- objects of plugins ---- */

/* Copies a Java array of byte[] texts, none of them null, to a NULL-terminated list of C strings,
 * to be freed by free_words(). NULL: an exception is pending. */
static char **copy_words(JNIEnv *env, jobjectArray from) {
    const int32_t n = (*env)->GetArrayLength(env, from);
    char **words = calloc((size_t)n + 1, sizeof *words);
    if (!words) return throw_memory(env), NULL;
    for (int32_t i = 0; i < n; i++) {
        jbyteArray one = (*env)->GetObjectArrayElement(env, from, i);
        words[i] = copy_text(env, one);
        (*env)->DeleteLocalRef(env, one);
        if (words[i]) continue;
        while (i > 0) free(words[--i]);
        return free(words), NULL;
    }
    return words;
}

/* Frees a list of texts that ends with NULL, and the texts. NULL: nothing. */
static void free_words(char **words) {
    for (int32_t i = 0; words && words[i]; i++) free(words[i]);
    free(words);
}

static jlong JNICALL object_make(JNIEnv *env, jclass class, jlong engine, jbyteArray name,
                                 jobjectArray given) {
    (void)class;
    cnr_error err = CNR_ERROR_INIT;
    cnr_instance *made = NULL;
    char *text = copy_text(env, name), **words = text ? copy_words(env, given) : NULL;
    if (words) {
        const cnr_status status = cnr_object_make((cnr_runtime *)(intptr_t)engine, text,
                                                  (const char *const *)words, &made, &err);
        if (status) throw_error(env, status, &err);
    }
    free_words(words);
    free(text);
    return (jlong)(intptr_t)made;
}

static void JNICALL object_free(JNIEnv *env, jclass class, jlong object) {
    (void)env, (void)class;
    cnr_object_free((cnr_instance *)(intptr_t)object);
}

static jobjectArray JNICALL object_call(JNIEnv *env, jclass class, jlong object, jbyteArray method,
                                        jobjectArray inputs, jint n_out) {
    (void)class;
    const cnr_tensor **in, **out = calloc((size_t)n_out + 1, sizeof *out);
    cnr_error err = CNR_ERROR_INIT;
    int32_t n_in = 0;
    jobjectArray result = NULL;
    if (!out) return throw_memory(env), NULL;
    char *name = copy_text(env, method);
    cnr_tensor *views = name ? view_tensors(env, inputs, &n_in, &in) : NULL;
    if (views) {
        const cnr_status status =
            cnr_object_call((cnr_instance *)(intptr_t)object, name, in, n_in, out, n_out, &err);
        if (status) throw_error(env, status, &err);
        else result = give_outputs(env, out, n_out, NULL);
    }
    free(views);
    free(name);
    free(out);
    return result;
}

/* ---- loading ---- */

/* A class that stays valid; NULL: an exception is pending. */
static jclass find_class(JNIEnv *env, const char *name) {
    jclass found = (*env)->FindClass(env, name);
    return found ? (*env)->NewGlobalRef(env, found) : NULL;
}

/* Finds classes and methods that the library calls; false: an exception is pending. */
static bool find_members(JNIEnv *env) {
    java.error = find_class(env, "cnnrun/CnnrunException");
    java.tensor = java.error ? find_class(env, "cnnrun/Tensor") : NULL;
    if (!java.tensor) return false;
    return (java.make_error = (*env)->GetMethodID(env, java.error, "<init>", "(I[B[B)V")) &&
           (java.allocate =
                (*env)->GetStaticMethodID(env, java.tensor, "allocate", "(I[J)Lcnnrun/Tensor;")) &&
           (java.code = (*env)->GetFieldID(env, java.tensor, "code", "I")) &&
           (java.dims = (*env)->GetFieldID(env, java.tensor, "dims", "[J")) &&
           (java.data = (*env)->GetFieldID(env, java.tensor, "data", "Ljava/nio/ByteBuffer;"));
}

/* Registers the native functions of class Engine; false: an exception is pending. */
static bool register_functions(JNIEnv *env) {
#define TENSOR "Lcnnrun/Tensor;"
    static const JNINativeMethod methods[] = {
        {"open", "([[B)J", engine_open},
        {"close", "(J)V", engine_close},
        {"load", "(J[B[[B)J", net_load},
        {"release", "(J)V", net_release},
        {"portCount", "(JZ)I", port_count},
        {"portName", "(JZI)[B", port_name},
        {"portType", "(JZI)I", port_type},
        {"portShape", "(JZI)[J", port_shape},
        {"label", "(JJ)[B", net_label},
        {"run", "(J[" TENSOR "[" TENSOR ")[" TENSOR, net_run},
        {"runPicture", "(J[B)" TENSOR, net_run_picture},
        {"openSession", "(J[[J)J", session_open},
        {"closeSession", "(J)V", session_close},
        {"runSession", "(J[" TENSOR "[" TENSOR ")[" TENSOR, session_run},
        {"cancel", "(J)V", session_cancel},
        {"topk", "(" TENSOR "[F)[J", topk},
        {"makeObject", "(J[B[[B)J", object_make},
        {"freeObject", "(J)V", object_free},
        {"callObject", "(J[B[" TENSOR "I)[" TENSOR, object_call},
    };
#undef TENSOR
    jclass native = (*env)->FindClass(env, "cnnrun/Native");
    return native && (*env)->RegisterNatives(env, native, methods,
                                             (jint)(sizeof methods / sizeof *methods)) == 0;
}

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved) {
    (void)reserved;
    JNIEnv *env;
    if ((*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_6) != JNI_OK) return JNI_ERR;
    return find_members(env) && register_functions(env) ? JNI_VERSION_1_6 : JNI_ERR;
}
