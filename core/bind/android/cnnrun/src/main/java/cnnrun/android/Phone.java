package cnnrun.android;

import android.content.Context;
import cnnrun.Engine;
import cnnrun.app.Plugins;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/** Opens an engine in an app, and the app's files and assets. */
public final class Phone {
    private Phone() {}

    /**
     * Opens an engine. Plugins come from the folder of native libraries, which no app can write;
     * files that are kept between runs are in the app's cache folder.
     */
    public static Engine open(Context context, String... options) {
        File libraries = new File(context.getApplicationInfo().nativeLibraryDir);
        List<String> all = Plugins.options(libraries);
        all.add("cache=" + new File(context.getCacheDir(), "cnnrun"));
        all.addAll(Arrays.asList(options));
        return Engine.open(all.toArray(new String[0]));
    }

    /**
     * Copies an asset to the app's files, where C can open it, and returns the path. An existing
     * file is kept unless the app was updated since.
     */
    public static String file(Context context, String asset) throws IOException {
        File to = new File(context.getFilesDir(), asset);
        if (to.isFile() && to.lastModified() >= installed(context)) return to.getPath();
        File part = new File(context.getFilesDir(), asset + ".part");
        try (InputStream in = context.getAssets().open(asset);
             OutputStream out = new FileOutputStream(part)) {
            byte[] piece = new byte[1 << 16];
            for (int n; (n = in.read(piece)) > 0;) out.write(piece, 0, n);
        }
        if (!part.renameTo(to)) throw new IOException(to + ": " + part + " can't be renamed to it");
        return to.getPath();
    }

    private static long installed(Context context) {
        return new File(context.getApplicationInfo().sourceDir).lastModified();
    }

    /** An asset's text. The caller closes it. */
    public static Reader text(Context context, String asset) throws IOException {
        return new InputStreamReader(context.getAssets().open(asset), StandardCharsets.UTF_8);
    }
}
