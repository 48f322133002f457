package cnnrun.app;

import cnnrun.DType;
import cnnrun.Engine;
import cnnrun.PluginObject;
import cnnrun.Tensor;
import java.nio.ByteBuffer;

/**
 * Follows a marked object in pictures and finds it again (TLD, of the plugin object-tld). Use it on
 * one thread at a time; all pictures must have the same size.
 */
public final class Tracker implements AutoCloseable {
    private final PluginObject tld;
    private final int width;
    private final int height;
    private final Tensor picture;
    private int kind;

    /** @param options of the tracker, as {@link Engine#make} takes them */
    public Tracker(Engine engine, int width, int height, String... options) {
        this.width = width;
        this.height = height;
        picture = Tensor.allocate(DType.U8, height, width, 3);
        tld = engine.make("tld", options);
    }

    /** Learns the object in a box. */
    public void start(int[] argb, Box box) {
        Tensor where = Tensor.allocate(DType.F64, 4);
        ByteBuffer to = where.data();
        to.putDouble(box.left).putDouble(box.top);
        to.putDouble(box.right - box.left).putDouble(box.bottom - box.top);
        kind = box.kind;
        tld.call("init", 0, filled(argb), where);
    }

    /** The object's box in the next picture, with its confidence; null: it is not seen. */
    public Box next(int[] argb) {
        Tensor[] found = tld.call("track", 2, filled(argb));
        ByteBuffer box = found[0].data();
        double x = box.getDouble();
        double y = box.getDouble();
        double right = x + box.getDouble();
        double bottom = y + box.getDouble();
        double sure = found[1].data().getDouble();
        if (!(sure >= 0) || !(right > x)) return null; /* below 0: absent */
        return new Box(kind, (float)sure, (float)x, (float)y, (float)right, (float)bottom);
    }

    private Tensor filled(int[] argb) {
        if (argb.length != width * height)
            throw new IllegalArgumentException(argb.length + " pixels; expected " + width + "x" +
                                               height);
        byte[] rgb = new byte[3 * argb.length];
        for (int i = 0; i < argb.length; i++) {
            rgb[3 * i] = (byte)(argb[i] >> 16);
            rgb[3 * i + 1] = (byte)(argb[i] >> 8);
            rgb[3 * i + 2] = (byte)argb[i];
        }
        picture.data().put(rgb);
        return picture;
    }

    @Override
    public void close() {
        tld.close();
    }
}
