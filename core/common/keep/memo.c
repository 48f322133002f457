/* Memos as text: a plan's decisions for another process.
 *
 *     reads print                              of weights that were compared with their digests
 *     unfolded value                           a weight that nothing is folded into
 *     tightness number                         which way of fitting the memory bound
 *     placed node axis=A device=share ...      where a policy placed a node
 *     node part chain way version device kernel      a line for each part
 *
 * with tabs between words, but for those of a placement. */
#include "keep/keep.h"

/* ---- printing ---- */

/* Appends a node's placement as a line of a stored plan. */
static void print_placed(const cnr_plan *plan, int32_t node, cnri_text *out) {
    const cnri_placement *w = &plan->placed.at[plan->placed_as[node]];
    cnri_text_add(out, "placed\t%d\taxis=%d", (int)node, (int)w->axis);
    for (int32_t i = 0; i < w->n_parts; i++) {
        char share[64];
        cnri_print_double(share, sizeof share, w->parts[i].ratio);
        cnri_text_add(out, " %s=%s", w->parts[i].device, share);
    }
    cnri_text_add(out, "\n");
}

void cnri_memo_print(const cnr_plan *plan, cnri_text *out) {
    char print[33];
    if (!cnri_plan_reads(plan, print)) out->failed = true;
    else if (*print) cnri_text_add(out, "reads\t%s\n", print);
    if (plan->tightness) cnri_text_add(out, "tightness\t%d\t\n", (int)plan->tightness);
    for (int32_t i = 0; i < plan->unfolded.n; i++)
        cnri_text_add(out, "unfolded\t%d\t\n", (int)plan->unfolded.at[i]);
    for (int32_t i = 0; plan->placed_as && i < plan->graph->nodes.n; i++)
        if (plan->placed_as[i] >= 0) print_placed(plan, i, out);
    for (int32_t i = 0; i < plan->decisions.n; i++) {
        const cnri_decision *d = &plan->decisions.at[i];
        cnri_text_add(out, "%d\t%d\t%d\t%d\t%u\t%s\t%s\n", (int)d->node, (int)d->part,
                      (int)d->n_chain, (int)d->way, (unsigned)d->version, d->device, d->kernel);
    }
}

/* ---- reading ---- */

/* Returns the field up to the tab or end of line at *at, and moves past it; NULL: there is none. */
static char *field(char **at, char end) {
    char *begin = *at, *stop = strchr(begin, end);
    if (!stop) return NULL;
    *stop = 0;
    *at = stop + 1;
    return begin;
}

/* Reads a number from 0 to maximum up to the next tab, and moves *at behind it; false: none. */
static bool number(char **at, int64_t maximum, int64_t *out) {
    const char *text = field(at, '\t');
    return text && cnri_parse_int(text, out) && *out >= 0 && *out <= maximum;
}

/* Reads one line of a stored plan; false: it is malformed. */
static bool parse_line(char *line, cnri_decision *d) {
    int64_t n[5];
    for (int i = 0; i < 5; i++)
        if (!number(&line, i == 4 ? UINT32_MAX : INT32_MAX, &n[i])) return false;
    *d = (cnri_decision){(int32_t)n[0], (int32_t)n[1], (int32_t)n[2], (int32_t)n[3],
                         NULL,          NULL,          (uint32_t)n[4]};
    d->device = field(&line, '\t');
    d->kernel = line;
    return d->device && *d->device && !strchr(line, '\t');
}

/* Parses "NODE<tab>axis=A device=share ...", which follows the word "placed". */
static cnr_status parse_placed(cnri_memo *memo, char *line, cnr_error *err) {
    int64_t node;
    if (!number(&line, INT32_MAX, &node))
        return cnri_fail(err, CNR_E_FORMAT, "choices", "a placement is malformed");
    cnri_placed *to = cnri_push(&memo->placed);
    if (!to) return cnri_out_of_memory(err, "plan");
    to->node = (int32_t)node;
    return cnri_wish_read(&to->where, "choices", line, err);
}

/* Parses a number, which follows the word "unfolded" or "tightness". */
static cnr_status parse_bound(cnri_memo *memo, char *line, cnr_error *err) {
    const char *word = field(&line, '\t');
    int64_t value;
    if (!number(&line, INT32_MAX, &value))
        return cnri_fail(err, CNR_E_FORMAT, "choices", "a number of \"%s\" is malformed", word);
    if (*word == 't') memo->tightness = value;
    if (*word == 't') return CNR_OK;
    cnr_value *to = cnri_push(&memo->unfolded);
    if (!to) return cnri_out_of_memory(err, "plan");
    *to = (cnr_value)value;
    return CNR_OK;
}

cnr_status cnri_memo_parse(cnri_memo *memo, const char *text, cnr_error *err) {
    if (!(memo->text = cnri_strdup(text))) return cnri_out_of_memory(err, "plan");
    for (char *at = memo->text, *line; *at;) {
        cnri_decision d;
        line = field(&at, '\n');
        if (line && !memo->reads && strncmp(line, "reads\t", 6) == 0) {
            memo->reads = line + 6;
            continue;
        }
        if (line && strncmp(line, "placed\t", 7) == 0) {
            const cnr_status status = parse_placed(memo, line + 7, err);
            if (status) return status;
            continue;
        }
        if (line &&
            (strncmp(line, "unfolded\t", 9) == 0 || strncmp(line, "tightness\t", 10) == 0)) {
            CNR_TRY(parse_bound(memo, line, err));
            continue;
        }
        if (!line || !parse_line(line, &d))
            return cnri_fail(err, CNR_E_FORMAT, "choices", "line %d is malformed",
                             (int)memo->decisions.n + 1);
        if (memo->decisions.n > 0 &&
            !cnri_decides_before(&memo->decisions.at[memo->decisions.n - 1], &d))
            return cnri_fail(err, CNR_E_FORMAT, "choices", "line %d is out of order",
                             (int)memo->decisions.n + 1);
        cnri_decision *slot = cnri_push(&memo->decisions);
        if (!slot) return cnri_out_of_memory(err, "plan");
        *slot = d;
    }
    return CNR_OK;
}

void cnri_memo_free(cnri_memo *memo) {
    cnri_vec_free(&memo->decisions);
    for (int32_t i = 0; i < memo->placed.n; i++) cnri_placement_free(&memo->placed.at[i].where);
    cnri_vec_free(&memo->placed);
    cnri_vec_free(&memo->blobs);
    cnri_vec_free(&memo->unfolded);
    cnri_free(memo->text);
    memo->text = NULL;
}
