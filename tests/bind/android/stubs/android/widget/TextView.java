package android.widget;

/** Stands for Android's class, so that what names it compiles here. */
public class TextView extends android.view.View {
    public TextView(android.content.Context context) { super(context); }
    public final void setText(CharSequence text) {}
}
