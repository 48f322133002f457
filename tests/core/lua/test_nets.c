/* Nets in Lua: what they become, and what is said of their mistakes. */
#include "lua/script.h"
#include "tap.h"
#include <unistd.h>

static char folder[] = "/tmp/cnnrun-lua-XXXXXX";

/* Writes a file; returns its path. */
static const char *write_file(const char *name, const char *text) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (f) {
        fputs(text, f);
        fclose(f);
    }
    return path;
}

static cnr_error err;

/* The graph of a script; NULL with err filled. */
static cnr_graph *load(const char *text, const char *weights, const char *net) {
    cnr_graph *g = NULL;
    cnr_load_options options = {.size = sizeof options, .weights = weights, .net = net};
    memset(&err, 0, sizeof err);
    err.size = sizeof err;
    cnri_lua_load(NULL, write_file("net.lua", text), &options, &g, &err);
    return g;
}

#define HEAD "local c = require 'cnnrun'\n"

/* A test: the type of a value. */
static void is_type(const cnr_graph *g, const char *value, const char *want) {
    char got[128] = "";
    const cnr_value v = cnri_graph_find(g, value);
    const cnr_tensor *t = v >= 0 ? cnri_graph_type(g, v) : NULL;
    for (int32_t i = 0; t && i < t->rank; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%lld", i ? "," : "",
                 (long long)t->dim[i]);
    char what[96];
    snprintf(what, sizeof what, "shape of %s", value);
    is_text(got, want, what);
}

