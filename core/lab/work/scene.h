/* scene.c: simulates a scene, a board or both. */
#ifndef CNRI_SCENE_H
#define CNRI_SCENE_H

#include "govern/govern.h"
#include "work/work.h"
#include <cnnrun/object.h>

/* A simulated machine with work to do. */
typedef struct cnri_scene {
    /* An object with the methods takes, set, clock, look and pass; NULL: none. */
    cnr_instance *machine;
    cnri_seen_runs runs;
    /* End (seconds) and joules at the last pass, and at the last look. */
    double last_end, last_joules, seen_end, seen_joules;
    double longest_run, held; /* seconds: of the longest pass; in which heat kept clocks down */
    double late_after;        /* seconds; passes that take longer count as `late`; 0: none do */
    int64_t late;
} cnri_scene;
/* board, scene: NULL if not given. Values of the scene replace those of the board. */
cnr_status cnri_scene_open(cnr_runtime *rt, const cnri_board *board, const cnri_board *scene,
                           cnri_scene *out, cnr_error *err);
void cnri_scene_close(cnri_scene *s); /* frees the simulated machine */
/* Simulates the next `seconds` of the scene in virtual time, and adds its runs to s->runs. */
cnr_status cnri_scene_pass(cnri_scene *s, double seconds, cnr_error *err);
/* The scene as the machine of a governor; it borrows s. */
cnri_machine cnri_scene_machine(cnri_scene *s);

#endif
