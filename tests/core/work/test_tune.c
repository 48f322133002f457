/* Tuning: the record that it leaves, what it tells of the choices, and stopping. */
#include "../../guests/guests.h"
#include "work/work.h"
#include "keep/keep.h"
#include <sys/stat.h>
#include <unistd.h>

/* Stops after the first layer. */
static int32_t stop_at_second(void *arg, const cnr_progress *p) {
    ++*(int64_t *)arg;
    return p->done >= 1;
}

int main(void) {
    char folder[] = "/tmp/cnnrun-tune-XXXXXX", file[64];
    cnr_error err = CNR_ERROR_INIT;
    cnri_tuned t;
    cnri_tuning record = {0};
    uint8_t print[16];
    int64_t calls = 0;
    struct stat about;
    cnr_model *m = guests_open(1, &err) || !mkdtemp(folder) ? NULL : guests_lenet(NULL);
    const cnr_observer stopping = {.size = sizeof stopping,
                                   .arg = &calls,
                                   .progress = stop_at_second};
    cnri_tune_options o = {.folder = folder, .batch = 1, .repeat = 3};
    if (!m) {
        ok(0, "a net: %s", err.text);
        return done();
    }
    snprintf(file, sizeof file, "%s/tuning.jsonl", folder);
    ok(cnri_tune_model(m, &o, &stopping, &t, &err) == CNR_E_CANCELLED && calls == 2,
       "an observer stops it between two layers: %s", err.text);
    ok(stat(file, &about) != 0, "and nothing is on record then");
    if (!ok(!cnri_tune_model(m, &o, NULL, &t, &err), "tunes: %s", err.text)) return done();
    ok(t.repeats == 3 && t.choices >= 1 && t.rows >= 2 * t.choices, "layers, choices, rows");
    ok(t.agreement >= 1.0 / 3 && t.agreement <= 1 && t.spread >= 0, "how surely they choose");
    ok(!cnri_tuning_load(folder, &record, print, &err) && record.rows.n == t.rows, "on record");
    o.repeat = 1;
    cnri_tuning later = {0};
    ok(!cnri_tune_model(m, &o, NULL, &t, &err) && t.rows == record.rows.n, "once more: %s",
       err.text);
    ok(!cnri_tuning_load(folder, &later, print, &err) && later.rows.n == record.rows.n,
       "the same rows");
    bool same = true;
    for (int32_t i = 0; i < later.rows.n && i < record.rows.n; i++)
        same = same && later.rows.at[i].cost.ns == record.rows.at[i].cost.ns;
    ok(same, "what is on record isn't measured again");
    o.again = true;
    ok(cnri_tune_model(m, &o, &stopping, &t, &err) == CNR_E_CANCELLED, "unless asked for");
    unlink(file);
    rmdir(folder);
    cnri_vec_free(&record.rows);
    cnri_vec_free(&later.rows);
    cnr_close(guests_rt);
    return done();
}
