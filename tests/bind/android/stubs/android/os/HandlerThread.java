package android.os;

/** Stands for Android's class, so that what names it compiles here. */
public class HandlerThread extends Thread {
    public HandlerThread(String name) { super(name); }
    public Looper getLooper() { return null; }
    public boolean quitSafely() { return true; }
}
