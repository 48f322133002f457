package android.view;

/** Stands for Android's class, so that what names it compiles here. */
public class Surface {}
