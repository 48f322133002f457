package android.view;

/** Stands for Android's class, so that what names it compiles here. */
public abstract class ViewGroup extends View {
    public ViewGroup(android.content.Context context) { super(context); }
    public void addView(View child) {}
}
