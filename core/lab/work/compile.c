/* Compiles a model: its net, a plan made for it on this machine, and what plugins compiled for
 * that, in one file of the form of stored plans (engine/store/plan_cache.c). */
#include "store/store.h"
#include "work/work.h"
#include "keep/keep.h"
#include "people/people.h"
#include <unistd.h>

enum { MAX_POLICY_BYTES = 1 << 20, COMPILING_MS = 600000 };

/* A model that is being compiled. */
typedef struct job {
    cnr_model *model; /* of the net as it will be read back */
    cnr_plan *plan;
    cnri_device_set set;
    cnri_shapes shapes;
    char *folder;     /* what plugins compile goes there meanwhile */
    int64_t failures; /* allocations that failed before */
    CNRI_VEC(cnri_cached_blob) parts;
} job;

/* ---- what the net brings along ---- */

/* Writes a placement into the net's metadata, as "axis=A DEVICE=SHARE ...". */
static void bring_placement(cnr_graph *g, const cnri_placement *p) {
    cnri_text key = {0}, text = {0};
    cnri_text_add(&key, CNRI_PLACE_PREFIX "%s", p->node);
    if (p->axis >= 0 && p->n_parts > 1) cnri_text_add(&text, "axis=%d ", (int)p->axis);
    for (int32_t i = 0; i < p->n_parts; i++) {
        char share[64];
        cnri_print_double(share, sizeof share, p->parts[i].ratio);
        cnri_text_add(&text, "%s%s=%s", i ? " " : "", p->parts[i].device, share);
    }
    if (key.failed || text.failed) g->out_of_memory = true;
    else cnri_graph_set_meta(g, key.at, text.at);
    cnri_text_free(&key);
    cnri_text_free(&text);
}

/* Writes a list of texts into the metadata, one a line. */
static void bring_list(cnr_graph *g, const char *key, const char *const *words) {
    cnri_text text = {0};
    for (int32_t i = 0; words && words[i]; i++)
        cnri_text_add(&text, "%s%s", i ? "\n" : "", words[i]);
    if (text.failed) g->out_of_memory = true;
    else if (text.n) cnri_graph_set_meta(g, key, text.at);
    cnri_text_free(&text);
}

/* Writes a number into the metadata, unless it is 0. */
static void bring_number(cnr_graph *g, const char *key, uint64_t number) {
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    if (number) cnri_graph_set_meta(g, key, text);
}

/* All that planning depends on (CNRI_ENTERS_PLAN ... in run/load_options.h). */
static void bring(cnr_graph *g, const cnri_plan_options *o) {
    if (o->device) cnri_graph_set_meta(g, "plan.device", o->device);
    bring_number(g, "plan.memory_bound", o->memory_bound);
    bring_number(g, "plan.deterministic", o->deterministic);
    bring_number(g, "plan.stores", o->stores);
    bring_list(g, "plan.no_rewrite", o->no_rewrite);
    bring_list(g, "plan.kernels", o->kernels);
    bring_list(g, "plan.devices", o->devices);
    bring_list(g, "plan.fallback", o->fallback);
    for (int32_t i = 0; i < o->n_placements; i++) bring_placement(g, &o->placements[i]);
}

/* Writes a policy's script and name into the metadata. */
static cnr_status bring_policy(cnr_graph *g, const char *path, cnr_error *err) {
    const char *slash = strrchr(path, '/');
    char *text = NULL;
    CNR_TRY(cnri_read_file(path, MAX_POLICY_BYTES, &text, NULL, err));
    cnri_graph_set_meta(g, CNRI_POLICY_META, text);
    cnri_graph_set_meta(g, CNRI_POLICY_META ".name", slash ? slash + 1 : path);
    cnri_free(text);
    return CNR_OK;
}

/* Makes the host's device, in names[0], the fallback in o if a device was asked for and no fallback
 * was. Devices are asked and opened in the order of planning, since the first that opens with host
 * memory is the host's. */
static cnr_status default_fallback(const cnr_model *m, cnri_plan_options *o, const char **names,
                                   cnr_error *err) {
    cnri_device_set set;
    CNR_TRY(cnri_device_set_make(&set, &m->rt->devices, m->graph, o, err));
    names[0] = set.host >= 0 && set.host != set.fallback ? set.at[set.host]->name : NULL;
    if (o->device && names[0] && !o->fallback) o->fallback = names;
    cnri_device_set_free(&set);
    return CNR_OK;
}

