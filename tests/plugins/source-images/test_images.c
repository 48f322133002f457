/* Pictures in all their forms, folders and lists; damaged and hostile files; writing. */
#include "graph/graph.h"
#include "pictures/pictures.h"
#include "run/run.h"
#include "tap.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PICTURES CNRT_SOURCE_DIR "/tests/plugins/source-images/pictures/"

static cnr_error err = CNR_ERROR_INIT;
static char scratch[] = "/tmp/cnnrun-images-XXXXXX";

/* Reads one picture of a source. */
static cnr_status read_one(const char *spec, int64_t index, cnr_sample *out) {
    cnri_samples s;
    cnr_status status = cnri_samples_open(spec, NULL, &s, &err);
    if (status) return status;
    status = cnri_samples_read(&s, index, out, &err);
    cnri_samples_close(&s);
    return status;
}

/* 1 if the middle of each quarter has the colour that was drawn, within the tolerance; last: the
 * last one's level, or 0: white. */
static int looks_right(const cnr_sample *s, int tolerance, int last) {
    static const int colours[4][3] = {{220, 30, 40}, {30, 200, 60}, {40, 60, 210}, {255, 255, 255}};
    static const int greys[4] = {40, 200, 120, 255};
    const cnr_tensor *t = &s->picture;
    if (t->dim[0] != 32 || t->dim[1] != 48) {
        note("%lld x %lld", (long long)t->dim[0], (long long)t->dim[1]);
        return 0;
    }
    for (int q = 0; q < 4; q++)
        for (int c = 0; c < t->dim[2]; c++) {
            const int y = q / 2 * 16 + 8, x = q % 2 * 24 + 12;
            const int got = ((const uint8_t *)t->data)[(y * 48 + x) * t->dim[2] + c];
            const int want = q == 3 && last ? last : t->dim[2] == 3 ? colours[q][c] : greys[q];
            if (abs(got - want) > tolerance) {
                note("quarter %d channel %d: got %d, want %d", q, c, got, want);
                return 0;
            }
        }
    return 1;
}

/* Pictures of each form have the right pixels. */
static void test_forms(void) {
    static const struct {
        const char *name;
        int channels, tolerance;
    } forms[] = {
        {"rgb.jpg", 3, 4},    {"progressive.jpg", 3, 8}, {"grey.jpg", 1, 4},
        {"cmyk.jpg", 3, 6},   {"exif2.jpg", 3, 4},       {"exif3.jpg", 3, 4},
        {"exif4.jpg", 3, 4},  {"exif5.jpg", 3, 4},       {"exif6.jpg", 3, 4},
        {"exif7.jpg", 3, 4},  {"exif8.jpg", 3, 4},       {"exif6.png", 3, 0},
        {"rgb.png", 3, 0},    {"grey.png", 1, 0},        {"palette.png", 3, 0},
        {"clear.png", 3, 0},  {"deep.png", 3, 0},        {"interlaced.png", 3, 0},
        {"rgb.bmp", 3, 0},    {"palette.bmp", 3, 0},     {"rle8.bmp", 3, 0},
        {"rle4.bmp", 3, 0},   {"565.bmp", 3, 5},         {"down.bmp", 3, 0},
        {"rgb.ppm", 3, 0},    {"plain.ppm", 3, 2},       {"grey.pgm", 1, 0},
        {"rgb.pam", 3, 0},    {"thumbnail.p7", 3, 60},   {"planar.tif", 1, 0},
        {"rgb.gif", 3, 0},    {"woven.gif", 3, 0},       {"lzw.tif", 3, 0},
        {"cmyk.tif", 3, 2},   {"grey.tif", 1, 0},        {"palette.tif", 3, 0},
        {"jpeg.tif", 3, 8},   {"turned.tif", 3, 0},      {"rgb.webp", 3, 0},
        {"lossy.webp", 3, 8}, {"rgb.avif", 3, 4},        {"rgb.heic", 3, 5},
    };
    for (size_t i = 0; i < CNRI_COUNT(forms); i++) {
        char path[1024];
        cnr_sample s = {0};
        snprintf(path, sizeof path, PICTURES "%s", forms[i].name);
        const cnr_status status = read_one(path, 0, &s);
        if (status == CNR_E_UNSUPPORTED && strstr(err.text, "not read here")) {
            skip(forms[i].name, "its library is not there");
            continue;
        }
        ok(status == CNR_OK && s.picture.dim[2] == forms[i].channels && s.label == -1 &&
               looks_right(&s, forms[i].tolerance, 0),
           "%s", forms[i].name);
        if (status) note("%s: %s", err.where, err.text);
        else cnri_free(s.picture.data);
    }
    /* alpha is dropped: what lies under a clear pixel is read */
    static const struct {
        const char *name;
        int channels, last;
    } clear[] = {{"alpha.png", 3, 9}, {"greyalpha.png", 1, 7}};
    cnr_sample s = {0};
    for (size_t i = 0; i < CNRI_COUNT(clear); i++) {
        char path[1024];
        snprintf(path, sizeof path, PICTURES "%s", clear[i].name);
        ok(read_one(path, 0, &s) == CNR_OK && s.picture.dim[2] == clear[i].channels &&
               looks_right(&s, 0, clear[i].last),
           "%s", clear[i].name);
        cnri_free(s.picture.data);
    }
    static const char *const bits[] = {"bits.png", "bits.bmp", "bits.pbm", "bits.tif"};
    for (size_t i = 0; i < CNRI_COUNT(bits); i++) {
        char path[1024];
        snprintf(path, sizeof path, PICTURES "%s", bits[i]);
        if (read_one(path, 0, &s) == CNR_E_UNSUPPORTED) {
            skip(bits[i], "its library is not there");
            continue;
        }
        const int64_t c = s.picture.dim[2];
        const uint8_t *data = s.picture.data;
        ok(data && data[0] == 0 && data[47 * c] == 255, "%s: one bit a pixel", bits[i]);
        cnri_free(s.picture.data);
    }
}

