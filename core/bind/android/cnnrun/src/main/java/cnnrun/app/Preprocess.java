package cnnrun.app;

import java.io.IOException;
import java.io.Reader;
import java.nio.FloatBuffer;
import java.util.Properties;

/** How a picture becomes a net's input: size, order of channels, mean and scale. */
public final class Preprocess {
    public final int width;
    public final int height;
    private final String channels;
    private final float scale;
    private final float[] mean;

    /**
     * @param channels "rgb", "bgr" or "gray"
     * @param scale factor for each value (0 to 255) minus its mean
     * @param mean one for each channel, in the order of `channels`; if none are given, 0
     */
    public Preprocess(int width, int height, String channels, float scale, float... mean) {
        this.width = width;
        this.height = height;
        this.channels = channels;
        this.scale = scale;
        if (!channels.equals("rgb") && !channels.equals("bgr") && !channels.equals("gray"))
            throw new IllegalArgumentException("channels=" + channels +
                                               ": expected rgb, bgr or gray");
        if (width < 1 || height < 1)
            throw new IllegalArgumentException("size " + width + "x" + height +
                                               ": expected at least 1x1");
        if (mean.length != 0 && mean.length != planes())
            throw new IllegalArgumentException(mean.length + " means; expected " + planes());
        this.mean = mean.length == 0 ? new float[planes()] : mean.clone();
    }

    /** Reads width, height, channels, scale and mean (numbers, separated by commas). */
    public static Preprocess read(Reader from) throws IOException {
        Properties p = new Properties();
        p.load(from);
        String[] words = p.getProperty("mean", "").trim().split("\\s*,\\s*");
        float[] mean = new float[words[0].isEmpty() ? 0 : words.length];
        for (int i = 0; i < mean.length; i++) mean[i] = Float.parseFloat(words[i]);
        return new Preprocess(number(p, "width"), number(p, "height"),
                              p.getProperty("channels", "rgb"),
                              Float.parseFloat(p.getProperty("scale", "1")), mean);
    }

    private static int number(Properties p, String name) {
        String text = p.getProperty(name);
        if (text == null) throw new IllegalArgumentException(name + " is missing");
        return Integer.parseInt(text.trim());
    }

    /** Channels of the input: 1 or 3. */
    public int planes() { return channels.equals("gray") ? 1 : 3; }

    /**
     * Writes a picture's planes, the first at the start of the buffer.
     *
     * @param argb width * height pixels as {@code Bitmap.getPixels} gives them; alpha is ignored
     */
    public void fill(int[] argb, FloatBuffer to) {
        int n = width * height;
        if (argb.length != n || to.capacity() != n * planes())
            throw new IllegalArgumentException(argb.length + " pixels for " + to.capacity() +
                                               " values; expected " + n + " for " + n * planes());
        float[] plane = new float[n];
        for (int c = 0; c < planes(); c++) {
            for (int i = 0; i < n; i++) plane[i] = (value(argb[i], c) - mean[c]) * scale;
            to.position(c * n);
            to.put(plane);
        }
        to.rewind();
    }

    private float value(int pixel, int channel) {
        int r = pixel >> 16 & 255;
        int g = pixel >> 8 & 255;
        int b = pixel & 255;
        switch (channels) {
        case "gray": return (299 * r + 587 * g + 114 * b) / 1000f;
        case "bgr": return channel == 0 ? b : channel == 1 ? g : r;
        default: return channel == 0 ? r : channel == 1 ? g : b;
        }
    }
}
