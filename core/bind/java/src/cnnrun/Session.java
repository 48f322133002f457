package cnnrun;

/**
 * The memory for runs of a net. run() takes one call at a time; sessions run at the same time.
 */
public final class Session extends Handle {
    private final Object running = new Object();

    Session(Net net, long address) { super(net, address); }

    /** Runs tensors, one for each input. Returns a copy of each output. */
    public Tensor[] run(Tensor... inputs) { return runInto(inputs, null); }

    /**
     * Runs tensors, and writes each output into the given tensor, which must have its type and
     * size, and a buffer that can be written.
     */
    public void run(Tensor[] inputs, Tensor[] outputs) { runInto(inputs, Tensor.writable(outputs)); }

    private Tensor[] runInto(Tensor[] inputs, Tensor[] outputs) {
        long session = acquire();
        try {
            synchronized (running) { return Native.runSession(session, inputs.clone(), outputs); }
        } finally { release(); }
    }

    /** Cancels the current run, which soon throws CnnrunException. Call it from any thread. */
    public void cancel() {
        long session = acquire();
        try {
            Native.cancel(session);
        } finally { release(); }
    }

    @Override
    void free(long address) {
        Native.closeSession(address);
    }
}
