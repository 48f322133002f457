package cnnrun;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** The functions of libcnnrun-jni. A long is the address of a C object; texts are UTF-8. */
final class Native {
    private Native() {}

    static { load(); }

    /**
     * Loads the library: the file that the property cnnrun.library names, else the one installed
     * with the jar, else the system's.
     */
    private static void load() {
        String file = System.getProperty("cnnrun.library");
        if (file == null) file = besideJar();
        if (file == null) System.loadLibrary("cnnrun-jni");
        else System.load(file);
    }

    /** Path of the library installed with the jar, which has its relative path; null: none. */
    private static String besideJar() {
        try (InputStream in = Native.class.getResourceAsStream("library.txt")) {
            if (in == null) return null;
            String path =
                new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8)).readLine();
            File jar =
                new File(Native.class.getProtectionDomain().getCodeSource().getLocation().toURI());
            File library = new File(jar.getParentFile(), path).getCanonicalFile();
            return library.isFile() ? library.getPath() : null;
        } catch (IOException | URISyntaxException | IllegalArgumentException e) { return null; }
    }

    static native long open(byte[][] options);

    static native void close(long engine);

    static native long load(long engine, byte[] path, byte[][] options);

    static native void release(long model);

    static native int portCount(long model, boolean outputs);

    static native byte[] portName(long model, boolean outputs, int index);

    static native int portType(long model, boolean outputs, int index);

    static native long[] portShape(long model, boolean outputs, int index);

    static native byte[] label(long model, long index);

    /** Fills and returns `outputs`; if they are null, returns new tensors. */
    static native Tensor[] run(long model, Tensor[] inputs, Tensor[] outputs);

    static native Tensor runPicture(long model, byte[] path);

    static native long openSession(long model, long[][] shapes);

    static native void closeSession(long session);

    static native Tensor[] runSession(long session, Tensor[] inputs, Tensor[] outputs);

    static native void cancel(long session);

    /** Fills values with the largest elements, best first, and returns their indices. */
    static native long[] topk(Tensor scores, float[] values);

    static native long makeObject(long engine, byte[] name, byte[][] options);

    static native void freeObject(long object);

    static native Tensor[] callObject(long object, byte[] method, Tensor[] inputs, int outputs);

    static String text(byte[] utf8) { return new String(utf8, StandardCharsets.UTF_8); }

    /** The text in UTF-8 with a NUL at the end. */
    static byte[] text(String s) {
        if (s.indexOf(0) >= 0)
            throw new IllegalArgumentException("a text with a character of 0: " + s);
        byte[] utf8 = s.getBytes(StandardCharsets.UTF_8);
        return Arrays.copyOf(utf8, utf8.length + 1);
    }

    static byte[][] texts(String[] list) {
        byte[][] all = new byte[list.length][];
        for (int i = 0; i < list.length; i++) all[i] = text(list[i]);
        return all;
    }
}
