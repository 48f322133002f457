package cnnrun;

/**
 * Owns a C object. It is freed when it is closed and neither a call nor an object made from it
 * uses it. So the order of closing does not matter, and no thread uses freed memory.
 */
abstract class Handle implements AutoCloseable {
    private final Handle owner;
    private final long address;
    private int users = 1;
    private boolean closed;

    /** The caller must have acquired the owner for this object. */
    Handle(Handle owner, long address) {
        this.owner = owner;
        this.address = address;
    }

    /** Returns the address of the C object, which is not freed before release(). */
    final synchronized long acquire() {
        if (closed) throw new IllegalStateException(getClass().getSimpleName() + " is closed");
        users++;
        return address;
    }

    final void release() {
        synchronized (this) {
            if (--users > 0) return;
        }
        free(address);
        if (owner != null) owner.release();
    }

    abstract void free(long address);

    /** Closes the object. A second call does nothing. */
    @Override
    public final void close() {
        synchronized (this) {
            if (closed) return;
            closed = true;
        }
        release();
    }
}
