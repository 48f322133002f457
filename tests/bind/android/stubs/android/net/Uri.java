package android.net;

/** Stands for Android's class, so that what names it compiles here. */
public abstract class Uri {}