/* Tests: right nets. */
static void good_nets(void) {
    cnr_graph *g =
        load(HEAD
             "return c.net { name = 'lenet5', weights = 'lenet5.cnr',\n"
             "  input = { 'data', shape = { 1, 1, 28, 28 }, scale = 1/255, mean = {1, 2.5} },\n"
             "  labels = { 'zero', 'one' },\n"
             "  c.conv2d { 'conv1', out = 20, kernel = 5 },\n"
             "  c.maxpool { 'pool1', kernel = 2, stride = 2 },\n"
             "  c.conv2d { 'conv2', out = 50, kernel = 5 },\n"
             "  c.maxpool { 'pool2', kernel = 2, stride = 2 },\n"
             "  c.dense { 'ip1', out = 500 }, c.relu {},\n"
             "  c.dense { 'ip2', out = 10 }, c.softmax {} }\n",
             "random:1", NULL);
    if (ok(g != NULL, "the net of the field notes")) {
        is_int(g->nodes.n, 8, "eight nodes");
        is_text(g->name, "lenet5", "its name");
        is_type(g, "conv1", "1,20,24,24");
        is_type(g, "pool2", "1,50,4,4");
        is_type(g, "ip2", "1,10");
        is_type(g, "conv2.weight", "50,20,5,5");
        is_text(cnri_graph_meta(g, "input.data.mean"), "1,2.5", "lists in preprocessing");
        is_text(cnri_graph_meta(g, "labels"), "zero\none", "labels");
        ok(cnri_graph_meta(g, "input.data.scale") != NULL, "scale is kept");
        ok(strstr(g->nodes.at[2]->where, "net.lua:7") != NULL, "a layer knows its line");
    } else note("%s: %s", err.where, err.text);
    cnri_graph_free(g);

    g = load(HEAD "local x = c.input { 'x', shape = { 'batch', 3, 8, 8 } }\n"
                  "local y = c.conv2d { x, out = 4, kernel = 3, pad = 1 }\n"
                  "local z = c.relu(y)\n"
                  "return c.net { outputs = { c.add { y, z }, c.concat { y, z, axis = 1 } } }\n",
             "random:1", NULL);
    if (ok(g != NULL, "a functional net")) {
        is_int(g->inputs.n, 1, "one input");
        is_int(g->outputs.n, 2, "two outputs");
        is_int(g->nodes.n, 4, "four nodes");
        is_text(g->symbols.at[0], "batch", "a named dimension");
        is_type(g, "concat_1", "-2,8,8,8");
        is_text(g->name, "net", "named after its file");
    } else note("%s: %s", err.where, err.text);
    cnri_graph_free(g);

    g = load(HEAD "local function block(name, n)\n"
                  "  return c.seq { name, c.conv2d { 'conv', out = n, kernel = 1 }, c.relu {} }\n"
                  "end\n"
                  "local body = { }\n"
                  "for i = 1, 3 do body[i] = block('block' .. i, 4 * i) end\n"
                  "return c.net { input = { 'x', shape = { 1, 3, 8, 8 } }, body,\n"
                  "  c.concat { axis = 1, c.conv2d { out = 2, kernel = 1 }, c.seq {}, { c.relu {}, "
                  "c.relu {} } },\n"
                  "  function(x) return c.add { x, c.relu { x } } end,\n"
                  "  c.parallel { c.relu { 'a' }, c.sigmoid { 'b' } } }\n",
             "random:1", NULL);
    if (ok(g != NULL, "lists, loops, branches, functions")) {
        is_type(g, "block3.conv", "1,12,8,8");
        is_type(g, "block3.conv.weight", "12,8,1,1");
        is_type(g, "concat_1", "1,26,8,8");
        is_int(g->outputs.n, 2, "two branches, two outputs");
        is_text(g->outputs.names[1], "b", "named after their layers");
    } else note("%s: %s", err.where, err.text);
    cnri_graph_free(g);

    g = load(HEAD "local shared = c.conv2d { 'tower', out = 4, kernel = 3 }\n"
                  "local a, b = c.input { 'a', shape = { 1, 3, 8, 8 } }, c.input { 'b', shape = { "
                  "1, 3, 9, 9 } }\n"
                  "return c.net { inputs = { b, a }, outputs = { shared(a), shared(b) } }\n",
             "random:1", NULL);
    if (ok(g != NULL, "a layer applied twice")) {
        is_int(g->nodes.n, 2, "two nodes");
        is_int(g->nodes.at[0]->in[1], g->nodes.at[1]->in[1], "share their weights");
        is_text(cnri_graph_value_name(g, g->inputs.at[0]), "a", "inputs as they were made");
    } else note("%s: %s", err.where, err.text);
    cnri_graph_free(g);

    g = load(HEAD "local x = c.input { 'x', shape = { 2, 3 } }\n"
                  "local y = c.mul { x, 2 }\n"
                  "y = c.add { y, c.data { 1, 2, 3 } }\n"
                  "y = c.add { y, { 0.5, 1.5, 2.5 } }\n"
                  "y = c.mul { y, c.weight { 'gain', shape = { 3 }, init = 0.25 } }\n"
                  "return { one = c.net { output = y }, two = c.net { output = c.relu(x) } }\n",
             "random:1", "one");
    if (ok(g != NULL, "constants, weights, and one net of several")) {
        is_int(g->nodes.n, 4, "four nodes");
        const cnr_value gain = cnri_graph_find(g, "gain");
        ok(gain >= 0 && ((const float *)cnri_graph_type(g, gain)->data)[2] == 0.25f,
           "a weight begins at its init");
    } else note("%s: %s", err.where, err.text);
    cnri_graph_free(g);
}

/* A test: the net is refused at this place, with such a message. */
static void mistaken(const char *text, const char *where, const char *part) {
    cnr_graph *g = load(text, "random:1", NULL);
    char what[160];
    snprintf(what, sizeof what, "said: %s", part);
    ok(g == NULL && strstr(err.text, part) != NULL, "%s", what);
    if (g || !strstr(err.text, part)) note("%s: %s", err.where, err.text);
    if (where) has_text(err.where, where, "  and where");
    cnri_graph_free(g);
}

/* A net of these layers. */
#define NET(layers) HEAD "return c.net { input = { 'x', shape = { 1, 3, 8, 8 } },\n" layers " }\n"

