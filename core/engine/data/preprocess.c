/* Settings of the way from a picture to a net's input. common/pictures/ goes it by them.
 *
 * Kept as texts in the graph's metadata, "input.NAME.KEY":
 *   resize     "256x224" height x width; "256": the shorter side
 *   crop       "224x224" or "224": the middle, after resize; "0.875": the middle part, before it
 *   mean, std  one number, or one a channel in the net's order; mean also C H W numbers
 *   scale      one number
 *   channels   "rgb", "bgr" or "gray"
 *   letterbox  "true", or the grey level of the border; "114,corner": the picture goes to the top
 *              left instead of the middle
 * What is left at another size than the input's is cut to it after a shorter-side resize, else
 * scaled. */
#include "data/data.h"
#include <math.h>

enum { MAX_SIDE = CNRI_MAX_PICTURE_SIDE, DEFAULT_FILL = 114 };

/* ---- texts to fields ---- */

/* Recognised by its address among the messages for mistakes. */
static const char no_memory[] = "out of memory";

/* Fills err with why a setting is refused and its text. */
static cnr_status complain(const char *why, int32_t code, const char *where, const char *text,
                           cnr_error *err) {
    if (why == no_memory) return cnri_fail(err, CNR_E_MEMORY, where, "%s", why);
    return cnri_fail(err, code, where, "%s, got \"%.80s\"", why, text);
}

/* Parses "256x224" or "256" (then *w is -1) into *h and *w; false: it is neither. */
static bool parse_size(const char *text, int64_t *h, int64_t *w) {
    const char *end;
    double a, b;
    if (!cnri_parse_double(text, &end, &a) || a < 1 || a > MAX_SIDE || a != floor(a)) return false;
    *h = (int64_t)a;
    *w = -1;
    if (*end == 0) return true;
    if (*end != 'x' && *end != ',') return false;
    if (!cnri_parse_double(end + 1, &end, &b) || *end || b < 1 || b > MAX_SIDE || b != floor(b))
        return false;
    *w = (int64_t)b;
    return true;
}

/* Reads HxW, or one number for the shorter side. Like all set_...: NULL, or what was wanted. */
static const char *set_resize(cnri_preprocess *p, const char *text) {
    return parse_size(text, &p->resize_h, &p->resize_w)
               ? NULL
               : "wanted HxW, or one number for the shorter side";
}

/* Reads a crop: HxW, one number, or a part of the shorter side between 0 and 1. Returns NULL, or
 * why not. */
static const char *set_crop(cnri_preprocess *p, const char *text) {
    const char *end;
    double part;
    if (cnri_parse_double(text, &end, &part) && *end == 0 && part > 0 && part < 1) {
        p->crop_part = part;
        return NULL;
    }
    if (!parse_size(text, &p->crop_h, &p->crop_w))
        return "wanted HxW, one number for both, or a part like 0.875";
    if (p->crop_w < 0) p->crop_w = p->crop_h;
    return NULL;
}

/* Reads at most `capacity` finite numbers separated by commas or spaces. Returns how many the
 * text has, -1 if it is malformed. `out` may be NULL. */
static int64_t parse_numbers(const char *text, float *out, int64_t capacity) {
    int64_t n = 0;
    double value;
    for (;;) {
        while (*text == ' ') text++;
        if (!cnri_parse_double(text, &text, &value) || !isfinite(value)) return -1;
        if (out && n < capacity) out[n] = (float)value;
        n++;
        while (*text == ' ') text++;
        if (*text == 0) return n;
        if (*text == ',') text++;
    }
}

/* Reads one to four numbers into out; *n: how many. Returns NULL, or why not. */
static const char *set_few(double *out, int32_t *n, const char *text) {
    float values[4];
    const int64_t count = parse_numbers(text, values, 4);
    if (count < 1 || count > 4) return "wanted 1 to 4 numbers with commas between";
    for (int64_t i = 0; i < count; i++) out[i] = (double)values[i];
    *n = (int32_t)count;
    return NULL;
}

/* Reads a mean: up to four numbers, one a channel, or a whole mean image, in place of the old.
 * Returns NULL, or why not. */
static const char *set_mean(cnri_preprocess *p, const char *text) {
    const int64_t count = parse_numbers(text, NULL, 0);
    if (count < 1) return "wanted numbers with commas between";
    cnri_free(p->mean_image);
    p->mean_image = NULL;
    p->mean_count = 0;
    p->n_mean = 0;
    if (count <= 4) return set_few(p->mean, &p->n_mean, text);
    p->mean_image = cnri_alloc((size_t)count * sizeof *p->mean_image);
    if (!p->mean_image) return no_memory;
    p->mean_count = (uint64_t)count;
    parse_numbers(text, p->mean_image, count);
    return NULL;
}

/* Reads standard deviations, one for all or one a channel, none 0. Returns NULL, or why not. */
static const char *set_std(cnri_preprocess *p, const char *text) {
    const char *why = set_few(p->std, &p->n_std, text);
    for (int32_t i = 0; !why && i < p->n_std; i++)
        if (p->std[i] == 0) why = "a standard deviation can't be 0";
    return why;
}

/* Reads the finite factor of pixels. Returns NULL, or why not. */
static const char *set_scale(cnri_preprocess *p, const char *text) {
    const char *end;
    if (!cnri_parse_double(text, &end, &p->scale) || *end || !isfinite(p->scale))
        return "wanted a number";
    return NULL;
}

