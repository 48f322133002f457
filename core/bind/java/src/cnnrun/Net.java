package cnnrun;

import java.util.ArrayList;
import java.util.List;

/**
 * A net with its weights. Threads may share one. Its own run() takes one call at a time; sessions
 * of the net run at the same time.
 */
public final class Net extends Handle {
    private final Object running = new Object();
    private final List<Port> inputs;
    private final List<Port> outputs;

    Net(Engine engine, long address) {
        super(engine, address);
        inputs = Port.list(address, false);
        outputs = Port.list(address, true);
    }

    /** Name, type and shape of each input. */
    public List<Port> inputs() { return inputs; }

    /** Name, type and shape of each output. */
    public List<Port> outputs() { return outputs; }

    /** Runs tensors, one for each input, which are read in place. Returns a copy of each output. */
    public Tensor[] run(Tensor... inputs) { return runInto(inputs, null); }

    /**
     * Runs tensors, and writes each output into the given tensor, which must have its type and
     * size, and a buffer that can be written.
     */
    public void run(Tensor[] inputs, Tensor[] outputs) { runInto(inputs, Tensor.writable(outputs)); }

    private Tensor[] runInto(Tensor[] inputs, Tensor[] outputs) {
        long model = acquire();
        try {
            synchronized (running) { return Native.run(model, inputs.clone(), outputs); }
        } finally { release(); }
    }

    /** Runs a picture through the net's preprocessing. Returns a copy of output 0. */
    public Tensor run(String picture) {
        long model = acquire();
        try {
            synchronized (running) { return Native.runPicture(model, Native.text(picture)); }
        } finally { release(); }
    }

    /**
     * Opens a session, which may run at the same time as other sessions of the net.
     *
     * @param shapes one for each input; if none are given, open dimensions are 1
     */
    public Session session(long[]... shapes) {
        long model = acquire();
        try {
            Session session = new Session(this, Native.openSession(model, shapes.clone()));
            model = 0;
            return session;
        } finally {
            if (model != 0) release();
        }
    }

    /** The k largest elements, best first, with the names of their classes. */
    public List<Top> topk(Tensor scores, int k) {
        long count = Math.min(Math.max(k, 0), scores.count());
        float[] values = new float[(int)count];
        List<Top> best = new ArrayList<>();
        for (long index : Native.topk(scores, values)) {
            best.add(new Top(index, values[best.size()], label(index)));
        }
        return best;
    }

    /** The name of a class; null if the net has none. */
    public String label(long index) {
        long model = acquire();
        try {
            byte[] name = Native.label(model, index);
            return name == null ? null : Native.text(name);
        } finally { release(); }
    }

    @Override
    void free(long address) {
        Native.release(address);
    }
}
