/* Any element-wise operator of one or two operands: OPERATION is its formula in x and y; then the
 * epilogue. Operands are addressed by strides over RANK merged axes, last axis first. */

/* Moves both places along axis k and takes it off `rest`. */
#define AXIS(k)                              \
    x_from += rest % dim.s##k * x_step.s##k; \
    y_from += rest % dim.s##k * y_step.s##k; \
    rest /= dim.s##k;

__kernel void elementwise(__global const float *a, int a_at, __global const float *b, int b_at,
                          __global float *out, int out_at, int begin, int end, int8 dim,
                          int8 x_step, int8 y_step CHAIN_PARAMETERS) {
    const int at = begin + get_global_id(0);
    if (at >= end) return;
    int rest = at, x_from = 0, y_from = 0;
    AXIS(0)
#if RANK > 1
    AXIS(1)
#endif
#if RANK > 2
    AXIS(2)
#endif
#if RANK > 3
    AXIS(3)
#endif
#if RANK > 4
    AXIS(4)
#endif
#if RANK > 5
    AXIS(5)
#endif
#if RANK > 6
    AXIS(6)
#endif
#if RANK > 7
    AXIS(7)
#endif
    out[out_at + at] = chain(operation(a[a_at + x_from], b[b_at + y_from]), at CHAIN_PASS);
}
