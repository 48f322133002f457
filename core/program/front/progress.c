/* Progress on stderr: a bar on a terminal, an occasional line elsewhere. */
#include "front/front.h"
#include "people/people.h"
#include <math.h>
#include <unistd.h>

enum { BAR = 24 };

/* Begins to show a new activity. */
static void begin(cnri_watching *w, const cnr_progress *p) {
    cnri_watch_end(w);
    w->what = p->what;
    w->total = p->total;
    w->first = p->done > 1 ? p->done : 0; /* gone on from where it was */
    w->begun_ns = w->shown_ns = cnri_real_ns();
    w->terminal = isatty(STDERR_FILENO) == 1;
}

/* Writes the text behind the bar (epoch, loss and share right, or top-1) to out, cut to capacity.
 * Without an epoch and with top1 NaN out stays as it is, so the caller sets it to "" before. */
static void add_result(const cnr_progress *p, char *out, size_t capacity) {
    if (p->epoch)
        snprintf(out, capacity, "  epoch %lld  loss %.4f  right %.2f%%", (long long)p->epoch,
                 p->loss, 100 * p->top1);
    else if (!isnan(p->top1)) snprintf(out, capacity, "  top-1 %.2f%%", 100 * p->top1);
}

int32_t cnri_watch_show(void *watching, const cnr_progress *p) {
    cnri_watching *w = watching;
    if (!w->what || w->what != p->what) begin(w, p);
    const uint64_t now = cnri_real_ns();
    /* Ten times a second on a terminal; a log file gets a line every ten seconds. */
    const uint64_t pause = w->terminal ? 100000000u : 10000000000u;
    if (w->quiet || now - w->shown_ns < pause) return 0;
    w->shown_ns = now;
    char line[256], time[32] = "", bar[BAR + 1], result[96] = "";
    const double spent = (double)(now - w->begun_ns) * 1e-9;
    int n;
    add_result(p, result, sizeof result);
    if (w->total > 0) {
        const double part = p->done < w->total ? (double)p->done / (double)w->total : 1.0;
        if (p->done > w->first)
            cnri_duration(spent * (double)(w->total - p->done) / (double)(p->done - w->first), time,
                          sizeof time);
        for (int i = 0; i < BAR; i++) bar[i] = i < (int)(part * BAR + 0.5) ? '#' : '.';
        bar[BAR] = 0;
        n = snprintf(line, sizeof line, "%s [%s] %lld/%lld%s%s%s", w->what, bar, (long long)p->done,
                     (long long)w->total, *time ? "  left " : "", time, result);
    } else {
        cnri_duration(spent, time, sizeof time);
        n = snprintf(line, sizeof line, "%s %lld  %s%s", w->what, (long long)p->done, time, result);
    }
    if (w->terminal) cnri_say(stderr, "\r%-*s", w->width, line);
    else cnri_say(stderr, "%s\n", line);
    fflush(stderr);
    w->width = n < (int)sizeof line ? n : (int)sizeof line - 1;
    return 0;
}

const cnr_observer *cnri_watch(cnri_call *call) {
    cnri_watching *w = &call->watching;
    *w = (cnri_watching){.quiet = call->common.quiet > 0};
    w->observer = (cnr_observer){.size = sizeof w->observer,
                                 .arg = w,
                                 .progress = cnri_watch_show,
                                 .cancel = cnri_signals_flag()};
    return &w->observer;
}

void cnri_watch_end(cnri_watching *w) {
    if (w->what && w->terminal && w->width) cnri_say(stderr, "\r%*s\r", w->width, "");
    w->width = 0;
    w->what = NULL;
}
