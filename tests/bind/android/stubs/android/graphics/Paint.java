package android.graphics;

/** Stands for Android's class, so that what names it compiles here. */
public class Paint {
    public enum Style { FILL, STROKE }

    public void setColor(int color) {}
    public void setStrokeWidth(float width) {}
    public void setStyle(Style style) {}
    public void setTextSize(float size) {}
}
