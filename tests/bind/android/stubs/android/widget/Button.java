package android.widget;

/** Stands for Android's class, so that what names it compiles here. */
public class Button extends TextView {
    public Button(android.content.Context context) { super(context); }
}
