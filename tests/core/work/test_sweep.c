/* cnr_sweep: a study at points of a grid, from an application: results, failed points, resuming. */
#include "../../tap.h"
#include <cnnrun/cnnrun.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/cnr-sweep-XXXXXX";
static char study[64], output[64], program[4096];

/* Writes the script whose points are tried. */
static void write_study(void) {
    FILE *f = fopen(study, "w");
    ok(f && fputs("return function(p)\n"
                  "  if p.x == 3 and p[1] == 'fails' then error 'no three' end\n"
                  "  return { y = p.x * p.x + p.seed }\n"
                  "end\n",
                  f) >= 0,
       "a study");
    if (f) fclose(f);
}

/* Options of a sweep with these words and this grid. */
static cnr_sweep_options options_of(const char *const *words, const char *const *grid) {
    return (cnr_sweep_options){.size = sizeof(cnr_sweep_options),
                               .study = study,
                               .words = words,
                               .n_words = 1,
                               .grid = grid,
                               .n_grid = 1,
                               .seeds = "1..2",
                               .output = output,
                               .jobs = 2,
                               .program = program};
}

/* Number of lines of a file in the output folder; 0: there is none. */
static int32_t lines_of(const char *name) {
    char path[128];
    int32_t n = 0;
    snprintf(path, sizeof path, "%s/%s", output, name);
    FILE *f = fopen(path, "r");
    for (int c; f && (c = fgetc(f)) != EOF;) n += c == '\n';
    if (f) fclose(f);
    return n;
}

/* Observer that counts its calls and stops the sweep. */
static int32_t stop_at_once(void *arg, const cnr_progress *p) {
    (void)p;
    return ++*(int32_t *)arg > 0;
}

/* Points are tried, failures kept, and a second sweep goes on. */
static void sweeps(void) {
    static const char *const grid[] = {"x=2,3"}, *const fails[] = {"fails"},
                             *const works[] = {"works"};
    cnr_error err = CNR_ERROR_INIT;
    cnr_sweep_result got = {.size = sizeof got};
    cnr_sweep_options o = options_of(fails, grid);
    ok(cnr_sweep(&o, NULL, &got, &err) == CNR_OK, "a sweep whose points fail in part: %s",
       err.text);
    ok(got.points == 4 && got.done == 2 && got.failed == 2, "%lld points, %lld done, %lld failed",
       (long long)got.points, (long long)got.done, (long long)got.failed);
    o = options_of(works, grid);
    o.output = folder;
    o.study = "/nowhere/study.lua";
    ok(cnr_sweep(&o, NULL, &got, &err) != CNR_OK && strstr(err.text, "/nowhere/study.lua"),
       "a study that is not there fails at once: %s: %s", err.where, err.text);
    snprintf(output, sizeof output, "%s/b", folder);
    o = options_of(works, grid);
    ok(cnr_sweep(&o, NULL, &got, &err) == CNR_OK, "a sweep that works: %s", err.text);
    ok(got.points == 4 && got.done == 4 && got.failed == 0 && got.seconds > 0, "all are done");
    ok(lines_of("results.jsonl") >= 4 && lines_of("summary.csv") == 3, "and written");
    o.resume = 1;
    is_int(cnr_sweep(&o, NULL, &got, &err), CNR_OK, "resumed");
    ok(got.left == 0 && got.failed == 0, "nothing is left to do");
}

/* Sweeps that make no sense are refused. */
static void refusals(void) {
    static const char *const grid[] = {"x=2,3"}, *const wrong[] = {"x=log:0:1:3"},
                             *const words[] = {"works"};
    cnr_error err = CNR_ERROR_INIT;
    cnr_sweep_result got = {.size = sizeof got};
    int32_t calls = 0;
    const cnr_observer stops = {.size = sizeof stops, .arg = &calls, .progress = stop_at_once};
    snprintf(output, sizeof output, "%s/c", folder);
    cnr_sweep_options o = options_of(words, wrong);
    ok(cnr_sweep(&o, NULL, &got, &err) != CNR_OK && strstr(err.text, "x"), "a wrong grid: %s",
       err.text);
    o = options_of(words, grid);
    is_int(cnr_sweep(&o, &stops, &got, &err), CNR_E_CANCELLED, "an observer stops it");
    o.program = "/nowhere/cnnrun";
    ok(cnr_sweep(&o, NULL, &got, &err) != CNR_OK && strstr(err.where, "/nowhere/cnnrun"),
       "no such program: %s: %s", err.where, err.text);
}

int main(void) {
    snprintf(program, sizeof program, "%s/cnnrun", CNRT_BUILD_DIR);
    ok(mkdtemp(folder) != NULL, "a folder");
    snprintf(study, sizeof study, "%s/study.lua", folder);
    snprintf(output, sizeof output, "%s/a", folder);
    write_study();
    sweeps();
    refusals();
    char remove[128];
    snprintf(remove, sizeof remove, "rm -rf '%s'", folder);
    is_int(system(remove), 0, "tidied up");
    return done();
}
