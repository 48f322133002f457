/* scene.c: a scene, a board or both, played by the simulated machine that they describe. */
#ifndef CNRI_SCENE_H
#define CNRI_SCENE_H

#include "govern/govern.h"
#include "work/work.h"
#include <cnnrun/object.h>

typedef struct cnri_scene {
    cnr_instance *machine; /* an object with methods takes, set, clock, look and pass; NULL: none */
    cnri_seen_runs runs;
    double last_end, last_joules, seen_end, seen_joules; /* of the last pass; of the last look's */
    double longest_run, held; /* seconds; of all time those in which heat held clocks down */
    double late_after;        /* seconds: passes that take longer are counted in `late`; 0: none */
    int64_t late;
} cnri_scene;
/* board, scene: NULL where there is none; what a scene says goes before what a board says. */
cnr_status cnri_scene_open(cnr_runtime *rt, const cnri_board *board, const cnri_board *scene,
                           cnri_scene *out, cnr_error *err);
void cnri_scene_close(cnri_scene *s);
cnr_status cnri_scene_pass(cnri_scene *s, double seconds, cnr_error *err);
cnri_machine cnri_scene_machine(cnri_scene *s);

#endif
