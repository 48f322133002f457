/* Random numbers whose result does not depend on them: of a disabled dropout, floor(noise + 1) or
 * noise >= 0. Others are refused. */
#include "job.h"

#include <math.h>

void tf_op_random(tf_job *j) {
    j->entry->out[0].noise = 1;
    j->entry->out[0].low = 0;
    j->entry->out[0].high = 1;
}

/* *out: the constant number that input k is, with 1. 0: it is none. */
static int number(const tf_job *j, int32_t k, double *out) {
    const cnr_tensor *t = k < j->n_in ? tf_known(j->net, j->in[k]) : NULL;
    if (!t || cnr_count(t) != 1 || t->dtype != CNR_f32) return 0;
    *out = (double)*(const float *)t->data;
    return 1;
}

/* Marks output 0 as random numbers from low to high. */
static void moved(tf_job *j, double low, double high) {
    j->entry->out[0].noise = 1;
    j->entry->out[0].low = low;
    j->entry->out[0].high = high;
}

int tf_noise(tf_job *j) {
    const int first = j->n_in > 0 && j->in[0]->noise, second = j->n_in > 1 && j->in[1]->noise;
    double c = 0;
    if (!first && !second) return 0;
    const tf_layouts *x = j->in[first ? 0 : 1];
    const int two = j->n_in == 2 && first != second && number(j, first ? 1 : 0, &c);
    const char *op = j->ours ? j->ours : "";
    if (j->n_in == 1 && j->entry->row->convert == tf_op_pass) moved(j, x->low, x->high);
    else if (two && strcmp(op, "mul") == 0 && c > 0) moved(j, x->low * c, x->high * c);
    else if (two && strcmp(op, "add") == 0) moved(j, x->low + c, x->high + c);
    else if (two && first && strcmp(op, "sub") == 0) moved(j, x->low - c, x->high - c);
    else if (strcmp(op, "floor") == 0 && x->high - x->low <= 1 && floor(x->low) == x->low)
        tf_give(j, 0, tf_scalar(j, x->low));
    else if (two && first && strcmp(op, "greater_or_equal") == 0 && x->low >= c)
        tf_give(j, 0, tf_cast(j, tf_scalar(j, 1), CNR_bool));
    else
        tf_problem(j,
                   "it depends on random numbers: is a dropout on? --option value.NAME=NUMBER sets "
                   "a placeholder");
    return 1;
}
