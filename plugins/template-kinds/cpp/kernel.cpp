// A kernel for the CPU: `dense` from weights that are turned once, on the stream's threads. The
// operator's reference judges it.
#include <cnnrun/kit.hpp>

namespace {
namespace kit = cnnrun::kit;

class Dense {
  public:
    static constexpr const char *name = "beta.dense_f32_turned", *op = "dense", *device = "cpu";

    // Is asked about each `dense` node while planning: takes it, or says why not.
    static void accepts(const kit::node &n, kit::answer &a) {
        const cnr_tensor *x = n.in(0).c, *w = n.in(1).c, *b = n.in(2).c;
        if (!cnr_all_plain(n.c, 1u << CNR_f32)) return a.refuse("dense f32 is wanted");
        if (!(w->flags & CNR_TENSOR_CONST) || (b && !(b->flags & CNR_TENSOR_CONST)))
            return a.refuse("weights that are computed are left to others");
        if (cnr_span(x, 1, x->rank) != w->dim[1]) return a.refuse("one row a sample is wanted");
        a.take(100);
        a.c->prepared = 1u << 1 | (b ? 1u << 2 : 0); // inputs that only `prepare` reads
    }

    // The blob: bias[out], then the weights as [in][out]. Stored plans keep it.
    static uint64_t blob_bytes(const kit::node &n) {
        return static_cast<uint64_t>(n.in(1).dim(0) * (n.in(1).dim(1) + 1)) * sizeof(float);
    }
    static void prepare(const kit::node &n, void *blob) {
        const kit::tensor w = n.in(1), b = n.in(2);
        const int64_t out = w.dim(0), in = w.dim(1);
        float *bias = static_cast<float *>(blob), *turned = bias + out;
        for (int64_t o = 0; o < out; o++) {
            bias[o] = b ? b.data<float>()[o] : 0;
            for (int64_t i = 0; i < in; i++) turned[i * out + o] = w.data<float>()[o * in + i];
        }
    }

    // The state: what is worked out once a plan, and shared by all sessions of it.
    Dense(const kit::node &n, cnr_space &) : out_(n.in(1).dim(0)), in_(n.in(1).dim(1)) {}

    void run(const kit::run &r) const {
        const float *x = r.in(0).data<float>(), *bias = static_cast<float *>(r.call->blob_data);
        float *y = r.out().data<float>();
        r.parallel(r.out().dim(0), [&](int64_t row) {
            float *to = y + row * out_;
            std::copy_n(bias, out_, to);
            for (int64_t i = 0; i < in_; i++) {
                const float v = x[row * in_ + i];
                const float *w = bias + (i + 1) * out_;
                for (int64_t o = 0; o < out_; o++) to[o] += v * w[o];
            }
        });
    }

  private:
    int64_t out_, in_;
};
} // namespace

CNR_KIT_PLUGIN("cpp-kernel", "1.0", "an example kernel", "MIT", CNR_TOUCHES_NOTHING,
               cnnrun::kit::kernel<Dense>())
