package cnnrun;

/**
 * An object of C, freed when it is closed and no call and no object made from it uses it any more.
 * So the order of closing does not matter, and no thread runs in freed memory.
 */
abstract class Handle implements AutoCloseable {
    private final Handle owner;
    private final long address;
    private int users = 1;
    private boolean closed;

    /** The caller has acquired the owner for this object. */
    Handle(Handle owner, long address) {
        this.owner = owner;
        this.address = address;
    }

    /** The address of C's object, which lives until release(). */
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

    /** A second close() does nothing. */
    @Override
    public final void close() {
        synchronized (this) {
            if (closed) return;
            closed = true;
        }
        release();
    }
}
