package android.graphics;

/** Stands for Android's class, so that what names it compiles here. */
public class ImageFormat {
    public static final int YUV_420_888 = 35;
}
