/* Values of metrics as results show them. */
#include "cli/cli.h"
#include "people/people.h"
#include <math.h>

void cnri_json_metrics(cnri_json *j, const char *key, const cnr_metric_value *values, int64_t n) {
    if (n == 0) return;
    cnri_json_object(j, key);
    for (int64_t i = 0; i < n; i++) cnri_json_real(j, values[i].name, values[i].value);
    cnri_json_end(j);
}

void cnri_say_metrics(const char *before, const cnr_metric_value *values, int64_t n) {
    if (n == 0) return;
    cnri_say(stdout, "%s", before);
    for (int64_t i = 0; i < n; i++) {
        cnri_say(stdout, isnan(values[i].value) ? "%s%s none" : "%s%s %.4f", i ? ", " : "",
                 values[i].name, values[i].value);
    }
    cnri_say(stdout, "\n");
}
