// An NPU as a device: it compiles regions of convolution, bias, activation and pooling into one
// step each, and runs them by a queue of its own. The chip is played by a thread; replace what is
// under "the chip" by calls of a driver.
#include <cnnrun/kit.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace {
const cnr_host *host;
constexpr double gmacs = 2,
                 start_ns = 5e3; // multiply-accumulates a nanosecond, and what a job costs

// ---- the chip: memory of its own, and queues that work by themselves ----
class Queue {
  public:
    Queue() : thread_([this] { work(); }) {}
    ~Queue() {
        add([this] { ends_ = true; });
        thread_.join();
    }
    int64_t add(std::function<void()> job) { // its number
        const std::lock_guard<std::mutex> hold(lock_);
        jobs_.push_back(std::move(job));
        changed_.notify_all();
        return ++added_;
    }
    void await(int64_t number) {
        std::unique_lock<std::mutex> hold(lock_);
        changed_.wait(hold, [&] { return done_ >= number; });
    }

  private:
    void work() {
        while (!ends_) {
            std::unique_lock<std::mutex> hold(lock_);
            changed_.wait(hold, [&] { return !jobs_.empty(); });
            const auto job = std::move(jobs_.front());
            jobs_.pop_front();
            hold.unlock();
            job();
            hold.lock();
            done_++;
            changed_.notify_all();
        }
    }
    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> jobs_;
    int64_t added_ = 0, done_ = 0;
    bool ends_ = false;
    std::thread thread_;
};

// What one region computes.
struct Layer { // a convolution, what bounds it, and a pooling; weights are [out][in x window], then
               // [out] biases
    cnr_window conv, pool;
    int64_t batch, in, out, pools; // channels; 1: it has a pooling
    float low, high;
    int64_t weights() const { return out * in * conv.kernel[0] * conv.kernel[1]; }
};

// Product of two extents: elements of a plane.
int64_t area(const int64_t *dim) { return dim[0] * dim[1]; }

// Calls take(tap, value) for each element of the window of output (row, column) that lies on the
// plane; taps count from 0, row by row.
template <typename Take>
void slide(const cnr_window &c, const float *plane, int64_t row, int64_t column, Take take) {
    for (int64_t ky = 0; ky < c.kernel[0]; ky++)
        for (int64_t kx = 0; kx < c.kernel[1]; kx++) {
            const int64_t y = row * c.stride[0] - c.pad_begin[0] + ky * c.dilation[0];
            const int64_t x = column * c.stride[1] - c.pad_begin[1] + kx * c.dilation[1];
            if (y >= 0 && y < c.in[0] && x >= 0 && x < c.in[1])
                take(ky * c.kernel[1] + kx, plane[y * c.in[1] + x]);
        }
}

// Convolves x [batch][in][plane] into y [batch][out][plane], with bias, clamped to [low, high].
void convolve(const Layer &l, const float *x, const float *w, float *y) {
    const int64_t plane = area(l.conv.in), taps = area(l.conv.kernel);
    for (int64_t n = 0; n < l.batch; n++, x += l.in * plane)
        for (int64_t o = 0; o < l.out; o++)
            for (int64_t at = 0; at < area(l.conv.out); at++) {
                float sum = w[l.weights() + o];
                for (int64_t i = 0; i < l.in; i++)
                    slide(l.conv, x + i * plane, at / l.conv.out[1], at % l.conv.out[1],
                          [&](int64_t tap, float v) { sum += v * w[(o * l.in + i) * taps + tap]; });
                *y++ = sum < l.low ? l.low : sum > l.high ? l.high : sum; // NaN stays NaN
            }
}

// Writes the largest of each window of x to y, for all planes of the batch.
void pool(const Layer &l, const float *x, float *y) {
    for (int64_t plane = 0; plane < l.batch * l.out; plane++, x += area(l.pool.in))
        for (int64_t at = 0; at < area(l.pool.out); at++) {
            float largest = -std::numeric_limits<float>::infinity();
            slide(l.pool, x, at / l.pool.out[1], at % l.pool.out[1], [&](int64_t, float v) {
                if (v > largest || v != v) largest = v; // NaN is larger than all
            });
            *y++ = largest;
        }
}

// ---- the compiler: from a subgraph to a program ----

// True: the node's operator is op.
bool is(const cnr_node *node, const char *op) { return std::strcmp(node->desc->name, op) == 0; }
// True: t is f32, of four axes and not empty.
bool is_f32(const cnr_tensor *t) { return t->dtype == CNR_f32 && t->rank == 4 && cnr_count(t) > 0; }

