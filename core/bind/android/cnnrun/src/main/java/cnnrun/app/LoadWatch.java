package cnnrun.app;

import java.util.Arrays;

/**
 * Recognises an inference loop by its load (algorithm 5.1 of the thesis of 2018): collects M loads,
 * and compares their distance from a template, by dynamic time warping, with a threshold.
 */
public final class LoadWatch {
    private final double[] template;
    private final double[] loads;
    private final double threshold;
    private int n;
    private double distance = Double.POSITIVE_INFINITY;

    /**
     * @param template loads in percent, one every 0.1 s
     * @param m number of loads that are compared at once
     */
    public LoadWatch(double[] template, int m, double threshold) {
        if (template.length == 0 || m < 1)
            throw new IllegalArgumentException("expected a template and at least 1 load");
        this.template = template.clone();
        loads = new double[m];
        this.threshold = threshold;
    }

    /**
     * Loads in percent from a recording of {@code cnnrun govern record}: 40 readings of the first
     * column NAME.load, from the sixth on, as {@code governors/dtw.lua} takes them.
     */
    public static double[] template(Table recording) {
        for (String name : recording.names()) {
            if (!name.endsWith(".load")) continue;
            double[] all = recording.column(name);
            double[] out =
                Arrays.copyOfRange(all, Math.min(5, all.length), Math.min(all.length, 45));
            for (int i = 0; i < out.length; i++) out[i] *= 100;
            return out;
        }
        throw new IllegalArgumentException("no column whose name ends in .load");
    }

    /** Adds a load in percent. True: M loads are complete and were compared. */
    public boolean add(double percent) {
        loads[n++] = percent;
        if (n < loads.length) return false;
        distance = distance(template, loads);
        n = 0;
        return true;
    }

    /** The distance of the loads compared last; infinite before the first comparison. */
    public double distance() { return distance; }

    public boolean isInference() { return distance < threshold; }

    /** D(i,j) = |a(i) - b(j)| + the least of D(i-1,j), D(i,j-1) and D(i-1,j-1). */
    static double distance(double[] a, double[] b) {
        double[] before = new double[b.length + 1];
        double[] row = new double[b.length + 1];
        Arrays.fill(before, Double.POSITIVE_INFINITY);
        before[0] = 0;
        for (double value : a) {
            row[0] = Double.POSITIVE_INFINITY;
            for (int j = 1; j < row.length; j++)
                row[j] = Math.abs(value - b[j - 1]) +
                         Math.min(before[j - 1], Math.min(before[j], row[j - 1]));
            double[] swap = before;
            before = row;
            row = swap;
        }
        return before[b.length];
    }
}