/* Reads the order of channels: 3 for RGB, -3 for BGR, 1 for grey. Returns NULL, or why not. */
static const char *set_channels(cnri_preprocess *p, const char *text) {
    static const struct {
        const char *name;
        int32_t value;
    } orders[] = {{"rgb", 3}, {"bgr", -3}, {"gray", 1}, {"grey", 1}};
    for (size_t i = 0; i < CNRI_COUNT(orders); i++)
        if (strcmp(text, orders[i].name) == 0) {
            p->channels = orders[i].value;
            return NULL;
        }
    return "wanted rgb, bgr or gray";
}

/* Sets letterbox from true, false, the fill from 0 to 255, or FILL,corner for pictures at the top
 * left. Returns NULL, or what was wanted. */
static const char *set_letterbox(cnri_preprocess *p, const char *text) {
    const char *end;
    double fill = DEFAULT_FILL;
    p->letterbox = strcmp(text, "false") != 0;
    p->letterbox_corner = false;
    if (p->letterbox && strcmp(text, "true") != 0) {
        const bool number = cnri_parse_double(text, &end, &fill) && fill >= 0 && fill <= 255;
        p->letterbox_corner = number && strcmp(end, ",corner") == 0;
        if (!number || (*end && !p->letterbox_corner))
            return "wanted true, false, or a grey level from 0 to 255, maybe with \",corner\"";
    }
    p->letterbox_fill = (float)fill;
    return NULL;
}

static const struct key {
    const char *suffix; /* end of the metadata key */
    /* Returns NULL, or a text that says what was expected. */
    const char *(*set)(cnri_preprocess *p, const char *text);
} keys[] = {
    {".resize", set_resize},       {".crop", set_crop},
    {".mean", set_mean},           {".std", set_std},
    {".scale", set_scale},         {".channels", set_channels},
    {".letterbox", set_letterbox},
};

/* Fills *p with the preprocessing of an input that has no settings. */
static void defaults(cnri_preprocess *p) {
    memset(p, 0, sizeof *p);
    p->scale = 1;
    p->letterbox_fill = DEFAULT_FILL;
}

void cnri_preprocess_free(cnri_preprocess *p) {
    cnri_free(p->mean_image);
    p->mean_image = NULL;
    p->mean_count = 0;
}

cnr_status cnri_preprocess_read(const cnr_graph *g, const char *input, cnri_preprocess *out,
                                cnr_error *err) {
    cnr_status status = CNR_OK;
    defaults(out);
    for (size_t i = 0; i < CNRI_COUNT(keys) && !status; i++) {
        char *name = cnri_format("input.%s%s", input, keys[i].suffix);
        if (!name) status = cnri_out_of_memory(err, input);
        const char *text = name ? cnri_host.graph_meta(g, name) : NULL;
        const char *why = text ? keys[i].set(out, text) : NULL;
        if (why) status = complain(why, CNR_E_FORMAT, name, text, err);
        cnri_free(name);
    }
    if (status) cnri_preprocess_free(out);
    return status;
}

/* cnri_preprocess_change with the arguments of a preset's step. */
static cnr_status change_step(void *p, const char *key, const char *text, cnr_error *err) {
    return cnri_preprocess_change(p, key, text, err);
}

cnr_status cnri_preprocess_change(cnri_preprocess *p, const char *key, const char *text,
                                  cnr_error *err) {
    if (strcmp(key, "preset") == 0) return cnri_preset_each(text, change_step, p, err);
    const char *names[CNRI_COUNT(keys)];
    for (size_t i = 0; i < CNRI_COUNT(keys); i++) {
        names[i] = keys[i].suffix + 1;
        if (strcmp(names[i], key) != 0) continue;
        const char *why = keys[i].set(p, text);
        return why ? complain(why, CNR_E_ARG, key, text, err) : CNR_OK;
    }
    const char *near = cnri_nearest_word(key, names, CNRI_COUNT(names));
    return cnri_fail(err, CNR_E_ARG, key, "no such step of preprocessing%s%s%s",
                     near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

/* An input of a graph, as the argument of set_step. */
typedef struct input {
    cnr_graph *g;
    const char *name;
} input;

/* cnri_preprocess_set with the arguments of a preset's step. */
static cnr_status set_step(void *arg, const char *key, const char *text, cnr_error *err) {
    const input *i = arg;
    return cnri_preprocess_set(i->g, i->name, key, text, err);
}

cnr_status cnri_preprocess_set(cnr_graph *g, const char *input_name, const char *key,
                               const char *text, cnr_error *err) {
    cnri_preprocess p;
    input whole = {g, input_name};
    if (strcmp(key, "preset") == 0) return cnri_preset_each(text, set_step, &whole, err);
    defaults(&p);
    cnr_status status = cnri_preprocess_change(&p, key, text, err);
    cnri_preprocess_free(&p);
    if (status) return status;
    char *name = cnri_format("input.%s.%s", input_name, key);
    status = name ? cnri_host.graph_set_meta(g, name, text) : CNR_E_MEMORY;
    cnri_free(name);
    return status ? cnri_fail(err, status, key, "out of memory") : CNR_OK;
}
