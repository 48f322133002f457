/* Convenience calls: run tensors or a picture through a model, and pick the best scores. */
#include "embed/embed.h"
#include "pictures/pictures.h"
#include <math.h>

/* Makes m->session fit these inputs: it is made again when the shapes, and so the plan, change. */
static cnr_status session_for(cnr_model *m, const cnr_tensor *const *inputs, int32_t n,
                              cnr_error *err) {
    cnr_plan *plan;
    cnr_status status = cnr_plan_for(m, inputs, n, &plan, err);
    if (status) return status;
    cnr_session *s = m->session;
    if (!s || cnri_session_plan(s) != plan) {
        m->session = NULL;
        cnr_session_close(s);
        status = cnr_session_open(plan, &s, err);
        if (!status) m->session = s;
    }
    cnr_plan_release(plan); /* the session keeps the plan */
    return status;
}

cnr_status cnr_run_tensors(cnr_model *m, const cnr_tensor *const *inputs, int32_t n_inputs,
                           const cnr_tensor **outputs, int32_t n_outputs, cnr_error *err) {
    cnr_status status = cnri_require_arguments(err, "model", m, NULL);
    if (!status && n_inputs > 0) status = cnri_require_arguments(err, "inputs", inputs, NULL);
    if (!status && n_outputs > 0) status = cnri_require_arguments(err, "outputs", outputs, NULL);
    if (status) return status;
    if (n_outputs < 0 || n_outputs > m->graph->outputs.n)
        return cnri_fail(err, CNR_E_ARG, m->path ? m->path : "model", "has %d outputs, not %d",
                         (int)m->graph->outputs.n, (int)n_outputs);
    for (int32_t i = 0; i < n_inputs; i++) {
        const char *fault = inputs[i] ? cnri_tensor_fault(inputs[i]) : "input is missing";
        if (fault) return cnri_fail(err, CNR_E_ARG, cnr_input_name(m, i), "%s", fault);
    }
    return m->adapting.run ? m->adapting.run(m, inputs, n_inputs, outputs, n_outputs, err)
                           : cnri_run_plainly(m, inputs, n_inputs, outputs, n_outputs, err);
}

cnr_status cnri_run_plainly(cnr_model *m, const cnr_tensor *const *inputs, int32_t n_inputs,
                            const cnr_tensor **outputs, int32_t n_outputs, cnr_error *err) {
    cnr_status status = session_for(m, inputs, n_inputs, err);
    for (int32_t i = 0; i < n_inputs && !status; i++)
        status = cnr_session_set_input(m->session, i, inputs[i], err);
    if (!status) status = cnr_session_run(m->session, err);
    for (int32_t i = 0; i < n_outputs && !status; i++)
        status = cnr_session_output(m->session, i, &outputs[i], err);
    return status;
}

/* Preprocesses a picture and runs the model's own session with it; *out belongs to the session. */
static cnr_status run_sample(cnr_model *m, const cnr_tensor *picture, const cnr_tensor **out,
                             cnr_error *err) {
    cnri_preprocess p;
    cnr_tensor input;
    cnr_status status = cnri_preprocess_read(m->graph, cnr_input_name(m, 0), &p, err);
    if (status) return status;
    cnri_model_sizes(m, 0, (cnri_sizes){.preprocess = &p, .picture = picture, .batch = 1}, &input);
    p.memory_limit = m->plan_options.memory_limit;
    status = cnri_memory_fits(input.bytes, p.memory_limit, cnr_input_name(m, 0), "the input", err);
    if (!status && !(input.data = cnri_alloc_zero((size_t)input.bytes + 1)))
        status = cnri_out_of_memory(err, "picture");
    if (!status) {
        const cnr_tensor *list[1] = {&input};
        status = cnri_preprocess_apply(&p, picture, &input, err);
        if (!status) status = cnr_run_tensors(m, list, 1, out, 1, err);
        cnri_free(input.data);
    }
    cnri_preprocess_free(&p);
    return status;
}

cnr_status cnr_run_picture(cnr_model *m, const char *path, const cnr_tensor **out, cnr_error *err) {
    cnri_samples samples;
    if (out) *out = NULL;
    cnr_status status = cnri_require_arguments(err, "model", m, "path", path, "out", out, NULL);
    if (status) return status;
    if (m->graph->inputs.n != 1)
        return cnri_fail(err, CNR_E_ARG, m->path ? m->path : "model",
                         "takes %d inputs, so a picture alone is not enough",
                         (int)m->graph->inputs.n);
    status = cnri_samples_open(path, NULL, &samples, err);
    if (status) return status;
    cnr_sample sample = {.size = sizeof sample};
    status = cnri_samples_read(&samples, 0, &sample, err);
    cnri_samples_close(&samples);
    if (status) return status;
    status = run_sample(m, &sample.picture, out, err);
    cnri_free(sample.picture.data);
    return status;
}

/* ---- top k ---- */

/* True if a goes before b: larger first, NaN last, of equals the lower index first. */
static bool ahead(double a, int64_t i, double b, int64_t k) {
    if (isnan(a) || isnan(b)) return isnan(a) == isnan(b) ? i < k : isnan(b);
    return a != b ? a > b : i < k;
}

int32_t cnr_topk(const cnr_tensor *scores, int32_t k, cnr_top *out) {
    const int64_t n = out && scores && scores->data && !cnri_tensor_check(scores, NULL, NULL)
                          ? cnr_count(scores)
                          : 0;
    int32_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        const double v = cnri_element(scores->dtype, scores->data, i);
        int32_t at = found;
        while (at > 0 && ahead(v, i, cnri_element(scores->dtype, scores->data, out[at - 1].index),
                               out[at - 1].index))
            at--;
        if (at >= k) continue;
        if (found < k) found++;
        memmove(&out[at + 1], &out[at], (size_t)(found - 1 - at) * sizeof *out);
        out[at] = (cnr_top){i, (float)v};
    }
    return found;
}
