/* Temperature: one thermal mass heated by all rails, and a cap on the clocks while it is too
 * hot. */
#include "sim.h"
#include <math.h>

/* Lowers all clocks by one step above the limit; raises them again well below it. */
static void throttle(sim_machine *m, uint64_t at) {
    for (; m->cap_at + SIM_CAP_EVERY_NS <= at; m->cap_at += SIM_CAP_EVERY_NS) {
        const int down = m->degrees > m->limit, up = m->degrees < m->limit - m->slack;
        int moved = 0;
        for (int32_t i = 0; i < m->n_clocks; i++) {
            sim_clock *c = &m->clocks[i];
            if (down && c->cap > 0) c->cap--, moved = 1;
            else if (up && c->cap < c->n - 1) c->cap++, moved = 1;
        }
        if (!moved) {
            m->cap_at = at;
            return;
        }
    }
}

void sim_heat(sim_machine *m, uint64_t at) {
    if (m->ohms <= 0 || at <= m->heat_at) return;
    const double joules = sim_all_joules(m, at);
    const double seconds = (double)(at - m->heat_at) * 1e-9;
    const double goal = m->ambient + m->ohms * (joules - m->heat_joules) / seconds;
    m->degrees = goal + (m->degrees - goal) * exp(-seconds / m->tau);
    m->heat_joules = joules;
    m->heat_at = at;
    if (m->limit > 0) throttle(m, at);
}
