package android.graphics;

/** Stands for Android's class, so that what names it compiles here. */
public class Canvas {
    public Canvas(Bitmap bitmap) {}
    public void drawRect(float left, float top, float right, float bottom, Paint paint) {}
    public void drawText(String text, float x, float y, Paint paint) {}
    public void drawLines(float[] points, Paint paint) {}
}
