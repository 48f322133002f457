package cnnrun.app;

/** A detected object: its class, its score, and its edges in pixels of the net's input. */
public final class Box {
    public final int kind;
    public final float score;
    public final float left;
    public final float top;
    public final float right;
    public final float bottom;

    Box(int kind, float score, float left, float top, float right, float bottom) {
        this.kind = kind;
        this.score = score;
        this.left = left;
        this.top = top;
        this.right = right;
        this.bottom = bottom;
    }

    private float area() { return Math.max(0, right - left) * Math.max(0, bottom - top); }

    /** Intersection over union of the two boxes. */
    float overlap(Box other) {
        float width = Math.min(right, other.right) - Math.max(left, other.left);
        float height = Math.min(bottom, other.bottom) - Math.max(top, other.top);
        if (width <= 0 || height <= 0) return 0;
        float both = width * height;
        return both / (area() + other.area() - both);
    }
}
