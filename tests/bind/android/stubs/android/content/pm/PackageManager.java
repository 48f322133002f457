package android.content.pm;

/** Stands for Android's class, so that what names it compiles here. */
public abstract class PackageManager {
    public static final int PERMISSION_GRANTED = 0;
}
