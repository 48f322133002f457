/* cnnrun for C++17: owning classes over the C API of <cnnrun/cnnrun.h>, which may be used as well.
 *
 *     cnnrun::runtime rt;
 *     cnnrun::net net = rt.load("squeezenet.onnx");
 *     for (auto [index, score] : net.topk(net.run("dog.jpg"), 5)) ...
 *
 * Errors: by default, a function that fails throws cnnrun::error. With CNNRUN_RESULTS defined
 * before the include, it returns cnnrun::result<T> instead, and only std::bad_alloc is thrown here.
 * Exceptions of callbacks do not pass through C: they stop the work and are thrown again after it.
 *
 * A net keeps its runtime open, a session its plan, a plan its net. A runtime and its nets may be
 * used from several threads; a session, and a net's own run(), from one at a time. */
#ifndef CNNRUN_HPP
#define CNNRUN_HPP

#include <cnnrun/cnnrun.h>

#include <array>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cnnrun {

/* An error: its status, its text, and where it occurred (a file, a layer, a plugin). */
class error : public std::runtime_error {
  public:
    error(cnr_status status, const cnr_error &e)
        : std::runtime_error(e.where[0] ? std::string(e.where) + ": " + e.text : e.text),
          status_(status), where_(e.where) {}
    cnr_status status() const noexcept { return status_; }
    const std::string &where() const noexcept { return where_; }

  private:
    cnr_status status_;
    std::string where_;
};

/* A value, or the error that prevented it. */
template <class T> class result {
  public:
    result(T value) : value_(std::make_unique<T>(std::move(value))) {}
    result(cnnrun::error e) : error_(std::make_shared<cnnrun::error>(std::move(e))) {}
    explicit operator bool() const noexcept { return !error_; }
    T &operator*() { return *value_; }
    T *operator->() { return value_.get(); }
    T &value() & { return check(), *value_; }
    T value() && { return check(), std::move(*value_); }
    const cnnrun::error &error() const { return *error_; }

  private:
    void check() const {
        if (error_) throw *error_;
    }
    std::unique_ptr<T> value_;
    std::shared_ptr<cnnrun::error> error_;
};
template <> class result<void> {
  public:
    result() = default;
    result(cnnrun::error e) : error_(std::make_shared<cnnrun::error>(std::move(e))) {}
    explicit operator bool() const noexcept { return !error_; }
    void value() const {
        if (error_) throw *error_;
    }
    const cnnrun::error &error() const { return *error_; }

  private:
    std::shared_ptr<cnnrun::error> error_;
};

#ifdef CNNRUN_RESULTS
template <class T> using outcome = result<T>;
#else
template <class T> using outcome = T;
#endif

