/* .npy: every type there and back, and what is said of damaged files. */
#include "lua/npy.h"
#include "tap.h"
#include <unistd.h>

static char path[] = "/tmp/cnnrun-npy-XXXXXX";

/* A test: a tensor written and read is of type `want`. */
static void roundtrip(int32_t dtype, int32_t want) {
    static uint8_t data[6 * 8];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 37 % 120);
    cnr_tensor t = {.size = sizeof t, .dtype = dtype, .rank = 2, .dim = {2, 3}, .data = data}, back;
    cnr_error err = CNR_ERROR_INIT;
    char *text = NULL;
    size_t bytes = 0, offset = 0;
    cnr_status status = cnri_npy_write(path, &t, &err);
    if (!status) status = cnri_read_file(path, 1 << 20, &text, &bytes, &err);
    if (!status) status = cnri_npy_read(path, text, bytes, &back, &offset, &err);
    int same = !status && back.dtype == want && back.rank == 2 && back.dim[1] == 3 &&
               offset % 64 == 0 && bytes == offset + cnr_dense_bytes(&back);
    if (same && want == dtype) same = memcmp(text + offset, data, (size_t)back.bytes) == 0;
    for (int64_t i = 0; same && want != dtype && i < 6; i++) {
        back.data = text + offset;
        same = cnri_element(back.dtype, back.data, i) == cnri_element(t.dtype, t.data, i);
    }
    ok(same, "%s", cnr_dtype_name(dtype));
    if (status) note("%s: %s", err.where, err.text);
    cnri_free(text);
}

/* A test: a file with this header is refused. */
static void refused(const char *header, size_t extra, const char *part) {
    char text[512];
    const size_t n = strlen(header);
    cnr_tensor t;
    size_t offset;
    cnr_error err = CNR_ERROR_INIT;
    memset(text, 0, sizeof text);
    memcpy(text, "\x93NUMPY\x01", 7);
    text[8] = (char)n;
    memcpy(text + 10, header, n);
    const cnr_status status = cnri_npy_read("x.npy", text, 10 + n + extra, &t, &offset, &err);
    ok(status != CNR_OK && strstr(err.text, part), "%.60s: %s", header, part);
    if (!strstr(err.text, part)) note("%s", err.text);
}

int main(void) {
    const int file = mkstemp(path);
    if (file < 0) return 1;
    close(file);
/* A row of the types. */
#define X(name, value, bits) roundtrip(value, value == CNR_bf16 || bits < 8 ? CNR_f32 : value);
    CNR_DTYPE_LIST(X)
#undef X
    unlink(path);
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", 15, "cut short");
    refused("{'descr': '<f4', 'fortran_order': True, 'shape': (4,), }", 16, "Fortran");
    refused("{'descr': '>f4', 'fortran_order': False, 'shape': (4,), }", 16, "elements of type");
    refused("{'descr': '<f4', 'fortran_order': False}", 16, "lacks");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4", 16, "malformed");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (x,)}", 16, "malformed");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", 16,
            "malformed");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296,4294967296)}", 16,
            "cut short");
    refused("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 16,
            "malformed");
    cnr_tensor t;
    size_t offset;
    cnr_error err = CNR_ERROR_INIT;
    ok(cnri_npy_read("x",
                     "\x93NUMPY\x01\0\xff\xff"
                     "abc",
                     13, &t, &offset, &err) != CNR_OK &&
           strstr(err.text, "header is cut short"),
       "a header longer than the file");
    ok(cnri_npy_read("x", "", 0, &t, &offset, &err) != CNR_OK, "an empty file");
    return done();
}
