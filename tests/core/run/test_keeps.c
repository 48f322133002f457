/* The folder that an application names reaches plugins: by the device, through the host table. */
#include "../plan/lab.h"
#include <sys/stat.h>
#include <unistd.h>

/* A model with a cache. */
static cnr_model *model(const char *cache) {
    cnr_graph *g = cnri_graph_new("net");
    const cnr_tensor t = lab_type(1, 4, 3, 2);
    const cnr_load_options o = {.size = sizeof o, .cache = cache, .device = "near"};
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = NULL;
    cnri_graph_output(g, lab_affine(g, cnri_graph_input(g, "x", &t), 2, 1), "y");
    if (cnri_model_from_graph(lab_rt, g, &o, &m, &err)) note("%s: %s", err.where, err.text);
    return m;
}

/* The device of the model's plan, which *plan receives; NULL: it can't be planned. */
static const cnr_device *device_of(cnr_model *m, cnr_plan **plan) {
    cnr_error err = CNR_ERROR_INIT;
    return !m || cnr_plan_for(m, NULL, 0, plan, &err) ? NULL : (*plan)->devices[0];
}

int main(void) {
    char folder[] = "/tmp/cnnrun-keeps-XXXXXX", other[] = "/tmp/cnnrun-other-XXXXXX", line[200],
         file[64];
    cnr_error err = CNR_ERROR_INIT;
    cnr_plan *plan = NULL;
    void *data = NULL;
    uint64_t bytes = 0;
    struct stat about;
    ok(lab_open(&err) == CNR_OK && mkdtemp(folder) && mkdtemp(other), "the made-up plugin loads");
    const cnr_device *before = device_of(model(NULL), &plan);
    ok(before && !before->cache_dir, "nobody named a folder");
    cnr_plan_release(plan);
    const cnr_device *d = device_of(model(folder), &plan);
    ok(d && d->cache_dir && strcmp(d->cache_dir, folder) == 0,
       "a model's folder is what its device keeps in");
    cnr_plan_release(plan);
    d = device_of(model(other), &plan);
    ok(d && d->cache_dir && strcmp(d->cache_dir, folder) == 0,
       "the first stays, blobs are where they were");
    cnr_plan_release(plan);
    ok(!cnri_host.cache_save(d->cache_dir, "a.bin", "block", 5, &err), "a block is kept: %s",
       err.text);
    snprintf(file, sizeof file, "%s/a.bin", folder);
    ok(stat(file, &about) == 0, "there");
    ok(!cnri_host.cache_load(d->cache_dir, "a.bin", 100, &data, &bytes, &err) && bytes == 5 &&
           memcmp(data, "block", 5) == 0,
       "and comes back");
    cnri_free(data);
    cnr_close(lab_rt);
    const cnr_open_options o = {.size = sizeof o, .no_default_dirs = 1, .cache = folder};
    ok(!cnr_open(&lab_rt, &o, &err) && lab_rt->devices.cache_dir &&
           strcmp(lab_rt->devices.cache_dir, folder) == 0,
       "a runtime's folder is its devices'");
    cnr_close(lab_rt);
    snprintf(line, sizeof line, "rm -r %s %s", folder, other);
    if (system(line) != 0) note("left behind");
    return done();
}
