/* Progress on stderr: a bar on a terminal, a line now and then elsewhere. */
#include "core/cli/cli.h"
#include <math.h>
#include <unistd.h>

enum { BAR = 24 };

void cnri_duration(double seconds, char *out, size_t room) {
    if (!(seconds >= 0) || seconds > 1e9) snprintf(out, room, "?");
    else if (seconds < 9.95) snprintf(out, room, "%.1fs", seconds);
    else if (seconds < 59.5) snprintf(out, room, "%.0fs", seconds);
    else if (seconds < 3600) {
        const int whole = (int)(seconds + 0.5);
        snprintf(out, room, "%dm%02ds", whole / 60, whole % 60);
    } else {
        const int64_t minutes = (int64_t)(seconds / 60);
        snprintf(out, room, "%lldh%02dm", (long long)(minutes / 60), (int)(minutes % 60));
    }
}

void cnri_progress_begin(cnri_progress *p, const char *what, int64_t total, bool quiet) {
    memset(p, 0, sizeof *p);
    p->what = what;
    p->total = total;
    p->begun_ns = p->shown_ns = cnri_real_ns();
    p->terminal = isatty(STDERR_FILENO) == 1;
    p->quiet = quiet;
}

void cnri_progress_show(cnri_progress *p, int64_t done, const char *text) {
    const uint64_t now = cnri_real_ns();
    /* Ten times a second on a terminal; a log file gets a line every ten seconds. */
    const uint64_t pause = p->terminal ? 100000000u : 10000000000u;
    if (p->quiet || now - p->shown_ns < pause) return;
    p->shown_ns = now;
    char line[256], left[32] = "", bar[BAR + 1];
    const double spent = (double)(now - p->begun_ns) * 1e-9;
    int n;
    if (p->total > 0) {
        const double part = done < p->total ? (double)done / (double)p->total : 1.0;
        if (done > 0) cnri_duration(spent / part - spent, left, sizeof left);
        for (int i = 0; i < BAR; i++) bar[i] = i < (int)(part * BAR + 0.5) ? '#' : '.';
        bar[BAR] = 0;
        n = snprintf(line, sizeof line, "%s [%s] %lld/%lld%s%s%s%s", p->what, bar, (long long)done,
                     (long long)p->total, *left ? "  left " : "", left, text ? "  " : "",
                     text ? text : "");
    } else {
        cnri_duration(spent, left, sizeof left);
        n = snprintf(line, sizeof line, "%s %lld  %s%s%s", p->what, (long long)done, left,
                     text ? "  " : "", text ? text : "");
    }
    if (p->terminal) cnri_say(stderr, "\r%-*s", p->width, line);
    else cnri_say(stderr, "%s\n", line);
    fflush(stderr);
    p->width = n < (int)sizeof line ? n : (int)sizeof line - 1;
}

void cnri_progress_end(cnri_progress *p) {
    if (p->terminal && p->width) cnri_say(stderr, "\r%*s\r", p->width, "");
    p->width = 0;
}

/* ---- what work tells, as a bar ---- */

static int32_t show(void *arg, const cnr_progress *p) {
    cnri_watching *w = arg;
    char text[96] = "";
    if (!w->begun || w->bar.what != p->what) {
        if (w->begun) cnri_progress_end(&w->bar);
        cnri_progress_begin(&w->bar, p->what, p->total, w->quiet);
        w->begun = true;
    }
    if (p->epoch)
        snprintf(text, sizeof text, "epoch %lld  loss %.4f  right %.2f%%", (long long)p->epoch,
                 p->loss, 100 * p->top1);
    else if (!isnan(p->top1)) snprintf(text, sizeof text, "top-1 %.2f%%", 100 * p->top1);
    cnri_progress_show(&w->bar, p->done, *text ? text : NULL);
    return 0;
}

const cnr_observer *cnri_watch(cnri_watching *w, const cnri_args *args) {
    memset(w, 0, sizeof *w);
    w->quiet = args->common.quiet;
    w->observer = (cnr_observer){.size = sizeof w->observer, .arg = w, .progress = show,
                                 .cancel = cnri_signals_flag()};
    return &w->observer;
}

void cnri_watch_end(cnri_watching *w) {
    if (w->begun) cnri_progress_end(&w->bar);
    w->begun = false;
}
