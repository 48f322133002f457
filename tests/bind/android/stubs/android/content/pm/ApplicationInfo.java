package android.content.pm;

/** Stands for Android's class, so that what names it compiles here. */
public class ApplicationInfo {
    public String nativeLibraryDir;
    public String sourceDir;
}
