package cnnrun;

/**
 * Memory to run a net in. run() takes one call at a time; sessions of a net run beside each other.
 */
public final class Session extends Handle {
    private final Object running = new Object();

    Session(Net net, long address) { super(net, address); }

    /** Runs tensors, one for each input. Returns a copy of each output. */
    public Tensor[] run(Tensor... inputs) { return runInto(inputs, null); }

    /**
     * Runs tensors, and writes each output into a tensor of the caller's that has its type and
     * size.
     */
    public void run(Tensor[] inputs, Tensor[] outputs) { runInto(inputs, outputs.clone()); }

    private Tensor[] runInto(Tensor[] inputs, Tensor[] outputs) {
        long session = acquire();
        try {
            synchronized (running) { return Native.runSession(session, inputs.clone(), outputs); }
        } finally { release(); }
    }

    /** From any thread: a run under way throws CnnrunException (cancelled) soon. */
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
