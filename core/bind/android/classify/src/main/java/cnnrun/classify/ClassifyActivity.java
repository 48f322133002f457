package cnnrun.classify;

import android.Manifest;
import android.app.Activity;
import android.content.Intent;
import android.content.pm.PackageManager;
import android.graphics.Bitmap;
import android.os.Bundle;
import android.widget.Button;
import android.widget.ImageView;
import android.widget.LinearLayout;
import android.widget.TextView;
import cnnrun.CnnrunException;
import cnnrun.Engine;
import cnnrun.Net;
import cnnrun.android.Camera;
import cnnrun.android.Phone;
import cnnrun.android.Pictures;
import cnnrun.app.Classifier;
import cnnrun.app.Preprocess;
import java.io.IOException;
import java.io.Reader;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Classifies a picture of the gallery or the frames of the camera. Assets: net.cnr, and
 * net.properties, which describes the preprocessing of pictures.
 */
public final class ClassifyActivity extends Activity implements Camera.Listener {
    private static final int PICK = 1;
    private static final int ALLOW = 2;
    private static final int LONGEST = 1024;
    private final ExecutorService worker = Executors.newSingleThreadExecutor();
    private ImageView shown;
    private TextView said;
    private Engine engine;
    private Net net;
    private Preprocess preprocess;
    private Classifier classifier; /* used by the worker thread only */
    private volatile Camera camera;

    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        LinearLayout all = new LinearLayout(this);
        all.setOrientation(LinearLayout.VERTICAL);
        Button gallery = new Button(this);
        gallery.setText("Gallery");
        gallery.setOnClickListener(view -> pick());
        Button live = new Button(this);
        live.setText("Camera");
        live.setOnClickListener(view -> look());
        all.addView(gallery);
        all.addView(live);
        all.addView(said = new TextView(this));
        all.addView(shown = new ImageView(this));
        setContentView(all);
        worker.execute(this::load);
    }

    private void load() {
        try (Reader text = Phone.text(this, "net.properties")) {
            preprocess = Preprocess.read(text);
            engine = Phone.open(this);
            net = engine.load(Phone.file(this, "net.cnr"));
            classifier = new Classifier(net, preprocess);
        } catch (IOException | RuntimeException e) { failed(e); }
    }

    private void pick() {
        stopCamera();
        Intent intent = new Intent(Intent.ACTION_GET_CONTENT);
        intent.setType("image/*");
        startActivityForResult(intent, PICK);
    }

    private void look() {
        stopCamera();
        if (checkSelfPermission(Manifest.permission.CAMERA) == PackageManager.PERMISSION_GRANTED)
            camera = new Camera(this, 640, 480, this);
        else requestPermissions(new String[] {Manifest.permission.CAMERA}, ALLOW);
    }

    @Override
    public void onRequestPermissionsResult(int request, String[] permissions, int[] answers) {
        if (request == ALLOW && answers.length > 0 &&
            answers[0] == PackageManager.PERMISSION_GRANTED)
            look();
    }

    @Override
    protected void onActivityResult(int request, int result, Intent data) {
        if (request != PICK || result != RESULT_OK || data == null) return;
        worker.execute(() -> {
            try {
                classify(Pictures.open(getContentResolver(), data.getData(), LONGEST));
            } catch (IOException e) { failed(e); }
        });
    }

    private void classify(Bitmap picture) {
        if (classifier == null) return; /* load() has shown the reason */
        try {
            long began = System.nanoTime();
            String text =
                Classifier.lines(classifier.best(Pictures.pixels(picture, preprocess), 5));
            long ms = (System.nanoTime() - began) / 1000000;
            runOnUiThread(() -> {
                shown.setImageBitmap(picture);
                said.setText(text + ms + " ms");
            });
        } catch (CnnrunException e) { failed(e); }
    }

    /** Runs on the camera's thread, which waits for it, so that the next frame is the latest. */
    @Override
    public void frame(Bitmap picture) {
        try {
            worker.submit(() -> classify(picture)).get();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (java.util.concurrent.ExecutionException |
                 java.util.concurrent.RejectedExecutionException e) {
            failed(e);
        }
    }

    @Override
    public void failed(Exception why) {
        runOnUiThread(() -> said.setText(why.getMessage()));
    }

    private void stopCamera() {
        if (camera != null) camera.close();
        camera = null;
    }

    @Override
    protected void onPause() {
        stopCamera();
        super.onPause();
    }

    @Override
    protected void onDestroy() {
        worker.execute(() -> {
            classifier = null;
            if (net != null) net.close();
            if (engine != null) engine.close();
        });
        worker.shutdown();
        super.onDestroy();
    }
}
