// A rewrite: a ReLU before a max pooling moves behind it, where there are fewer elements. The
// largest of values that are limited below is the largest value, limited; a window of padding
// alone, or beyond the end, has none, so there may be neither.
#include <cnnrun/kit.hpp>

namespace {
namespace kit = cnnrun::kit;

// The rewrite.
struct PoolFirst {
    static constexpr const char *name = "beta-pool-first";
    static constexpr const char *summary = "moves relu behind max_pool";
    static constexpr int32_t order = 500;

    static bool is(const kit::node &n, const char *op) {
        return n.c->desc->name == std::string(op);
    }

    // The host calls it until it returns 0. What `at` returns lives until the graph changes.
    static int32_t apply(kit::graph &g) {
        for (int32_t i = 0; i < g.size(); i++) {
            const kit::graph::place pool = g.at(i);
            const int32_t before = pool.in.n ? g.producer(pool.in[0]) : -1;
            if (before < 0 || !is(pool.n, "max_pool") || pool.out.n != 1) continue;
            const auto pads = pool.n.attr<kit::list<int64_t>>("pads");
            if (std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; }) ||
                pool.n.attr<int64_t>("ceil_mode") ||
                pool.n.attr<std::string>("auto_pad").rfind("SAME", 0) == 0)
                continue;
            const kit::graph::place relu = g.at(before);
            if (!is(relu.n, "relu") || g.uses(relu.out[0]) != 1) continue;
            swap(g, i, before, pool, relu);
            return 1;
        }
        return 0;
    }

  private:
    static void swap(kit::graph &g, int32_t at, int32_t before, const kit::graph::place &pool,
                     const kit::graph::place &relu) {
        const cnr_value x = relu.in[0], old = pool.out[0];
        cnr_value pooled = -1;
        const std::string name = pool.n.c->name;
        g.insert_before(at);
        const cnr_status status =
            kit::host->graph_node(g.c, "max_pool", name.c_str(), nullptr, &x, 1, pool.n.c->attrs,
                                  pool.n.c->n_attrs, &pooled, 1);
        kit::want(!status, status, "max_pool can't be added");
        const cnr_value y = g.add("relu", {pooled});
        g.replace(old, y);
        g.remove(at + 2); // the two new nodes stand before it
        g.remove(before);
    }
};
} // namespace

CNR_KIT_PLUGIN("cpp-rewrite", "1.0", "an example rewrite", "MIT", CNR_TOUCHES_NOTHING,
               cnnrun::kit::rewrite<PoolFirst>())
