package android.content;

/** Stands for Android's class, so that what names it compiles here. */
public class Intent {
    public static final String ACTION_GET_CONTENT = "android.intent.action.GET_CONTENT";
    public static final String ACTION_BATTERY_CHANGED = "android.intent.action.BATTERY_CHANGED";

    public Intent(String action) {}
    public Intent setType(String type) { return this; }
    public android.net.Uri getData() { return null; }
    public int getIntExtra(String name, int otherwise) { return otherwise; }
}