// Reads a convolution with constant weights, of one group, into l; false: another node or kind.
bool read_conv(const cnr_node *n, Layer &l) {
    const cnr_tensor *x = n->inputs[0], *w = n->inputs[1];
    if (!is(n, "conv") || !is_f32(x) || !is_f32(w) || cnr_attr_int(n, "group") != 1) return false;
    if (!cnr_is_constant(w) || (cnr_own_input(n, 2) && !cnr_is_constant(n->inputs[2])))
        return false;
    l.batch = x->dim[0], l.in = x->dim[1], l.out = w->dim[0];
    l.low = -std::numeric_limits<float>::infinity(), l.high = -l.low;
    return !host->window_resolve(n, x, w->dim + 2, &l.conv);
}

// Reads the bounds of relu or relu6 into l; false: another node.
bool read_bound(const cnr_node *n, Layer &l) {
    const bool six = is(n, "relu6"), bounds = six || is(n, "relu");
    if (bounds) l.low = 0, l.high = six ? 6 : l.high;
    return bounds;
}

// Reads a max_pool without indices into l; false: another node or kind.
bool read_pool(const cnr_node *n, Layer &l) {
    int64_t axes;
    const int64_t *kernel = cnr_attr_ints(n, "kernel_shape", &axes);
    l.pools = is(n, "max_pool") && n->n_outputs == 1 &&
              !host->window_resolve(n, n->inputs[0], kernel, &l.pool);
    return l.pools != 0;
}

// Reads the layer that begins with node `first` into l, and its nodes' indices into `nodes`;
// returns how many they are, or 0. Nothing but the next node reads the output of one.
int32_t compile(const cnr_subgraph *g, int32_t first, Layer &l, std::vector<int32_t> &nodes) {
    l = Layer{};
    nodes.assign(1, first);
    if (!read_conv(g->nodes[first].node, l)) return 0;
    for (const auto reads : {read_bound, read_pool}) {
        const int32_t value = g->nodes[nodes.back()].outputs[0];
        int32_t next = -1, readers = 0;
        for (int32_t i = 0; i < g->n_nodes; i++)
            for (int32_t k = 0; k < g->nodes[i].node->n_inputs; k++)
                if (g->nodes[i].inputs[k] == value) readers++, next = i;
        for (int32_t i = 0; i < g->n_outputs; i++) readers += g->outputs[i] == value;
        if (readers == 1 && next >= 0 && reads(g->nodes[next].node, l)) nodes.push_back(next);
    }
    return static_cast<int32_t>(nodes.size());
}

// Programs: one serves all batches up to its own, so plans of a range share it.
std::mutex programs_lock;
std::deque<Layer> programs;

// The program of l for batches up to largest_batch, compiled at its first use; it is never freed.
const Layer *program_for(Layer l, int64_t largest_batch) {
    const std::lock_guard<std::mutex> hold(programs_lock);
    l.batch = largest_batch;
    for (const Layer &p : programs)
        if (std::memcmp(&p, &l, sizeof l) == 0) return &p;
    return &programs.emplace_back(l); // a chip's compiler would work here
}

// The work of a run.
struct Job { // what a plan keeps
    const Layer *program;
    int64_t batch;
};

// Estimated nanoseconds of a run of the layer.
double cost_of(const Layer &l) {
    const int64_t macs = l.batch * l.out * area(l.conv.out) * l.in * area(l.conv.kernel);
    return start_ns + static_cast<double>(macs) / gmacs;
}

// Method claim: tells each chain that compiles, with its cost; chains may overlap.
cnr_status claim(const cnr_device *, const cnr_subgraph *g, cnr_claim_fn tell, void *arg,
                 cnr_error *) {
    for (int32_t i = 0; i < g->n_nodes; i++) {
        Layer l;
        std::vector<int32_t> nodes;
        if (!compile(g, i, l, nodes)) continue;
        std::sort(nodes.begin(), nodes.end());
        const auto n = static_cast<int32_t>(nodes.size());
        const cnr_claim c = {sizeof c, n, nodes.data(), "npu_layer", cost_of(l), 0};
        tell(arg, &c);
    }
    return CNR_OK;
}

// Reads the node's region into l; false: its whole subgraph is not one layer.
bool layer_of(const cnr_node *node, Layer &l) { // of a node of ours: all of its subgraph
    std::vector<int32_t> nodes;
    return compile(node->subgraph, 0, l, nodes) == node->subgraph->n_nodes;
}

