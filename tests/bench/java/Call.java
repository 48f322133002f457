import cnnrun.DType;
import cnnrun.Engine;
import cnnrun.Net;
import cnnrun.Session;
import cnnrun.Tensor;
import java.util.Arrays;

/**
 * Median microseconds of a call with a 227x227x3 direct buffer. Arguments: net, number of calls.
 */
final class Call {
    private interface Work {
        void run();
    }

    private static double median(int calls, Work work) {
        double[] us = new double[calls];
        for (int i = -calls; i < calls; i++) {
            long begin = System.nanoTime();
            work.run();
            if (i >= 0) us[i] = (System.nanoTime() - begin) / 1e3;
        }
        Arrays.sort(us);
        return us[calls / 2];
    }

    public static void main(String[] args) {
        int calls = Integer.parseInt(args[1]);
        try (Engine engine = Engine.open("threads=1"); Net net = engine.load(args[0]);
             Session session = net.session()) {
            Tensor[] in = {Tensor.allocate(DType.F32, 1, 3, 227, 227)};
            Tensor[] out = {Tensor.allocate(DType.F32, 1, 3, 1, 1)};
            System.out.printf("%.2f %.2f %.2f%n", median(calls, () -> net.run(in, out)),
                              median(calls, () -> net.run(in)),
                              median(calls, () -> session.run(in, out)));
        }
    }
}
