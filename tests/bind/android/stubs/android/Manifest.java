package android;

/** Stands for Android's class, so that what names it compiles here. */
public final class Manifest {
    public static final class permission {
        public static final String CAMERA = "android.permission.CAMERA";
    }
}