// Method accepts: takes regions that are one layer, with score 400.
cnr_status accepts(const cnr_device *, const cnr_node *node,
                   cnr_accept *out) { // only our claims are asked
    Layer l;
    return layer_of(node, l) ? cnr_take(node, out, 400) : CNR_OK;
}

// Method prepare_size: bytes of weights and biases.
cnr_status prepare_size(const cnr_device *, const cnr_node *node, cnr_space *out, cnr_error *) {
    Layer l;
    layer_of(node, l);
    out->bytes = static_cast<uint64_t>(l.weights() + l.out) * sizeof(float);
    return CNR_OK;
}

// Method prepare: copies the weights, and behind them the biases, 0 where there are none.
cnr_status prepare(const cnr_device *, const cnr_node *node, void *blob, cnr_error *) {
    Layer l;
    layer_of(node, l);
    const cnr_node *conv = node->subgraph->nodes[0].node;
    const cnr_tensor *bias = cnr_own_input(conv, 2);
    auto *to = static_cast<float *>(blob);
    std::memcpy(to, conv->inputs[1]->data, static_cast<size_t>(l.weights()) * sizeof *to);
    std::fill_n(to + l.weights(), l.out, 0.0f);
    if (bias) std::memcpy(to + l.weights(), bias->data, static_cast<size_t>(l.out) * sizeof *to);
    return CNR_OK;
}

// Method plan: *state receives the job, which plan_free deletes; work: room between convolution and
// pooling.
cnr_status plan(const cnr_device *, const cnr_node *node, cnr_space *work, void **state,
                cnr_error *err) {
    Layer l;
    layer_of(node, l);
    if (l.pools)
        work->bytes = static_cast<uint64_t>(l.batch * l.out * area(l.conv.out)) * sizeof(float);
    *state = new (std::nothrow) Job{program_for(l, cnr_max_dim(node->inputs[0], 0)), l.batch};
    return *state ? CNR_OK : host->fail(err, CNR_E_MEMORY, node->name, "out of memory");
}

// Method plan_free: deletes the job.
void plan_free(const cnr_device *, void *state) { delete static_cast<Job *>(state); }

// Address of a byte of the memory.
char *at(const cnr_mem *m, uint64_t offset = 0) {
    return static_cast<char *>(m->handle) + m->offset + offset;
}
// The memory's start, as floats.
float *floats(const cnr_mem *m) { return reinterpret_cast<float *>(at(m)); }
// Queue of a stream.
Queue *queue(const cnr_stream *s) { return static_cast<Queue *>(s->state); }

// Method run: queues the job and returns; r is no longer read then.
cnr_status run(const cnr_run *r, cnr_error *) {
    const Job *job = static_cast<Job *>(r->state);
    Layer l = *job->program; // r is gone when the job runs
    l.batch = job->batch;
    const float *x = floats(&r->node->inputs[0]->mem), *w = floats(r->blob);
    float *y = floats(&r->outputs[0]->mem), *middle = l.pools ? floats(r->workspace) : y;
    queue(r->stream)->add([=] {
        convolve(l, x, w, middle);
        if (l.pools) pool(l, middle, y);
    });
    return CNR_OK;
}

// ---- the device ----
const cnr_memory_class memory = {"buffer", CNR_MEMORY_PARTS, 64, uint64_t{1} << 40, 0, 0};

// Method count: one device.
int32_t count(cnr_error *) { return 1; }
// Method describe: name, key and driver of the only device.
cnr_status describe(int32_t, cnr_device_info *out, cnr_error *) {
    out->score = 300, out->concurrency = 1;
    std::strcpy(out->key, "0"), std::strcpy(out->name, "example NPU"),
        std::strcpy(out->driver, "npu 1.0");
    return CNR_OK;
}
// Method properties: the number of compiled programs.
cnr_status properties(int32_t, cnr_stream *, cnr_property_fn tell, void *arg, cnr_error *) {
    const std::lock_guard<std::mutex> hold(programs_lock);
    return tell(arg, "programs", nullptr, static_cast<double>(programs.size())), CNR_OK;
}
// Method open: tells the memory class; nothing can fail.
cnr_status open(cnr_device *d, const cnr_device_options *, cnr_error *) {
    return d->memory = &memory, d->n_memory = d->concurrency = 1, CNR_OK;
}
// Method close: nothing is held.
void close(cnr_device *) {}
// Method alloc: host memory, which `release` frees; fails when there is none.
cnr_status alloc(const cnr_device *, cnr_mem *out, cnr_error *err) {
    out->handle = host->alloc(out->bytes + 1), out->offset = 0;
    return out->handle ? CNR_OK : host->fail(err, CNR_E_MEMORY, "npu", "out of memory");
}
// Method free: frees memory from alloc.
void release(const cnr_device *, cnr_mem *m) { host->free(m->handle); }

