/* Memory runs out at the n-th allocation of loading a net, for n = 1, 2, 3 ...: an error each time,
 * no crash and (under a sanitiser) no leak, until it succeeds. */
#include "lua/script.h"
#include "tap.h"
#include <unistd.h>

static const char text[] =
    "local c = require 'cnnrun'\n"
    "local x = c.input { 'x', shape = { 'batch', 1, 12, 12 }, scale = 1/255 }\n"
    "local y = c.seq { 'block', c.conv2d { out = 4, kernel = 3 }, c.relu {},\n"
    "  c.concat { c.maxpool { kernel = 2 }, c.avgpool { kernel = 2 } } } (x)\n"
    "y = c.mul { y, c.tensor { shape = { 1 }, data = { 2 } } }\n"
    "local text = ('a-b'):gsub('%-', function(s) return s .. s end)\n"
    "return c.net { 'tiny', labels = { 'a', 'b' }, outputs = { c.dense { y, out = 2 } } }\n";

int main(void) {
    char path[] = "/tmp/cnnrun-memory-XXXXXX.lua";
    const int file = mkstemps(path, 4);
    cnr_error err = CNR_ERROR_INIT;
    if (file < 0 || write(file, text, sizeof text - 1) < 0) return 1;
    close(file);
    cnri_graph_install(cnri_host_mutable());
    cnri_lua_install();
    const char *dirs[] = {CNRT_BUILD_DIR "/plugins", NULL};
    if (cnri_plugins_load(dirs, false, &err) != CNR_OK) note("%s", err.text);
    if (!cnri_op_find("conv")) {
        skip("memory", "no operators: build the plugins");
        unlink(path);
        return done();
    }
    const cnr_load_options options = {.size = sizeof options, .weights = "random:1"};
    cnr_graph *g = NULL;
    int64_t n = 1, wrong = 0;
    for (; n < 100000; n++) {
        err = (cnr_error)CNR_ERROR_INIT;
        cnri_alloc_fail_at(n);
        const cnr_status status = cnri_lua_load(NULL, path, &options, &g, &err);
        cnri_alloc_fail_at(0);
        if (status == CNR_OK) break;
        if (g || status != CNR_E_MEMORY) {
            if (wrong++ < 5) note("at %lld: %d %s: %s", (long long)n, status, err.where, err.text);
            cnri_graph_free(g);
            g = NULL;
        }
    }
    ok(g != NULL && n > 100, "it loads once %lld allocations succeed", (long long)n);
    is_int(wrong, 0, "before that each failure is one of memory");
    cnri_graph_free(g);
    unlink(path);
    return done();
}
