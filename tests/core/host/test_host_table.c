/* Host functions called without what they need: an error, or nothing, never a fault; and what those
 * do that plugins would else write again: numbers, maps, elements. */
#include "host/host.h"
#include "tests/tap.h"
#include <locale.h>
#include <math.h>
#include <unistd.h>

/* Tests: numbers in texts. */
static void check_numbers(void) {
    static const struct {
        const char *text, *rest;
        double value;
    } rows[] = {{"1.5,2", ",2", 1.5},
                {"-2e3x", "x", -2000},
                {"inf", "", INFINITY},
                {".5", "", 0.5},
                {"7", "", 7}};
    const char *end;
    char text[32];
    double v = 3;
    int good = 1;
    setlocale(LC_ALL, "de_DE.UTF-8"); /* where it is installed, 0,5 is a half there */
    for (size_t i = 0; i < CNRI_COUNT(rows); i++)
        good &= cnri_host.parse_number(rows[i].text, &end, &v) && v == rows[i].value &&
                strcmp(end, rows[i].rest) == 0;
    ok(good, "parse_number reads decimals, and says where they end");
    v = 3;
    ok(!cnri_host.parse_number("x1", &end, &v) && !cnri_host.parse_number("1 ", NULL, &v) &&
           !cnri_host.parse_number(NULL, NULL, &v) && v == 3,
       "and nothing else");
    is_int(cnri_host.print_number(text, sizeof text, CNR_f32, (double)0.1f), 3,
           "an f32 is printed short");
    is_text(text, "0.1", "as a float reads it");
    cnri_host.print_number(text, sizeof text, CNR_f64, (double)0.1f);
    is_text(text, "0.10000000149011612", "an f64 whole");
    ok(cnri_host.print_number(text, 3, CNR_f64, 1234.5) == 6 && strcmp(text, "12") == 0,
       "cut to its room");
    is_int(cnri_host.print_number(NULL, 9, CNR_f32, 1), 1, "print_number: text");
    setlocale(LC_ALL, "C");
}

/* Tests: maps. */
static void check_maps(void) {
    struct cnr_map *map = NULL;
    char key[16];
    int good = 1, values[400];
    ok(!cnri_host.map_get(map, "a", 1), "no map has no names");
    for (int i = 0; i < 400; i++) {
        const int n = snprintf(key, sizeof key, "name%d;", i);
        good &= cnri_host.map_set(&map, key, (size_t)n - 1, &values[i]) == CNR_OK;
    }
    for (int i = 0; i < 400; i++) {
        const int n = snprintf(key, sizeof key, "name%d", i);
        good &= cnri_host.map_get(map, key, (size_t)n) == &values[i];
    }
    ok(good, "400 names come back, by as many bytes as were said");
    cnri_host.map_set(&map, "name7", 5, values);
    ok(cnri_host.map_get(map, "name7", 5) == values && !cnri_host.map_get(map, "name7", 3),
       "a name that is set again has its last value; part of one is another");
    is_int(cnri_host.map_set(NULL, "a", 1, NULL), CNR_E_ARG, "map_set: map");
    is_int(cnri_host.map_set(&map, NULL, 0, NULL), CNR_E_ARG, "map_set: key");
    cnri_host.map_free(map);
    cnri_host.map_free(NULL);
}

