// A source of pictures: files "grey H W", a newline, and H * W bytes.
#include <cnnrun/kit.hpp>

namespace {
namespace kit = cnnrun::kit;

class Grey {
  public:
    static constexpr const char *name = "beta-grey", *syntax = "FILE.greyxx";
    static constexpr const char *summary = "grey pictures as bytes";

    static int32_t accepts(std::string_view spec, std::string_view) {
        return kit::ends_with(spec, ".greyxx") ? 50 : 0;
    }
    Grey(const char *spec, const char *, cnr_source_info &info)
        : path_(spec), file_(kit::read_file(spec, 1 << 24)) {
        int begin = 0;
        const char *text = file_.as<const char>(); // a NUL stands behind the file
        kit::want(std::sscanf(text, "grey %5d %5d%n", &height_, &width_, &begin) == 2 &&
                      text[begin] == '\n' && height_ > 0 && width_ > 0,
                  CNR_E_FORMAT, "\"grey H W\" is wanted, with sizes from 1 to 99999");
        pixels_ = file_.text().substr(static_cast<size_t>(begin) + 1);
        kit::want(pixels_.size() == static_cast<size_t>(height_) * static_cast<size_t>(width_),
                  CNR_E_FORMAT, "there are " + std::to_string(pixels_.size()) + " pixels");
        info.count = 1;
    }
    void read(int64_t index, cnr_sample &out) {
        kit::want(index == 0, CNR_E_NOT_FOUND, "there is one picture");
        kit::block pixels(pixels_.size());
        std::copy(pixels_.begin(), pixels_.end(), pixels.as<char>());
        kit::put(out.name, path_);
        kit::give_picture(out, std::move(pixels), height_, width_, 1);
    }

  private:
    std::string path_;
    kit::block file_;
    std::string_view pixels_;
    int height_ = 0, width_ = 0;
};
} // namespace

CNR_KIT_PLUGIN("cpp-source", "1.0", "an example source", "MIT", CNR_TOUCHES_FILES,
               cnnrun::kit::source<Grey>())
