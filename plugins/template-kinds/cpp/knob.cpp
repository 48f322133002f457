// A knob: the clock of a board, any frequency between two bounds, by attributes below /sys.
#include <cnnrun/kit.hpp>

#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace {
namespace kit = cnnrun::kit;

class Clock {
  public:
    static constexpr const char *name = "beta-clock", *summary = "the clock of a board";

    explicit Clock(const cnr_gauge_options &o)
        : folder_(std::string(o.root) + "/sys/class/example/board/") {
        try {
            min_ = value("min_hz"), max_ = value("max_hz"), found_ = value("hz");
        } catch (const kit::failure &) { kit::fail(CNR_E_NOT_FOUND, folder_ + ": no clock there"); }
    }
    int32_t domains() const { return 1; }
    void describe(int32_t, cnr_knob_domain &d) {
        kit::put(d.name, "board");
        d.min_hz = min_, d.max_hz = max_; // the host never exceeds them
        d.is_writable = 1;
    }
    uint64_t step(int32_t, int32_t) { return min_; } // n_steps is 0: it is never asked
    void read(int32_t, cnr_knob_state &s) { s.hz = value("hz"); }
    void set(int32_t, uint64_t hz, int32_t) {
        const std::string path = folder_ + "hz";
        if (!hz) return; // to be left as it is
        kit::call(kit::host->may_open, path.c_str(), 1);
        const std::string text = std::to_string(hz) + "\n";
        const int fd = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW);
        const bool written =
            fd >= 0 && ::write(fd, text.data(), text.size()) == ssize_t(text.size());
        const bool closed = fd >= 0 && ::close(fd) == 0;
        kit::want(written && closed, CNR_E_IO, path + ": can't be written");
    }
    void restore() { set(0, found_, -1); }
    // For a process that is killed before it restores: the next one loads what this one saved.
    std::string save() const { return std::to_string(found_); }
    void load(const char *text) {
        const uint64_t hz = std::strtoull(text, nullptr, 10);
        kit::want(hz > 0, CNR_E_FORMAT, "a frequency is wanted");
        found_ = hz;
    }

  private:
    uint64_t value(const char *attribute) const {
        const std::string path = folder_ + attribute;
        const kit::block file = kit::read_file(path.c_str(), 64);
        const uint64_t hz = std::strtoull(file.as<const char>(), nullptr, 10);
        kit::want(hz > 0, CNR_E_FORMAT, path + ": a frequency is wanted");
        return hz;
    }
    std::string folder_;
    uint64_t min_, max_, found_;
};
} // namespace

CNR_KIT_PLUGIN("cpp-knob", "1.0", "an example knob", "MIT", CNR_TOUCHES_FILES,
               cnnrun::kit::knob<Clock>())
