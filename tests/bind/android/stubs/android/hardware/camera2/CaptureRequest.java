package android.hardware.camera2;

/** Stands for Android's class, so that what names it compiles here. */
public final class CaptureRequest {
    public static final class Builder {
        public void addTarget(android.view.Surface target) {}
        public CaptureRequest build() { return null; }
    }
}
