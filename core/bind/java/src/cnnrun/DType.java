package cnnrun;

/** Data types of tensors, with the values of {@code cnr_dtype}. */
public enum DType {
    F32(1, 32),
    F64(2, 64),
    F16(3, 16),
    BF16(4, 16),
    I8(5, 8),
    U8(6, 8),
    I16(7, 16),
    U16(8, 16),
    I32(9, 32),
    U32(10, 32),
    I64(11, 64),
    U64(12, 64),
    BOOL(13, 8),
    I4(14, 4),
    U4(15, 4);

    final int code;
    final int bits;

    DType(int code, int bits) {
        this.code = code;
        this.bits = bits;
    }

    static DType of(int code) {
        for (DType type : values()) {
            if (type.code == code) return type;
        }
        throw new IllegalArgumentException("data type " + code + " is not known to Java");
    }
}