/* 300: more than are worked on at a time. */
static void check_elements(void) {
    static const int32_t whole[] = {CNR_i8,  CNR_u8,  CNR_i16, CNR_u16,
                                    CNR_i32, CNR_u32, CNR_i64, CNR_u64};
    static double reals[300], back[300];
    static int64_t numbers[300], got[300];
    static uint8_t room[300 * 8];
    for (int i = 0; i < 300; i++) reals[i] = numbers[i] = i % 100;
    for (int32_t t = CNR_f32; t <= CNR_u4; t++) {
        const int64_t n =
            t == CNR_i4 || t == CNR_u4 || t == CNR_bool ? 2 : 300; /* 0 and 1 fit all */
        cnri_host.elements_write(t, room, 0, n, CNR_f64, reals);
        cnri_host.elements_read(t, room, 0, 1, n, CNR_i64, got);
        int good = memcmp(got, numbers, (size_t)n * sizeof got[0]) == 0;
        cnri_host.elements_write(t, room, 0, n, CNR_u64, numbers);
        cnri_host.elements_read(t, room, n - 1, -1, n, CNR_f64, back);
        for (int64_t i = 0; i < n; i++) good &= back[i] == reals[n - 1 - i];
        float floats[300];
        cnri_host.elements_read(t, room, 0, 1, n, CNR_f32, floats);
        memset(room, 0, sizeof room);
        cnri_host.elements_write(t, room, 0, n, CNR_f32, floats);
        cnri_host.elements_read(t, room, 0, 1, n, CNR_f64, back);
        for (int64_t i = 0; i < n; i++) good &= floats[i] == (float)reals[i] && back[i] == reals[i];
        ok(good, "%s: from and to all kinds of numbers, and backwards", cnr_dtype_name(t));
    }
    int wraps = 1;
    for (size_t i = 0; i < CNRI_COUNT(whole); i++) {
        const int64_t minus = -1;
        cnri_host.elements_write(whole[i], room, 0, 1, CNR_i64, &minus);
        for (unsigned b = 0; b < cnr_dtype_bits(whole[i]) / 8; b++) wraps &= room[b] == 0xff;
    }
    ok(wraps, "whole numbers are cut to the bits of the type");
    const float odd[] = {NAN, -1.5f, 1e30f};
    cnri_host.elements_read(CNR_f32, odd, 0, 1, 3, CNR_i64, got);
    ok(got[0] == 0 && got[1] == -1 && got[2] == INT64_MAX, "floats are cut, and kept in range");
    /* just above the middle of two f16, by less than a float tells */
    const double twice = 1 + 0x1p-11 + 0x1p-40;
    cnri_host.elements_write(CNR_f16, room, 0, 1, CNR_f64, &twice);
    cnri_host.elements_read(CNR_f16, room, 0, 1, 1, CNR_f64, back);
    ok(back[0] == 1 + 0x1p-10, "a double is rounded to a half once");
    cnri_host.elements_read(CNR_f32, NULL, 0, 1, 3, CNR_f64, back);
    cnri_host.elements_write(CNR_f32, room, 0, 1, CNR_f64, NULL);
}

int main(void) {
    cnr_error err = CNR_ERROR_INIT;
    struct cnr_output *out = NULL;
    void *data = &err;
    uint64_t bytes = 1;
    ok(cnri_host.output_begin(NULL, 0, &out, &err) == CNR_E_ARG && !out, "output_begin: path");
    is_int(cnri_host.output_begin("/nonexistent/x", 0, NULL, &err), CNR_E_ARG, "output_begin: out");
    is_int(cnri_host.output_write(NULL, "x", 1, &err), CNR_E_ARG, "output_write: output");
    is_int(cnri_host.file_read(NULL, 1, &data, &bytes, &err), CNR_E_ARG, "file_read: path");
    is_int(cnri_host.file_read("/dev/null", 1, NULL, &bytes, &err), CNR_E_ARG, "file_read: data");
    is_int(cnri_host.file_read("/dev/null", 1, &data, NULL, NULL), CNR_E_ARG, "file_read: bytes");
    is_int(cnri_host.file_open(NULL, &bytes, &err), -1, "file_open: path");
    ok(!cnri_host.find_op(NULL), "find_op: name");
    is_int(cnri_host.intern(NULL), 0, "intern: name");
    is_int(cnri_host.fail(&err, CNR_E_ARG, NULL, NULL), CNR_E_ARG, "fail: no text");
    cnri_host.log(CNR_LOG_DEBUG, NULL, NULL);
    cnri_host.log(CNR_LOG_WARN, NULL, NULL);
    cnri_host.free(NULL);
    ok(cnri_host.alloc(SIZE_MAX) == NULL, "alloc: more than there is");
    check_numbers();
    check_maps();
    check_elements();
    return done();
}
