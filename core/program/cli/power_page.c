/* The live page of `cnnrun energy log --page` and `watch --page`: a curve of each domain, in a
 * window that can be closed while the log goes on. An installed script makes it. */
#include "cli/cli.h"
#include <cnnrun/lab.h>

/* A web page that shows the meters. */
struct cnri_power_page {
    cnr_script *script;
};

/* Opens the page of the meters at `where`, "8080" or "ADDRESS:8080", in *out, and prints the
 * address on stderr. To be closed before the runtime. */
cnr_status cnri_power_page_open(const cnri_call *call, const char *where, cnri_power_page **out,
                                cnr_error *err) {
    *out = NULL;
    cnri_power_page *p = cnri_alloc_zero(sizeof *p);
    if (!p) return cnri_out_of_memory(err, "--page");
    cnr_status status = cnr_script_open(call->rt, "calls/power_page.lua", NULL, &p->script, err);
    if (!status) status = cnr_script_call(p->script, where, NULL, 0, NULL, NULL, err);
    if (!status) *out = p;
    else cnri_power_page_close(p);
    return status;
}

void cnri_power_page_close(cnri_power_page *p) {
    if (!p) return;
    cnr_script_close(p->script);
    cnri_free(p);
}

/* Adds a list of names with values. */
static void add_rows(cnri_json *j, const char *key, const cnri_energy_row *r,
                     const double *values) {
    cnri_json_list(j, key);
    for (int32_t i = 0; i < r->n; i++) {
        cnri_json_object(j, NULL);
        cnri_json_text(j, "name", r->names[i]);
        cnri_json_real(j, "value", values[i]);
        cnri_json_end(j);
    }
    cnri_json_end(j);
}

cnr_status cnri_power_page_show(const cnri_power_page *p, const cnri_energy_row *r,
                                cnr_error *err) {
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_real(&j, "now", r->seconds);
    add_rows(&j, "rails", r, r->watts);
    add_rows(&j, "energies", r, r->joules);
    cnri_json_end(&j);
    const cnr_status status = j.text.failed
                                  ? cnri_out_of_memory(err, "--page")
                                  : cnr_script_call(p->script, j.text.at, NULL, 0, NULL, NULL, err);
    cnri_text_free(&j.text);
    return status;
}
