/* The error function and GELU. */

/* erf to about 1 ulp: near 0 a polynomial, else 1 - exp of a polynomial. NaN stays. */
INLINE vec verf(vec x) {
    const ivec sign = (ivec)x & (ivec)splat(-0.0f);
    const vec size = (vec)((ivec)x ^ sign), squared = x * x;
    const vec t = choose(size > splat(4.0f), splat(4.0f), size); /* erf is 1 from there on */
    const vec t2 = t * t;
    const vec high = fuse(splat(-1.72853470e-5f), t, splat(3.83197126e-4f));
    const vec low = fuse(splat(-3.88396438e-3f), t, splat(2.42546219e-2f));
    vec far = fuse(high, t2, low);
    far = fuse(far, t, splat(-1.06777877e-1f));
    far = fuse(far, t, splat(-6.34846687e-1f));
    far = fuse(far, t, splat(-1.28717512e-1f));
    far = splat(1.0f) - vexp(fuse(far, t, -t));
    far = (vec)((ivec)far | sign);
    vec near = splat(-5.96761703e-4f);
    near = fuse(near, squared, splat(4.99119423e-3f));
    near = fuse(near, squared, splat(-2.67681349e-2f));
    near = fuse(near, squared, splat(1.12819925e-1f));
    near = fuse(near, squared, splat(-3.76125336e-1f));
    near = fuse(near, squared, splat(1.28379166e-1f));
    return choose(size > splat(0.927734375f), far, fuse(near, x, x));
}

INLINE vec vgelu(vec x) { return x * fuse(verf(x * splat(0.70710678f)), splat(0.5f), splat(0.5f)); }

/* GELU approximated by the hyperbolic tangent. */
INLINE vec vgelu_tanh(vec x) {
    const vec u = splat(0.79788456f) * fuse(splat(0.044715f) * x, x * x, x);
    return x * fuse(vtanh(u), splat(0.5f), splat(0.5f));
}

/* Applies a function of vectors to n elements. */
#define EACH_VECTOR(function) \
    do { \
        int64_t i = 0; \
        for (; i + VL <= n; i += VL) store(out + i, function(load(x + i))); \
        if (i < n) store_part(out + i, function(load_part(x + i, n - i)), n - i); \
    } while (0)

static void erf_of(const float *x, float *out, int64_t n) { EACH_VECTOR(verf); }
static void gelu(const float *x, float *out, int64_t n) { EACH_VECTOR(vgelu); }
static void gelu_tanh(const float *x, float *out, int64_t n) { EACH_VECTOR(vgelu_tanh); }
