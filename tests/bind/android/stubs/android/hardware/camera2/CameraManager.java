package android.hardware.camera2;

/** Stands for Android's class, so that what names it compiles here. */
public final class CameraManager {
    public String[] getCameraIdList() throws CameraAccessException { return null; }
    public CameraCharacteristics getCameraCharacteristics(String id) throws CameraAccessException {
        return null;
    }
    public void openCamera(String id, CameraDevice.StateCallback callback,
                           android.os.Handler handler) throws CameraAccessException {}
}
