// A meter: the power of a board, in microwatts, from an attribute below /sys.
#include <cnnrun/kit.hpp>

namespace {
namespace kit = cnnrun::kit;

class Board {
  public:
    static constexpr const char *name = "beta-board", *summary = "power of a board";

    // `root` is "/", or a tree of fixtures: --sysfs-root.
    explicit Board(const cnr_gauge_options &o)
        : path_(std::string(o.root) + "/sys/class/example/board/power_uw") {
        try {
            power();
        } catch (const kit::failure &) { kit::fail(CNR_E_NOT_FOUND, path_ + ": is not there"); }
    }
    int32_t domains() const { return 1; }
    void describe(int32_t, cnr_meter_domain &d) {
        kit::put(d.name, "board");
        d.quantity = CNR_QUANTITY_POWER;
        d.period_ms = 10; // the sensor renews its value so often
        d.is_whole_machine = 1;
    }
    void read(int32_t, cnr_reading &r) { r.value = power(); }

  private:
    // Whatever can't be read is an error, never 0.
    int64_t power() const {
        double value;
        const kit::block file = kit::read_file(path_.c_str(), 64);
        const char *end;
        kit::want(kit::host->parse_number(file.as<const char>(), &end, &value) && *end == '\n' &&
                      value >= 0 && value < 1e12,
                  CNR_E_FORMAT, path_ + ": microwatts are wanted");
        return static_cast<int64_t>(value);
    }
    std::string path_;
};
} // namespace

CNR_KIT_PLUGIN("cpp-meter", "1.0", "an example meter", "MIT", CNR_TOUCHES_FILES,
               cnnrun::kit::meter<Board>())
