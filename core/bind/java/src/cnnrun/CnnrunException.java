package cnnrun;

/** An error of the engine, thrown when a call fails. */
public final class CnnrunException extends RuntimeException {
    private static final long serialVersionUID = 1;
    private final int status;
    private final String where;

    CnnrunException(int status, byte[] where, byte[] text) {
        super(where.length == 0 ? Native.text(text)
                                : Native.text(where) + ": " + Native.text(text));
        this.status = status;
        this.where = Native.text(where);
    }

    /** The {@code cnr_status} of {@code cnnrun/status.h}, such as -6: not found. */
    public int status() { return status; }

    /** The file, layer or plugin that the message is about; may be empty. */
    public String where() { return where; }
}
