/* Elements of each type as numbers: back as they were stored, cut to what the type holds. */
#include "base/base.h"
#include "tap.h"
#include <math.h>

static const struct {
    int32_t dtype;
    const char *name;
    double low, high, step;
} types[] = {{CNR_f32, "f32", -INFINITY, INFINITY, 0x1p-20},
             {CNR_f64, "f64", -INFINITY, INFINITY, 0x1p-40},
             {CNR_f16, "f16", -INFINITY, INFINITY, 0x1p-9},
             {CNR_bf16, "bf16", -INFINITY, INFINITY, 0x1p-6},
             {CNR_i8, "i8", -128, 127, 1},
             {CNR_u8, "u8", 0, 255, 1},
             {CNR_bool, "bool", 0, 1, 1},
             {CNR_i16, "i16", -32768, 32767, 1},
             {CNR_u16, "u16", 0, 65535, 1},
             {CNR_i32, "i32", INT32_MIN, INT32_MAX, 1},
             {CNR_u32, "u32", 0, UINT32_MAX, 1},
             {CNR_i64, "i64", -0x1p63, 0x1p63, 1}, /* the highest, as a double has it */
             {CNR_u64, "u64", 0, 0x1p64, 1},
             {CNR_i4, "i4", -8, 7, 1},
             {CNR_u4, "u4", 0, 15, 1}};

int main(void) {
    for (size_t k = 0; k < CNRI_COUNT(types); k++) {
        const int32_t dtype = types[k].dtype;
        double at[4] = {0}; /* room for four elements of any type */
        const double put[4] = {1 + types[k].step, 0, INFINITY, 1};
        const double back[4] = {fmin(put[0], types[k].high), 0, types[k].high, 1};
        int same = 1;
        for (int i = 0; i < 4; i++) same = same && cnri_element_set(dtype, at, i, put[i]);
        for (int i = 0; i < 4; i++) same = same && cnri_element(dtype, at, i) == back[i];
        ok(same, "%s: four elements, none touching its neighbours", types[k].name);
        cnri_element_set(dtype, at, 1, dtype == CNR_bool ? 0 : -INFINITY);
        ok(cnri_element(dtype, at, 1) == types[k].low && cnri_element(dtype, at, 0) == back[0] &&
               cnri_element(dtype, at, 2) == back[2],
           "%s: cut at its lower end", types[k].name);
        if (types[k].step != 1 || dtype == CNR_bool) continue;
        cnri_element_set(dtype, at, 3, NAN);
        ok(cnri_element(dtype, at, 3) == 0, "%s: what is no number is 0", types[k].name);
    }
    double none = 5;
    ok(!cnri_element_set(CNR_DTYPE_NONE, &none, 0, 1) && !cnri_element_set(99, &none, 0, 1) &&
           none == 5 && isnan(cnri_element(99, &none, 0)),
       "an unknown type is neither read nor written");
    return done();
}
