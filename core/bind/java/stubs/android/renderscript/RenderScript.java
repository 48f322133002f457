package android.renderscript;

/** Stands for Android's class, so that what names it compiles elsewhere. No part of the jar. */
public class RenderScript {
    private RenderScript() {}
}
