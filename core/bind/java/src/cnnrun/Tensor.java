package cnnrun;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.Arrays;

/** A type, a shape, and a direct buffer with the elements, row-major (NCHW for pictures). */
public final class Tensor {
    private static final int MAX_RANK = 8;
    private final int code;
    private final long[] dims;
    private final ByteBuffer data;

    /**
     * Makes a tensor over the caller's buffer, without a copy.
     *
     * @param data a direct buffer in native byte order ({@link ByteOrder#nativeOrder()}); its bytes
     *     from position to limit are the elements, and begin at a multiple of an element's size
     */
    public Tensor(DType type, ByteBuffer data, long... shape) {
        this.code = type.code;
        this.dims = shape.clone();
        long bytes = bytesOf(type, dims);
        if (!data.isDirect()) {
            throw new IllegalArgumentException(
                "a buffer on Java's heap; expected ByteBuffer.allocateDirect");
        }
        if (type.bits > 8 && data.order() != ByteOrder.nativeOrder()) {
            throw new IllegalArgumentException("a buffer in " + data.order() +
                                               "; expected .order(ByteOrder.nativeOrder())");
        }
        if (data.remaining() != bytes) {
            throw new IllegalArgumentException(describe(type, shape) + " takes " + bytes +
                                               " bytes, the buffer has " + data.remaining());
        }
        this.data = data.slice().order(ByteOrder.nativeOrder());
    }

    /** A tensor of zeros in a new buffer. */
    public static Tensor allocate(DType type, long... shape) {
        long bytes = bytesOf(type, shape);
        if (bytes > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(describe(type, shape) + " takes " + bytes +
                                               " bytes, a buffer of Java's 2^31 - 1");
        }
        ByteBuffer data = ByteBuffer.allocateDirect((int)bytes).order(ByteOrder.nativeOrder());
        return new Tensor(type, data, shape);
    }

    /** A tensor of floats, copied from an array. */
    public static Tensor of(float[] values, long... shape) {
        if (bytesOf(DType.F32, shape) != 4L * values.length) {
            throw new IllegalArgumentException(describe(DType.F32, shape) + " takes " +
                                               bytesOf(DType.F32, shape) / 4 +
                                               " values, the array has " + values.length);
        }
        Tensor tensor = allocate(DType.F32, shape);
        tensor.floats().put(values);
        return tensor;
    }

    /** Makes a tensor for an output. Called by C. */
    private static Tensor allocate(int code, long[] shape) {
        return allocate(DType.of(code), shape);
    }

    public DType type() { return DType.of(code); }

    public long[] shape() { return dims.clone(); }

    /** The bytes of the elements: a view with its own position. */
    public ByteBuffer data() { return data.duplicate().order(ByteOrder.nativeOrder()); }

    /** A view of the elements, which must be of type F32. */
    public FloatBuffer floats() {
        if (code != DType.F32.code) {
            throw new IllegalStateException("a tensor of " + type() + " read as F32");
        }
        return data().asFloatBuffer();
    }

    /** A copy of the list of outputs, none of which is over a read-only buffer. */
    static Tensor[] writable(Tensor[] outputs) {
        for (Tensor one : outputs) {
            if (one != null && one.data.isReadOnly()) {
                throw new IllegalArgumentException("an output over a read-only buffer");
            }
        }
        return outputs.clone();
    }

    long count() {
        long n = 1;
        for (long d : dims) n *= d;
        return n;
    }

    private static long bytesOf(DType type, long[] shape) {
        if (shape.length > MAX_RANK) {
            throw new IllegalArgumentException(shape.length + " dimensions; expected at most " +
                                               MAX_RANK);
        }
        long n = 1;
        for (long d : shape) {
            if (d < 0) throw new IllegalArgumentException("a dimension of " + d);
        }
        try {
            for (long d : shape) n = Math.multiplyExact(n, d);
            return Math.addExact(Math.multiplyExact(n, (long)type.bits), 7) / 8;
        } catch (ArithmeticException e) {
            throw new IllegalArgumentException(describe(type, shape) + " is too large");
        }
    }

    static String describe(DType type, long[] shape) { return type + " " + Arrays.toString(shape); }

    @Override
    public String toString() {
        return describe(type(), dims);
    }
}