/* Tests: wrong nets. */
static void mistakes(void) {
    mistaken(NET("c.conv2d { out = 4, kernel = 1 },\nc.relu {},\nc.maxpool { kernel = 2, stride = "
                 "0 }"),
             "net.lua:5", "body[3].stride: want 1 to");
    mistaken(NET("c.conv2d { out = 4, kernel = 1, strid = 2 }"), "net.lua:3", "did you mean");
    mistaken(NET("c.conv2dd { out = 4 }"), "net.lua:3",
             "unknown operator 'conv2dd' (did you mean 'conv2d'?)");
    mistaken(NET("c.seq { c.relu {}, { c.maxpool { kernel = 0 } } }"), "net.lua:3",
             "body[1][2][1].kernel");
    mistaken(NET("c.conv2d { out = 4, kernel = 20 }"), "net.lua:3", "");
    mistaken(HEAD "x = 3\n", "net.lua:2", "'x' is assigned as a global: say 'local x'");
    mistaken(HEAD "return c.nett { prnt(1) }\n", "net.lua:2",
             "unknown global 'prnt' (did you mean 'print'?)");
    mistaken(HEAD "local x = = 3\n", "net.lua:2", "unexpected symbol");
    mistaken(HEAD "return 3\n", NULL, "want a net");
    mistaken(HEAD, NULL, "returns nothing");
    mistaken(HEAD "return function() end\n", NULL, "experiment");
    mistaken(HEAD "return c.net { c.relu {} }\n", "net.lua:2", "want input =");
    mistaken(HEAD "return c.net { input = { 'x', shape = { 1, -3 } }, c.relu {} }\n", "net.lua:2",
             "shape[2]: want a size or a name, got -3");
    mistaken(HEAD "return c.net { input = { 'x', shape = { 1 }, scael = 2 }, c.relu {} }\n",
             "net.lua:2", "did you mean scale?");
    mistaken(HEAD "return c.net { imput = { 'x', shape = { 1 } }, c.relu {} }\n", NULL,
             "did you mean 'input'?");
    mistaken(NET("true"), "net.lua:2", "body[1]: want a layer, got a boolean value");
    mistaken(NET("c.relu { 'a' }, c.relu { 'a' }"), "net.lua:3", "already");
    mistaken(NET("c.relu {}, weights = '../secret.cnr'"), "net.lua:2", "outside");
    mistaken(NET("c.relu {}, labels = '/etc/passwd'"), "net.lua:2", "outside");
    mistaken("local x = require '../x'\n", "net.lua:1", "plain name");
    mistaken("local x = require 'nothing.here'\n", "net.lua:1", "no module 'nothing.here'");
    mistaken(HEAD "local l = {}\nl[1] = l\nreturn c.net { input = { 'x', shape = { 1 } }, l }\n",
             "net.lua:4", "nest deeper");
    mistaken(HEAD "local x = c.input { 'x', shape = { 1 } }\n"
                  "return { a = c.net { output = c.relu(x) }, b = c.net { output = c.relu(x) } }\n",
             NULL, "several nets, of which one is wanted (--net): a, b");

    cnr_graph *named = load(NET("c.relu {}"), "random:1", "other");
    ok(!named, "another net than the script's");
    has_text(err.text, "holds one net, 'net', not 'other'", "is refused by name");

    /* all in one go */
    cnr_graph *g = load(NET("c.conv2d { out = 0, kernel = 1 },\nc.reluu {},\n"
                            "c.maxpool { kernel = 'two', strid = 1 },\nc.dense { out = -1 }"),
                        "random:1", NULL);
    ok(g == NULL, "five mistakes in four lines");
    has_text(err.text, "net.lua:3: body[1].weight: out", "the first");
    const char *second = strstr(err.text, "'reluu'");
    ok(second && second > strstr(err.text, "body[1]") && second < strstr(err.text, "body[3]"),
       "the second, in the order of lines");
    has_text(err.text, "body[3].kernel", "the third");
    has_text(err.text, "net.lua:5: body[3].strid", "the fourth");
    has_text(err.text, "net.lua:6: body[4].out", "the fifth");

    g = load(HEAD "return c.net { weights = 'absent.cnr', input = { 'x', shape = { 1, 4 } },\n"
                  "  c.dense { out = 3 } }\n",
             NULL, NULL);
    ok(g == NULL && err.code == CNR_E_NOT_FOUND, "absent weights");
    has_text(err.text, "--weights random:SEED", "and what to do");
    g = load(HEAD "return c.net { weights = 'absent.cnr', input = { 'x', shape = { 1, 4 } },\n"
                  "  c.dense { out = 3 } }\n",
             "none", NULL);
    ok(g != NULL, "weights none: to look at the net");
    cnri_graph_free(g);
}

