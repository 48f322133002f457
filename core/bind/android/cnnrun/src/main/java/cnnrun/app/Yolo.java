package cnnrun.app;

import cnnrun.Tensor;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Boxes of Tiny YOLO (version 2) from the output of its region layer, as Darknet's importer has it:
 * for each anchor planes of x, y, width, height, objectness and a score for each class.
 */
public final class Yolo {
    private final float[] anchors;
    private final int classes;

    /** @param anchors width and height of each anchor, in cells, as in the .cfg file */
    public Yolo(int classes, float... anchors) {
        if (classes < 1 || anchors.length < 2 || anchors.length % 2 != 0)
            throw new IllegalArgumentException("expected classes, and two numbers for each anchor");
        this.classes = classes;
        this.anchors = anchors.clone();
    }

    /**
     * Boxes with a score above a threshold, best first. Of boxes of a class that overlap by more
     * than `overlap`, only the best is returned.
     *
     * @param width width of the net's input in pixels; height likewise
     */
    public List<Box> boxes(Tensor output, int width, int height, float score, float overlap) {
        long[] shape = output.shape();
        int planes = anchors.length / 2 * (5 + classes);
        if (shape.length != 4 || shape[0] != 1 || shape[1] != planes)
            throw new IllegalArgumentException("an output " + output + "; expected 1x" + planes +
                                               "xROWSxCOLUMNS");
        List<Box> found = new ArrayList<>();
        int rows = (int)shape[2];
        int columns = (int)shape[3];
        FloatBuffer values = output.floats();
        for (int a = 0; a < anchors.length / 2; a++) {
            for (int cell = 0; cell < rows * columns; cell++) {
                Box box = box(values, a, cell, rows, columns, width, height, score);
                if (box != null) found.add(box);
            }
        }
        return suppressed(found, overlap);
    }

    /** The box of an anchor in a cell; null: its score is too low. */
    private Box box(FloatBuffer values, int anchor, int cell, int rows, int columns, int width,
                    int height, float score) {
        int area = rows * columns;
        int at = anchor * (5 + classes) * area + cell;
        float object = values.get(at + 4 * area);
        int kind = 0;
        for (int c = 1; c < classes; c++)
            if (values.get(at + (5 + c) * area) > values.get(at + (5 + kind) * area)) kind = c;
        float likely = object * values.get(at + (5 + kind) * area);
        if (!(likely > score)) return null;
        float x = (cell % columns + values.get(at)) * width / columns;
        float y = (cell / columns + values.get(at + area)) * height / rows;
        float w = side(values.get(at + 2 * area), anchors[2 * anchor]) * width / columns;
        float h = side(values.get(at + 3 * area), anchors[2 * anchor + 1]) * height / rows;
        return new Box(kind, likely, x - w / 2, y - h / 2, x + w / 2, y + h / 2);
    }

    private static float side(float value, float anchor) { return (float)Math.exp(value) * anchor; }

    private static List<Box> suppressed(List<Box> found, float overlap) {
        List<Box> kept = new ArrayList<>();
        found.sort((a, b) -> Float.compare(b.score, a.score));
        for (Box box : found) {
            boolean free = true;
            for (Box better : kept)
                free &= box.kind != better.kind || box.overlap(better) <= overlap;
            if (free) kept.add(box);
        }
        return kept;
    }
}
