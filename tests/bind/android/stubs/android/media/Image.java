package android.media;

/** Stands for Android's class, so that what names it compiles here. */
public abstract class Image implements AutoCloseable {
    public abstract static class Plane {
        public abstract java.nio.ByteBuffer getBuffer();
        public abstract int getRowStride();
        public abstract int getPixelStride();
    }

    public abstract Plane[] getPlanes();
    public abstract int getWidth();
    public abstract int getHeight();
    @Override public abstract void close();
}
