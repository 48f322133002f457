/* Scripts that an application calls: texts, tensors, a lent net, what is told, errors, stopping. */
#include "../../guests/guests.h"
#include <cnnrun/cnnrun.h>
#include <unistd.h>

/* What a script told. */
typedef struct heard {
    int32_t n, stop_at;
    char last[64];
} heard;

/* Counts what is told; 1 at the wanted one: stop. */
static int32_t hear(void *arg, int32_t kind, const void *of) {
    heard *h = arg;
    if (kind != CNR_EVENT_SCRIPT) return 0;
    snprintf(h->last, sizeof h->last, "%s", (const char *)of);
    return ++h->n == h->stop_at;
}

/* Opens a script of this text for a model; NULL, and err: it can't. */
static cnr_script *open_text(cnr_runtime *rt, const char *text, cnr_model *m, cnr_error *err) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/cnnrun-called-%d.lua", (int)getpid());
    FILE *file = fopen(path, "w");
    cnr_script *s = NULL;
    if (!file) return NULL;
    fputs(text, file);
    fclose(file);
    cnr_script_open(rt, path, m, &s, err);
    unlink(path);
    return s;
}

/* Texts and tensors go into a script's function and come back. */
static void test_values(cnr_runtime *rt) {
    cnr_error err = CNR_ERROR_INIT;
    float data[3] = {1, 2, 4};
    cnr_tensor t =
        {.size = sizeof t, .dtype = CNR_f32, .rank = 1, .dim = {3}, .data = data, .bytes = 12};
    const cnr_tensor *list[] = {&t, &t};
    const char *out = NULL;
    cnr_script *s = open_text(rt,
                              "local n = 0\n"
                              "return function(text, tell, net, a, b)\n"
                              "  n = n + 1\n"
                              "  if not a then return end\n"
                              "  return text .. n .. ' ' .. a[1] + b[3] .. tostring(net)\n"
                              "end\n",
                              NULL, &err);
    ok(s != NULL, "a script is opened: %s", err.text);
    ok(!cnr_script_call(s, "call ", list, 2, NULL, &out, &err), "and called: %s", err.text);
    is_text(out, "call 1 5.0nil", "with a text and tensors");
    ok(!cnr_script_call(s, NULL, NULL, 0, NULL, &out, &err), "again, with nothing: %s", err.text);
    is_text(out, "", "which gives nothing");
    ok(!cnr_script_call(s, "", list, 2, NULL, &out, &err), "its state stays: %s", err.text);
    is_text(out, "3 5.0nil", "from call to call");
    cnr_tensor bad = t;
    bad.bytes = 4;
    list[1] = &bad;
    ok(cnr_script_call(s, "", list, 2, NULL, &out, &err) == CNR_E_ARG && !out,
       "a tensor that is too short: %s", err.text);
    ok(cnr_script_call(NULL, "", NULL, 0, NULL, &out, &err) == CNR_E_ARG, "no script: %s",
       err.text);
    cnr_script_close(s);
    cnr_script_close(NULL);
}

/* A script runs the net that the application passes. */
static void test_net(cnr_runtime *rt) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = NULL;
    const char *out = NULL;
    ok(!cnr_load(rt, CNRT_SOURCE_DIR "/scripts/nets/lenet5.lua", NULL, &m, &err), "a net: %s",
       err.text);
    cnr_script *s = open_text(rt,
                              "local c = require 'cnnrun'\n"
                              "return function(text, tell, net)\n"
                              "  if text == 'close' then return net:close() end\n"
                              "  return net:label(net:picture(text):topk(1)[1].index)\n"
                              "end\n",
                              m, &err);
    ok(s && !cnr_script_call(s, CNRT_SOURCE_DIR "/scripts/nets/digits/three.png", NULL, 0, NULL,
                             &out, &err),
       "it is lent to a script, which runs it: %s", err.text);
    is_text(out, "3", "right");
    ok(cnr_script_call(s, "nowhere.png", NULL, 0, NULL, &out, &err) != CNR_E_SCRIPT &&
           !strstr(err.where, ".lua"),
       "an error of the library comes out as it is: %s: %s", err.where, err.text);
    cnr_script_call(s, "close", NULL, 0, NULL, &out, &err);
    ok(cnr_script_call(s, CNRT_SOURCE_DIR "/scripts/nets/digits/two.png", NULL, 0, NULL, &out,
                       &err) == CNR_E_SCRIPT,
       "a script may close it for itself: %s", err.text);
    cnr_script_close(s);
    const cnr_tensor *scores;
    ok(!cnr_run_picture(m, CNRT_SOURCE_DIR "/scripts/nets/digits/three.png", &scores, &err),
       "it is the application's as before: %s", err.text);
    cnr_release(m);
}

/* What a script tells reaches the observer, which can stop it. */
static void test_telling(cnr_runtime *rt) {
    cnr_error err = CNR_ERROR_INIT;
    heard h = {.stop_at = 3};
    volatile int32_t flag = 0;
    cnr_observer o = {.size = sizeof o, .arg = &h, .event = hear, .cancel = &flag};
    const char *out = NULL;
    cnr_script *s = open_text(rt,
                              "return function(n, tell)\n"
                              "  for i = 1, math.tointeger(n) do pcall(tell, 'row ' .. i) end\n"
                              "  if n == '0' then while true do end end\n"
                              "  return 'end'\n"
                              "end\n",
                              NULL, &err);
    ok(!cnr_script_call(s, "2", NULL, 0, &o, &out, &err) && h.n == 2, "what it tells is heard: %s",
       err.text);
    is_text(h.last, "row 2", "text by text");
    ok(cnr_script_call(s, "9", NULL, 0, &o, &out, &err) == CNR_E_CANCELLED && h.n == 3,
       "who hears may stop it, whatever it catches: %s", err.text);
    ok(!cnr_script_call(s, "1", NULL, 0, NULL, &out, &err), "it can be called again: %s", err.text);
    flag = 1;
    ok(cnr_script_call(s, "0", NULL, 0, &o, &out, &err) == CNR_E_CANCELLED,
       "a loop without an end is stopped by the flag: %s", err.text);
    cnr_script_close(s);
}

/* Scripts that are missing or wrong are refused. */
static void test_refusals(cnr_runtime *rt) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_script *s = NULL;
    const char *out = NULL;
    ok(cnr_script_open(rt, "calls/none.lua", NULL, &s, &err) == CNR_E_NOT_FOUND && !s,
       "no such script: %s", err.text);
    ok(!open_text(rt, "return 3\n", NULL, &err), "one that returns no function: %s", err.text);
    ok(!open_text(rt, "return function(\n", NULL, &err) && strstr(err.where, ".lua:"),
       "one with a mistake: %s: %s", err.where, err.text);
    s = open_text(rt, "return function(t) if t == 'n' then return 3 end error('mine', 0) end\n",
                  NULL, &err);
    ok(cnr_script_call(s, "n", NULL, 0, NULL, &out, &err) == CNR_E_SCRIPT, "a number: %s",
       err.text);
    ok(cnr_script_call(s, "e", NULL, 0, NULL, &out, &err) == CNR_E_SCRIPT, "its own error");
    is_text(err.text, "mine", "is told");
    cnr_script_close(s);
}

int main(void) {
    cnr_error err = CNR_ERROR_INIT;
    ok(!guests_open(2, &err), "open: %s", err.text);
    test_values(guests_rt);
    test_net(guests_rt);
    test_telling(guests_rt);
    test_refusals(guests_rt);
    cnr_close(guests_rt);
    return done();
}
