package android.widget;

/** Stands for Android's class, so that what names it compiles here. */
public class LinearLayout extends android.view.ViewGroup {
    public static final int VERTICAL = 1;

    public LinearLayout(android.content.Context context) { super(context); }
    public void setOrientation(int orientation) {}
}