/* Writes the model's plan options and policy into the net's metadata, for a later load. */
static cnr_status bring_options(cnr_model *m, const char *policy, cnr_error *err) {
    cnri_plan_options o = m->plan_options;
    const char *fallback[2] = {NULL, NULL};
    cnr_status status = default_fallback(m, &o, fallback, err);
    if (!status && policy) status = bring_policy(m->graph, policy, err);
    if (status) return status;
    bring(m->graph, &o);
    return m->graph->out_of_memory ? cnri_out_of_memory(err, "compile") : CNR_OK;
}

/* ---- the net as it will be read back ---- */

/* Values have other numbers there, and a plan names them. The graph maps a temporary file, which is
 * gone from its folder at once. */
static cnr_status read_back(const cnr_graph *g, const char *path, cnr_graph **out, cnr_error *err) {
    cnri_writer w;
    CNR_TRY(cnri_graph_status(g, true, err));
    CNR_TRY(cnri_write_begin(&w, path, CNRI_WRITE_PRIVATE, err));
    cnr_status status = cnri_store_write_to(g, &w, err);
    if (!status && fflush(w.file) != 0) status = cnri_fail_errno(err, path, "can't be written");
    if (!status) status = cnri_store_read(w.temporary, true, out, err);
    cnri_write_abandon(&w);
    return status;
}

/* Opens the net as it will be read back from the file. */
static cnr_status open_model(job *j, const cnr_model *from, const char *path, cnr_error *err) {
    const cnr_load_options options = {.size = sizeof options, .cache = from->cache};
    cnr_graph *g = NULL;
    cnr_status status = read_back(from->graph, path, &g, err);
    if (!status) status = cnri_model_from_graph(from->rt, g, &options, &j->model, err);
    if (status) return status;
    const uint64_t asked = from->plan_options.hang_ms; /* a driver that compiles does not hang */
    j->model->plan_options.hang_ms = asked ? asked : COMPILING_MS;
    return CNR_OK;
}

/* ---- the plan ---- */

/* The request for the plan that is compiled; it borrows all from the job. */
static cnri_plan_request request_of(const job *j) {
    return (cnri_plan_request){j->model,    &j->model->plan_options,
                               &j->set,     j->shapes.list,
                               j->shapes.n, true};
}

/* Sets j->plan to a new plan for `batch` pictures, and checks all weights against their digests. */
static cnr_status make_plan(job *j, int64_t batch, cnr_error *err) {
    cnr_model *m = j->model;
    cnr_status status = cnri_input_shapes(m, batch, &j->shapes, err);
    if (!status)
        status = cnri_device_set_make(&j->set, &m->rt->devices, m->graph, &m->plan_options, err);
    if (status) return status;
    const cnri_plan_request r = request_of(j);
    status = cnri_fresh_plan(&r, &j->plan, err);
    if (!status)
        status = cnri_plan_verify_weights(j->plan, true, m->rt->devices.options.threads, err);
    if (!status && j->plan->policy_failed)
        status = cnri_fail(err, CNR_E_STATE, "policy", "it failed: nothing is compiled by it");
    return status ? status : cnri_residency_warm(j->plan, err);
}

/* Sets input `index` of the session to made-up numbers of the type t. */
static cnr_status put_input(cnr_session *s, int32_t index, cnr_tensor t, cnr_error *err) {
    t.bytes = cnr_dense_bytes(&t);
    t.data = t.bytes < SIZE_MAX ? cnri_alloc((size_t)t.bytes + 1) : NULL;
    if (!t.data) return cnri_out_of_memory(err, "compile");
    cnri_fill_made_up(&t);
    const cnr_status status = cnr_session_set_input(s, index, &t, err);
    cnri_free(t.data);
    return status;
}

/* Some programs are compiled when they first run. */
static cnr_status run_once(job *j, cnr_error *err) {
    cnr_session *s = NULL;
    cnr_status status = cnr_session_open(j->plan, &s, err);
    for (int32_t i = 0; i < j->shapes.n && !status; i++)
        status =
            put_input(s, i, *j->plan->graph->values.at[j->plan->graph->inputs.at[i]].type, err);
    if (!status) status = cnr_session_run(s, err);
    cnr_session_close(s);
    return status;
}

/* ---- what plugins compile ---- */

/* From now on the devices keep compiled programs in `folder`, which they own; returns the folder of
 * before, for cnri_free. */
static char *keep_in(cnri_devices *devices, char *folder) {
    char *before = devices->cache_dir;
    devices->cache_dir = folder;
    (void)cnri_devices_keep(devices, NULL, NULL); /* tells the devices */
    return before;
}

/* Reads the programs that plugins compiled meanwhile, as parts of the job, and adds them up in
 * *out. */