/* ---- folders and lists ---- */

/* Path in the test's folder, valid until the next call. */
static char *at(const char *name) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    return path;
}

/* Writes a file. */
static void put(const char *name, const void *data, size_t n) {
    remove(at(name)); /* some file systems flush a file that is cut to nothing and written again */
    FILE *f = fopen(at(name), "wb");
    if (f) {
        fwrite(data, 1, n, f);
        fclose(f);
    }
}

static void put_text(const char *name, const char *text) { put(name, text, strlen(text)); }

/* Reads a file; its bytes. */
static size_t load(const char *name, uint8_t *data, size_t room) {
    char path[1024];
    snprintf(path, sizeof path, PICTURES "%s", name);
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(data, 1, room, f) : 0;
    if (f) fclose(f);
    return n;
}

/* Folders of pictures with their labels. */
static void test_folders(void) {
    uint8_t data[20000];
    char spec[1100];
    cnri_samples s;
    cnr_sample sample;
    const size_t n = load("rgb.png", data, sizeof data);
    mkdir(at("set"), 0755);
    is_int(cnri_samples_open(at("set"), NULL, &s, &err), CNR_E_NOT_FOUND, "an empty folder");
    has_text(err.text, "no pictures", "says so");
    mkdir(at("set/b"), 0755);
    mkdir(at("set/a"), 0755);
    mkdir(at("set/none"), 0755);
    put("set/b/2.png", data, n);
    put("set/b/1.PNG", data, n);
    put("set/a/x.png", data, n);
    put_text("set/a/notes.txt", "hello");
    is_int(cnri_samples_open(at("set"), NULL, &s, &err), CNR_OK, "a folder of folders");
    is_int(s.info.count, 3, "has the pictures in it");
    is_int(s.info.classes, 2, "and a class for each folder with pictures");
    is_int(cnri_samples_read(&s, 0, &sample, &err), CNR_OK, "the first");
    is_int(sample.label, 0, "is of class a");
    has_text(sample.name, "a/x.png", "by its name too");
    cnri_free(sample.picture.data);
    is_int(cnri_samples_read(&s, 1, &sample, &err), CNR_OK, "the second");
    ok(sample.label == 1 && strstr(sample.name, "b/1.PNG"), "is the first of class b");
    cnri_free(sample.picture.data);
    is_int(cnri_samples_read(&s, 3, &sample, &err), CNR_E_ARG, "there is no fourth");
    cnri_samples_close(&s);

    put_text("list.txt", "# comment\nset/b/2.png 7\r\n\n  set/a/x.png\t3 \n");
    snprintf(spec, sizeof spec, "images:%s", at("list.txt"));
    is_int(cnri_samples_open(spec, "eval", &s, &err), CNR_OK, "a list");
    ok(s.info.count == 2 && s.info.classes == 8, "of two, classes up to the largest");
    is_int(cnri_samples_read(&s, 1, &sample, &err), CNR_OK, "paths go by the list's folder");
    is_int(sample.label, 3, "labels as told");
    cnri_free(sample.picture.data);
    cnri_samples_close(&s);
    put_text("list.txt", "set/b/2.png 7\nset/a/x.png\n");
    is_int(cnri_samples_open(spec, "eval", &s, &err), CNR_OK, "a line without an index");
    is_int(cnri_samples_read(&s, 1, &sample, &err), CNR_OK, "names a picture");
    is_int(sample.label, -1, "without a label");
    cnri_free(sample.picture.data);
    cnri_samples_close(&s);
    put_text("list.txt", "set/b/2.png 7\nset/a/x.png seven\n");
    is_int(cnri_samples_open(spec, "eval", &s, &err), CNR_E_FORMAT, "a line with a wrong index");
    has_text(err.where, "list.txt:2", "is named with its number");
    is_int(cnri_samples_open(at("nowhere"), NULL, &s, &err), CNR_E_NOT_FOUND, "no such file");
    has_text(err.text, "mnist:DIR", "lists what could be read");
    put_text("odd.jpg", "this is text");
    is_int(cnri_samples_open(at("odd.jpg"), NULL, &s, &err), CNR_E_UNSUPPORTED, "no picture");
}

