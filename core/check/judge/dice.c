/* Random numbers of a case: splitmix64, seeded by a seed, a name and a number. */
#include "judge/judge.h"

uint64_t cnri_dice_next(cnri_dice *d) {
    uint64_t z = (d->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t cnri_dice_below(cnri_dice *d, int64_t n) {
    const uint64_t next = cnri_dice_next(d);
    if (n < 1) return 0;
    const uint64_t below = (uint64_t)n; /* a division takes longer than all else here */
    return (int64_t)(below & (below - 1) ? next % below : next & (below - 1));
}

bool cnri_dice_chance(cnri_dice *d, int32_t percent) { return cnri_dice_below(d, 100) < percent; }

cnri_dice cnri_dice_of(uint64_t seed, const char *name, int64_t number) {
    cnri_dice d = {seed * 0x2545f4914f6cdd1du + (uint64_t)number};
    for (; *name; name++) d.state = (cnri_dice_next(&d) ^ (uint8_t)*name) + (uint64_t)number;
    return d;
}