static cnr_status take_programs(job *j, cnri_compiled *out, cnr_error *err) {
    cnri_cache_files files = {0};
    cnr_status status =
        cnri_cache_list(j->folder, &files) ? CNR_OK : cnri_out_of_memory(err, j->folder);
    for (int32_t i = 0; i < files.n && !status; i++) {
        void *data;
        uint64_t bytes;
        status = cnri_kept_load(j->folder, files.at[i].name, files.at[i].bytes, &data, &bytes, err);
        cnri_cached_blob *part = status ? NULL : cnri_push(&j->parts);
        if (status) break;
        if (part)
            *part = (cnri_cached_blob){.name = cnri_format(CNRI_PART_KEPT "%s", files.at[i].name),
                                       .data = data};
        else cnri_free(data);
        if (!part || !part->name) status = cnri_out_of_memory(err, j->folder);
        else part->bytes = bytes;
        out->programs++;
        out->program_bytes += bytes;
    }
    cnri_cache_list_free(&files);
    return status;
}

/* Removes the folder of compiled programs with its cache files; errors are ignored. */
static void remove_folder(const char *folder) {
    cnri_cache_files files = {0};
    cnri_cache_list(folder, &files);
    for (int32_t i = 0; i < files.n; i++) cnri_cache_remove(folder, files.at[i].name);
    cnri_cache_list_free(&files);
    rmdir(folder); /* it is there only if something was compiled */
}

/* ---- all of it ---- */

/* Writes model, plan and programs to one file. */
static cnr_status write_file(job *j, const char *path, cnri_compiled *out, cnr_error *err) {
    const cnri_plan_request r = request_of(j);
    const char *name;
    uint64_t bytes;
    cnri_text identity = {0};
    cnri_cached_blob *model = cnri_push(&j->parts);
    if (!model) return cnri_out_of_memory(err, path);
    *model = (cnri_cached_blob){.name = cnri_strdup(CNRI_PART_MODEL),
                                .data = j->model->graph->file.at,
                                .bytes = j->model->graph->file.bytes};
    cnr_status status = model->name ? take_programs(j, out, err) : cnri_out_of_memory(err, path);
    cnri_plan_identity(&r, &identity);
    if (identity.failed && !status) status = cnri_out_of_memory(err, path);
    status = cnri_alloc_verdict(j->failures, status, path, err); /* less may have been planned */
    if (!status)
        status = cnri_plan_write(j->plan,
                                 &(cnri_plan_file){.path = path,
                                                   .identity = identity.at,
                                                   .parts = j->parts.at,
                                                   .n_parts = j->parts.n,
                                                   .limit = UINT64_MAX},
                                 err);
    cnri_text_free(&identity);
    for (int32_t i = 0; cnri_residency_blob(j->plan, i, &name, &bytes); i++, out->blobs++)
        out->blob_bytes += bytes;
    out->model_bytes = j->model->graph->file.bytes;
    out->device = j->set.n ? j->set.at[j->set.fallback]->name : NULL;
    return status;
}

/* Frees everything that the job holds. */
static void close_job(job *j) {
    for (int32_t i = 0; i < j->parts.n; i++) {
        if (i > 0) cnri_free((void *)j->parts.at[i].data); /* the first is the model's mapping */
        cnri_free((void *)j->parts.at[i].name);
    }
    cnri_vec_free(&j->parts);
    cnri_plan_free(j->plan);
    cnri_device_set_free(&j->set);
    cnri_shapes_free(&j->shapes);
    cnr_release(j->model);
}

cnr_status cnri_compile(cnr_model *model, int64_t batch, const char *policy, const char *path,
                        cnri_compiled *out, cnr_error *err) {
    const uint64_t begin = cnri_now_ns();
    job j = {.failures = cnri_alloc_failures(),
             .folder = cnri_format("%s.%d.programs", path, (int)getpid())};
    *out = (cnri_compiled){.batch = batch};
    if (!j.folder) return cnri_out_of_memory(err, path);
    char *before = keep_in(&model->rt->devices, j.folder);
    cnr_status status = bring_options(model, policy, err);
    if (!status) status = open_model(&j, model, path, err);
    if (!status) status = make_plan(&j, batch, err);
    if (!status) status = run_once(&j, err);
    if (!status) status = write_file(&j, path, out, err);
    close_job(&j);
    keep_in(&model->rt->devices, before);
    remove_folder(j.folder);
    cnri_free(j.folder);
    out->ms = (double)(cnri_now_ns() - begin) * 1e-6;
    return status;
}
