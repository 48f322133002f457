// An importer of a model format of its own, one layer a line, and an import row: how ONNX files
// with a node beta.ml::Leaky load.
//
//     input 1 3 8 8
//     max_pool 2
//     relu
#include <cnnrun/kit.hpp>

#include <sstream>

namespace {
namespace kit = cnnrun::kit;

// The importer.
struct Chain {
    static constexpr const char *name = "beta-chain";
    static constexpr const char *summary = "nets of one layer a line (.chainxx)";

    static int32_t accepts(std::string_view path, std::string_view head) {
        return kit::ends_with(path, ".chainxx") && head.substr(0, 6) == "input " ? 50 : 0;
    }
    // Unsupported layers are reported one by one, so that a user sees all of them at once.
    static void import(const cnr_import_args &args, kit::graph &g) {
        const kit::block file = kit::read_file(args.paths[0], 1 << 20);
        std::istringstream lines{std::string(file.text())};
        std::string line, word;
        cnr_value x = -1;
        for (int number = 1; std::getline(lines, line); number++) {
            const std::string where = std::string(args.paths[0]) + ":" + std::to_string(number);
            std::istringstream words(line);
            if (!(words >> word)) continue;
            if (word == "input") x = input(g, words, where);
            else if (x < 0) kit::fail(CNR_E_FORMAT, where + ": the first line must be an input");
            else if (word == "max_pool") x = pool(g, x, words, where);
            else if (word == "relu" || word == "softmax")
                x = g.add(word.c_str(), {x}, {}, nullptr, where.c_str());
            else kit::host->graph_problem(g.c, where.c_str(), "no layer %s", word.c_str());
        }
        kit::want(x >= 0, CNR_E_FORMAT, "there is no input");
        g.output(x, "out");
    }

  private:
    static cnr_value input(kit::graph &g, std::istringstream &words, const std::string &where) {
        kit::shape dims;
        for (int64_t n = 0; words >> n; dims.push_back(n))
            kit::want(n > 0 && n < 65536 && dims.size() < 4, CNR_E_FORMAT,
                      where + ": 4 sizes from 1 to 65535 are wanted");
        kit::want(dims.size() == 4, CNR_E_FORMAT, where + ": 4 sizes are wanted");
        return g.input("x", CNR_f32, dims);
    }
    static cnr_value pool(kit::graph &g, cnr_value x, std::istringstream &words,
                          const std::string &where) {
        int64_t size = 0;
        kit::want(words >> size && size > 0 && size < 65536, CNR_E_FORMAT,
                  where + ": a size from 1 to 65535 is wanted");
        const kit::shape sides = {size, size};
        return g.add("max_pool", {x}, {{"kernel_shape", sides}, {"strides", sides}}, nullptr,
                     where.c_str());
    }
};

// The converter of an ONNX operator.
struct Leaky { // the file's attribute `slope` is the operator's `alpha`
    static constexpr const char *name = "onnx beta.ml::Leaky", *summary = "leaky_relu";
    static constexpr const char *format = "onnx", *domain = "beta.ml", *type = "Leaky";
    static constexpr const char *op = "leaky_relu";
    static constexpr const char *attrs[] = {"slope=alpha", nullptr};
};
} // namespace

CNR_KIT_PLUGIN("cpp-importer", "1.0", "an example importer and import row", "MIT",
               CNR_TOUCHES_FILES, cnnrun::kit::importer<Chain>(), cnnrun::kit::import_row<Leaky>())
