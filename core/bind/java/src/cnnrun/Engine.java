package cnnrun;

/**
 * Loaded plugins and open devices. Threads may share one.
 *
 * <pre>
 * try (Engine engine = Engine.open(); Net net = engine.load("lenet5.lua")) {
 *     for (Top best : net.topk(net.run("three.png"), 3)) System.out.println(best);
 * }
 * </pre>
 */
public final class Engine extends Handle {
    private Engine(long address) { super(null, address); }

    /**
     * Opens an engine: finds and loads plugins.
     *
     * @param options "name=value" for members of {@code cnr_open_options}: threads, plugin_dirs,
     *     no_default_dirs, trust_scripts, cache, board, cpu_isa, sysfs_root, meter_address, clock,
     *     plugin_order, skip_plugins. A list gets one value each time it is named.
     */
    public static Engine open(String... options) {
        return new Engine(Native.open(Native.texts(options)));
    }

    /**
     * Loads a .cnr file, a .lua file, or a model that a plugin imports.
     *
     * @param options "name=value" for members of {@code cnr_load_options}, such as weights,
     *     device, preset, labels, cache, memory_bound, memory_limit, weights_type
     */
    public Net load(String path, String... options) {
        long address = acquire();
        try {
            Net net = new Net(this, Native.load(address, Native.text(path), Native.texts(options)));
            address = 0;
            return net;
        } finally {
            if (address != 0) release();
        }
    }

    /**
     * Makes an object of a type that a plugin provides, such as "tld".
     *
     * @param options "name=value"; a value is a number, numbers with commas between, true, false or
     *     a text
     */
    public PluginObject make(String name, String... options) {
        long address = acquire();
        try {
            PluginObject made = new PluginObject(this, Native.makeObject(address, Native.text(name),
                                                                         Native.texts(options)));
            address = 0;
            return made;
        } finally {
            if (address != 0) release();
        }
    }

    @Override
    void free(long address) {
        Native.close(address);
    }
}