/* Tests: modules of layers. */
static void modules(void) {
    write_file("blocks.lua", HEAD
               "local M = {}\n"
               "function M.twice(n)\n"
               "  return { c.conv2d { out = n, kernel = 1 }, c.conv2d { out = n, kernel = 99 } }\n"
               "end\n"
               "return M\n");
    mistaken("local c, blocks = require 'cnnrun', require 'blocks'\n"
             "return c.net { input = { 'x', shape = { 1, 3, 8, 8 } },\n  blocks.twice(4) }\n",
             "blocks.lua:4 (from ", "");
    has_text(err.where, "net.lua:3)", "a builder's mistake tells who called it");
    write_file("loop.lua", "return require 'loop'\n");
    mistaken("require 'loop'\n", "loop.lua:1", "requires itself");
}

/* cnnrun has a pattern matcher of its own, which must answer like Lua's. */
static void patterns(void) {
    static const char text[] =
        "local function is(want, ...)\n"
        "  local t = table.pack(...)\n"
        "  for i = 1, t.n do t[i] = tostring(t[i]) end\n"
        "  local got = table.concat(t, ' ')\n"
        "  if got ~= want then error(('want \"%s\", got \"%s\"'):format(want, got), 2) end\n"
        "end\n"
        "is('2 3 b c', ('abcd'):find('(b)(c)'))\n"
        "is('4 3', ('abc'):find('', 10) or 4, 3)\n"
        "is('3 3', ('a.b.c'):find('b', 1, true))\n"
        "is('2 2', ('a.b'):find('.', 2, true))\n"
        "is('key value', ('  key = value'):match('^%s*(%w+)%s*=%s*(%w+)'))\n"
        "is('(a(b)c)', ('x(a(b)c)y'):match('%b()'))\n"
        "is('THE (quick) 2', ('THE (quick) fox'):gsub('%f[%a]%l+$', ''):match('(.-)%s*$'), 2)\n"
        "is('hello hello world world 2', ('hello world'):gsub('%w+', '%0 %0'))\n"
        "is('-a-b- 3', ('ab'):gsub('', '-'))\n"
        "is('<x> 1', ('$name'):gsub('%$(%w+)', { name = '<x>' }))\n"
        "is('aXc 1', ('abc'):gsub('b', string.upper):gsub('B', 'X'))\n"
        "is('1 3', ('[[]]'):match('()%[%[()'))\n"
        "is('abab', ('xababy'):match('(ab)%1') and 'abab')\n"
        "local t = {}\n"
        "for k, v in ('a=1, b=2'):gmatch('(%w+)=(%w+)') do t[#t + 1] = k .. v end\n"
        "is('a1 b2', table.unpack(t))\n"
        "is('false', pcall(string.gsub, 'x', 'x', '%') and 1)\n"
        "is('xx,xx,xx', ('xx'):rep(3, ','))\n";
    cnr_graph *g = load(text, NULL, NULL);
    ok(!g && strstr(err.text, "returns nothing"), "string functions answer as Lua's");
    if (!strstr(err.text, "returns nothing")) note("%s: %s", err.where, err.text);
}

int main(void) {
    if (!mkdtemp(folder)) return 1;
    cnri_graph_install(cnri_host_mutable());
    cnri_lua_install();
    const char *dirs[] = {CNRT_BUILD_DIR "/plugins", NULL};
    if (cnri_plugins_load(dirs, false, &err) != CNR_OK) note("%s", err.text);
    if (!cnri_op_find("conv")) {
        skip("nets in Lua", "no operators: build the plugins");
        return done();
    }
    patterns();
    good_nets();
    mistakes();
    modules();
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0) note("%s stays", folder);
    return done();
}
