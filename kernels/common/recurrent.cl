/* Recurrent layers: rnn, gru and lstm. H is the size of the state, GATES how many numbers a state has
 * before its cell, G = GATES * H. Weights of a direction: what multiplies x, [inputs][G]; what multiplies h,
 * [H][G]; the biases of both, [2][G]. shape: steps, sequences, directions, inputs. */

/* Numbers of the packed weights of one direction. */
#define PER_DIRECTION(inputs) ((inputs) + H + 2) * G

/* The product of each step's x with the input weights, for all steps at once: p[direction][step,
 * sequence][G]. */
__kernel void project(__global const float *x, int x_at, __global const float *w, int w_at,
                      __global float *p, int p_at, int4 shape) {
    const int j = get_global_id(0), row = get_global_id(1), d = get_global_id(2), inputs = shape.s3;
    if (j >= G) return;
    __global const float *weight = w + w_at + d * (PER_DIRECTION(inputs));
    __global const float *from = x + x_at + row * inputs;
    float sum = weight[(inputs + H) * G + j];
    for (int i = 0; i < inputs; i++) sum = MAD(from[i], weight[i * G + j], sum);
    p[p_at + (d * shape.s0 * shape.s1 + row) * G + j] = sum;
}

/* 1 / (1 + e^-v). */
float sigmoid(float v) { return 1.0f / (1.0f + exp(-v)); }

/* One sequence in one direction, by a work-group of any size. flags: 1 h and 2 c begin with given numbers; 4 the last
 * h and 8 the last c are stored; 16 the first direction goes backwards. */
__kernel void
recur(__global const float *p, int p_at, __global const float *w, int w_at, __global const float *first_h,
      int first_h_at, __global const float *first_c, int first_c_at, __global float *y, int y_at,
      __global float *last_h, int last_h_at, __global float *last_c, int last_c_at, int4 shape, int flags) {
    __local float h[H], c[H], g[G];
    const int steps = shape.s0, n = shape.s1, id = get_local_id(0), line = get_local_size(0);
    const int sequence = get_group_id(0) % n, d = get_group_id(0) / n, state = (d * n + sequence) * H;
    const int backwards = d == 1 || (flags & 16);
    __global const float *weight = w + w_at + d * (PER_DIRECTION(shape.s3)) + shape.s3 * G;
    __global const float *bias = weight + (H + 1) * G;
    for (int u = id; u < H; u += line) {
        h[u] = flags & 1 ? first_h[first_h_at + state + u] : 0.0f;
        c[u] = flags & 2 ? first_c[first_c_at + state + u] : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = 0; s < steps; s++) {
        const int t = backwards ? steps - 1 - s : s;
        __global const float *from_x = p + p_at + ((d * steps + t) * n + sequence) * G;
        for (int j = id; j < G; j += line) {
            float sum = bias[j];
            for (int k = 0; k < H; k++) sum = MAD(h[k], weight[k * G + j], sum);
            g[j] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int u = id; u < H; u += line) {
#if GATES == 4 /* in, out, forget, cell */
            const float in = sigmoid(g[u] + from_x[u]), out = sigmoid(g[H + u] + from_x[H + u]);
            const float forget = sigmoid(g[2 * H + u] + from_x[2 * H + u]);
            c[u] = forget * c[u] + in * tanh(g[3 * H + u] + from_x[3 * H + u]);
            h[u] = out * tanh(c[u]);
#elif GATES == 3 /* update, reset, new; the reset gate behind the product */
            const float update = sigmoid(g[u] + from_x[u]), reset = sigmoid(g[H + u] + from_x[H + u]);
            h[u] = (1.0f - update) * tanh(from_x[2 * H + u] + reset * g[2 * H + u]) + update * h[u];
#else
            h[u] = tanh(g[u] + from_x[u]);
#endif
            y[y_at + ((t * shape.s2 + d) * n + sequence) * H + u] = h[u];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int u = id; u < H; u += line) {
        if (flags & 4) last_h[last_h_at + state + u] = h[u];
        if (flags & 8) last_c[last_c_at + state + u] = c[u];
    }
}
