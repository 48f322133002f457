// A device with memory and queues of its own, and a kernel that runs there. A thread a stream plays
// the chip: what is under "the chip" becomes calls of a driver.
#include <cnnrun/kit.hpp>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace {
namespace kit = cnnrun::kit;

// ---- the chip: a queue that works by itself ----
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
        for (std::unique_lock<std::mutex> hold(lock_); !ends_; done_++, changed_.notify_all()) {
            changed_.wait(hold, [&] { return !jobs_.empty(); });
            const auto job = std::move(jobs_.front());
            jobs_.pop_front();
            hold.unlock();
            job();
            hold.lock();
        }
    }
    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> jobs_;
    int64_t added_ = 0, done_ = 0;
    bool ends_ = false;
    std::thread thread_;
};

// Address of n bytes of memory; throws where they lie outside it.
char *at(const cnr_mem &m, uint64_t offset, uint64_t n) {
    kit::want(offset <= m.bytes && n <= m.bytes - offset, CNR_E_ARG, "bytes outside the memory");
    return static_cast<char *>(m.handle) + m.offset + offset;
}

// The device: one, with a queue for each stream.
struct Device {
    static constexpr const char *name = "beta-queue", *family = "beta", *summary = "an example";
    static constexpr uint32_t flags = CNR_DEVICE_SINGLE;

    static int32_t count() { return 1; }
    static void describe(int32_t, cnr_device_info &d) {
        d.score = 1, d.concurrency = 1;
        kit::put(d.key, "0"), kit::put(d.name, "a thread and its queue"), kit::put(d.driver, "1");
    }
    explicit Device(cnr_device &d) {
        static const cnr_memory_class memory = {"buffer", CNR_MEMORY_PARTS,
                                                64,       uint64_t{1} << 40,
                                                0,        0};
        d.memory = &memory, d.n_memory = d.concurrency = 1;
    }
    void alloc(cnr_mem &m) { m.handle = kit::block(m.bytes).release(), m.offset = 0; }
    void free(cnr_mem &m) { kit::host->free(m.handle); }

    struct event { // all that stood in the queue before it
        Queue *queue;
        int64_t number;
        void await() const { queue->await(number); }
    };
    struct stream {
        Queue queue;
        explicit stream(const Device &) {}
        void write(const cnr_mem &to, uint64_t offset, const void *from, uint64_t n) {
            queue.add([p = at(to, offset, n), from, n] { std::memcpy(p, from, n); });
        }
        void read(const cnr_mem &from, uint64_t offset, void *to, uint64_t n) {
            queue.add([p = at(from, offset, n), to, n] { std::memcpy(to, p, n); });
        }
        event record() {
            return {&queue, queue.add([] {})};
        }
        void wait(const event &e) {
            queue.add([e] { e.await(); });
        }
        void sync() { record().await(); }
    };
};

// A kernel of the device.
struct Relu { // `run` queues and returns; the job may read nothing of the call
    static constexpr const char *name = "beta.relu", *op = "relu", *device = "beta";
    static void accepts(const kit::node &n, kit::answer &a) {
        if (cnr_all_plain(n.c, 1u << CNR_f32)) a.take(100);
        else a.refuse("dense f32 is wanted");
    }
    static void run(const kit::run &r) {
        const auto n = static_cast<uint64_t>(r.out().count());
        const auto *x = reinterpret_cast<float *>(at(r.in(0).c->mem, 0, n * sizeof(float)));
        auto *y = reinterpret_cast<float *>(at(r.out().c->mem, 0, n * sizeof(float)));
        static_cast<Device::stream *>(r.call->stream->state)->queue.add([=] {
            for (uint64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i]; // NaN stays NaN
        });
    }
};
} // namespace

CNR_KIT_PLUGIN("cpp-device", "1.0", "an example device", "MIT", CNR_TOUCHES_NOTHING,
               cnnrun::kit::device<Device>(), cnnrun::kit::kernel<Relu>())
