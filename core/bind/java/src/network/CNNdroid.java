package network;

import android.renderscript.RenderScript;
import cnnrun.Engine;
import cnnrun.Net;
import cnnrun.Tensor;
import java.nio.FloatBuffer;

/**
 * CNNdroid's class on top of cnnrun. Applications for CNNdroid (its figure 5) compile unchanged.
 *
 * <pre>
 * import network.CNNdroid;
 * RenderScript rs = RenderScript.create(this);
 * CNNdroid net = new CNNdroid(rs, "/sdcard/Data/Cifar10_def.txt");
 * float[][][] picture = new float[3][32][32];  // or a batch, float[16][3][32][32]
 * Object scores = net.compute(picture);        // a float[1][10]
 * </pre>
 *
 * <p>The net is freed by close(), which CNNdroid lacks; a program that keeps one net needs none.
 */
public class CNNdroid implements AutoCloseable {
    private static Engine engine;
    private final Net net;

    /**
     * @param rs is not used: cnnrun chooses the device
     * @param netStructureFile a NetFile, or any other model that cnnrun reads
     */
    public CNNdroid(RenderScript rs, String netStructureFile) throws Exception {
        net = engine().load(netStructureFile);
    }

    private static synchronized Engine engine() {
        if (engine == null) engine = Engine.open();
        return engine;
    }

    /**
     * Computes one picture, a float[channels][height][width], or a batch, a float[][][][].
     *
     * @return arrays of floats with as many dimensions as the net's output has, the first one the
     *     batch: float[][] after a dense layer, float[][][][] after a convolution. Null for
     *     another type of input, as in CNNdroid.
     */
    public Object compute(Object input) {
        float[][][][] batch;
        if (input instanceof float[][][][]) batch = (float[][][][])input;
        else if (input instanceof float[][][]) batch = new float[][][][] {(float[][][])input};
        else return null;
        Tensor output = net.run(packed(batch))[0];
        return unpacked(output.floats(), output.shape(), 0);
    }

    private static Tensor packed(float[][][][] batch) {
        if (batch.length == 0 || batch[0].length == 0 || batch[0][0].length == 0) {
            throw new IllegalArgumentException("compute: no picture");
        }
        float[][][] first = batch[0];
        int height = first[0].length;
        int width = first[0][0].length;
        Tensor tensor =
            Tensor.allocate(cnnrun.DType.F32, batch.length, first.length, height, width);
        FloatBuffer to = tensor.floats();
        for (float[][][] picture : batch) {
            if (picture.length != first.length)
                throw uneven(picture.length, first.length, "channels");
            for (float[][] channel : picture) {
                if (channel.length != height) throw uneven(channel.length, height, "rows");
                for (float[] row : channel) {
                    if (row.length != width) throw uneven(row.length, width, "columns");
                    to.put(row);
                }
            }
        }
        return tensor;
    }

    private static IllegalArgumentException uneven(int got, int want, String what) {
        return new IllegalArgumentException("compute: " + got + " " + what + "; expected " + want +
                                            ", as the first ones have");
    }

    /** Nested arrays for the dimensions from axis on, filled from the buffer. */
    private static Object unpacked(FloatBuffer from, long[] shape, int axis) {
        int n = axis < shape.length ? (int)shape[axis] : 1;
        if (axis >= shape.length - 1) {
            float[] line = new float[n];
            from.get(line);
            return line;
        }
        int[] sizes = new int[shape.length - axis];
        for (int i = 0; i < sizes.length; i++) sizes[i] = (int)shape[axis + i];
        Object[] parts = (Object[])java.lang.reflect.Array.newInstance(float.class, sizes);
        for (int i = 0; i < n; i++) parts[i] = unpacked(from, shape, axis + 1);
        return parts;
    }

    @Override
    public void close() {
        net.close();
    }
}
