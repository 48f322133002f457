package android.graphics;

/** Stands for Android's class, so that what names it compiles here. */
public final class Rect {}
