package cnnrun.app;

import java.nio.ByteBuffer;

/** Converts camera frames to pixels. */
public final class Frames {
    private Frames() {}

    /** One plane of a frame in YUV 4:2:0: bytes, and their distances in a row and between rows. */
    public static final class Plane {
        final ByteBuffer data;
        final int rowStride;
        final int pixelStride;

        public Plane(ByteBuffer data, int rowStride, int pixelStride) {
            this.data = data;
            this.rowStride = rowStride;
            this.pixelStride = pixelStride;
        }

        int at(int x, int y) { return data.get(y * rowStride + x * pixelStride) & 255; }
    }

    /** ARGB pixels of a frame, by BT.601 with the full range, as in JPEG. */
    public static int[] argb(Plane y, Plane u, Plane v, int width, int height) {
        int[] out = new int[width * height];
        for (int row = 0; row < height; row++) {
            for (int x = 0; x < width; x++) {
                int luma = y.at(x, row) << 10;
                int cb = u.at(x / 2, row / 2) - 128;
                int cr = v.at(x / 2, row / 2) - 128;
                int r = clamp(luma + 1436 * cr);
                int g = clamp(luma - 352 * cb - 731 * cr);
                int b = clamp(luma + 1815 * cb);
                out[row * width + x] = 255 << 24 | r << 16 | g << 8 | b;
            }
        }
        return out;
    }

    private static int clamp(int scaled) { return Math.max(0, Math.min(255, scaled + 512 >> 10)); }

    /**
     * Rotates a picture clockwise by a multiple of 90 degrees. 90 and 270 swap width and height.
     */
    public static int[] turned(int[] argb, int width, int height, int degrees) {
        int turns = Math.floorMod(degrees / 90, 4);
        if (degrees % 90 != 0) throw new IllegalArgumentException(degrees + " degrees");
        if (turns == 0) return argb;
        int[] out = new int[argb.length];
        for (int y = 0; y < height; y++) {
            for (int x = 0; x < width; x++) {
                int to = turns == 1   ? x * height + height - 1 - y
                         : turns == 2 ? (height - 1 - y) * width + width - 1 - x
                                      : (width - 1 - x) * height + y;
                out[to] = argb[y * width + x];
            }
        }
        return out;
    }
}
