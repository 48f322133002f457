package android.app;

/** Stands for Android's class, so that what names it compiles here. */
public class Activity extends android.content.Context {
    public static final int RESULT_OK = -1;

    protected void onCreate(android.os.Bundle state) {}
    protected void onResume() {}
    protected void onPause() {}
    protected void onDestroy() {}
    protected void onActivityResult(int request, int result, android.content.Intent data) {}
    public void onRequestPermissionsResult(int request, String[] permissions, int[] answers) {}
    public void setContentView(android.view.View view) {}
    public final void runOnUiThread(Runnable action) {}
    public void startActivityForResult(android.content.Intent intent, int request) {}
    public final void requestPermissions(String[] permissions, int request) {}
}
