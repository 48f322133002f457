/* C++17 for plugins: a header over <cnnrun/kit.h>. A descriptor is a type whose members are its
 * hooks; `op<T>()`, `kernel<T>()`, `device<T>()` ... make its C descriptor. What C hooks open and
 * close is an object. Hooks may throw: `fail(status, text)`, std::bad_alloc and other exceptions
 * become the status and text of the C call, and none crosses the ABI.
 *
 *     struct Halve { static constexpr const char *name = "acme.halve"; ... };
 *     CNR_KIT_PLUGIN("acme", "1.0", "halves", "MIT", CNR_TOUCHES_NOTHING, cnnrun::kit::op<Halve>())
 *
 * Put types into an unnamed namespace. plugins/template-kinds has an example of each kind. */
#ifndef CNNRUN_KIT_HPP
#define CNNRUN_KIT_HPP

#include <cnnrun/kit.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace cnnrun::kit {

inline const cnr_host *host; /* set before any hook is called */

/* ---- errors ---- */

struct failure : std::runtime_error {
    cnr_status status;
    failure(cnr_status s, const std::string &text) : std::runtime_error(text), status(s) {}
};
[[noreturn]] inline void fail(cnr_status status, const std::string &text) {
    throw failure(status, text);
}
/* Fails with status and text unless the condition holds. */
inline void want(bool holds, cnr_status status, const std::string &text) {
    if (!holds) fail(status, text);
}

/* Calls a function of the host whose last parameter is a cnr_error; throws that error. */
template <class F, class... A> void call(F function, A... args) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_status status = static_cast<cnr_status>(function(args..., &err));
    if (status) fail(status, err.text);
}

/* Calls f. Converts an exception to a status, with its text in err. */
template <class F> cnr_status guarded(cnr_error *err, const char *where, F f) noexcept {
    try {
        f();
        return CNR_OK;
    } catch (const failure &e) {
        return host->fail(err, e.status, where, "%s", e.what());
    } catch (const std::bad_alloc &) {
        return host->fail(err, CNR_E_MEMORY, where, "out of memory");
    } catch (const std::exception &e) {
        return host->fail(err, CNR_E_STATE, where, "%s", e.what());
    } catch (...) { return host->fail(err, CNR_E_STATE, where, "an unknown exception"); }
}
/* The same for hooks that return a number; returns `none` after an exception. */
template <class R, class F> R guarded_or(R none, F f) noexcept {
    try {
        return f();
    } catch (...) { return none; }
}

/* ---- memory, files, texts ---- */