/* ---- hostile files ---- */

/* Every length, and many single bytes changed: an error or a picture, never anything else. */
static void damage(const char *name, const char *as) {
    static uint8_t whole[20000], copy[20000];
    const size_t n = load(name, whole, sizeof whole);
    int odd = 0, refused = 0;
    uint32_t x = 1;
    for (size_t i = 0; i < 400; i++) {
        cnr_sample s = {0};
        size_t keep = n;
        memcpy(copy, whole, n);
        if (i % 2) keep = n * i / 400;
        for (int k = 0; !(i % 2) && k < 3; k++) {
            x = x * 1664525u + 1013904223u;
            copy[(x >> 8) % n] = (uint8_t)(x >> 24);
        }
        put(as, copy, keep);
        const cnr_status status = read_one(at(as), 0, &s);
        if (status) refused++;
        else if (s.picture.dim[0] < 1 || s.picture.dim[1] < 1) odd++;
        if (!status) cnri_free(s.picture.data);
    }
    ok(n > 0 && odd == 0 && refused > 150, "%s damaged 400 times: %d refused", name, refused);
}

/* Tests: damaged copies of a file, if its format is read here. */
static void damage_if_read(const char *name, const char *as) {
    char path[1024];
    cnr_sample s = {0};
    snprintf(path, sizeof path, PICTURES "%s", name);
    const cnr_status status = read_one(path, 0, &s);
    cnri_free(s.picture.data);
    if (status == CNR_E_UNSUPPORTED) skip(name, "its library is not there");
    else damage(name, as);
}

