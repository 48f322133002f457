package android.hardware.camera2;

/** Stands for Android's class, so that what names it compiles here. */
public abstract class CameraCaptureSession implements AutoCloseable {
    public abstract static class StateCallback {
        public abstract void onConfigured(CameraCaptureSession session);
        public abstract void onConfigureFailed(CameraCaptureSession session);
    }

    public abstract static class CaptureCallback {}

    public abstract int setRepeatingRequest(CaptureRequest request, CaptureCallback listener,
                                            android.os.Handler handler)
        throws CameraAccessException;
    @Override public abstract void close();
}
