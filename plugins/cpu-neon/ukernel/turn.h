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

/* Transposes rows x columns floats from `from` to `to`; the steps are floats from one row to the
 * next. */
static void turn(const float *from, int64_t from_step, float *to, int64_t to_step, int64_t rows,
                 int64_t columns) {
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
