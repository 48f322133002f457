package android.media;

/** Stands for Android's class, so that what names it compiles here. */
public class ImageReader implements AutoCloseable {
    public interface OnImageAvailableListener {
        void onImageAvailable(ImageReader reader);
    }

    public static ImageReader newInstance(int width, int height, int format, int most) {
        return null;
    }
    public void setOnImageAvailableListener(OnImageAvailableListener listener,
                                            android.os.Handler handler) {}
    public Image acquireLatestImage() { return null; }
    public android.view.Surface getSurface() { return null; }
    @Override
    public void close() {}
}
