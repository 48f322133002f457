package cnnrun;

/** An object of a plugin, with state and methods on tensors, such as a tracker. */
public final class PluginObject extends Handle {
    private final Object running = new Object();

    PluginObject(Engine engine, long address) { super(engine, address); }

    /**
     * Calls a method. One call at a time; others wait.
     *
     * @param outputs number of results to return
     * @return copies of the results
     */
    public Tensor[] call(String method, int outputs, Tensor... inputs) {
        if (outputs < 0) throw new IllegalArgumentException(outputs + " outputs");
        long object = acquire();
        try {
            synchronized (running) {
                return Native.callObject(object, Native.text(method), inputs.clone(), outputs);
            }
        } finally { release(); }
    }

    @Override
    void free(long address) {
        Native.freeObject(address);
    }
}
