// An operator: y = sign(x) * max(|x| - threshold, 0), element by element, with its gradient.
// The flags alone give it in-place, splitting, channel blocks and fusion behind other layers.
#include <cnnrun/kit.hpp>

namespace {
namespace kit = cnnrun::kit;

// The operator.
struct SoftThreshold {
    static constexpr const char *name = "beta.soft_threshold";
    static constexpr const char *summary = "shrinks towards zero by a threshold";
    static constexpr uint32_t flags =
        CNR_OP_ELEMENTWISE | CNR_OP_EPILOGUE | CNR_OP_PURE | CNR_OP_RANGES;
    static inline const cnr_attr_spec attrs[] = {
        kit::real("threshold", 0.5, 0, 1e30, "values nearer to 0 than this become 0")};
    static constexpr cnr_port inputs[] = {{"x", 0, 0, "any shape"}};
    static constexpr cnr_port outputs[] = {{"y", 0, 0, "shape of x"}};

    // The type and shape of the output; all checks that the schema cannot express.
    static void infer(const kit::node &n, kit::outputs out) {
        kit::want(n.in(0).is<float>(), CNR_E_UNSUPPORTED, "x must be f32");
        out.like(0, n.in(0));
    }
    // What the planner fuses behind other layers; `y` is the second operand, where there is one.
    static void apply(const kit::node &n, const float *x, const float *, float *out,
                      int64_t count) {
        const float t = n.attr<float>("threshold");
        for (int64_t i = 0; i < count; i++)
            out[i] = x[i] > t ? x[i] - t : x[i] < -t ? x[i] + t : x[i] != x[i] ? x[i] : 0.0f;
    }
    // Judges every kernel for this operator. CNR_OP_RANGES: it computes what the run asks for.
    static void reference(const kit::run &r) {
        const float *x = r.in(0).data<float>();
        float *y = r.out().data<float>();
        r.each_piece([&](int64_t first, int64_t n) { apply(r, x + first, nullptr, y + first, n); });
    }
    // dx = dy where y is not 0: nodes that compute it are added to the training graph.
    static cnr_value gradient(kit::graph &g, const kit::node &, const kit::flows &v, int32_t) {
        const cnr_value passes = g.add("abs", {g.add("sign", {v.out[0]})});
        return g.add("mul", {v.grad[0], passes});
    }
};
} // namespace

CNR_KIT_PLUGIN("cpp-operator", "1.0", "an example operator", "MIT", CNR_TOUCHES_NOTHING,
               cnnrun::kit::op<SoftThreshold>())