/* Owns a block of host->alloc, aligned to 64 bytes. */
class block {
  public:
    explicit block(size_t bytes) : data_(host->alloc(bytes ? bytes : 1)), bytes_(bytes) {
        if (!data_) throw std::bad_alloc();
    }
    block(void *data, size_t bytes) : data_(data), bytes_(bytes) {} /* takes ownership */
    block(block &&other) noexcept
        : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
    block &operator=(block &&other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~block() { host->free(data_); }
    template <class T> T *as() const { return static_cast<T *>(data_); }
    size_t size() const { return bytes_; }
    std::string_view text() const { return {as<const char>(), bytes_}; }
    void *release() { return std::exchange(data_, nullptr); } /* passes ownership to the caller */

  private:
    void *data_;
    size_t bytes_;
};

/* Reads a whole file of at most `limit` bytes; a NUL follows them. */
inline block read_file(const char *path, uint64_t limit) {
    void *data = nullptr;
    uint64_t bytes = 0;
    call(host->file_read, path, limit, &data, &bytes);
    return {data, static_cast<size_t>(bytes)};
}

/* Copies a text to an array of chars, cut to its size. */
template <size_t N> void put(char (&to)[N], std::string_view text) {
    const size_t n = std::min(text.size(), N - 1);
    std::copy_n(text.data(), n, to);
    to[n] = 0;
}
/* True if the text ends with `end`. */
inline bool ends_with(std::string_view text, std::string_view end) {
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/* ---- shapes, tensors, attributes ---- */

template <class T> constexpr int32_t dtype_of() {
    if constexpr (std::is_same_v<T, float>) return CNR_f32;
    else if constexpr (std::is_same_v<T, double>) return CNR_f64;
    else if constexpr (std::is_same_v<T, bool>) return CNR_bool;
    else if constexpr (std::is_same_v<T, int8_t>) return CNR_i8;
    else if constexpr (std::is_same_v<T, uint8_t>) return CNR_u8;
    else if constexpr (std::is_same_v<T, int32_t>) return CNR_i32;
    else if constexpr (std::is_same_v<T, int64_t>) return CNR_i64;
    else static_assert(!sizeof(T), "no tensors of this type");
}

template <class T> struct list { /* a view of elements */
    const T *data = nullptr;
    int64_t n = 0;
    const T *begin() const { return data; }
    const T *end() const { return data + n; }
    const T &operator[](int64_t i) const { return data[i]; }
};

using shape = std::vector<int64_t>;

/* Non-owning view of a cnr_tensor; false if NULL. data<T>() fails if T is not the element type. */
struct tensor {
    const cnr_tensor *c;
    explicit operator bool() const { return c != nullptr; }
    int32_t rank() const { return c->rank; }
    int64_t dim(int32_t i) const { return c->dim[i]; }
    list<int64_t> dims() const { return {c->dim, c->rank}; }
    int64_t count() const { return cnr_count(c); }
    template <class T> bool is() const { return c->dtype == dtype_of<T>(); }
    template <class T> T *data() const { /* elements on the host */
        want(is<T>(), CNR_E_UNSUPPORTED,
             std::string("unexpected type ") + cnr_dtype_name(c->dtype));
        return static_cast<T *>(c->data);
    }
};

/* A tensor type without data; fails if there are too many dimensions. */
inline cnr_tensor type_of(int32_t dtype, const shape &dims) {
    cnr_tensor t{};
    want(dims.size() <= CNR_MAX_RANK, CNR_E_SHAPE, "the rank is too large");
    t.size = sizeof t;
    t.dtype = dtype;
    t.rank = static_cast<int32_t>(dims.size());
    std::copy(dims.begin(), dims.end(), t.dim);
    return t;
}

/* Non-owning view of a cnr_node: inputs, outputs and attributes. attr() fails if the node has no
 * such attribute. */
struct node {
    const cnr_node *c;
    tensor in(int32_t i) const { return {cnr_own_input(c, i)}; } /* false: omitted */
    tensor out(int32_t i = 0) const { return {c->outputs[i]}; }
    /* The value of an attribute. T: double, float, an integer, bool, std::string_view,
     * list<int64_t> or list<double>. */
    template <class T> T attr(const char *name) const {
        const cnr_attr *a = cnr_attr_find(c, name);
        want(a, CNR_E_ARG, std::string("no attribute ") + name);
        if constexpr (std::is_floating_point_v<T>) return static_cast<T>(a->f);
        else if constexpr (std::is_integral_v<T>) return static_cast<T>(a->i);
        else if constexpr (std::is_same_v<T, list<int64_t>>) return {a->ints, a->n};
        else if constexpr (std::is_same_v<T, list<double>>) return {a->floats, a->n};
        else return T(a->s ? a->s : "");
    }
};

struct outputs { /* output types that `infer` sets */
    cnr_tensor *const *c;
    void set(int32_t i, int32_t dtype, const shape &dims) {
        const cnr_tensor t = type_of(dtype, dims);
        c[i]->dtype = dtype;
        c[i]->rank = t.rank;
        std::copy_n(t.dim, CNR_MAX_RANK, c[i]->dim);
    }
    void like(int32_t i, tensor t) { set(i, t.c->dtype, shape(t.dims().begin(), t.dims().end())); }
};

struct run : node { /* one call of a kernel or a reference */
    const cnr_run *call;
    explicit run(const cnr_run *r) : node{r->node}, call(r) {}
    tensor out(int32_t i = 0) const { return {call->outputs[i]}; }
    /* Calls f(first, n) for each requested piece of output 0: n elements from `first` on. */
    template <class F> void each_piece(F f) const {
        const cnr_pieces p = cnr_pieces_of(call);
        for (int64_t i = 0; i < p.n; i++) f(p.first + i * p.pitch, p.length);
    }
    template <class F> void parallel(int64_t n, F f) const { /* f(i), on the stream's threads */
        cnr_parallel(
            call->stream, n,
            [](void *arg, int64_t i, int32_t) noexcept { (*static_cast<F *>(arg))(i); }, &f);
    }
};

struct attr : cnr_attr { /* one for `graph::add`; texts and lists must outlive the call */
    attr(const char *name, int64_t value) : attr(name, CNR_ATTR_INT) { i = value; }
    attr(const char *name, int value) : attr(name, static_cast<int64_t>(value)) {}
    attr(const char *name, bool value) : attr(name, CNR_ATTR_BOOL) { i = value; }
    attr(const char *name, double value) : attr(name, CNR_ATTR_FLOAT) { f = value; }
    attr(const char *name, const char *value) : attr(name, CNR_ATTR_STRING) { s = value; }
    attr(const char *name, const shape &value) : attr(name, CNR_ATTR_INTS) {
        n = static_cast<int64_t>(value.size());
        ints = value.data();
    }

  private:
    attr(const char *word, cnr_attr_type kind) : cnr_attr{} { name = word, type = kind; }
};

/* Row of an attribute schema: a number with a default and inclusive bounds. The texts are
 * borrowed. */
inline cnr_attr_spec real(const char *name, double value, double min, double max,
                          const char *help) {
    cnr_attr_spec s{};
    s.name = name, s.type = CNR_ATTR_FLOAT, s.flags = CNR_ATTR_BOUNDED, s.help = help;
    s.min = min, s.max = max, s.default_f = value;
    return s;
}
/* Row of an attribute schema: a whole number with a default and inclusive bounds. The texts are
 * borrowed. */
inline cnr_attr_spec integer(const char *name, int64_t value, double min, double max,
                             const char *help) {
    cnr_attr_spec s = real(name, 0, min, max, help);
    s.type = CNR_ATTR_INT, s.default_i = value;
    return s;
}

/* Non-owning builder of a cnr_graph for importers and rewrites; adding values and nodes throws on
 * failure. */
struct graph {
    struct cnr_graph *c;
    struct place {
        node n;
        list<cnr_value> in, out;
    };
    cnr_value input(const char *name, int32_t dtype, const shape &dims) {
        const cnr_tensor t = type_of(dtype, dims);
        return host->graph_input(c, name, &t);
    }
    template <class T>
    cnr_value constant(const char *name, const shape &dims, const T *data) { /* copies data */
        cnr_tensor t = type_of(dtype_of<T>(), dims);
        t.data = const_cast<T *>(data);
        t.bytes = cnr_dense_bytes(&t);
        return host->graph_constant(c, name, &t);
    }
    cnr_value add(const char *op, const std::vector<cnr_value> &in,
                  const std::vector<attr> &attrs = {}, const char *name = nullptr,
                  const char *where = nullptr) { /* a node with one output */
        std::vector<const cnr_attr *> rows;
        for (const attr &a : attrs) rows.push_back(&a);
        cnr_value out = -1;
        const cnr_status status =
            host->graph_node(c, op, name, where, in.data(), static_cast<int32_t>(in.size()),
                             rows.data(), static_cast<int32_t>(rows.size()), &out, 1);
        want(!status, status, std::string("a node ") + op + " can't be added");
        return out;
    }
    void output(cnr_value value, const char *name) {
        const cnr_status status = host->graph_output(c, value, name);
        want(!status, status, std::string("no output ") + name);
    }
    int32_t size() const { return host->graph_node_count(c); }
    place at(int32_t i) const {
        const cnr_value *in, *out;
        const cnr_node *n = host->graph_node_at(c, i, &in, &out);
        return {{n}, {in, n->n_inputs}, {out, n->n_outputs}};
    }
    tensor type(cnr_value v) const { return {host->graph_type(c, v)}; }
    int32_t producer(cnr_value v) const { return host->graph_producer(c, v); } /* -1: none */
    int32_t uses(cnr_value v) const { return host->graph_use_count(c, v); }
    void insert_before(int32_t i) { host->graph_insert_before(c, i); }
    void replace(cnr_value from, cnr_value to) {
        const cnr_status status = host->graph_replace(c, from, to);
        want(!status, status, "a value can't be replaced");
    }
    void remove(int32_t i) {
        const cnr_status status = host->graph_remove(c, i);
        want(!status, status, "a node can't be removed");
    }
};

/* ---- descriptors ---- */

/* Defines has_MEMBER<T>: true if class T has a member of that name. */
#define CNR_KIT_MEMBER(member) \
    template <class T, class = void> struct has_##member : std::false_type {}; \
    template <class T> \
    struct has_##member<T, std::void_t<decltype(&T::member)>> : std::true_type {};
CNR_KIT_MEMBER(flags)
CNR_KIT_MEMBER(attrs)
CNR_KIT_MEMBER(gradient)
CNR_KIT_MEMBER(apply)
CNR_KIT_MEMBER(expression)
CNR_KIT_MEMBER(prepare)
CNR_KIT_MEMBER(claim)
CNR_KIT_MEMBER(options)
CNR_KIT_MEMBER(device)
CNR_KIT_MEMBER(save)
#undef CNR_KIT_MEMBER

template <class D> D described(const char *name, const char *summary) {
    D d{};
    d.size = sizeof d, d.name = name, d.summary = summary;
    return d;
}
template <class D> D versioned(const char *name) {
    D d{};
    d.size = sizeof d, d.version = 1, d.name = name;
    return d;
}

/* Values for computing a gradient: inputs and outputs of the node, and gradients of the outputs. */
struct flows {
    const cnr_value *in, *out, *grad;
};

/* T: name, summary, inputs[], outputs[], infer(node, outputs), reference(run); optional: flags,
 * attrs[], gradient(graph, node, flows, input), which returns the gradient of that input or -1,
 * apply(node, x, y, out, n), expression(node) as std::string. */
template <class T> cnr_item op() {
    static const cnr_op made = [] {
        cnr_op d = described<cnr_op>(T::name, T::summary);
        d.version = 1, d.attr_spec_size = sizeof(cnr_attr_spec), d.port_size = sizeof(cnr_port);
        d.n_inputs = CNR_ROWS(T::inputs), d.inputs = T::inputs;
        d.n_outputs = CNR_ROWS(T::outputs), d.outputs = T::outputs;
        if constexpr (has_flags<T>()) d.flags = T::flags;
        if constexpr (has_attrs<T>()) d.n_attrs = CNR_ROWS(T::attrs), d.attrs = T::attrs;
        d.infer = [](const cnr_node *n, cnr_tensor *const *out, cnr_error *err) {
            return guarded(err, n->name, [&] { T::infer(node{n}, outputs{out}); });
        };
        d.reference = [](const cnr_run *r, cnr_error *err) {
            return guarded(err, r->node->name, [&] { T::reference(run(r)); });
        };
        if constexpr (has_gradient<T>())
            d.gradient = [](const cnr_host *, struct cnr_graph *g, const cnr_node *n,
                            const cnr_value *in, const cnr_value *out, const cnr_value *grad_out,
                            const int32_t *wanted, cnr_value *grad_in, cnr_error *err) {
                return guarded(err, n->name, [&] {
                    graph to{g};
                    for (int32_t i = 0; i < n->n_inputs; i++)
                        if (wanted[i])
                            grad_in[i] = T::gradient(to, node{n}, flows{in, out, grad_out}, i);
                });
            };
        if constexpr (has_apply<T>())
            d.apply_f32 = [](const cnr_node *n, const float *x, const float *y, float *out,
                             int64_t count) { T::apply(node{n}, x, y, out, count); };
        if constexpr (has_expression<T>())
            d.expression = [](const cnr_node *n, char *text, size_t room) -> int32_t {
                return guarded_or<int32_t>(-1, [&] {
                    const std::string s = T::expression(node{n});
                    return s.size() < room
                               ? static_cast<int32_t>(s.copy(text, room - 1)) + (text[s.size()] = 0)
                               : -1;
                });
            };
        return d;
    }();
    return {CNR_KIND_OPERATOR, &made};
}

struct answer { /* the result of a kernel's `accepts` */
    node n;
    cnr_accept *c;
    void take(int32_t score) { cnr_take(n.c, c, score); }
    void refuse(const char *why) { cnr_refuse(c, why); } /* why: a static text */
};

/* T, static: name, op, device, accepts(node, answer), run(run). If T can be constructed from (node,
 * cnr_space &workspace), planning makes an object whose const member run(run) all sessions share.
 * Optional: blob_bytes(node) and prepare(node, void *blob). */
template <class T> cnr_item kernel() {
    static const cnr_kernel made = [] {
        cnr_kernel d = versioned<cnr_kernel>(T::name);
        d.op = T::op, d.device = T::device;
        d.accepts = [](const cnr_device *, const cnr_node *n, cnr_accept *out) {
            return guarded(nullptr, n->name, [&] {
                answer a{{n}, out};
                T::accepts(node{n}, a);
            });
        };
        if constexpr (has_prepare<T>()) {
            d.prepare_size = [](const cnr_device *, const cnr_node *n, cnr_space *out,
                                cnr_error *err) {
                return guarded(err, n->name, [&] { out->bytes = T::blob_bytes(node{n}); });
            };
            d.prepare = [](const cnr_device *, const cnr_node *n, void *blob, cnr_error *err) {
                return guarded(err, n->name, [&] { T::prepare(node{n}, blob); });
            };
        }
        if constexpr (std::is_constructible_v<T, node, cnr_space &>) {
            d.plan = [](const cnr_device *, const cnr_node *n, cnr_space *work, void **state,
                        cnr_error *err) {
                return guarded(err, n->name, [&] { *state = new T(node{n}, *work); });
            };
            d.plan_free = [](const cnr_device *, void *state) { delete static_cast<T *>(state); };
            d.run = [](const cnr_run *r, cnr_error *err) {
                return guarded(err, r->node->name,
                               [&] { static_cast<const T *>(r->state)->run(kit::run(r)); });
            };
        } else
            d.run = [](const cnr_run *r, cnr_error *err) {
                return guarded(err, r->node->name, [&] { T::run(kit::run(r)); });
            };
        return d;
    }();
    return {CNR_KIND_KERNEL, &made};
}

/* T: name, family, summary, flags; static count() and describe(index, cnr_device_info &);
 * constructed from (cnr_device &), of which it sets memory, n_memory and concurrency; alloc(cnr_mem
 * &) and free(cnr_mem &). T::stream: constructed from (const T &); write(mem, offset, from, n),
 * read(mem, offset, to, n), sync(), record(), which returns a T::event, and wait(const T::event &).
 * T::event: await(). Optional: claim(const cnr_subgraph &, tell), which calls tell(cnr_claim) for
 * each claim. */
template <class T> cnr_item device() {
    using S = typename T::stream;
    using E = typename T::event;
    static const auto of = [](const cnr_device *d) { return static_cast<T *>(d->state); };
    static const auto at = [](cnr_stream *s) { return static_cast<S *>(s->state); };
    static const cnr_device_class made = [] {
        cnr_device_class d = described<cnr_device_class>(T::name, T::summary);
        d.flags = T::flags, d.family = T::family;
        d.count = [](cnr_error *err) -> int32_t {
            int32_t n = 0;
            const cnr_status status = guarded(err, T::name, [&] { n = T::count(); });
            return status ? status : n;
        };
        d.describe = [](int32_t i, cnr_device_info *out, cnr_error *err) {
            return guarded(err, T::name, [&] { T::describe(i, *out); });
        };
        d.open = [](cnr_device *dev, const cnr_device_options *, cnr_error *err) {
            return guarded(err, T::name, [&] { dev->state = new T(*dev); });
        };
        d.close = [](cnr_device *dev) { delete of(dev); };
        d.alloc = [](const cnr_device *dev, cnr_mem *m, cnr_error *err) {
            return guarded(err, T::name, [&] { of(dev)->alloc(*m); });
        };
        d.free = [](const cnr_device *dev, cnr_mem *m) { of(dev)->free(*m); };
        d.write = [](cnr_stream *s, const cnr_mem *to, uint64_t offset, const void *from,
                     uint64_t n, cnr_error *err) {
            return guarded(err, T::name, [&] { at(s)->write(*to, offset, from, n); });
        };
        d.read = [](cnr_stream *s, const cnr_mem *from, uint64_t offset, void *to, uint64_t n,
                    cnr_error *err) {
            return guarded(err, T::name, [&] { at(s)->read(*from, offset, to, n); });
        };
        d.stream_open = [](const cnr_device *dev, cnr_stream *s, cnr_error *err) {
            return guarded(err, T::name, [&] { s->state = new S(*of(dev)); });
        };
        d.stream_close = [](cnr_stream *s) { delete at(s); };
        d.sync = [](cnr_stream *s, cnr_error *err) {
            return guarded(err, T::name, [&] { at(s)->sync(); });
        };
        d.event_record = [](cnr_stream *s, void **event, cnr_error *err) {
            return guarded(err, T::name, [&] { *event = new E(at(s)->record()); });
        };
        d.event_wait = [](cnr_stream *s, void *event, cnr_error *err) {
            return guarded(err, T::name, [&] { at(s)->wait(*static_cast<const E *>(event)); });
        };
        d.event_sync = [](const cnr_device *, void *event, cnr_error *err) {
            return guarded(err, T::name, [&] { static_cast<const E *>(event)->await(); });
        };
        d.event_free = [](const cnr_device *, void *event) { delete static_cast<E *>(event); };
        if constexpr (has_claim<T>())
            d.claim = [](const cnr_device *dev, const cnr_subgraph *g, cnr_claim_fn tell, void *arg,
                         cnr_error *err) {
                return guarded(err, T::name, [&] {
                    of(dev)->claim(*g, [&](const cnr_claim &c) { tell(arg, &c); });
                });
            };
        return d;
    }();
    return {CNR_KIND_DEVICE, &made};
}

/* T, all static: name, summary, flags, encoded_bytes(tensor), encode(tensor, void *to, bytes),
 * check(tensor), decode(tensor, void *dense). */
template <class T> cnr_item encoding() {
    static const cnr_encoding made = [] {
        cnr_encoding d = described<cnr_encoding>(T::name, T::summary);
        d.version = 1, d.attr_spec_size = sizeof(cnr_attr_spec), d.flags = T::flags;
        d.encode_size = [](const cnr_tensor *t, const cnr_attr *const *, uint64_t *bytes,
                           cnr_error *err) {
            return guarded(err, T::name, [&] { *bytes = T::encoded_bytes(tensor{t}); });
        };
        d.encode = [](const cnr_tensor *t, const cnr_attr *const *, void *to, uint64_t bytes,
                      cnr_error *err) {
            return guarded(err, T::name, [&] { T::encode(tensor{t}, to, bytes); });
        };
        d.check = [](const cnr_tensor *t, cnr_error *err) {
            return guarded(err, T::name, [&] { T::check(tensor{t}); });
        };
        d.decode = [](const cnr_tensor *t, void *to, cnr_error *err) {
            return guarded(err, T::name, [&] { T::decode(tensor{t}, to); });
        };
        return d;
    }();
    return {CNR_KIND_ENCODING, &made};
}

/* The beginning of a file, for `accepts`; data null: there is none. */
inline std::string_view head_of(const uint8_t *head, size_t n) {
    return {reinterpret_cast<const char *>(head), head ? n : 0};
}

/* T, all static: name, summary, accepts(path, head), import(const cnr_import_args &, graph &);
 * optional: options, as cnr_importer.options. */
template <class T> cnr_item importer() {
    static const cnr_importer made = [] {
        cnr_importer d = described<cnr_importer>(T::name, T::summary);
        if constexpr (has_options<T>()) d.options = T::options;
        d.accepts = [](const char *path, const uint8_t *head, size_t n) -> int32_t {
            return guarded_or<int32_t>(0, [&] { return T::accepts(path, head_of(head, n)); });
        };
        d.import = [](const cnr_import_args *args, struct cnr_graph *g, cnr_error *err) {
            return guarded(err, args->n_paths ? args->paths[0] : T::name, [&] {
                graph to{g};
                T::import(*args, to);
            });
        };
        return d;
    }();
    return {CNR_KIND_IMPORTER, &made};
}

/* T, static: name, summary, format, domain, type, op, attrs (NULL-terminated, or NULL). */
template <class T> cnr_item import_row() {
    static const cnr_import_row made = [] {
        cnr_import_row d = described<cnr_import_row>(T::name, T::summary);
        d.format = T::format, d.domain = T::domain, d.type = T::type, d.op = T::op;
        d.attrs = T::attrs;
        return d;
    }();
    return {CNR_KIND_IMPORT_ROW, &made};
}

/* T, static: name, summary, order, apply(graph &), which returns the number of changes; optional:
 * device. */
template <class T> cnr_item rewrite() {
    static const cnr_rewrite made = [] {
        cnr_rewrite d = described<cnr_rewrite>(T::name, T::summary);
        d.order = T::order;
        if constexpr (has_device<T>()) d.device = T::device;
        d.apply = [](struct cnr_graph *g, cnr_error *err) -> int32_t {
            int32_t changes = 0;
            const cnr_status status = guarded(err, T::name, [&] {
                graph to{g};
                changes = T::apply(to);
            });
            return status ? status : changes;
        };
        return d;
    }();
    return {CNR_KIND_REWRITE, &made};
}

/* Sets the sample's picture: u8, H W C, in `pixels`, whose memory the sample then owns. */
inline void give_picture(cnr_sample &to, block &&pixels, int64_t h, int64_t w, int64_t c) {
    cnr_tensor t = type_of(CNR_u8, {h, w, c});
    t.bytes = pixels.size();
    t.data = pixels.release();
    to.picture = t;
}

/* T: static name, syntax, summary, accepts(spec, head); constructed from (spec, split or null,
 * cnr_source_info &); read(index, cnr_sample &). */
template <class T> cnr_item source() {
    static const cnr_source made = [] {
        cnr_source d = described<cnr_source>(T::name, T::summary);
        d.syntax = T::syntax;
        d.accepts = [](const char *spec, const uint8_t *head, size_t n) -> int32_t {
            return guarded_or<int32_t>(0, [&] { return T::accepts(spec, head_of(head, n)); });
        };
        d.open = [](const char *spec, const char *split, void **state, cnr_source_info *info,
                    cnr_error *err) {
            return guarded(err, spec, [&] { *state = new T(spec, split, *info); });
        };
        d.read = [](void *state, int64_t i, cnr_sample *out, cnr_error *err) {
            return guarded(err, T::name, [&] { static_cast<T *>(state)->read(i, *out); });
        };
        d.close = [](void *state) { delete static_cast<T *>(state); };
        return d;
    }();
    return {CNR_KIND_SOURCE, &made};
}

/* The common part of meters and knobs. T: name, summary; constructed from (const cnr_gauge_options
 * &), which throws CNR_E_NOT_FOUND if the machine has none; domains(), describe(domain, D &),
 * read(domain, R &). */
template <class T, class D, class G, class R> D gauge() {
    D d = described<D>(T::name, T::summary);
    d.open = [](const cnr_gauge_options *o, void **state, int32_t *n, cnr_error *err) {
        return guarded(err, T::name, [&] {
            auto made = std::make_unique<T>(*o);
            *n = made->domains();
            *state = made.release();
        });
    };
    d.describe = [](void *state, int32_t i, G *out, cnr_error *err) {
        return guarded(err, T::name, [&] { static_cast<T *>(state)->describe(i, *out); });
    };
    d.read = [](void *state, int32_t i, R *out, cnr_error *err) {
        return guarded(err, T::name, [&] { static_cast<T *>(state)->read(i, *out); });
    };
    d.close = [](void *state) { delete static_cast<T *>(state); };
    return d;
}

template <class T> cnr_item meter() {
    static const cnr_meter made = gauge<T, cnr_meter, cnr_meter_domain, cnr_reading>();
    return {CNR_KIND_METER, &made};
}

/* T, in addition: step(domain, index), in Hz; set(domain, hz, cores), where hz 0 and cores -1
 * change nothing; restore(). Optional: save(), a text from which load(text) in another process
 * restores. */
template <class T> cnr_item knob() {
    static const cnr_knob made = [] {
        cnr_knob d = gauge<T, cnr_knob, cnr_knob_domain, cnr_knob_state>();
        d.step = [](void *state, int32_t i, int32_t index, uint64_t *hz, cnr_error *err) {
            return guarded(err, T::name, [&] { *hz = static_cast<T *>(state)->step(i, index); });
        };
        d.set = [](void *state, int32_t i, uint64_t hz, int32_t cores, cnr_error *err) {
            return guarded(err, T::name, [&] { static_cast<T *>(state)->set(i, hz, cores); });
        };
        d.restore = [](void *state, cnr_error *err) {
            return guarded(err, T::name, [&] { static_cast<T *>(state)->restore(); });
        };
        if constexpr (has_save<T>()) {
            d.save_state = [](void *state, char *text, size_t room) -> int32_t {
                return guarded_or<int32_t>(-1, [&] {
                    return std::snprintf(text, room, "%s", static_cast<T *>(state)->save().c_str());
                });
            };
            d.load_state = [](void *state, const char *text, cnr_error *err) {
                return guarded(err, T::name, [&] { static_cast<T *>(state)->load(text); });
            };
        }
        return d;
    }();
    return {CNR_KIND_KNOB, &made};
}

} // namespace cnnrun::kit

/* Defines the plugin's entry point. After TOUCHES (CNR_TOUCHES_...): its items, such as
 * cnnrun::kit::op<T>(). */
#define CNR_KIT_PLUGIN(NAME, VERSION, SUMMARY, LICENCE, TOUCHES, ...) \
    static cnr_status cnr_kit_init_(const cnr_host *host, struct cnr_registrar *registrar, \
                                    cnr_error *) { \
        cnnrun::kit::host = host; \
        const cnr_item items[] = {__VA_ARGS__}; \
        return cnr_add_all(host, registrar, items, CNR_ROWS(items)); \
    } \
    CNR_PLUGIN(NAME, VERSION, SUMMARY, LICENCE, cnr_kit_init_, TOUCHES)

#endif
