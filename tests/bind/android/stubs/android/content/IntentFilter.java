package android.content;

/** Stands for Android's class, so that what names it compiles here. */
public class IntentFilter {
    public IntentFilter(String action) {}
}
