/* How pictures become inputs, in words: for every input of a net that takes pictures. */
#include "cli/cli.h"
#include "samples/samples.h"

bool cnri_is_numbers(const char *text) {
    const char *end;
    double first;
    return cnri_parse_double(text, &end, &first) && (*end == 0 || *end == ',' || *end == ' ');
}

/* Appends the numbers of a picture (H W C) in the order C H W. */
static void add_planes(const cnr_tensor *picture, cnri_text *out) {
    const int64_t pixels = picture->dim[0] * picture->dim[1], channels = picture->dim[2];
    const uint8_t *values = picture->data;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < pixels; i++)
            cnri_text_add(out, out->n ? ",%d" : "%d", values[i * channels + c]);
}

/* Reads a mean image from a picture file, as the text that metadata stores. */
static cnr_status mean_of_picture(const char *path, cnri_text *out, cnr_error *err) {
    cnri_samples samples;
    cnr_sample sample = {.size = sizeof sample};
    cnr_status status = cnri_augment_open(path, NULL, &samples, err);
    if (status) return status;
    status = cnri_samples_read(&samples, 0, &sample, err);
    cnri_samples_close(&samples);
    if (status) return status;
    add_planes(&sample.picture, out);
    cnri_free(sample.picture.data);
    return out->failed ? cnri_out_of_memory(err, path) : CNR_OK;
}

/* True if the input can take pictures: 2 to 4 dimensions. */
static bool takes_pictures(const cnr_graph *g, cnr_value input) {
    const int32_t rank = g->values.at[input].type->rank;
    return rank >= 2 && rank <= 4;
}

/* Text of an option; NULL: not given. */
static const char *find(const cnri_step_words *words, int32_t n, const char *option) {
    for (int32_t i = 0; i < n; i++)
        if (strcmp(words[i].option, option) == 0) return words[i].text;
    return NULL;
}

/* Fails for units that can't belong to pixels, and for a crop that would be scaled afterwards. */
static cnr_status check(cnr_graph *g, cnr_value input, bool units, bool crop, cnr_error *err) {
    cnri_preprocess p;
    const cnr_tensor *type = g->values.at[input].type;
    const cnri_axes axes = cnri_picture_axes(type);
    const int64_t *size = axes.height >= 0 ? type->dim + axes.height : NULL;
    cnr_status status = cnri_preprocess_read(g, g->values.at[input].name, &p, err);
    if (status) return status;
    if (units) status = cnri_preprocess_units(&p, "--mean, --std", err);
    if (crop && size && p.crop_h > 0 && size[0] > 0 && size[1] > 0 &&
        (p.crop_h != size[0] || p.crop_w != size[1]))
        cnri_graph_warn(g, "--crop",
                        "%lld x %lld is scaled to the net's %lld x %lld: is another crop "
                        "meant?",
                        (long long)p.crop_h, (long long)p.crop_w, (long long)size[0],
                        (long long)size[1]);
    cnri_preprocess_free(&p);
    return status;
}

/* Sets all preprocessing of an input. */
static cnr_status set_all(cnr_graph *g, cnr_value input, const cnri_step_words *words, int32_t n,
                          const cnri_text *mean, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < n && !status; i++) {
        const bool image = mean->at && strcmp(words[i].option, "--mean") == 0;
        if (words[i].text)
            status = cnri_preprocess_set(g, g->values.at[input].name, words[i].option + 2,
                                         image ? mean->at : words[i].text, err);
    }
    return status;
}

cnr_status cnri_preprocess_words(cnr_graph *g, const cnri_step_words *words, int32_t n,
                                 cnr_error *err) {
    const char *mean = find(words, n, "--mean");
    const bool units = mean || find(words, n, "--std"), crop = find(words, n, "--crop");
    cnri_text image = {0};
    cnr_status status = CNR_OK;
    if (mean && !cnri_is_numbers(mean)) status = mean_of_picture(mean, &image, err);
    for (int32_t i = 0; i < g->inputs.n && !status; i++) {
        const cnr_value input = g->inputs.at[i];
        if (!takes_pictures(g, input)) continue;
        status = set_all(g, input, words, n, &image, err);
        if (!status) status = check(g, input, units, crop, err);
    }
    cnri_text_free(&image);
    return status;
}
