package android.content.res;

/** Stands for Android's class, so that what names it compiles here. */
public final class AssetManager {
    public java.io.InputStream open(String name) throws java.io.IOException { return null; }
}
