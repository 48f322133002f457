package cnnrun.app;

import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Finds plugins among an app's native libraries. */
public final class Plugins {
    private static final String PREFIX = "libcnnrun-plugin-";

    private Plugins() {}

    /**
     * Options of {@link cnnrun.Engine#open} that load the plugins of a folder and no others.
     *
     * @param folder {@code nativeLibraryDir}, which an app can't write, so that nothing is
     *     loaded from the app's data
     */
    public static List<String> options(File folder) {
        List<String> out = new ArrayList<>();
        out.add("no_default_dirs=1");
        File[] files =
            folder.listFiles((where, name) -> name.startsWith(PREFIX) && name.endsWith(".so"));
        if (files == null || files.length == 0)
            throw new IllegalStateException(
                folder + ": no " + PREFIX +
                "*.so; expected useLegacyPackaging, so that Android unpacks libraries");
        Arrays.sort(files);
        for (File file : files) out.add("plugin_dirs=" + file);
        return out;
    }
}
