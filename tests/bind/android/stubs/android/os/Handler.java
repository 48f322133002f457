package android.os;

/** Stands for Android's class, so that what names it compiles here. */
public class Handler {
    public Handler(Looper looper) {}
    public final boolean post(Runnable run) { return true; }
    public final boolean postDelayed(Runnable run, long ms) { return true; }
    public final void removeCallbacks(Runnable run) {}
}
