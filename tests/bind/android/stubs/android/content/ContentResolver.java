package android.content;

/** Stands for Android's class, so that what names it compiles here. */
public abstract class ContentResolver {
    public final java.io.InputStream openInputStream(android.net.Uri uri)
        throws java.io.FileNotFoundException {
        return null;
    }
}
