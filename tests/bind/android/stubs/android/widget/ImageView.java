package android.widget;

/** Stands for Android's class, so that what names it compiles here. */
public class ImageView extends android.view.View {
    public ImageView(android.content.Context context) { super(context); }
    public void setImageBitmap(android.graphics.Bitmap picture) {}
}
