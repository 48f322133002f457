/* Transposes a matrix of 4-byte elements by shuffles; bits are unchanged. */

INLINE void turn_block(const float *from, int64_t from_step, float *to, int64_t to_step) {
    const quad a = *(const quad_u *)from, b = *(const quad_u *)(from + from_step);
    const quad c = *(const quad_u *)(from + 2 * from_step);
    const quad d = *(const quad_u *)(from + 3 * from_step);
    const quad ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const quad ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const quad cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const quad cd1 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(quad_u *)to = __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5);
    *(quad_u *)(to + to_step) = __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7);
    *(quad_u *)(to + 2 * to_step) = __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5);
    *(quad_u *)(to + 3 * to_step) = __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7);
}

#if VL >= 8
/* A step of a square's transposition: rows `d` apart exchange the lanes that LOW and HIGH name. */
#define TURN_STEP(d) \
    UNROLL(VL) \
    for (int i = 0; i < VL; i++) \
        if (!(i & (d))) { \
            const vec a = r[i], b = r[i + (d)]; \
            r[i] = __builtin_shufflevector(a, b, TURN_LOW_##d); \
            r[i + (d)] = __builtin_shufflevector(a, b, TURN_HIGH_##d); \
        }
#if VL == 16
#define TURN_LOW_1 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30
#define TURN_HIGH_1 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31
#define TURN_LOW_2 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define TURN_HIGH_2 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define TURN_LOW_4 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27
#define TURN_HIGH_4 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31
#define TURN_LOW_8 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define TURN_HIGH_8 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#else
#define TURN_LOW_1 0, 8, 2, 10, 4, 12, 6, 14
#define TURN_HIGH_1 1, 9, 3, 11, 5, 13, 7, 15
#define TURN_LOW_2 0, 1, 8, 9, 4, 5, 12, 13
#define TURN_HIGH_2 2, 3, 10, 11, 6, 7, 14, 15
#define TURN_LOW_4 0, 1, 2, 3, 8, 9, 10, 11
#define TURN_HIGH_4 4, 5, 6, 7, 12, 13, 14, 15
#endif

/* Transposes VL x VL floats: each line of memory is touched once, also if rows are a power of 2
 * apart. */
INLINE void turn_square(const float *from, int64_t from_step, float *to, int64_t to_step) {
    vec r[VL];
    UNROLL(VL)
    for (int i = 0; i < VL; i++) r[i] = load(from + i * from_step);
#if VL == 16
    TURN_STEP(8)
#endif
    TURN_STEP(4)
    TURN_STEP(2)
    TURN_STEP(1)
    UNROLL(VL)
    for (int i = 0; i < VL; i++) store(to + i * to_step, r[i]);
}
#endif

/* Transposes rows x columns floats by squares of 4 x 4. */
static void turn_rest(const float *from, int64_t from_step, float *to, int64_t to_step,
                      int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; i += 4) {
        const int64_t high = rows - i < 4 ? rows - i : 4;
        int64_t j = 0;
        for (; high == 4 && j + 4 <= columns; j += 4)
            turn_block(from + i * from_step + j, from_step, to + j * to_step + i, to_step);
        for (; j < columns; j++)
            for (int64_t k = i; k < i + high; k++)
                memcpy(to + j * to_step + k, from + k * from_step + j, sizeof *to);
    }
}

/* Transposes rows x columns floats. */
static void turn(const float *from, int64_t from_step, float *to, int64_t to_step, int64_t rows,
                 int64_t columns) {
    int64_t i = 0;
#if VL >= 8
    for (; i + VL <= rows; i += VL) {
        int64_t j = 0;
        for (; j + VL <= columns; j += VL)
            turn_square(from + i * from_step + j, from_step, to + j * to_step + i, to_step);
        turn_rest(from + i * from_step + j, from_step, to + j * to_step + i, to_step, VL,
                  columns - j);
    }
#endif
    turn_rest(from + i * from_step, from_step, to + i, to_step, rows - i, columns);
}
