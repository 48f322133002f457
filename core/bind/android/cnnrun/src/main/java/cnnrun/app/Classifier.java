package cnnrun.app;

import cnnrun.DType;
import cnnrun.Net;
import cnnrun.Tensor;
import cnnrun.Top;
import java.util.List;
import java.util.Locale;

/** Names what pixels show. One thread at a time. The net stays the caller's. */
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

    /** The net's outputs for pixels of the size that the net wants. */
    public Tensor[] run(int[] argb) {
        preprocess.fill(argb, input.floats());
        return net.run(input);
    }

    /** The k best classes, best first. */
    public List<Top> best(int[] argb, int k) { return net.topk(run(argb)[0], k); }

    /** Lines such as "tabby cat 81.3%". Classes without a name have their number. */
    public static String lines(List<Top> best) {
        StringBuilder text = new StringBuilder();
        for (Top top : best) {
            String name = top.label == null ? "class " + top.index : top.label;
            text.append(String.format(Locale.ROOT, "%s %.1f%%%n", name, 100 * top.score));
        }
        return text.toString();
    }
}
