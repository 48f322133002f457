/* The GPU's operators of W18's chapter 3 (Hu Wang's thesis of 2018), in the thesis' own form. Algorithms'
 * numbers are its own. Nothing here is tuned; the host side is plugins/opencl-documents. */

/* Algorithm 3.2: a work-item computes one element, i along dimension 0. `left`: steps between rows of the left matrix;
 * of the right one between rows and columns; `result` and `bias` likewise. */
__kernel void product_scalar(__global const float *mat_left, int left_at, __global const float *mat_right,
                             int right_at, __global const float *bias, int bias_at, __global float *result,
                             int result_at, int4 size, int8 steps) {
    const int i = get_global_id(0), j = get_global_id(1);
    if (i >= size.s0) return;
    mat_left += left_at + i * size.s2;
    mat_right += right_at + j * steps.s1;
    float res = 0.0f;
    for (int k = 0; k < size.s2; k++) res += mat_left[k] * mat_right[k * steps.s0];
    if (size.s3) res += bias[bias_at + i * steps.s4 + j * steps.s5];
    result[result_at + i * steps.s2 + j * steps.s3] = res;
}

/* Algorithm 3.3: dot() of four terms at once; those of the right matrix are gathered one by one. */
__kernel void product_dot(__global const float *mat_left, int left_at, __global const float *mat_right,
                          int right_at, __global const float *bias, int bias_at, __global float *result,
                          int result_at, int4 size, int8 steps) {
    const int i = get_global_id(0), j = get_global_id(1), step = steps.s0;
    if (i >= size.s0) return;
    mat_left += left_at + i * size.s2;
    mat_right += right_at + j * steps.s1;
    float res = 0.0f;
    int remain = size.s2;
    while (remain >= 4) {
        const float4 tmp1 = vload4(0, mat_left);
        const float4 tmp2 = (float4)(mat_right[0], mat_right[step], mat_right[2 * step], mat_right[3 * step]);
        res += dot(tmp1, tmp2);
        mat_left += 4;
        mat_right += 4 * step;
        remain -= 4;
    }
    while (remain > 0) {
        res += *mat_left * *mat_right;
        mat_left++;
        mat_right += step;
        remain--;
    }
    if (size.s3) res += bias[bias_at + i * steps.s4 + j * steps.s5];
    result[result_at + i * steps.s2 + j * steps.s3] = res;
}

/* Algorithm 3.4 for one place of one channel. size: the picture's rows and columns, outputs' rows and columns; window:
 * rows, columns, steps of rows and columns, padding above and on the left. */
__kernel void im2col(__global const float *x, int x_at, __global float *y, int y_at, int4 size, int8 window) {
    const int output_column = get_global_id(0), output_row = get_global_id(1), channel = get_global_id(2);
    if (output_column >= size.s3) return;
    x += x_at + channel * size.s0 * size.s1;
    y += y_at + channel * window.s0 * window.s1 * size.s2 * size.s3 + output_row * size.s3 + output_column;
    for (int k = 0; k < window.s0; k++) {
        const int row = output_row * window.s2 - window.s4 + k;
        for (int l = 0; l < window.s1; l++) {
            const int column = output_column * window.s3 - window.s5 + l;
            const int inside = row >= 0 && row < size.s0 && column >= 0 && column < size.s1;
            *y = inside ? x[row * size.s1 + column] : 0.0f;
            y += size.s2 * size.s3;
        }
    }
}

/* Algorithm 3.5 for one output; arguments as im2col's. The thesis leaves NaN open, here it wins. */
__kernel void max_pool(__global const float *x, int x_at, __global float *y, int y_at, int4 size, int8 window) {
    const int pw = get_global_id(0), ph = get_global_id(1), c = get_global_id(2);
    if (pw >= size.s3) return;
    int hstart = ph * window.s2 - window.s4, wstart = pw * window.s3 - window.s5;
    const int hend = min(hstart + window.s0, size.s0), wend = min(wstart + window.s1, size.s1);
    hstart = max(hstart, 0);
    wstart = max(wstart, 0);
    x += x_at + c * size.s0 * size.s1;
    float most = -INFINITY;
    for (int h = hstart; h < hend; h++)
        for (int w = wstart; w < wend; w++) {
            const float value = x[h * size.s1 + w];
            if (value > most || value != value) most = value;
        }
    y[y_at + (c * size.s2 + ph) * size.s3 + pw] = most;
}

/* Algorithm 3.6 with ReLU as the function. */
__kernel void relu(__global const float *x, int x_at, __global float *y, int y_at, int length) {
    const int i = get_global_id(0);
    if (i >= length) return;
    const float value = x[x_at + i];
    y[y_at + i] = value < 0.0f ? 0.0f : value;
}

/* Algorithm 3.7: a work-item computes one row. blob: ptr, indices, data, from these places on. size: rows, columns,
 * whether there is a bias. */
__kernel void spmv(__global const float *vec, int vec_at, __global const uint *blob, int blob_at,
                   __global const float *bias, int bias_at, __global float *out, int out_at, int4 size,
                   int2 places) {
    const int row = get_global_id(0), sample = get_global_id(1);
    if (row >= size.s0) return;
    __global const uint *ptr = blob + blob_at, *indices = ptr + places.s0;
    __global const float *data = (__global const float *)(ptr + places.s1);
    vec += vec_at + sample * size.s1;
    float tmp = 0.0f;
    const uint end_row = ptr[row + 1];
    for (uint j = ptr[row]; j < end_row; j++) tmp += data[j] * vec[indices[j]];
    out[out_at + sample * size.s0 + row] = size.s2 ? tmp + bias[bias_at + row] : tmp;
}
