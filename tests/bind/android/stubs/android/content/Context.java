package android.content;

/** Stands for Android's class, so that what names it compiles here. */
public abstract class Context {
    public static final String CAMERA_SERVICE = "camera";
    public static final String BATTERY_SERVICE = "batterymanager";

    public android.content.pm.ApplicationInfo getApplicationInfo() { return null; }
    public java.io.File getCacheDir() { return null; }
    public java.io.File getFilesDir() { return null; }
    public java.io.File getExternalFilesDir(String type) { return null; }
    public android.content.res.AssetManager getAssets() { return null; }
    public ContentResolver getContentResolver() { return null; }
    public Object getSystemService(String name) { return null; }
    public int checkSelfPermission(String permission) { return -1; }
    public Intent registerReceiver(BroadcastReceiver receiver, IntentFilter filter) { return null; }
}
