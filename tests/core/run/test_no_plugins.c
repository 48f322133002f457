/* An application that finds no plugins is told so, with the folders that were searched. */
#include <cnnrun/cnnrun.h>
#include "tests/tap.h"
#include <unistd.h>

int main(void) {
    char folder[] = "/tmp/cnnrun-none-XXXXXX", net[64], other[64];
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt = NULL;
    cnr_model *m = NULL;
    if (!mkdtemp(folder)) return 1;
    snprintf(net, sizeof net, "%s/net.lua", folder);
    snprintf(other, sizeof other, "%s/net.caffemodel", folder);
    FILE *f = fopen(net, "w");
    if (f) {
        fputs("local c = require 'cnnrun'\nreturn c.net { input = { 'x', shape = { 1, 1, 8, 8 } "
              "},\n"
              "  c.conv2d { 'conv1', out = 2, kernel = 3 } }\n",
              f);
        fclose(f);
    }
    f = fopen(other, "w");
    if (f) {
        fputs("what no loader knows", f);
        fclose(f);
    }
    const char *const dirs[] = {folder, NULL};
    const cnr_open_options none = {.size = sizeof none, .plugin_dirs = dirs, .no_default_dirs = 1};
    is_int(cnr_open(&rt, &none, &err), CNR_OK, "a runtime without plugins opens");
    const char *const paths[] = {net, other};
    for (int i = 0; i < 2 && rt; i++) {
        const cnr_status status = cnr_load(rt, paths[i], NULL, &m, &err);
        ok(status && strstr(err.text, "there are no plugins") && strstr(err.text, folder) &&
               strstr(err.text, "CNNRUN_PLUGIN_PATH"),
           "%s: the reason is told, and where they were looked for",
           i ? "an unknown file" : "a net");
        if (!strstr(err.text, folder)) note("%s: %s", err.where, err.text);
        if (i == 0) ok(strstr(err.text, "conv2d") != NULL, "and what was wanted of them");
    }
    snprintf(other, sizeof other, "%s/absent.lua", folder);
    ok(rt && cnr_load(rt, other, NULL, &m, &err) && !strstr(err.text, "no plugins"),
       "a file that isn't there has another reason");
    cnr_close(rt);
    unlink(net);
    snprintf(other, sizeof other, "%s/net.caffemodel", folder);
    unlink(other);
    rmdir(folder);
    return done();
}
