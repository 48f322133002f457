/* A mean image that is a picture. */
#include "core/data/data.h"

/* C H W, from a picture's H W C. */
static void add_planes(const cnr_tensor *picture, cnri_text *out) {
    const int64_t pixels = picture->dim[0] * picture->dim[1], channels = picture->dim[2];
    const uint8_t *values = picture->data;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < pixels; i++)
            cnri_text_add(out, out->n ? ",%d" : "%d", values[i * channels + c]);
}

cnr_status cnri_mean_of_picture(const char *path, cnri_text *out, cnr_error *err) {
    cnri_samples samples;
    cnr_sample sample = {.size = sizeof sample};
    cnr_status status = cnri_samples_open(path, NULL, &samples, err);
    if (status) return status;
    status = cnri_samples_read(&samples, 0, &sample, err);
    cnri_samples_close(&samples);
    if (status) return status;
    add_planes(&sample.picture, out);
    cnri_free(sample.picture.data);
    return out->failed ? cnri_fail(err, CNR_E_MEMORY, path, "out of memory") : CNR_OK;
}
