package android.graphics;

/** Stands for Android's class, so that what names it compiles here. */
public final class Bitmap {
    public enum Config { ARGB_8888 }

    public static Bitmap createBitmap(int[] colors, int width, int height, Config config) {
        return null;
    }
    public static Bitmap createScaledBitmap(Bitmap from, int width, int height, boolean filter) {
        return null;
    }
    public void getPixels(int[] pixels, int offset, int stride, int x, int y, int w, int h) {}
    public Bitmap copy(Config config, boolean mutable) { return null; }
    public int getWidth() { return 0; }
    public int getHeight() { return 0; }
}
