package android.hardware.camera2;

/** Stands for Android's class, so that what names it compiles here. */
public class CameraAccessException extends Exception {
    public static final int CAMERA_ERROR = 3;
    private static final long serialVersionUID = 1;

    public CameraAccessException(int problem, String message) { super(message); }
}
