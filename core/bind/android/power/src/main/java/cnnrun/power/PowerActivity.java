package cnnrun.power;

import android.app.Activity;
import android.content.Context;
import android.content.Intent;
import android.content.IntentFilter;
import android.graphics.Canvas;
import android.graphics.Color;
import android.graphics.Paint;
import android.os.BatteryManager;
import android.os.Bundle;
import android.os.Handler;
import android.os.Looper;
import android.view.View;
import android.widget.Button;
import android.widget.LinearLayout;
import android.widget.TextView;
import cnnrun.app.CpuLoad;
import cnnrun.app.PowerRecord;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Locale;

/**
 * Shows the battery's power as a curve, its energy since the start, and the load. Save writes
 * power.csv to the app's own folder on the shared storage, which `cnnrun power power.csv
 * curves.svg` draws.
 */
public final class PowerActivity extends Activity {
    private static final int PERIOD_MS = 250;
    private static final int POINTS = 240;
    private final PowerRecord record = new PowerRecord("battery");
    private final CpuLoad load = new CpuLoad();
    private final Handler clock = new Handler(Looper.getMainLooper());
    private final Runnable tick = this::tick;
    private BatteryManager battery;
    private Curve curve;
    private TextView said;
    private long began;

    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        battery = (BatteryManager)getSystemService(Context.BATTERY_SERVICE);
        LinearLayout all = new LinearLayout(this);
        all.setOrientation(LinearLayout.VERTICAL);
        Button save = new Button(this);
        save.setText("Save");
        save.setOnClickListener(view -> save());
        all.addView(save);
        all.addView(said = new TextView(this));
        all.addView(curve = new Curve(this, record));
        setContentView(all);
        began = System.nanoTime();
    }

    @Override
    protected void onResume() {
        super.onResume();
        clock.post(tick);
    }

    @Override
    protected void onPause() {
        clock.removeCallbacks(tick);
        super.onPause();
    }

    private void tick() {
        double now = (System.nanoTime() - began) * 1e-9;
        double watts = watts();
        record.add(now, watts);
        String busy;
        try {
            busy = String.format(Locale.ROOT, "%.0f%% of the %s", 100 * load.next(now),
                                 load.wholeMachine() ? "phone" : "app");
        } catch (IOException e) { busy = e.getMessage(); }
        said.setText(String.format(Locale.ROOT, "%.2f W, %.1f J in %.0f s, load %s", watts,
                                   record.joules(0), now, busy));
        curve.invalidate();
        clock.postDelayed(tick, PERIOD_MS);
    }

    /** The battery's power in W; NaN: the phone does not report a current. */
    private double watts() {
        int current = battery.getIntProperty(BatteryManager.BATTERY_PROPERTY_CURRENT_NOW);
        Intent state = registerReceiver(null, new IntentFilter(Intent.ACTION_BATTERY_CHANGED));
        int millivolts = state == null ? 0 : state.getIntExtra(BatteryManager.EXTRA_VOLTAGE, 0);
        if (current == Integer.MIN_VALUE || current == 0 || millivolts <= 0) return Double.NaN;
        return PowerRecord.batteryWatts(current, millivolts);
    }

    private void save() {
        File to = new File(getExternalFilesDir(null), "power.csv");
        try {
            Files.write(to.toPath(), record.csv().getBytes(StandardCharsets.UTF_8));
            said.setText(to.getPath());
        } catch (IOException e) { said.setText(e.getMessage()); }
    }

    private static final class Curve extends View {
        private final PowerRecord record;
        private final Paint paint = new Paint();

        Curve(Context context, PowerRecord record) {
            super(context);
            this.record = record;
            paint.setColor(Color.GREEN);
            paint.setStrokeWidth(4);
        }

        @Override
        protected void onDraw(Canvas canvas) {
            float[] lines = PowerRecord.polyline(record.curve(0, POINTS), getWidth(), getHeight());
            canvas.drawLines(lines, paint);
        }
    }
}
