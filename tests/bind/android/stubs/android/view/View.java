package android.view;

/** Stands for Android's class, so that what names it compiles here. */
public class View {
    public interface OnClickListener {
        void onClick(View view);
    }

    public View(android.content.Context context) {}
    protected void onDraw(android.graphics.Canvas canvas) {}
    public void invalidate() {}
    public final int getWidth() { return 0; }
    public final int getHeight() { return 0; }
    public void setOnClickListener(OnClickListener listener) {}
}