// Fails with CNR_E_ARG where n bytes from `offset` lie outside the memory.
cnr_status check(const cnr_mem *m, uint64_t offset, uint64_t n, cnr_error *err) {
    const bool fits = offset <= m->bytes && n <= m->bytes - offset;
    return fits ? CNR_OK : host->fail(err, CNR_E_ARG, "npu", "bytes outside the memory");
}
// Method write: queues a copy from the host, whose bytes must last until it is done.
cnr_status write(cnr_stream *s, const cnr_mem *to, uint64_t offset, const void *from, uint64_t n,
                 cnr_error *err) {
    CNR_TRY(check(to, offset, n, err));
    queue(s)->add([p = at(to, offset), from, n] { std::memcpy(p, from, n); });
    return CNR_OK;
}
// Method read: queues a copy to the host, whose bytes must last until it is done.
cnr_status read(cnr_stream *s, const cnr_mem *from, uint64_t offset, void *to, uint64_t n,
                cnr_error *err) {
    CNR_TRY(check(from, offset, n, err));
    queue(s)->add([p = at(from, offset), to, n] { std::memcpy(to, p, n); });
    return CNR_OK;
}
// Method stream_open: makes a queue with its thread.
cnr_status stream_open(const cnr_device *, cnr_stream *s, cnr_error *err) {
    s->state = new (std::nothrow) Queue;
    return s->state ? CNR_OK : host->fail(err, CNR_E_MEMORY, "npu", "out of memory");
}
// Method stream_close: ends the queue and its thread.
void stream_close(cnr_stream *s) { delete queue(s); }
// Method sync: waits until all queued jobs are done.
cnr_status sync(cnr_stream *s, cnr_error *) {
    return queue(s)->await(queue(s)->add([] {})), CNR_OK;
}
// A place in a queue.
struct Mark {
    Queue *queue;
    int64_t number;
};
// Method record: *event receives the queue's present end, which event_free deletes.
cnr_status record(cnr_stream *s, void **event, cnr_error *err) {
    *event = new (std::nothrow) Mark{queue(s), queue(s)->add([] {})};
    return *event ? CNR_OK : host->fail(err, CNR_E_MEMORY, "npu", "out of memory");
}
// Method await: waits on the host until the event's place is reached.
cnr_status await(const cnr_device *, void *event, cnr_error *) {
    static_cast<Mark *>(event)->queue->await(static_cast<Mark *>(event)->number);
    return CNR_OK;
}
// Method wait: a queue waits for another's place.
cnr_status wait(cnr_stream *s, void *event, cnr_error *) {
    queue(s)->add([m = *static_cast<Mark *>(event)] { m.queue->await(m.number); });
    return CNR_OK;
}
// Method event_free: deletes the place.
void event_free(const cnr_device *, void *event) { delete static_cast<Mark *>(event); }

// ---- the plugin ----
// Registers device and kernel; fails where the host refuses one.
cnr_status init(const cnr_host *h, cnr_registrar *registrar, cnr_error *) {
    static cnr_device_class device;
    static cnr_kernel kernel;
    host = h;
    device.size = sizeof device, device.name = device.family = "npu",
    device.summary = "an example NPU";
    device.count = count, device.describe = describe, device.open = open, device.close = close;
    device.alloc = alloc, device.free = release;
    device.write = write, device.read = read;
    device.stream_open = stream_open, device.stream_close = stream_close, device.sync = sync;
    device.event_record = record, device.event_wait = wait, device.event_free = event_free,
    device.event_sync = await;
    device.claim = claim, device.properties = properties;
    kernel.size = sizeof kernel, kernel.version = 1, kernel.name = "npu_layer",
    kernel.op = CNR_REGION;
    kernel.device = "npu", kernel.accepts = accepts, kernel.prepare_size = prepare_size,
    kernel.prepare = prepare;
    kernel.plan = plan, kernel.plan_free = plan_free, kernel.run = run;
    CNR_TRY(host->add(registrar, CNR_KIND_DEVICE, &device));
    return host->add(registrar, CNR_KIND_KERNEL, &kernel);
}
} // namespace

CNR_PLUGIN("npu", "1.0", "an example NPU that compiles regions", "MIT", init, CNR_TOUCHES_NOTHING)