/* A view of contiguous elements. */
template <class T> class span {
  public:
    span() = default;
    span(T *data, std::size_t size) : data_(data), size_(size) {}
    template <class C, class = decltype(std::declval<C &>().data())>
    span(C &&c) : data_(c.data()), size_(c.size()) {}
    T *data() const { return data_; }
    std::size_t size() const { return size_; }
    T &operator[](std::size_t i) const { return data_[i]; }
    T *begin() const { return data_; }
    T *end() const { return data_ + size_; }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

template <class T> struct dtype_of;
template <> struct dtype_of<float> { static constexpr int32_t value = CNR_f32; };
template <> struct dtype_of<double> { static constexpr int32_t value = CNR_f64; };
template <> struct dtype_of<int8_t> { static constexpr int32_t value = CNR_i8; };
template <> struct dtype_of<uint8_t> { static constexpr int32_t value = CNR_u8; };
template <> struct dtype_of<int16_t> { static constexpr int32_t value = CNR_i16; };
template <> struct dtype_of<uint16_t> { static constexpr int32_t value = CNR_u16; };
template <> struct dtype_of<int32_t> { static constexpr int32_t value = CNR_i32; };
template <> struct dtype_of<uint32_t> { static constexpr int32_t value = CNR_u32; };
template <> struct dtype_of<int64_t> { static constexpr int32_t value = CNR_i64; };
template <> struct dtype_of<uint64_t> { static constexpr int32_t value = CNR_u64; };
template <> struct dtype_of<bool> { static constexpr int32_t value = CNR_bool; };

using shape = std::vector<int64_t>;

/* A view of a tensor whose data another object owns: a session's output, a weight, a vector. It is
 * valid as long as that data (outputs: until the session or net runs again). */
class tensor {
  public:
    tensor() : t_{} { t_.size = sizeof t_; }
    explicit tensor(const cnr_tensor &t) : t_(t) {}
    /* `data` has the elements of a tensor with these dims, row-major; at most CNR_MAX_RANK dims. */
    template <class T> tensor(span<T> data, const shape &dims) : tensor() {
        if (dims.size() > CNR_MAX_RANK)
            throw std::length_error("a tensor of more than 8 dimensions");
        t_.dtype = dtype_of<std::remove_const_t<T>>::value;
        t_.rank = static_cast<int32_t>(dims.size());
        for (std::size_t i = 0; i < dims.size(); i++) t_.dim[i] = dims[i];
        t_.data = const_cast<std::remove_const_t<T> *>(data.data());
        t_.bytes = data.size() * sizeof(T);
    }
    template <class T>
    tensor(std::vector<T> &data, const shape &dims) : tensor(span<T>(data), dims) {}
    template <class T>
    tensor(const std::vector<T> &data, const shape &dims) : tensor(span<const T>(data), dims) {}
    cnnrun::shape dims() const { return {t_.dim, t_.dim + t_.rank}; }
    int32_t dtype() const { return t_.dtype; }
    int64_t count() const { return cnr_count(&t_); } /* elements; -1: a dimension is open */
    /* The elements. Throws std::invalid_argument if T is not their type, or they are not on the
     * host. */
    template <class T> span<const T> as() const {
        if (dtype_of<T>::value != t_.dtype || !t_.data || t_.encoding || count() < 0)
            throw std::invalid_argument(std::string("a tensor of ") + cnr_dtype_name(t_.dtype) +
                                        " read as " + cnr_dtype_name(dtype_of<T>::value));
        return {static_cast<const T *>(t_.data), static_cast<std::size_t>(count())};
    }
    const cnr_tensor *c() const { return &t_; }

  private:
    cnr_tensor t_;
};

/* A class and its score. */
struct ranked {
    int64_t index; /* index of the class */
    float score;
};

/* The `k` largest elements, best first. */
inline std::vector<ranked> topk(const tensor &scores, int32_t k) {
    std::vector<cnr_top> best(static_cast<std::size_t>(k > 0 ? k : 0));
    const int32_t n = cnr_topk(scores.c(), k, best.data());
    std::vector<ranked> out;
    for (int32_t i = 0; i < n; i++) out.push_back({best[i].index, best[i].score});
    return out;
}

/* Members correspond to those of cnr_open_options; empty or 0: the default. */
struct open_options {
    int32_t threads = 0;
    std::vector<std::filesystem::path> plugin_dirs;
    bool no_default_dirs = false, trust_scripts = false;
    std::string clock, board, cpu_isa, meter_address;
    std::filesystem::path cache, sysfs_root;
    int32_t log_level = 0; /* 0: errors; 1: also warnings; 2: also information; 3: also details */
    /* Called on any thread. Exceptions that it throws are ignored. */
    std::function<void(int32_t level, const char *plugin, const char *text)> log;
};

/* Members correspond to those of cnr_load_options; empty or 0: the default. */
struct load_options {
    std::string weights, net, device, preset, weights_type, arithmetic, cache_policy, cache_codec;
    std::filesystem::path cache, cache_key_file, policy, labels;
    uint64_t cache_bytes = 0, memory_bound = 0, memory_limit = 0, hang_ms = 0;
    bool deterministic = false, no_verify = false, adapt = false, no_cache = false;
    std::map<std::string, int64_t> symbols; /* sizes of open dimensions, by name */
    std::vector<std::string> no_rewrite, import_options, kernels, policy_options, devices, fallback;
    std::vector<std::string> symbol_ranges; // "batch=1..16"
};

namespace detail {

struct strings { /* a NULL-terminated list for C, which borrows its texts */
    std::vector<const char *> at;
    const char *const *operator()() const { return at.size() > 1 ? at.data() : nullptr; }
    template <class L> explicit strings(const L &list) {
        for (const auto &item : list) at.push_back(item.c_str());
        at.push_back(nullptr);
    }
};
template <class S> const char *text(const S &s) { return s.empty() ? nullptr : s.c_str(); }

/* Returns make() if status is 0; otherwise throws or returns the error. */
/* Returns make(), or reports the error: throws it, or with CNNRUN_RESULTS returns it. */
template <class F>
/* Returns make()'s result if the status is CNR_OK; else throws `error` or, with CNNRUN_RESULTS,
 * returns it as the outcome. */
auto settle(cnr_status status, const cnr_error &e, F &&make) -> outcome<decltype(make())> {
#ifdef CNNRUN_RESULTS
    if (status) return error(status, e);
    if constexpr (std::is_void_v<decltype(make())>) return make(), result<void>();
    else return make();
#else
    if (status) throw error(status, e);
    return make();
#endif
}
inline outcome<void> settle(cnr_status status, const cnr_error &e) {
    return settle(status, e, [] {});
}

struct cnr_options { /* the options of C, which borrow from a load_options */
    explicit cnr_options(const load_options &o)
        : no_rewrite(o.no_rewrite), import_options(o.import_options), kernels(o.kernels),
          policy_options(o.policy_options), devices(o.devices), fallback(o.fallback),
          ranges(o.symbol_ranges) {
        for (const auto &[name, value] : o.symbols) {
            names.push_back(name.c_str());
            values.push_back(value);
        }
        c.size = sizeof c;
        c.n_symbols = static_cast<int32_t>(names.size());
        c.symbols = names.data(), c.symbol_values = values.data();
        c.weights = text(o.weights), c.net = text(o.net), c.device = text(o.device);
        c.preset = text(o.preset), c.weights_type = text(o.weights_type);
        c.arithmetic = text(o.arithmetic), c.cache = text(o.cache), c.policy = text(o.policy);
        c.cache_policy = text(o.cache_policy), c.cache_codec = text(o.cache_codec);
        c.cache_key_file = text(o.cache_key_file), c.no_cache = o.no_cache;
        c.labels = text(o.labels), c.cache_bytes = o.cache_bytes;
        c.memory_bound = o.memory_bound, c.memory_limit = o.memory_limit, c.hang_ms = o.hang_ms;
        c.deterministic = o.deterministic, c.no_verify = o.no_verify, c.adapt = o.adapt;
        c.no_rewrite = no_rewrite(), c.import_options = import_options(), c.kernels = kernels();
        c.policy_options = policy_options(), c.devices = devices(), c.fallback = fallback();
        c.symbol_ranges = ranges();
    }
    cnr_load_options c{};
    strings no_rewrite, import_options, kernels, policy_options, devices, fallback, ranges;
    std::vector<const char *> names;
    std::vector<int64_t> values;
};

inline std::vector<const cnr_tensor *> pointers(span<const tensor> of) {
    std::vector<const cnr_tensor *> at;
    for (const tensor &t : of) at.push_back(t.c());
    return at;
}

} // namespace detail

/* Owns a result struct of C, whose contents `release` frees. Access: `*r`, `r->top1`. */
template <class T, void (*release)(T *)> class owned {
  public:
    owned() { value_.size = sizeof value_; }
    owned(owned &&other) noexcept : value_(std::exchange(other.value_, fresh())) {}
    owned &operator=(owned &&other) noexcept { return std::swap(value_, other.value_), *this; }
    ~owned() { release(&value_); }
    T *operator->() { return &value_; }
    const T *operator->() const { return &value_; }
    T &operator*() { return value_; }

  private:
    static T fresh() {
        T t{};
        t.size = sizeof t;
        return t;
    }
    T value_ = fresh();
};
using evaluation = owned<cnr_evaluation, cnr_evaluation_free>;
using timing = owned<cnr_timing, cnr_timing_free>;
using energy = owned<cnr_energy, cnr_energy_free>;
using trained = owned<cnr_train_result, cnr_train_result_free>;
using quantizing = owned<cnr_quantizing, cnr_quantizing_free>;
using sharing = owned<cnr_sharing, cnr_sharing_free>;
using candidates = owned<cnr_candidate_list, cnr_candidates_free>;

/* Watches long work. Both functions return true to stop it. Their exceptions are thrown again by
 * the function that started the work. The observer must outlive the work. */
class observer {
  public:
    std::function<bool(const cnr_progress &)> progress;
    std::function<bool(int32_t kind, const void *of)> event;

    /* Calls work(observer of C), which returns a cnr_status. */
    template <class F> cnr_status watch(F &&work) {
        cnr_observer c{};
        c.size = sizeof c;
        c.arg = this;
        c.cancel = &cancelled_;
        c.progress = [](void *arg, const cnr_progress *p) {
            auto *self = static_cast<observer *>(arg);
            return self->ask([&] { return self->progress && self->progress(*p); });
        };
        c.event = [](void *arg, int32_t kind, const void *of) {
            auto *self = static_cast<observer *>(arg);
            return self->ask([&] { return self->event && self->event(kind, of); });
        };
        thrown_ = nullptr;
        const cnr_status status = work(&c);
        if (thrown_) std::rethrow_exception(thrown_);
        return status;
    }
    void cancel() { cancelled_ = 1; } /* from any thread */

  private:
    template <class F> int32_t ask(F &&f) noexcept {
        try {
            return f();
        } catch (...) {
            thrown_ = std::current_exception();
            return 1;
        }
    }
    volatile int32_t cancelled_ = 0;
    std::exception_ptr thrown_;
};

class session;
class plan;
class net;

namespace detail {
/* Owner of a runtime; nets share it. */
struct runtime_state {
    cnr_runtime *rt = nullptr;
    std::function<void(int32_t, const char *, const char *)> log;
    ~runtime_state() { cnr_close(rt); }
};
/* Owner of a model; plans share it. */
struct net_state {
    std::shared_ptr<runtime_state> runtime;
    cnr_model *model = nullptr;
    ~net_state() { cnr_release(model); }
};
/* Shared owner of a plan and of the net that it was made for; releases the plan with the last
 * user. */
struct plan_state {
    std::shared_ptr<net_state> net;
    cnr_plan *plan = nullptr;
    ~plan_state() { cnr_plan_release(plan); }
};
} // namespace detail

/* The memory for runs of a plan. Several sessions of one plan may run at the same time. */
class session {
  public:
    outcome<void> set_input(int32_t index, const tensor &value) {
        cnr_error e = CNR_ERROR_INIT;
        return detail::settle(cnr_session_set_input(at_.get(), index, value.c(), &e), e);
    }
    /* Binds memory that each run reads the input from, or writes the output to, without a copy. It
     * must outlive the binding, which a tensor without data ends. CNR_E_UNSUPPORTED: a copy would
     * be needed. */
    outcome<void> bind_input(int32_t index, const tensor &value) {
        return bind(cnr_session_bind_input, index, value);
    }
    outcome<void> bind_output(int32_t index, const tensor &value) {
        return bind(cnr_session_bind_output, index, value);
    }
    outcome<void> run() {
        cnr_error e = CNR_ERROR_INIT;
        return detail::settle(cnr_session_run(at_.get(), &e), e);
    }
    outcome<void> start() {
        cnr_error e = CNR_ERROR_INIT;
        return detail::settle(cnr_session_start(at_.get(), &e), e);
    }
    outcome<void> wait() {
        cnr_error e = CNR_ERROR_INIT;
        return detail::settle(cnr_session_wait(at_.get(), &e), e);
    }
    outcome<tensor> output(int32_t index = 0) {
        cnr_error e = CNR_ERROR_INIT;
        const cnr_tensor *out = nullptr;
        const cnr_status status = cnr_session_output(at_.get(), index, &out, &e);
        return detail::settle(status, e, [&] { return tensor(*out); });
    }
    void cancel() { cnr_session_cancel(at_.get()); } /* from any thread */
    cnr_session *c() { return at_.get(); }

  private:
    friend class plan;
    outcome<void> bind(decltype(&cnr_session_bind_input) call, int32_t index, const tensor &value) {
        cnr_error e = CNR_ERROR_INIT;
        const cnr_tensor *t = value.c();
        return detail::settle(call(at_.get(), index, t->data || t->mem.handle ? t : nullptr, &e),
                              e);
    }
    struct closer {
        std::shared_ptr<detail::plan_state> plan;
        void operator()(cnr_session *s) const { cnr_session_close(s); }
    };
    session(std::shared_ptr<detail::plan_state> p, cnr_session *s) : at_(s, closer{std::move(p)}) {}
    std::unique_ptr<cnr_session, closer> at_;
};

/* A net planned for given input shapes. */
class plan {
  public:
    outcome<session> open() const {
        cnr_error e = CNR_ERROR_INIT;
        cnr_session *s = nullptr;
        const cnr_status status = cnr_session_open(at_->plan, &s, &e);
        return detail::settle(status, e, [&] { return session(at_, s); });
    }
    uint64_t arena_bytes() const { return cnr_plan_arena_bytes(at_->plan); }
    uint64_t weight_bytes() const { return cnr_plan_weight_bytes(at_->plan); }
    cnr_plan *c() const { return at_->plan; }

  private:
    friend class net;
    explicit plan(std::shared_ptr<detail::plan_state> at) : at_(std::move(at)) {}
    std::shared_ptr<detail::plan_state> at_;
};

/* A Lua script that returns a function of texts and tensors (cnnrun/lab.h): a file, or an
 * installed script such as "calls/detect.lua". Use it from one thread at a time. */
class script {
  public:
    /* Calls function(text, tell, net, tensors...) and returns its text. Each call of `tell` becomes
     * an event of kind CNR_EVENT_SCRIPT for the observer. */
    outcome<std::string> call(const std::string &text, span<const tensor> tensors = {},
                              observer *by = nullptr) {
        cnr_error e = CNR_ERROR_INIT;
        const char *out = nullptr;
        const auto in = detail::pointers(tensors);
        const auto run = [&](const cnr_observer *o) {
            return cnr_script_call(c(), text.c_str(), in.data(), static_cast<int32_t>(in.size()), o,
                                   &out, &e);
        };
        const cnr_status status = by ? by->watch(run) : run(nullptr);
        return detail::settle(status, e, [&] { return std::string(out); });
    }
    cnr_script *c() { return at_.get(); }

  private:
    friend class net;
    friend class runtime;
    struct closer {
        std::shared_ptr<detail::runtime_state> runtime;
        std::shared_ptr<detail::net_state> net;
        void operator()(cnr_script *s) const { cnr_script_close(s); }
    };
    script(closer by, cnr_script *s) : at_(s, std::move(by)) {}
    static outcome<script> open(closer by, const std::filesystem::path &file) {
        cnr_error e = CNR_ERROR_INIT;
        cnr_script *s = nullptr;
        const cnr_status status =
            cnr_script_open(by.runtime->rt, file.c_str(), by.net ? by.net->model : nullptr, &s, &e);
        return detail::settle(status, e, [&] { return script(std::move(by), s); });
    }
    std::unique_ptr<cnr_script, closer> at_;
};

class net {
  public:
    /* Opens a script that uses this net. Do not run the net elsewhere during a call. */
    outcome<cnnrun::script> script(const std::filesystem::path &file) {
        return cnnrun::script::open({at_->runtime, at_}, file);
    }
    /* Preprocesses and runs a picture. Returns output 0, valid until the net runs again. */
    outcome<tensor> run(const std::filesystem::path &picture) {
        cnr_error e = CNR_ERROR_INIT;
        const cnr_tensor *out = nullptr;
        const cnr_status status = cnr_run_picture(c(), picture.c_str(), &out, &e);
        return detail::settle(status, e, [&] { return tensor(*out); });
    }
    /* Runs one tensor for each input. Returns all outputs, valid until the net runs again. */
    outcome<std::vector<tensor>> run(span<const tensor> inputs) {
        cnr_error e = CNR_ERROR_INIT;
        const auto in = detail::pointers(inputs);
        std::vector<const cnr_tensor *> out(static_cast<std::size_t>(cnr_output_count(c())));
        const cnr_status status = cnr_run_tensors(c(), in.data(), static_cast<int32_t>(in.size()),
                                                  out.data(), static_cast<int32_t>(out.size()), &e);
        return detail::settle(status, e, [&] {
            std::vector<tensor> all;
            for (const cnr_tensor *t : out) all.emplace_back(*t);
            return all;
        });
    }
    outcome<std::vector<tensor>> run(std::initializer_list<tensor> inputs) {
        return run(span<const tensor>(inputs.begin(), inputs.size()));
    }
    /* Plans for these shapes, one for each input; if none are given, open dimensions are 1. */
    outcome<cnnrun::plan> plan_for(const std::vector<shape> &shapes = {}) const {
        cnr_error e = CNR_ERROR_INIT;
        std::vector<tensor> types;
        for (std::size_t i = 0; i < shapes.size(); i++) {
            const cnr_tensor *in = cnr_input_type(c(), static_cast<int32_t>(i));
            cnr_tensor t = *tensor(span<float>(), shapes[i]).c();
            t.dtype = in ? in->dtype : t.dtype;
            types.emplace_back(t);
        }
        const auto at = detail::pointers(types);
        auto made = std::make_shared<detail::plan_state>();
        made->net = at_;
        const cnr_status status = cnr_plan_for(c(), at.empty() ? nullptr : at.data(),
                                               static_cast<int32_t>(at.size()), &made->plan, &e);
        return detail::settle(status, e, [&] { return cnnrun::plan(made); });
    }
    /* The name of a class; empty if the net has no names. */
    std::string label(int64_t index) const {
        const char *name = cnr_label(c(), index);
        return name ? name : "";
    }
    std::vector<std::pair<std::string, tensor>> inputs() const {
        return list(cnr_input_count(c()), cnr_input_name, cnr_input_type);
    }
    std::vector<std::pair<std::string, tensor>> outputs() const {
        return list(cnr_output_count(c()), cnr_output_name, cnr_output_type);
    }
    std::vector<std::string> weights() const {
        std::vector<std::string> names;
        for (int32_t i = 0; i < cnr_weight_count(c()); i++)
            names.emplace_back(cnr_weight_name(c(), i));
        return names;
    }
    outcome<tensor> weight(const std::string &name) const {
        cnr_error e = CNR_ERROR_INIT;
        const cnr_tensor *out = nullptr;
        const cnr_status status = cnr_weight(c(), name.c_str(), &out, &e);
        return detail::settle(status, e, [&] { return tensor(*out); });
    }
    outcome<void> set_weight(const std::string &name, const tensor &value) {
        cnr_error e = CNR_ERROR_INIT;
        return detail::settle(cnr_set_weight(c(), name.c_str(), value.c(), &e), e);
    }
    outcome<net> copy() const {
        cnr_error e = CNR_ERROR_INIT;
        cnr_model *model = nullptr;
        const cnr_status status = cnr_copy(c(), &model, &e);
        return detail::settle(status, e, [&] { return net(at_->runtime, model); });
    }
    outcome<void> save(const std::filesystem::path &file) {
        cnr_error e = CNR_ERROR_INIT;
        return detail::settle(cnr_save(c(), file.c_str(), &e), e);
    }
    outcome<void> place(const std::string &node, const std::string &device) {
        cnr_error e = CNR_ERROR_INIT;
        const char *const devices[] = {device.c_str()};
        cnr_place_options o{};
        o.size = sizeof o;
        o.node = node.c_str(), o.devices = devices, o.n_devices = 1;
        return detail::settle(cnr_place(c(), &o, &e), e);
    }
    /* The following take the options struct of C, whose size is set here, and an optional
     * observer. */
    outcome<evaluation> evaluate(cnr_evaluate_options o, observer *by = nullptr) {
        return work<evaluation>(cnr_evaluate, o, by);
    }
    outcome<timing> profile(cnr_profile_options o, observer *by = nullptr) {
        return work<timing>(cnr_profile, o, by);
    }
    outcome<trained> train(cnr_train_options o, observer *by = nullptr) {
        return work<trained>(cnr_train_model, o, by);
    }
    outcome<sharing> share(cnr_share_options o, observer *by = nullptr) {
        return work<sharing>(cnr_share, o, by);
    }
    outcome<std::pair<net, quantizing>> quantize(cnr_quantize_options o, observer *by = nullptr) {
        cnr_error e = CNR_ERROR_INIT;
        o.size = sizeof o;
        observer none;
        quantizing out;
        cnr_model *model = nullptr;
        const cnr_status status = (by ? by : &none)->watch([&](const cnr_observer *watch) {
            return cnr_quantize(c(), &o, watch, &model, &*out, &e);
        });
        return detail::settle(status, e, [&] {
            return std::make_pair(net(at_->runtime, model), std::move(out));
        });
    }
    outcome<candidates> all_candidates() {
        cnr_error e = CNR_ERROR_INIT;
        candidates out;
        const cnr_status status = cnr_candidates(c(), nullptr, 0, &*out, &e);
        return detail::settle(status, e, [&] { return std::move(out); });
    }
    cnr_model *c() const { return at_->model; }

  private:
    friend class runtime;
    net(std::shared_ptr<detail::runtime_state> rt, cnr_model *model)
        : at_(std::make_shared<detail::net_state>()) {
        at_->runtime = std::move(rt);
        at_->model = model;
    }
    template <class R, class F, class O> outcome<R> work(F function, O o, observer *by) {
        cnr_error e = CNR_ERROR_INIT;
        o.size = sizeof o;
        observer none;
        R out;
        const cnr_status status = (by ? by : &none)->watch([&](const cnr_observer *watch) {
            return function(c(), &o, watch, &*out, &e);
        });
        return detail::settle(status, e, [&] { return std::move(out); });
    }
    template <class N, class T>
    std::vector<std::pair<std::string, tensor>> list(int32_t n, N name, T type) const {
        std::vector<std::pair<std::string, tensor>> all;
        for (int32_t i = 0; i < n; i++) all.emplace_back(name(c(), i), tensor(*type(c(), i)));
        return all;
    }
    std::shared_ptr<detail::net_state> at_;
};

/* Loaded plugins and open devices. Copies refer to the same runtime, which is closed with the last
 * copy and the last of its nets. */
class runtime {
  public:
#ifndef CNNRUN_RESULTS
    runtime() : runtime(open()) {}
    explicit runtime(const open_options &options) : runtime(open(options)) {}
#endif
    static outcome<runtime> open(const open_options &o = {}) {
        cnr_error e = CNR_ERROR_INIT;
        auto made = std::make_shared<detail::runtime_state>();
        made->log = o.log;
        const detail::strings dirs(o.plugin_dirs);
        cnr_open_options c{};
        c.size = sizeof c;
        c.threads = o.threads, c.plugin_dirs = dirs(), c.no_default_dirs = o.no_default_dirs;
        c.trust_scripts = o.trust_scripts, c.clock = detail::text(o.clock);
        c.cache = detail::text(o.cache), c.sysfs_root = detail::text(o.sysfs_root);
        c.meter_address = detail::text(o.meter_address), c.board = detail::text(o.board);
        c.cpu_isa = detail::text(o.cpu_isa), c.log_level = o.log_level;
        if (o.log) {
            c.log_arg = made.get();
            c.log = [](void *arg, int32_t level, const char *plugin, const char *text) {
                try {
                    static_cast<detail::runtime_state *>(arg)->log(level, plugin, text);
                } catch (...) {}
            };
        }
        const cnr_status status = cnr_open(&made->rt, &c, &e);
        return detail::settle(status, e, [&] { return runtime(made); });
    }
    outcome<net> load(const std::filesystem::path &file, const load_options &options = {}) {
        cnr_error e = CNR_ERROR_INIT;
        const detail::cnr_options o(options);
        cnr_model *model = nullptr;
        const cnr_status status = cnr_load(c(), file.c_str(), &o.c, &model, &e);
        return detail::settle(status, e, [&] { return net(at_, model); });
    }
    /* Opens an installed script, or a file. */
    outcome<cnnrun::script> script(const std::filesystem::path &file) {
        return cnnrun::script::open({at_, nullptr}, file);
    }
    /* Names of all devices for options and placements, best first. Starts the drivers. */
    std::vector<std::string> devices() {
        std::vector<std::string> names;
        cnr_device_entry d{};
        d.size = sizeof d;
        for (int32_t i = 0; cnr_device_at(c(), i, &d, nullptr) == CNR_OK; i++)
            names.emplace_back(d.name);
        return names;
    }
    /* Measures the energy of `work`, which is repeated until the meters can resolve it. */
    outcome<energy> energy_of(const std::function<void()> &work, cnr_energy_options o = {}) {
        cnr_error e = CNR_ERROR_INIT;
        o.size = sizeof o;
        struct call {
            const std::function<void()> &work;
            std::exception_ptr thrown;
        } call{work, nullptr};
        energy out;
        const cnr_status status = cnr_energy_of(
            c(),
            [](void *arg, cnr_error *) {
                auto *now = static_cast<struct call *>(arg);
                try {
                    now->work();
                    return CNR_OK;
                } catch (...) {
                    now->thrown = std::current_exception();
                    return CNR_E_CANCELLED;
                }
            },
            &call, &o, nullptr, &*out, &e);
        if (call.thrown) std::rethrow_exception(call.thrown);
        return detail::settle(status, e, [&] { return std::move(out); });
    }
    cnr_runtime *c() const { return at_->rt; }

  private:
    explicit runtime(std::shared_ptr<detail::runtime_state> at) : at_(std::move(at)) {}
    std::shared_ptr<detail::runtime_state> at_;
};

} // namespace cnnrun
#endif
