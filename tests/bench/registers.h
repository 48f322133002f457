/* OpenCL's functions that kernels use, for opencl_counts.pl's compiler, which has the language, but
 * no library for its target: which registers they take is what counts. A work-item has 64; ids are
 * its own in all directions. */
#define __kernel __attribute__((amdgpu_num_vgpr(64))) kernel
#define OWN static __attribute__((overloadable, always_inline))
OWN uint own_id(uint d) {
    return d == 0   ? __builtin_amdgcn_workitem_id_x()
           : d == 1 ? __builtin_amdgcn_workitem_id_y()
                    : __builtin_amdgcn_workitem_id_z();
}
/* The work-item's index, which the compiler can't know. */
#define get_global_id(d) ((int)own_id(d))
/* The work-group's index, which the compiler can't know. */
#define get_group_id(d) ((int)own_id(d))
/* The index in the work-group, which the compiler can't know. */
#define get_local_id(d) ((int)own_id(d))
/* OpenCL's mad by C's operators. */
#define mad(a, b, c) ((a) * (b) + (c))
/* OpenCL's fma by C's operators. */
#define fma(a, b, c) ((a) * (b) + (c))
/* The smaller of two. */
#define min(a, b) ((a) < (b) ? (a) : (b))
/* The larger of two. */
#define max(a, b) ((a) > (b) ? (a) : (b))
/* The smaller of two. */
#define fmin(a, b) min(a, b)
/* The larger of two. */
#define fmax(a, b) max(a, b)
/* a, at least b and at most c. */
#define clamp(a, b, c) min(max(a, b), c)
/* e^a by the built-in function. */
#define exp(a) __builtin_exp2f(1.442695f * (a))
/* The square root by the built-in function. */
#define sqrt(a) __builtin_sqrtf(a)
/* The absolute value by the built-in function. */
#define fabs(a) __builtin_fabsf(a)
/* The whole number below by the built-in function. */
#define floor(a) __builtin_floorf(a)
/* a to the power b by built-in functions. */
#define pow(a, b) __builtin_exp2f((b)*__builtin_log2f(a))
/* The hyperbolic tangent by exp. */
#define tanh(a) (1.0f - 2.0f / (1.0f + exp(2.0f * (a))))
#define __read_only __global
#define image2d_t const float4 *
#define sampler_t uint
/* A pixel of an image, as an array with rows of 4096. */
#define read_imagef(image, sampler, at) ((image)[(at).y * 4096 + (at).x])

/* A vector type of n floats with OpenCL's load and store. */
#define VECTOR(n) \
    typedef float __attribute__((ext_vector_type(n), aligned(4))) float_##n; \
    OWN float##n vload##n(size_t i, const __global float *p) { \
        return *(const __global float_##n *)(p + n * i); \
    } \
    OWN float##n vload##n(size_t i, const float *p) { return *(const float_##n *)(p + n * i); } \
    OWN void vstore##n(float##n v, size_t i, __global float *p) { \
        *(__global float_##n *)(p + n * i) = v; \
    } \
    OWN void vstore##n(float##n v, size_t i, float *p) { *(float_##n *)(p + n * i) = v; }
VECTOR(4)
VECTOR(8)
VECTOR(16)
