package android.graphics;

/** Stands for Android's class, so that what names it compiles here. */
public class Color {
    public static final int YELLOW = 0xffffff00;
    public static final int RED = 0xffff0000;
    public static final int GREEN = 0xff00ff00;
}
