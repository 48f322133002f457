// An encoding: weights as f16 behind a header. Files are hostile: `check` refuses all that `decode`
// could trip over.
#include <cnnrun/kit.hpp>

#include <cstring>

namespace {
namespace kit = cnnrun::kit;

// The encoding.
struct Halves {
    static constexpr const char *name = "beta.halves";
    static constexpr const char *summary = "f32 weights as f16";
    static constexpr uint32_t flags = CNR_ENCODING_STORED; // decoded before a kernel reads it

    struct header {
        uint64_t magic, n;
    };
    static constexpr uint64_t magic = 0x66697674;

    static uint64_t encoded_bytes(kit::tensor t) {
        kit::want(t.is<float>(), CNR_E_UNSUPPORTED, "f32 weights are wanted");
        return sizeof(header) + 2 * static_cast<uint64_t>(t.count());
    }
    static void encode(kit::tensor t, void *to, uint64_t) {
        const header h = {magic, static_cast<uint64_t>(t.count())};
        void *halves = static_cast<char *>(to) + sizeof h;
        std::memcpy(to, &h, sizeof h);
        kit::host->elements_write(CNR_f16, halves, 0, t.count(), CNR_f32, t.data<float>());
    }
    // The tensor has the type and dims of the dense one, and data and bytes of the encoded one.
    static void check(kit::tensor t) {
        header h{};
        kit::want(t.is<float>() && t.c->bytes >= sizeof h, CNR_E_FORMAT, "it is cut");
        std::memcpy(&h, t.c->data, sizeof h);
        kit::want(h.magic == magic, CNR_E_FORMAT, "it does not begin with the magic number");
        kit::want(h.n == static_cast<uint64_t>(t.count()) && t.c->bytes == sizeof h + 2 * h.n,
                  CNR_E_FORMAT, "its size is not that of its shape");
    }
    static void decode(kit::tensor t, void *dense) {
        const void *halves = static_cast<const char *>(t.c->data) + sizeof(header);
        kit::host->elements_read(CNR_f16, halves, 0, 1, t.count(), CNR_f32, dense);
    }
};
} // namespace

CNR_KIT_PLUGIN("cpp-encoding", "1.0", "an example encoding", "MIT", CNR_TOUCHES_NOTHING,
               cnnrun::kit::encoding<Halves>())