/* Pictures that claim too much are refused. */
static void test_hostile(void) {
    uint8_t data[20000];
    cnr_sample s;
    size_t n = load("grey.jpg", data, sizeof data);
    for (size_t i = 0; i + 9 < n; i++)
        if (data[i] == 0xff && data[i + 1] == 0xc0) memset(data + i + 5, 0xfd, 4);
    put("huge.jpg", data, n);
    is_int(read_one(at("huge.jpg"), 0, &s), CNR_E_LIMIT, "65021 x 65021 pixels");
    n = load("grey.jpg", data, sizeof data);
    for (size_t i = 0; i + 9 < n; i++)
        if (data[i] == 0xff && data[i + 1] == 0xc0) data[i + 5] = data[i + 7] = 0x30;
    put("huge.jpg", data, n);
    is_int(read_one(at("huge.jpg"), 0, &s), CNR_E_FORMAT, "more than the file can hold");
    has_text(err.text, "can't hold", "says so before any memory is taken");
    damage("rgb.jpg", "d.jpg");
    damage("progressive.jpg", "d.jpg");
    damage("exif6.jpg", "d.jpg");
    damage("cmyk.jpg", "d.jpg");
    damage("palette.png", "d.png");
    damage("interlaced.png", "d.png");
    damage("exif6.png", "d.png");
    damage("rle8.bmp", "d.bmp");
    damage("palette.bmp", "d.bmp");
    damage("plain.ppm", "d.ppm");
    damage("grey.pgm", "d.pgm");
    damage_if_read("woven.gif", "d.gif");
    damage_if_read("lzw.tif", "d.tif");
    damage_if_read("turned.tif", "d.tif");
    damage_if_read("lossy.webp", "d.webp");
    damage_if_read("rgb.avif", "d.avif");
    damage_if_read("rgb.heic", "d.heic");
    put("other.jxl", "\xff\x0a 0123456789012345", 18);
    is_int(read_one(at("other.jxl"), 0, &s), CNR_E_UNSUPPORTED, "a format that is not read");
    ok(strstr(err.text, "JPEG XL") && strstr(err.text, "PNG"), "is named, with those that are: %s",
       err.text);
    put("empty.png", "", 0);
    char spec[1100];
    put_text("one.txt", "empty.png 0\n");
    snprintf(spec, sizeof spec, "images:%s", at("one.txt"));
    is_int(read_one(spec, 0, &s), CNR_E_FORMAT, "an empty file");
    has_text(err.text, "empty", "is called that");
}

/* Pictures are written and read back. */
static void test_write(void) {
    uint8_t pixels[5 * 7 * 3];
    const cnr_source *source = cnri_descriptor_find(CNR_KIND_SOURCE, "images");
    cnr_sample s = {0};
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)(i * 37);
    cnr_tensor t = {.size = sizeof t, .dtype = CNR_u8, .rank = 3, .dim = {5, 7, 3}, .data = pixels};
    ok(source && source->accepts(at("new.png"), NULL, 0) > 0, "writes .png");
    ok(source && source->accepts(at("new.gif"), NULL, 0) == 0, "but not .gif");
    if (!source) return;
    is_int(source->write(at("new.png"), &t, &err), CNR_OK, "writing");
    is_int(read_one(at("new.png"), 0, &s), CNR_OK, "and reading");
    ok(memcmp(s.picture.data, pixels, sizeof pixels) == 0, "gives the same bytes");
    cnri_free(s.picture.data);
    is_int(source->write("/nowhere/new.png", &t, &err), CNR_E_NOT_FOUND,
           "a folder that isn't there");
    t.dtype = CNR_f32;
    is_int(source->write(at("new2.png"), &t, &err), CNR_E_ARG, "another type");
    for (int n = 1; n < 30; n++) {
        cnr_sample again = {0};
        cnri_alloc_fail_at(n);
        const cnr_status status = read_one(PICTURES "exif6.png", 0, &again);
        cnri_alloc_fail_at(0);
        if (status == CNR_OK) {
            cnri_free(again.picture.data);
            ok(n > 3, "reading survives each of %d allocations failing", n - 1);
            return;
        }
        if (status != CNR_E_MEMORY) ok(0, "allocation %d: %s", n, err.text);
    }
}

int main(void) {
    const char *dirs[] = {CNRT_BUILD_DIR "/plugins", NULL};
    cnri_graph_install(cnri_host_mutable());
    cnri_plugins_load(dirs, false, &err);
    if (!cnri_descriptor_find(CNR_KIND_SOURCE, "images")) {
        skip("pictures", "source-images was not built (libjpeg, libpng)");
        return done();
    }
    if (!mkdtemp(scratch)) return 1;
    test_forms();
    test_folders();
    test_hostile();
    test_write();
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", scratch);
    ok(system(command) == 0, "tidied up");
    return done();
}
