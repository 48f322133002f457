package cnnrun;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** An input or an output of a net. */
public final class Port {
    public final String name;
    public final DType type;
    private final long[] shape;

    private Port(String name, DType type, long[] shape) {
        this.name = name;
        this.type = type;
        this.shape = shape;
    }

    /** The dimensions; -1 for an open one, such as the batch. */
    public long[] shape() { return shape.clone(); }

    static List<Port> list(long model, boolean outputs) {
        List<Port> list = new ArrayList<>();
        for (int i = 0; i < Native.portCount(model, outputs); i++) {
            byte[] name = Native.portName(model, outputs, i);
            DType type = DType.of(Native.portType(model, outputs, i));
            list.add(new Port(Native.text(name), type, Native.portShape(model, outputs, i)));
        }
        return Collections.unmodifiableList(list);
    }

    @Override
    public String toString() {
        return name + " " + Tensor.describe(type, shape);
    }
}
