/* nets.cpp NET PICTURE LABEL FOLDER: the C++ header, with exceptions and with results, as TAP. */
#include <atomic>
#include <cmath>
#include <cnnrun/cnnrun.hpp>
#include <cstdio>
#include <thread>

static int count, failed;
/* Prints one TAP line. */
static void ok(bool is, const char *what) {
    std::printf("%sok %d - %s\n", is ? "" : "not ", ++count, what);
    failed += !is;
}

#ifdef CNNRUN_RESULTS
int main(int, char **argv) {
    auto rt = cnnrun::runtime::open();
    ok(bool(rt), "a runtime");
    auto lost = rt->load("no such file.cnr");
    ok(!lost && lost.error().status() < 0 &&
           lost.error().where().find("no such file") != std::string::npos,
       "an error is a value with its status and place");
    auto net = rt->load(argv[1]);
    auto scores = net->run(argv[2]);
    ok(scores && cnnrun::topk(*scores, 1).at(0).index == std::atoi(argv[3]),
       "a picture is recognised");
    auto bad = net->set_weight("nobody", cnnrun::tensor());
    ok(!bad, "a weight that is not there is an error");
    std::printf("1..%d\n", count);
    return failed != 0;
}
#else
/* Errors become exceptions. */
static void errors(cnnrun::runtime &rt) {
    try {
        rt.load("no such file.cnr");
        ok(false, "an error is thrown");
    } catch (const cnnrun::error &e) {
        ok(e.status() < 0 && e.where().find("no such file") != std::string::npos &&
               std::string(e.what()).size() > e.where().size(),
           "an error has its status, place and text");
    }
}

/* Threads share a net. */
static void threads(const cnnrun::net &net, const std::vector<float> &in, const cnnrun::shape &dims,
                    const std::vector<float> &want) {
    std::atomic<int> right{0};
    std::vector<std::thread> all;
    for (int i = 0; i < 4; i++)
        all.emplace_back([&] {
            cnnrun::session s = net.plan_for({dims}).open();
            for (int k = 0; k < 10; k++) {
                s.set_input(0, cnnrun::tensor(in, dims));
                s.run();
                const auto got = s.output().as<float>();
                right += std::equal(want.begin(), want.end(), got.begin(), got.end());
            }
        });
    for (auto &t : all) t.join();
    ok(right == 40, "four threads with a session each give the same bits");
}

/* Inputs and outputs in memory of the caller. */
static void bound(const cnnrun::net &net, const std::vector<float> &in, const cnnrun::shape &dims,
                  const std::vector<float> &want) {
    alignas(64) static float memory[1 << 16];
    cnnrun::session s = net.plan_for({dims}).open();
    s.bind_input(0, cnnrun::tensor(cnnrun::span<float>(memory, in.size()), dims));
    std::copy(in.begin(), in.end(), memory); /* after binding: the run reads it there */
    s.run();
    const auto got = s.output().as<float>();
    ok(std::equal(want.begin(), want.end(), got.begin(), got.end()),
       "an input in memory of the caller's own");
    s.bind_input(0, cnnrun::tensor());
    s.set_input(0, cnnrun::tensor(in, dims));
    s.run();
    ok(s.output().as<float>()[0] == want[0], "... and copied again");
}

