package android.hardware.camera2;

/** Stands for Android's class, so that what names it compiles here. */
public abstract class CameraDevice implements AutoCloseable {
    public static final int TEMPLATE_PREVIEW = 1;

    public abstract static class StateCallback {
        public abstract void onOpened(CameraDevice camera);
        public abstract void onDisconnected(CameraDevice camera);
        public abstract void onError(CameraDevice camera, int error);
    }

    public abstract void createCaptureSession(java.util.List<android.view.Surface> outputs,
                                              CameraCaptureSession.StateCallback callback,
                                              android.os.Handler handler)
        throws CameraAccessException;
    public abstract CaptureRequest.Builder createCaptureRequest(int template)
        throws CameraAccessException;
    @Override public abstract void close();
}
