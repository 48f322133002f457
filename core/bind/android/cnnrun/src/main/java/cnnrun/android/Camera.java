package cnnrun.android;

import android.content.Context;
import android.graphics.Bitmap;
import android.graphics.ImageFormat;
import android.hardware.camera2.CameraAccessException;
import android.hardware.camera2.CameraCaptureSession;
import android.hardware.camera2.CameraCharacteristics;
import android.hardware.camera2.CameraDevice;
import android.hardware.camera2.CameraManager;
import android.hardware.camera2.CaptureRequest;
import android.media.Image;
import android.media.ImageReader;
import android.os.Handler;
import android.os.HandlerThread;
import cnnrun.app.Frames;
import java.util.Collections;

/**
 * Delivers the latest frames of the back camera, one at a time, on its own thread. The app must
 * have the permission CAMERA before it opens a camera.
 */
public final class Camera implements AutoCloseable {
    /** Called on the camera's thread. The next frame is the latest one when the call returns. */
    public interface Listener {
        void frame(Bitmap picture);

        void failed(Exception why);
    }

    private final HandlerThread thread = new HandlerThread("camera");
    private final Listener listener;
    private final ImageReader reader;
    private Handler handler;
    private CameraDevice device;
    private boolean closed;
    private int turn;

    public Camera(Context context, int width, int height, Listener listener) {
        this.listener = listener;
        reader = ImageReader.newInstance(width, height, ImageFormat.YUV_420_888, 2);
        thread.start();
        handler = new Handler(thread.getLooper());
        reader.setOnImageAvailableListener(from -> take(), handler);
        CameraManager manager = (CameraManager)context.getSystemService(Context.CAMERA_SERVICE);
        try {
            manager.openCamera(back(manager), new Opened(), handler);
        } catch (CameraAccessException | SecurityException e) { listener.failed(e); }
    }

    private String back(CameraManager manager) throws CameraAccessException {
        String[] ids = manager.getCameraIdList();
        if (ids.length == 0)
            throw new CameraAccessException(CameraAccessException.CAMERA_ERROR, "no camera");
        String chosen = ids[0];
        for (int i = ids.length - 1; i >= 0; i--) {
            Integer facing =
                manager.getCameraCharacteristics(ids[i]).get(CameraCharacteristics.LENS_FACING);
            if (facing != null && facing == CameraCharacteristics.LENS_FACING_BACK) chosen = ids[i];
        }
        Integer angle =
            manager.getCameraCharacteristics(chosen).get(CameraCharacteristics.SENSOR_ORIENTATION);
        turn = angle == null ? 0 : angle;
        return chosen;
    }

    private void take() {
        try (Image image = reader.acquireLatestImage()) {
            if (image == null) return;
            int width = image.getWidth();
            int height = image.getHeight();
            Image.Plane[] planes = image.getPlanes();
            int[] argb =
                Frames.argb(plane(planes[0]), plane(planes[1]), plane(planes[2]), width, height);
            argb = Frames.turned(argb, width, height, turn);
            boolean sideways = turn % 180 != 0;
            listener.frame(Bitmap.createBitmap(argb, sideways ? height : width,
                                               sideways ? width : height, Bitmap.Config.ARGB_8888));
        }
    }

    private static Frames.Plane plane(Image.Plane from) {
        return new Frames.Plane(from.getBuffer(), from.getRowStride(), from.getPixelStride());
    }

    private final class Opened extends CameraDevice.StateCallback {
        @Override
        public void onOpened(CameraDevice opened) {
            device = opened;
            if (closed) opened.close();
            else configure();
        }

        @Override
        public void onDisconnected(CameraDevice gone) {
            gone.close();
            listener.failed(new IllegalStateException("the camera was taken by another app"));
        }

        @Override
        public void onError(CameraDevice broken, int code) {
            broken.close();
            listener.failed(new IllegalStateException("the camera failed with code " + code));
        }
    }

    private void configure() {
        try {
            device.createCaptureSession(Collections.singletonList(reader.getSurface()),
                                        new Configured(), handler);
        } catch (CameraAccessException e) { listener.failed(e); }
    }

    private final class Configured extends CameraCaptureSession.StateCallback {
        @Override
        public void onConfigured(CameraCaptureSession session) {
            try {
                CaptureRequest.Builder request =
                    device.createCaptureRequest(CameraDevice.TEMPLATE_PREVIEW);
                request.addTarget(reader.getSurface());
                session.setRepeatingRequest(request.build(), null, handler);
            } catch (CameraAccessException | IllegalStateException e) { listener.failed(e); }
        }

        @Override
        public void onConfigureFailed(CameraCaptureSession session) {
            listener.failed(new IllegalStateException("the camera gives no frames of that size"));
        }
    }

    /** Closes the camera after the current frame. */
    @Override
    public void close() {
        handler.post(() -> {
            closed = true;
            if (device != null) device.close();
            reader.close();
            thread.quitSafely();
        });
    }
}
