package cnnrun;

/** A class with its score. */
public final class Top {
    public final long index;
    public final float score;
    /** The name of the class; null if the net has no names. */
    public final String label;

    Top(long index, float score, String label) {
        this.index = index;
        this.score = score;
        this.label = label;
    }

    @Override
    public String toString() {
        return (label == null ? Long.toString(index) : label) + " " + score;
    }
}
