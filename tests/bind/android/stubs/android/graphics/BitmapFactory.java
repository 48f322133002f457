package android.graphics;

/** Stands for Android's class, so that what names it compiles here. */
public class BitmapFactory {
    public static class Options {
        public boolean inJustDecodeBounds;
        public int inSampleSize;
        public int outWidth;
        public int outHeight;
    }

    public static Bitmap decodeStream(java.io.InputStream in, Rect padding, Options options) {
        return null;
    }
}
