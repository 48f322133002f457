package cnnrun.monitor;

import android.Manifest;
import android.app.Activity;
import android.content.pm.PackageManager;
import android.graphics.Bitmap;
import android.graphics.Canvas;
import android.graphics.Color;
import android.graphics.Paint;
import android.os.Bundle;
import android.widget.ImageView;
import android.widget.LinearLayout;
import android.widget.TextView;
import cnnrun.Engine;
import cnnrun.Net;
import cnnrun.Tensor;
import cnnrun.android.Camera;
import cnnrun.android.Phone;
import cnnrun.android.Pictures;
import cnnrun.app.Box;
import cnnrun.app.Classifier;
import cnnrun.app.CpuLoad;
import cnnrun.app.LoadWatch;
import cnnrun.app.Preprocess;
import cnnrun.app.Table;
import cnnrun.app.Tracker;
import cnnrun.app.Yolo;
import java.io.IOException;
import java.io.Reader;
import java.util.List;
import java.util.Locale;

/**
 * Detects objects in camera frames, draws them, and shows frames per second and the load. The load
 * is compared with that of an inference loop (dynamic time warping). Assets: net.cnr (Tiny YOLO for
 * the classes of VOC, with labels), net.properties, and loop.csv, a recording whose column load is
 * the template.
 */
public final class MonitorActivity extends Activity implements Camera.Listener {
    private static final int ALLOW = 1;
    private static final float SCORE = 0.3f;
    private static final float OVERLAP = 0.45f;
    private static final int LOADS = 40;
    private static final double THRESHOLD = 739; /* the same as in governors/dtw.lua */
    private static final double LOAD_SECONDS = 0.1;
    private static final float[] ANCHORS = {1.08f,  1.19f, 3.42f, 4.41f,  6.63f,
                                            11.38f, 9.42f, 5.11f, 16.62f, 10.52f};
    private ImageView shown;
    private TextView said;
    private Camera camera;
    private volatile Engine engine;
    private volatile Net net;
    private volatile boolean follow; /* follow the best box of the next frame */
    /* The following fields are used by the camera's thread. */
    private Preprocess preprocess;
    private Classifier runner;
    private LoadWatch watch;
    private volatile Tracker tracker; /* null: no object is followed */
    private final Yolo yolo = new Yolo(20, ANCHORS);
    private final CpuLoad load = new CpuLoad();
    private double lastFrame = Double.NaN;
    private double lastLoad = Double.NaN;
    private double percent = Double.NaN;

    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        LinearLayout all = new LinearLayout(this);
        all.setOrientation(LinearLayout.VERTICAL);
        all.addView(said = new TextView(this));
        all.addView(shown = new ImageView(this));
        shown.setOnClickListener(view -> follow = true);
        setContentView(all);
    }

    @Override
    protected void onResume() {
        super.onResume();
        if (checkSelfPermission(Manifest.permission.CAMERA) == PackageManager.PERMISSION_GRANTED)
            camera = new Camera(this, 640, 480, this);
        else requestPermissions(new String[] {Manifest.permission.CAMERA}, ALLOW);
    }

    private void open() throws IOException {
        try (Reader text = Phone.text(this, "net.properties");
             Reader recording = Phone.text(this, "loop.csv")) {
            preprocess = Preprocess.read(text);
            watch = new LoadWatch(LoadWatch.template(Table.read(recording)), LOADS, THRESHOLD);
        }
        engine = Phone.open(this);
        net = engine.load(Phone.file(this, "net.cnr"));
        runner = new Classifier(net, preprocess);
    }

    @Override
    public void frame(Bitmap picture) {
        try {
            if (runner == null) open();
            int[] pixels = Pictures.pixels(picture, preprocess);
            Tensor output = runner.run(pixels)[0];
            List<Box> found =
                yolo.boxes(output, preprocess.width, preprocess.height, SCORE, OVERLAP);
            Bitmap drawn = drawn(picture, found, followed(pixels, found));
            String text = status(System.nanoTime() * 1e-9);
            runOnUiThread(() -> {
                shown.setImageBitmap(drawn);
                said.setText(text);
            });
        } catch (IOException | RuntimeException e) { failed(e); }
    }

    /** The followed object's box; null: none is followed, or it is not seen. */
    private Box followed(int[] pixels, List<Box> found) {
        if (follow && !found.isEmpty()) {
            follow = false;
            if (tracker != null) tracker.close();
            tracker = new Tracker(engine, preprocess.width, preprocess.height);
            tracker.start(pixels, found.get(0));
            return found.get(0);
        }
        return tracker == null ? null : tracker.next(pixels);
    }

    /** Boxes are in pixels of the net's input, to which the whole picture was stretched. */
    private Bitmap drawn(Bitmap picture, List<Box> found, Box followed) {
        Bitmap out = picture.copy(Bitmap.Config.ARGB_8888, true);
        Canvas canvas = new Canvas(out);
        Paint paint = new Paint();
        paint.setColor(Color.YELLOW);
        paint.setStrokeWidth(3);
        paint.setTextSize(24);
        float x = (float)out.getWidth() / preprocess.width;
        float y = (float)out.getHeight() / preprocess.height;
        for (Box box : found) {
            outline(canvas, paint, box, x, y);
            paint.setStyle(Paint.Style.FILL);
            canvas.drawText(name(box.kind), box.left * x + 4, box.top * y + 26, paint);
        }
        paint.setColor(Color.RED);
        if (followed != null) outline(canvas, paint, followed, x, y);
        return out;
    }

    private static void outline(Canvas canvas, Paint paint, Box box, float x, float y) {
        paint.setStyle(Paint.Style.STROKE);
        canvas.drawRect(box.left * x, box.top * y, box.right * x, box.bottom * y, paint);
    }

    private String name(int kind) {
        String label = net.label(kind);
        return label == null ? "class " + kind : label;
    }

    private String status(double now) throws IOException {
        double fps = 1 / (now - lastFrame);
        lastFrame = now;
        if (!(now - lastLoad < LOAD_SECONDS)) {
            double part = load.next(now);
            lastLoad = now;
            if (!Double.isNaN(part)) watch.add(percent = 100 * part);
        }
        return String.format(Locale.ROOT, "%.1f FPS, load %.0f%% of the %s, %s", fps, percent,
                             load.wholeMachine() ? "phone" : "app",
                             watch.isInference() ? "inference" : "other");
    }

    @Override
    public void failed(Exception why) {
        runOnUiThread(() -> said.setText(why.getMessage()));
    }

    @Override
    protected void onPause() {
        if (camera != null) camera.close();
        camera = null;
        super.onPause();
    }

    @Override
    protected void onDestroy() {
        if (tracker != null) tracker.close();
        if (net != null) net.close(); /* a current call keeps it open until the call ends */
        if (engine != null) engine.close();
        super.onDestroy();
    }
}