int main(int, char **argv) {
    std::vector<std::string> log;
    cnnrun::open_options options;
    options.log_level = 3;
    options.log = [&](int32_t, const char *, const char *text) {
        log.push_back(text);
        throw 1; /* goes nowhere */
    };
    std::unique_ptr<cnnrun::net> kept;
    {
        cnnrun::runtime rt(options);
        kept = std::make_unique<cnnrun::net>(rt.load(argv[1]));
        ok(!rt.devices().empty() && rt.devices().back().size() > 2, "devices have names");
        errors(rt);
    }
    cnnrun::net net = *kept;
    ok(!log.empty(), "messages reach a C++ function, and what it throws goes nowhere");
    const auto best = cnnrun::topk(net.run(argv[2]), 3);
    ok(best.size() == 3 && best[0].index == std::atoi(argv[3]) && best[0].score > best[1].score,
       "a net outlives its runtime's name and recognises a picture");
    const auto in = net.inputs().at(0);
    auto dims = in.second.dims();
    for (auto &d : dims) d = d < 0 ? 1 : d;
    std::vector<float> x(1);
    for (auto d : dims) x.resize(x.size() * static_cast<std::size_t>(d));
    for (std::size_t i = 0; i < x.size(); i++) x[i] = std::sin(static_cast<float>(i));
    const auto out = net.run({cnnrun::tensor(x, dims)});
    const auto floats = out.at(0).as<float>();
    const std::vector<float> want(floats.begin(), floats.end());
    ok(!want.empty(), "tensors in, tensors out");
    try {
        out.at(0).as<int32_t>();
        ok(false, "elements of another type");
    } catch (const std::invalid_argument &) { ok(true, "elements of another type are refused"); }
    threads(net, x, dims, want);
    bound(net, x, dims, want);

    cnnrun::net other = net.copy();
    const std::string name = other.weights().at(0);
    std::vector<float> zeros(other.weight(name).as<float>().size());
    other.set_weight(name, cnnrun::tensor(zeros, other.weight(name).dims()));
    const auto changed = other.run({cnnrun::tensor(x, dims)}).at(0).as<float>();
    ok(!std::equal(want.begin(), want.end(), changed.begin()), "a copy has weights of its own");
    const std::filesystem::path file = std::filesystem::path(argv[4]) / "copy.cnr";
    other.save(file);
    cnnrun::net again = cnnrun::runtime().load(file);
    const auto read = again.run({cnnrun::tensor(x, dims)}).at(0).as<float>();
    ok(std::equal(read.begin(), read.end(), changed.begin()), "and what was saved loads again");

    cnnrun::observer watch;
    int asked = 0;
    watch.progress = [&](const cnr_progress &) -> bool {
        asked++;
        throw std::string("enough");
    };
    try {
        cnr_profile_options many{};
        many.runs = 1000000;
        net.profile(many, &watch);
        ok(false, "an exception of an observer");
    } catch (const std::string &s) {
        ok(s == "enough" && asked == 1, "an observer's exception stops the work");
    }
    cnr_profile_options few{};
    few.runs = 3, few.steps = 1;
    const auto t = net.profile(few);
    ok(t->n_steps > 0 && t->ms_median > 0, "a profile");
    const std::filesystem::path lua = std::filesystem::path(argv[4]) / "count.lua";
    if (std::FILE *f = std::fopen(lua.c_str(), "w")) {
        std::fputs("return function(text, tell, net, t)\n  tell 'row'\n"
                   "  return text .. t[2] .. net:label(0)\nend\n",
                   f);
        std::fclose(f);
    }
    std::vector<float> pair{1, 2};
    std::vector<cnnrun::tensor> given{cnnrun::tensor(pair, {2})};
    cnnrun::script script = net.script(lua);
    std::string told;
    watch.progress = nullptr;
    watch.event = [&](int32_t kind, const void *of) {
        if (kind == CNR_EVENT_SCRIPT) told = static_cast<const char *>(of);
        return false;
    };
    ok(script.call("t", given, &watch) == "t2.00" && told == "row",
       "a script is called, and tells");
    try {
        script.call("t");
        ok(false, "a script's error");
    } catch (const cnnrun::error &e) {
        ok(e.status() == CNR_E_SCRIPT && e.where().find("count.lua:3") != std::string::npos,
           "a script's error has its line");
    }
    for (int i = 0; i < 200; i++) cnnrun::runtime(options).load(argv[1]).run(argv[2]);
    ok(true, "two hundred runtimes, nets and runs come and go");
    std::printf("1..%d\n", count);
    return failed != 0;
}
#endif
