package android.hardware.camera2;

/** Stands for Android's class, so that what names it compiles here. */
public final class CameraCharacteristics {
    public static final class Key<T> {}

    public static final int LENS_FACING_BACK = 1;
    public static final Key<Integer> LENS_FACING = new Key<>();
    public static final Key<Integer> SENSOR_ORIENTATION = new Key<>();

    public <T> T get(Key<T> key) { return null; }
}
