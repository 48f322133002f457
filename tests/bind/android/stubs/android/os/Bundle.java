package android.os;

/** Stands for Android's class, so that what names it compiles here. */
public final class Bundle {}
