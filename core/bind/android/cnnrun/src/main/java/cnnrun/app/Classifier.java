package cnnrun.app;

import cnnrun.DType;
import cnnrun.Net;
import cnnrun.Tensor;
import cnnrun.Top;
import java.util.List;
import java.util.Locale;

/** Classifies pictures, on one thread at a time. The caller still owns the net. */
public final class Classifier {
    private final Net net;
    private final Preprocess preprocess;
    private final Tensor input;

    public Classifier(Net net, Preprocess preprocess) {
        this.net = net;
        this.preprocess = preprocess;
        input =
            Tensor.allocate(DType.F32, 1, preprocess.planes(), preprocess.height, preprocess.width);
    }

    /** Runs pixels of the size that the net needs; returns the net's outputs. */
    public Tensor[] run(int[] argb) {
        preprocess.fill(argb, input.floats());
        return net.run(input);
    }

    /** The k best classes, best first. */
    public List<Top> best(int[] argb, int k) { return net.topk(run(argb)[0], k); }

    /** Lines such as "tabby cat 81.3%". A class without a name is shown by its number. */
    public static String lines(List<Top> best) {
        StringBuilder text = new StringBuilder();
        for (Top top : best) {
            String name = top.label == null ? "class " + top.index : top.label;
            text.append(String.format(Locale.ROOT, "%s %.1f%%%n", name, 100 * top.score));
        }
        return text.toString();
    }
}
